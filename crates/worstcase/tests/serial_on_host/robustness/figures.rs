//! What is asked for is measured, and every place that tells a figure tells the same one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use record::samples::{Block, Reader};
use record::{CStates, Record, Scenario, ScenarioEnd, Series};
use rustix::process::Signal;
use units::{CpuId, Nanos};

use crate::support::{BINARY, Run, open_scenario};

const SHORT: [&str; 2] = ["--warm-up", "50ms"];

fn bench(arguments: &[&str]) -> Record {
    Run::bench(&[&SHORT[..], arguments].concat()).end().record()
}

/// The CPUs on which this process may run, and so those that are measured.
fn cpus() -> Vec<CpuId> {
    sys::schedule::affinity(0).unwrap().iter().collect()
}

fn measured(series: &Series) -> (u64, u64) {
    (series.observed.summary().count, series.missed().summary().count)
}

#[test]
fn a_latency_at_the_stop_ends_the_run_and_is_reported() {
    let command = "echo \"$WORSTCASE_CPU $WORSTCASE_LATENCY_NS\" >shown";
    let arguments =
        ["--loads", "idle,cpu", "--duration", "20s", "--stop-at", "1us", "--stop-command", command];
    let ended = Run::bench(&[&SHORT[..], &arguments].concat()).end();
    let record = ended.record();
    assert_eq!((ended.code(), record.scenarios.len()), (Some(1), 1));
    assert_eq!(record.scenarios[0].end, ScenarioEnd::StopAt);
    let shown = fs::read_to_string(ended.path("shown")).unwrap();
    let (cpu, latency) = shown.trim().split_once(' ').unwrap();
    let (cpu, latency): (u32, u64) = (cpu.parse().unwrap(), latency.parse().unwrap());
    let series = record.scenarios[0].series.iter().find(|series| series.cpu == Some(CpuId(cpu))).unwrap();
    assert!(
        latency >= 1000 && series.worst.iter().any(|sample| sample.latency == Nanos(latency)),
        "{shown}: {series:?}"
    );
    let (worst, _, place) = record.worst().unwrap();
    let said = format!(
        "{:.1} us on CPU {} under idle reached --stop-at 1us",
        worst.as_micros_f64(),
        place.cpu.unwrap()
    );
    assert!(ended.out.contains(&said) && ended.out.contains("\nFAIL  "), "{said}: {}", ended.out);
}

#[test]
fn a_stop_command_does_not_write_into_the_data() {
    let arguments = ["--loads", "idle", "--stop-at", "1us", "--stop-command", "echo words", "--json"];
    let ended = Run::bench(&[&SHORT[..], &arguments].concat()).end();
    let record: Record = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(record.scenarios[0].end, ScenarioEnd::StopAt);
    assert!(ended.err.lines().any(|line| line == "words"), "{}", ended.err);
}

/// Latencies by scenario and series.
type Latencies = BTreeMap<(u16, u16), Vec<Nanos>>;

/// What a samples file holds.
fn samples(path: &Path) -> (Vec<Block>, Latencies) {
    let mut reader = Reader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let blocks: Vec<Block> = reader.by_ref().map(Result::unwrap).collect();
    let mut by_series = Latencies::new();
    for block in &blocks {
        let latencies = block.samples.iter().map(|(_, latency)| *latency);
        by_series.entry((block.scenario, block.series)).or_default().extend(latencies);
    }
    (blocks, by_series)
}

#[test]
fn a_samples_file_holds_every_sample() {
    let ended = Run::bench(&[
        "--loads",
        "idle,cpu",
        "--duration",
        "1s",
        "--warm-up",
        "50ms",
        "--samples-file",
        "all",
    ])
    .end();
    let record = ended.record();
    let (_, all) = samples(&ended.path("all"));
    assert_eq!(all.len(), 2 * cpus().len());
    for ((scenario, series), latencies) in &all {
        let series = &record.scenarios[usize::from(*scenario)].series[usize::from(*series)];
        let summary = series.observed.summary();
        assert_eq!(latencies.len() as u64, summary.count);
        assert_eq!(
            (latencies.iter().min(), latencies.iter().max()),
            (summary.minimum().as_ref(), summary.maximum().as_ref())
        );
        assert_eq!(latencies.iter().map(|latency| latency.0).sum::<u64>(), summary.sum);
    }
    let printed = Command::new(BINARY).arg("samples").arg(ended.path("all")).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed.lines().count(), 1 + all.values().map(Vec::len).sum::<usize>());
    assert!(printed.lines().skip(1).all(|line| line.starts_with("0,idle,") || line.starts_with("1,cpu,")));
}

