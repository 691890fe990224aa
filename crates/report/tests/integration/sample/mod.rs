//! Records made up for tests and for the example: nothing in them was measured.
//!
//! Latencies are drawn from a seed, so that the same specification gives the same record to the digit.
#![allow(dead_code, reason = "each test takes what it needs")]

mod parts;
mod series;

use record::instrument::timer::TimerSetup;
use record::time::UtcTime;
use record::verdict::{Judgement, Verdict};
use record::{
    CStates, Digest, Header, Lab, LabImages, LabTime, LoadEvidence, PlannedScenario, Record, Scenario,
    ScenarioEnd, ScenarioHead, Series, Setup,
};
use units::{CpuId, Nanos, Seed};

fn interval(head: &ScenarioHead) -> Nanos {
    head.planned.setup.interval().unwrap_or_default()
}

/// A terminal of 80 columns without colours.
pub fn plain() -> report::Style {
    report::Style::default()
}

/// The same record, as if a guest of the lab had made it.
pub fn in_lab(mut record: Record, time: LabTime) -> Record {
    record.header.machine.lab = Some(Lab {
        time,
        kernel: None,
        words: vec!["threadirqs".into()],
        emulator: "QEMU 7.2.17".into(),
        cpu_model: "max,-rdrand,-rdseed,-erms,-fsrm".into(),
        under: None,
        processors: 1,
        not_modelled: time.not_modelled(),
        images: Some(LabImages {
            kernel: Digest("0123456789abcdef".into()),
            booted: Digest("0".into()),
            binary: Digest("1".into()),
            initramfs: Digest("2".into()),
        }),
        parameters: Some(Vec::new()),
    });
    let (speaks_for, does_not_speak_for) = record.judgement.claims.bounds(&record);
    (record.judgement.speaks_for, record.judgement.does_not_speak_for) = (speaks_for, does_not_speak_for);
    record
}

/// Four loads, a limit, a stall in the last.
pub fn failed() -> Record {
    Spec {
        loads: vec!["idle", "cpu", "io", "full"],
        limit: Some(Nanos::from_micros(100)),
        stall: Some(Nanos::from_millis(30)),
        ..Spec::default()
    }
    .record()
}

/// What a record made up is to hold.
#[derive(Clone, Debug)]
pub struct Spec {
    pub loads: Vec<&'static str>,
    pub cpus: u32,
    pub duration: Nanos,
    pub intervals: Vec<Nanos>,
    pub cstates: Vec<CStates>,
    pub repeat: u32,
    pub limit: Option<Nanos>,
    /// Median latency of an idle machine in nanoseconds.
    pub median: u64,
    pub pinned: bool,
    /// The length of a stall in the last load on the first CPU.
    pub stall: Option<Nanos>,
    /// Whether the last scenario was cut off between two saves of its histograms.
    pub cut_off: bool,
    pub seed: u64,
}

impl Default for Spec {
    /// Enea's six loads on two CPUs, 10 s each.
    fn default() -> Self {
        Self {
            loads: vec!["idle", "cpu", "io", "vm", "hdd", "full"],
            cpus: 2,
            duration: Nanos::from_secs(10),
            intervals: vec![Nanos::from_millis(1)],
            cstates: vec![CStates::AsIs],
            repeat: 1,
            limit: None,
            median: 2_400,
            pinned: true,
            stall: None,
            cut_off: false,
            seed: 1,
        }
    }
}

impl Spec {
    /// 24 hours on 64 CPUs: what the budgets of the page are for.
    pub fn long_and_wide() -> Self {
        Self {
            cpus: 64,
            median: 9_000,
            duration: Nanos::from_secs(4 * 3600),
            limit: Some(Nanos::from_micros(100)),
            stall: Some(Nanos::from_millis(3)),
            ..Self::default()
        }
    }

    /// The record.
    pub fn record(&self) -> Record {
        let mut scenarios = Vec::new();
        let mut offset = Nanos::from_secs(2);
        for &interval in &self.intervals {
            for &cstates in &self.cstates {
                for repeat in 1..=self.repeat {
                    for load in &self.loads {
                        let head = self.head(load, interval, cstates, repeat, offset);
                        let last = Some(load) == self.loads.last();
                        let scenario = self.scenario(head, last);
                        offset = offset + scenario.length + Nanos::from_millis(1_400);
                        scenarios.push(scenario);
                    }
                }
            }
        }
        let mut record = Record {
            header: self.header(),
            ended: (!self.cut_off).then_some(UtcTime(STARTED + offset.0 / 1_000_000_000)),
            scenarios,
            explanations: Vec::new(),
            warnings: parts::run_warnings(),
            judgement: Judgement::default(),
        };
        record.judgement = self.judgement(&record);
        record
    }

    fn header(&self) -> Header {
        Header {
            schema_version: record::SCHEMA_VERSION,
            tool: record::Tool { version: "0.1.0".into(), build: "x86_64-linux-gnu static release".into() },
            command_line: ["worstcase", "bench", "--limit", "100us"].map(String::from).to_vec(),
            note: Some("made up for tests: nothing here was measured".into()),
            started: UtcTime(STARTED),
            machine: parts::machine(self.cpus),
            plan: parts::plan(self),
            held: parts::held(),
            tuned: None,
        }
    }

    fn head(
        &self,
        load: &str,
        interval: Nanos,
        cstates: CStates,
        repeat: u32,
        offset: Nanos,
    ) -> ScenarioHead {
        let cpus = (0..self.cpus).map(|cpu| self.pinned.then_some(CpuId(cpu))).collect();
        let mut random = Seed(self.seed).stream("phase");
        let phases = (0..self.cpus).map(|_| Nanos(random.below(interval.0))).collect();
        let started = UtcTime(STARTED + offset.0 / 1_000_000_000);
        let sweeps = vec![];
        let setup = Setup::Timer(TimerSetup { interval, phases, sweeps, ..TimerSetup::default() });
        let planned = PlannedScenario { load: load.into(), cstates, repeat, setup };
        ScenarioHead { planned, started, offset, cpus }
    }

    fn scenario(&self, head: ScenarioHead, last: bool) -> Scenario {
        let cut_off = self.cut_off && last;
        let length = if cut_off { Nanos(self.duration.0 * 7 / 10) } else { self.duration };
        let series: Vec<Series> = (0..self.cpus).map(|cpu| self.series(&head, cpu, length, last)).collect();
        let mut evidence =
            if cut_off { Default::default() } else { parts::evidence(&series, interval(&head)) };
        if !self.pinned {
            evidence.threads.iter_mut().for_each(|thread| thread.migrations = 12);
        }
        let load = if cut_off {
            LoadEvidence::default()
        } else {
            parts::load(&head.planned.load, self.cpus, length)
        };
        let warnings = parts::scenario_warnings(&head.planned.load);
        let end = if cut_off { ScenarioEnd::CutOff } else { ScenarioEnd::Complete };
        Scenario { head, end, length, series, load, evidence, warnings }
    }

    fn series(&self, head: &ScenarioHead, cpu: u32, length: Nanos, last: bool) -> Series {
        let purpose = format!(
            "{} {} {} {} {cpu}",
            head.planned.load,
            interval(head),
            head.planned.cstates,
            head.planned.repeat
        );
        let mut random = Seed(self.seed).stream(&purpose);
        let shape = series::Shape {
            interval: interval(head),
            length,
            median: self.median,
            weight: series::weight(&head.planned.load),
            stall: self.stall.filter(|_| last && cpu == 0),
        };
        let mut made = shape.series(self.pinned.then_some(CpuId(cpu)), &mut random);
        if self.cut_off && last {
            series::keep_first(&mut made, 0.6);
        }
        made
    }

    fn judgement(&self, record: &Record) -> Judgement {
        let worst = record.worst().map_or(Nanos::ZERO, |(latency, _, _)| latency);
        let failed = self.limit.is_some_and(|limit| worst > limit);
        let first = match self.limit {
            Some(limit) if failed => {
                format!("the worst wake-up took {} us, the limit is {limit}", worst.0 / 1_000)
            }
            _ => "measured CPUs are not isolated".into(),
        };
        let claims = record::claims::of(record);
        let (speaks_for, does_not_speak_for) = claims.bounds(record);
        Judgement {
            verdict: if failed { Verdict::Fail } else { Verdict::Inconclusive },
            reasons: vec![first, "this is a virtual machine".into()],
            speaks_for,
            does_not_speak_for,
            claims,
            ..Judgement::default()
        }
    }
}

/// What is left of a series that was cut off before its histogram was saved once.
pub fn keep_nothing(series: &mut Series) {
    series::keep_first(series, 0.0);
}

/// CPUs from 0.
pub fn cpu_list(cpus: u32) -> units::CpuList {
    parts::cpu_list(cpus)
}

/// 2026-11-21T21:12:01Z.
pub const STARTED: u64 = 1_795_295_521;