#[test]
fn a_samples_file_survives_a_kill() {
    let mut run =
        Run::bench(&["--loads", "idle", "--duration", "20s", "--warm-up", "50ms", "--samples-file", "all"]);
    run.wait_measured("idle", 2);
    run.signal(Signal::KILL);
    run.assert_nothing_survives("a run with a samples file");
    let (_, seconds) = open_scenario(&run.journal()).unwrap();
    let record = record::store::load(&run.path("record")).unwrap();
    let (blocks, all) = samples(&run.path("all"));
    for ((_, number), latencies) in &all {
        let series = &record.scenarios[0].series[usize::from(*number)];
        let shown = series.observed.summary();
        assert!(
            latencies.len() as u64 >= shown.count,
            "{} samples, {shown:?} in {seconds} s",
            latencies.len()
        );
        assert!(
            latencies.contains(&shown.maximum().unwrap()) && latencies.contains(&shown.minimum().unwrap())
        );
    }
    assert_eq!(all.len(), cpus().len());
    let last =
        blocks.iter().flat_map(|block| &block.samples).map(|(activation, _)| *activation).max().unwrap();
    assert!(last >= 1000 * seconds - 1, "{last} activations in {seconds} s");
}

#[test]
fn every_cpu_delivers_exactly_the_samples_asked_for() {
    let record = bench(&["--loads", "idle,cpu", "--samples", "777", "--interval", "500us"]);
    for scenario in &record.scenarios {
        assert_eq!(scenario.series.len(), cpus().len());
        for series in &scenario.series {
            let (observed, missed) = measured(series);
            assert_eq!((observed + missed, series.expected()), (777, 777), "{}", scenario.head.planned.load);
            assert_eq!(
                series.timeline.blocks.iter().map(|block| block.observed.count).sum::<u64>(),
                observed
            );
        }
    }
}

fn interval(scenario: &Scenario) -> Nanos {
    scenario.head.planned.setup.interval().unwrap()
}

fn phases(scenario: &Scenario) -> Vec<Nanos> {
    scenario.head.planned.setup.timer().unwrap().phases.clone()
}

/// What distinguishes a scenario from others.
fn plot(scenario: &Scenario) -> (String, Nanos, CStates, u32) {
    let head = &scenario.head;
    (head.planned.load.clone(), interval(scenario), head.planned.cstates, head.planned.repeat)
}

const SWEEP: [&str; 10] = [
    "--loads",
    "idle,cpu",
    "--interval",
    "500us,2ms",
    "--cstates",
    "both",
    "--repeat",
    "2",
    "--duration",
    "60ms",
];

#[test]
fn a_sweep_measures_every_combination_in_an_order_drawn_from_the_seed() {
    let [first, again, other] = ["7", "7", "8"].map(|seed| bench(&[&SWEEP[..], &["--seed", seed]].concat()));
    let mut plots: Vec<_> = first.scenarios.iter().map(plot).collect();
    let heads = |record: &Record| -> Vec<_> {
        record.scenarios.iter().map(|scenario| (plot(scenario), phases(scenario))).collect()
    };
    assert_eq!(heads(&first), heads(&again), "equal seeds");
    assert_ne!(heads(&first), heads(&other), "another seed");
    // Where a kernel has no idle states, restricting them is left out and said.
    let policies = match &first.header.plan.cstates_left_out {
        None => vec![CStates::AsIs, CStates::Restrict],
        Some(_) => vec![CStates::AsIs],
    };
    let mut expected = Vec::new();
    for repeat in [1, 2] {
        for load in ["cpu", "idle"] {
            for interval in [500, 2000].map(Nanos::from_micros) {
                let of = |cstates: &CStates| (load.to_owned(), interval, *cstates, repeat);
                expected.extend(policies.iter().map(of));
            }
        }
    }
    plots.sort_by_key(|(load, interval, cstates, repeat)| {
        (*repeat, load.clone(), *interval, *cstates == CStates::Restrict)
    });
    assert_eq!(plots, expected);
    assert!(first.scenarios.iter().all(|scenario| scenario.end == ScenarioEnd::Complete));
    let periods = |scenario: &Scenario| 60_000_000 / interval(scenario).0;
    assert!(
        first
            .scenarios
            .iter()
            .all(|scenario| scenario.series.iter().all(|series| series.expected() == periods(scenario)))
    );
}

/// Where each thread's activations lie between those phases of the tick that its period comes back to.
fn places(scenario: &record::Scenario) -> Vec<u64> {
    let phases = scenario.series.iter().map(|series| *series.timer().unwrap().tick_phases.value().unwrap());
    phases.map(|phases| phases.first.0 % phases.spacing.0).collect()
}

#[test]
fn one_seed_meets_the_same_phases_of_the_tick_under_each_load_and_in_each_run() {
    for phase in ["random", "sweep"] {
        let run = || bench(&["--loads", "idle,cpu", "--duration", "50ms", "--phase", phase, "--seed", "7"]);
        let (first, again) = (run(), run());
        let all: Vec<_> = first.scenarios.iter().chain(&again.scenarios).map(places).collect();
        assert!(all.len() == 4 && all.iter().all(|places| *places == all[0]), "{phase}: {all:?}");
        let stuck = first.scenarios[0].series.iter().all(|series| {
            let phases = series.timer().unwrap().tick_phases.value().unwrap();
            !phases.is_whole() && phases.is_stuck() == (phase == "random")
        });
        assert!(stuck, "{phase}: {:?}", first.scenarios[0].series[0].timer().unwrap().tick_phases);
    }
}

#[test]
fn phases_are_where_they_were_asked_for() {
    let interval = 1_000_000;
    for (phase, place) in [("aligned", 0), ("staggered", interval / cpus().len() as u64)] {
        let record = bench(&["--loads", "idle", "--duration", "50ms", "--phase", phase]);
        let phases: Vec<u64> = phases(&record.scenarios[0]).iter().map(|phase| phase.0).collect();
        assert_eq!(phases, (0..cpus().len() as u64).map(|thread| thread * place).collect::<Vec<_>>());
        let due: Vec<u64> = record.scenarios[0]
            .series
            .iter()
            .map(|series| series.timer().unwrap().first_due.0 % interval)
            .collect();
        let expected: Vec<u64> = phases.iter().map(|phase| (due[0] + phase) % interval).collect();
        assert_eq!(due, expected, "{phase}: the first activations do not lie where the record says");
    }
}

#[test]
fn one_load_alone_says_what_it_did() {
    let ended = Run::start(&["load", "cpu", "--duration", "300ms", "--json"]).end();
    let evidence: record::LoadEvidence = serde_json::from_str(&ended.out).unwrap();
    crate::support::schema::check("load", &serde_json::from_str(&ended.out).unwrap());
    assert_eq!((ended.code(), evidence.name.as_str()), (Some(0), "cpu"));
    assert!(evidence.stressors[0].work > 0 && evidence.shares.len() == cpus().len());
    let failed = Run::start(&["load", "--load-command", "exit 3", "--duration", "300ms"]).end();
    assert_eq!(failed.code(), Some(2));
    // An error where it fails before it counts as started, else in the evidence.
    let said = failed.out + &failed.err;
    assert!(said.contains("ended with status 3"), "{said}");
    let idle = Run::start(&["load", "--load-command", "sleep 100", "--duration", "300ms"]).end();
    assert_eq!(idle.code(), Some(2));
    assert!(idle.err.contains("did no work") && idle.err.contains("--load-proof alive"), "{}", idle.err);
}

#[test]
fn any_bytes_can_be_a_path() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"record-\xff");
    let mut command = Command::new(BINARY);
    command.args(["bench", "--loads", "idle", "--duration", "50ms", "--warm-up", "0s", "--out"]).arg(name);
    let ended = Run::start_as(&mut command).end();
    assert!(matches!(ended.code(), Some(0 | 3)), "{}", ended.err);
    assert!(Path::join(&ended.path(""), name).join("record.json").exists());
}
