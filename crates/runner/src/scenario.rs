//! Measures one scenario: load up, probe prepared, warm-up, measure, everything down again, evidence collected.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use control::LatencyRequest;
use load::{LoadPlan, RunningLoad};
use machine::{Heat, Snapshot};
use probe::{Job, Probe, ProbeError, ProbePlan};
use record::PlannedScenario;
use record::journal::Line;
use record::time::UtcTime;
use record::{
    CStates, Counted, CountedOn, Evidence, Fact, LoadEvidence, RecorderEvidence, Scenario, ScenarioEnd,
    ScenarioHead, ThreadEvidence,
};
use sys::schedule::{BeforeOrdinary, BeforeOthers};
use sys::signal::Signal;
use units::{Nanos, Policy, Seed};

use crate::beside::{self, Beside};
use crate::contexts;
use crate::ending;
use crate::exposure::Looks;
use crate::guest;
use crate::observer::Observer;
use crate::partition::put;
use crate::perf::Perf;
use crate::recorder::Recorder;
use crate::session::Session;
use crate::tracer::{self, Traced};
use crate::watch::Watch;
use failure::{Error, Result};

/// How often the measuring threads are looked at: more seldom than a load.
const WATCH: Duration = Duration::from_millis(250);
/// How often it is looked whether the warm-up is over.
const WARM_UP_TICK: Duration = Duration::from_millis(25);
/// How long loads get until all their workers run.
const LOAD_PATIENCE: Duration = Duration::from_secs(20);

/// A measured scenario, and whether the run goes on after it.
pub struct Measured {
    /// What came out.
    pub scenario: Scenario,
    /// Whether the next scenario is to be measured.
    pub go_on: bool,
}

/// Measures `next`, the scenario `index` (from 0) of `count`, and has late wake-ups traced.
pub fn measure(
    session: &mut Session,
    next: &PlannedScenario,
    index: usize,
    count: usize,
    traced: Option<&mut Traced>,
    observer: &mut dyn Observer,
) -> Result<Measured> {
    let head = head(session, next);
    session.outputs.append(&Line::Scenario(head.clone()));
    let mut watched = session.is_watched(observer.begins(&head, index + 1, count));
    let heat = Heat::read(&session.root, &session.division.measured);
    let _request = (head.planned.cstates == CStates::Restrict).then(|| LatencyRequest::hold(0));
    // The probe gets ready while nothing disturbs it: that says nothing, and under some loads it takes seconds.
    let mut own_group = None;
    let place = |pid| put_inside(session, pid).map(|group| own_group = group);
    let mut probe = Probe::start_at(&session.program, probe_plan(session, &head, traced.as_deref()), place)?;
    // A process that has ended is in no cpuset of v1 any more.
    let partition = machine::partition_around(&session.root, id_of(probe.pid()));
    let mut load = load::start(load_plan(session, &head)?)?;
    let starting = BeforeOrdinary::begin();
    let load_failed = load.wait_running(LOAD_PATIENCE).err();
    let watch = Watch::begin(&session.root, &session.division.measured, &probe);
    let recorder = Recorder::new(head.cpus.len(), index, session.header.plan.instrument.words());
    let mut round = Round {
        recorder,
        watched: Instant::now(),
        looks: Looks::default(),
        hottest: heat.temperature.value().copied(),
        heat,
        watch,
        before: None,
        after: None,
        beside: Vec::new(),
        traced,
    };
    round.beside = begin_beside(session, &head, round.traced.is_some())?;
    let perf = session.header.plan.perf.then(|| Perf::begin(&session.division.measured, probe.tids()));
    probe.go();
    let cpu_time = sys::clock::process_cpu_time();
    // It would go before a measured thread, too, that is an ordinary one.
    let is_real_time = session.header.plan.policy.is_none_or(Policy::is_real_time);
    let recording = is_real_time.then(BeforeOthers::begin);
    drop(starting);
    let end = round.record(session, &mut probe, &mut load, &head, observer, &mut watched)?;
    drop(recording);
    // After the last sample nobody is disturbed by it.
    let done = probe.views().all(|view| view.finished().is_some());
    let ending = done.then(BeforeOrdinary::begin);
    round.beside.iter_mut().for_each(|beside| beside.stop());
    let worst = round.recorder.worst_since_shown();
    let partition = partition.and_then(|was| machine::partition_at(&session.root, &was.group));
    let outside_other = round.watch.last_look(worst, load.supervisor_pid());
    let finished = round.finish(session, &mut probe, &mut load);
    if round.recorder.has_news() {
        watched &= session.is_watched(observer.second(&round.recorder.live(&probe, &head)));
    }
    let end = ending::of(end, &probe, &head, finished.as_ref().err());
    if end == ScenarioEnd::StopAt {
        session.stop_failure = run_stop_command(session, &probe, &head).err().or(session.stop_failure.take());
    }
    let alive = !matches!(finished, Err(ProbeError::Died(_)));
    let mut series = round.recorder.series(&probe, &head, alive);
    round.beside.iter_mut().for_each(|beside| beside.enter(&mut series));
    let length = ending::length(&probe);
    let mut evidence = round.evidence(session, &probe, finished.unwrap_or_default(), cpu_time);
    evidence.partition = partition;
    perf.into_iter().for_each(|perf| perf.enter(&mut evidence.counters));
    let mut load = load.stop();
    drop(ending);
    load.outside_other = outside_other;
    load.shares = round.shares();
    (evidence.watch, evidence.rivals) = round.watch.finish();
    note_failed_load(&mut load, load_failed);
    let go_on = matches!(end, ScenarioEnd::Complete) && watched;
    let mut scenario = Scenario { head, end, length, series, load, evidence, warnings: Vec::new() };
    scenario.enter_tick_phases(&session.header);
    scenario.warnings = record::validity::of_scenario(&session.header, &scenario);
    Ok(Measured { scenario, go_on })
}

/// Begins what goes with the probe: what its instrument needs and, unless this is traced, what the kernel measures.
fn begin_beside(session: &Session, head: &ScenarioHead, is_traced: bool) -> Result<Vec<Box<dyn Beside>>> {
    let (plan, setup) = (&session.header.plan, &head.planned.setup);
    let length = plan.scenario_length(setup).map(|length| length + plan.warm_up);
    let mut begun = beside::begin(&session.root, setup, length)?;
    let make = session.contexts.filter(|_| !is_traced);
    begun.extend(contexts::begin(make, &session.division.measured, setup)?);
    Ok(begun)
}

/// Puts a probe into the partition that the run is for, if there is one: the group that is made for it, if any.
fn put_inside(session: &Session, pid: u32) -> Result<Option<control::Directory>> {
    let Some(partition) = &session.division.partition else { return Ok(None) };
    put(partition, pid)
}

fn id_of(process: u32) -> i32 {
    i32::try_from(process).unwrap_or(i32::MAX)
}

fn head(session: &Session, next: &PlannedScenario) -> ScenarioHead {
    ScenarioHead {
        planned: next.clone(),
        started: UtcTime(sys::clock::unix_seconds()),
        offset: session.began.elapsed().into(),
        cpus: session.header.plan.series_cpus(),
    }
}

fn load_plan(session: &Session, head: &ScenarioHead) -> Result<LoadPlan> {
    let plan = &session.header.plan;
    let load = session.loads.iter().find(|load| load.name == head.planned.load).cloned();
    let load = load.ok_or_else(|| {
        Error::new(format!("there is no load `{}`", head.planned.load), "worstcase load --list")
    })?;
    let mut load_plan = LoadPlan::new(load, session.division.load.clone(), plan.seed.unwrap_or(Seed(0)));
    load_plan.every_cpu = session.division.load.union(&session.division.measured);
    load_plan.limits = guest::limits(session.header.machine.lab.as_ref());
    load_plan.directory = session.directory.clone();
    load_plan.user = session.load_user;
    load_plan.executable.clone_from(&session.program);
    load_plan.duration = plan.scenario_length(&head.planned.setup).map(|length| length + plan.warm_up);
    Ok(load_plan)
}

fn probe_plan(session: &Session, head: &ScenarioHead, traced: Option<&Traced>) -> ProbePlan {
    let plan = &session.header.plan;
    ProbePlan {
        threads: head.cpus.clone(),
        policy: plan.policy.unwrap_or(units::Policy::Fifo),
        priority: plan.priority,
        stop_at: plan.stop_at,
        fail_safe: plan.fail_safe,
        every_sample: session.outputs.saves_samples(),
        housekeeping: session.division.own.clone(),
        marker: traced.map(Traced::marker),
        job: Job::new(&head.planned.setup, &session.header),
    }
}

/// One scenario's comings and goings.
struct Round<'a> {
    recorder: Recorder,
    looks: Looks,
    /// The machine's heat before anything was stressed.
    heat: Heat,
    /// The highest temperature that was read since.
    hottest: Option<i64>,
    /// Over the measuring threads.
    watch: Watch,
    /// When it looked last.
    watched: Instant,
    before: Option<Snapshot>,
    after: Option<Snapshot>,
    /// What the instrument needs in this process.
    beside: Vec<Box<dyn Beside>>,
    /// Catches late wake-ups in a trace, if they are to be explained.
    traced: Option<&'a mut Traced>,
}

impl Round<'_> {
    /// Records until the probe is done, the user or the heat ends it.
    fn record(
        &mut self,
        session: &mut Session,
        probe: &mut Probe,
        load: &mut RunningLoad,
        head: &ScenarioHead,
        observer: &mut dyn Observer,
        watched: &mut bool,
    ) -> Result<ScenarioEnd> {
        let mut shown = Instant::now();
        let patience = ending::Patience::new(probe);
        loop {
            let fds = [session.signals.as_fd(), probe.descriptor()];
            let ready = sys::signal::wait_readable(&fds, self.next_tick(probe, load))?;
            if self.before.is_none() && probe.views().all(|view| view.started().is_some()) {
                self.begin(session, probe, load);
                self.traced.iter_mut().for_each(|traced| traced.begin(probe));
                shown = Instant::now();
            }
            self.beside.iter_mut().for_each(|beside| beside.look(&session.root, probe));
            self.recorder.tick(probe, session);
            self.traced.iter_mut().for_each(|traced| traced.look(probe));
            if self.before.is_some() && !ready[1] && self.watched.elapsed() >= WATCH {
                self.watched = Instant::now();
                self.watch.look(self.recorder.elapsed());
            }
            self.looks.look(load, session);
            while let Some(signal) = session.signals.next() {
                if signal != Signal::User1 {
                    session.asked_to_end = true;
                    return Ok(ending::by(signal, &session.header.plan, self.before.is_some()));
                }
                *watched &= session.is_watched(observer.snapshot(&self.recorder.live(probe, head)));
            }
            if ready[1] {
                return Ok(ScenarioEnd::Complete);
            }
            if shown.elapsed() >= Duration::from_secs(1) {
                shown += Duration::from_secs(1);
                if self.before.is_some() {
                    self.watch.second(self.recorder.worst_since_shown());
                    *watched &= session.is_watched(observer.second(&self.recorder.live(probe, head)));
                    self.recorder.seen();
                }
                // In the warm-up too, and where a thread never comes to its end.
                if self.is_too_hot(session) {
                    return Ok(ScenarioEnd::TooHot);
                }
            }
            if !*watched {
                return Ok(ScenarioEnd::Interrupted);
            }
            if let Some(silence) = patience.exceeded(probe, head) {
                return Ok(ScenarioEnd::Failed(silence));
            }
        }
    }

    /// Short while warming up, so that the measurement's begin is not missed by much.
    fn next_tick(&self, probe: &Probe, load: &RunningLoad) -> Duration {
        let tick = if self.before.is_some() { Looks::patience(load) } else { WARM_UP_TICK };
        let tick = if self.traced.is_some() { tick.min(tracer::MARKED) } else { tick };
        self.beside.iter().filter_map(|beside| beside.patience(probe)).fold(tick, Duration::min)
    }

    fn begin(&mut self, session: &mut Session, probe: &Probe, load: &mut RunningLoad) {
        self.looks.begin(load);
        self.before = Some(Snapshot::take(&session.root, &session.header.machine.cpus.online));
        self.recorder.begin(probe, session);
    }

    fn is_too_hot(&mut self, session: &Session) -> bool {
        let now = Heat::read(&session.root, &session.division.measured);
        self.hottest = self.hottest.max(now.temperature.value().copied());
        too_hot(&self.heat, &now, session.max_temperature)
    }

    /// Stops probe and load and takes the last figures.
    fn finish(
        &mut self,
        session: &mut Session,
        probe: &mut Probe,
        load: &mut RunningLoad,
    ) -> std::result::Result<Vec<ThreadEvidence>, probe::ProbeError> {
        probe.stop();
        if self.before.is_none() {
            self.begin(session, probe, load);
        }
        self.looks.end(load, session);
        self.after = Some(Snapshot::take(&session.root, &session.header.machine.cpus.online));
        let finished = ending::await_report(session, probe);
        self.recorder.tick(probe, session);
        self.traced.iter_mut().for_each(|traced| traced.end(probe));
        finished
    }

    fn evidence(
        &self,
        session: &mut Session,
        probe: &Probe,
        threads: Vec<ThreadEvidence>,
        cpu_time: u64,
    ) -> Evidence {
        let difference = self.snapshots().map(|(before, after)| machine::evidence_between(before, after));
        let recorder = RecorderEvidence {
            cpus: session.division.own.clone(),
            shares_measured_cpus: session.division.shared,
            cpu_time: Nanos(sys::clock::process_cpu_time() - cpu_time),
            longest_sync: session.outputs.take_longest_sync(),
            seconds_lost: self.recorder.seconds_lost(),
            samples_lost: probe.views().map(|view| view.samples_lost()).sum(),
        };
        let kernel_messages = session.kernel_log.since();
        let mut around = difference.unwrap_or_default();
        if let Some(hottest) = self.hottest.max(around.temperature_millidegrees.value().copied()) {
            around.temperature_millidegrees = Fact::Value(hottest);
        }
        threads.iter().for_each(|thread| enter_thread(thread, &mut around.counters));
        Evidence { threads, recorder, kernel_messages, ..around }
    }

    /// The machine before and after the measurement.
    fn snapshots(&self) -> Option<(&Snapshot, &Snapshot)> {
        self.before.as_ref().zip(self.after.as_ref())
    }

    fn shares(&self) -> Vec<record::CpuShare> {
        self.snapshots().map(|(before, after)| machine::busy_between(before, after)).unwrap_or_default()
    }
}

/// What a measuring thread counted of itself.
fn enter_thread(thread: &ThreadEvidence, counters: &mut record::Counters) {
    let of = CountedOn::Thread(thread.thread);
    let switches = thread.voluntary_switches.saturating_add(thread.involuntary_switches);
    counters.add(Counted::ContextSwitches, "getrusage of the thread", of, Fact::Value(switches));
    let waited = thread.waited.clone().map(|waited| waited.0);
    counters.add(Counted::RunQueueWait, "/proc/thread-self/schedstat, warm-up included", of, waited);
}

/// Whether the machine is hotter than it may be (in thousandths of a degree), or slows down for heat as it did not
/// before the scenario.
fn too_hot(before: &Heat, now: &Heat, limit: Option<i64>) -> bool {
    let hot = limit.zip(now.temperature.value()).is_some_and(|(limit, now)| *now > limit);
    let throttles = |heat: &Heat| heat.throttles.value().copied().unwrap_or_default();
    let slowed = throttles(now) > throttles(before);
    let cooled = now.cooling.iter().any(|device| !before.cooling.contains(device));
    hot || slowed || cooled
}

/// A load that did not come up says so in its evidence.
fn note_failed_load(evidence: &mut LoadEvidence, failed: Option<load::Error>) {
    let Some(error) = failed else { return };
    for stressor in evidence.stressors.iter_mut().filter(|stressor| stressor.failures.is_empty()) {
        stressor.failures.push(error.to_string());
    }
}

/// Runs --stop-command and waits for it. What it prints are words: standard output is for data.
fn run_stop_command(session: &Session, probe: &Probe, head: &ScenarioHead) -> Result<()> {
    let Some(command) = &session.stop_command else { return Ok(()) };
    let stopper = probe.views().zip(&head.cpus).find(|(view, _)| view.stopped_by_latency());
    let (latency, cpu) = stopper.map_or((None, None), |(view, cpu)| (view.last(), *cpu));
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .env("WORSTCASE_LATENCY_NS", latency.unwrap_or_default().0.to_string())
        .env("WORSTCASE_CPU", cpu.map_or(String::new(), |cpu| cpu.to_string()))
        .stdin(std::process::Stdio::null())
        .stdout(std::io::stderr());
    sys::process::detach(&mut shell);
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::new(format!("--stop-command: {status}"), "")),
        Err(error) => Err(Error::new(format!("--stop-command: {error}"), "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_over_the_limit_or_a_cpu_that_slows_down_ends_a_scenario() {
        let heat = |temperature, throttles, cooling: &[&str]| Heat {
            temperature: Fact::Value(temperature),
            throttles,
            cooling: cooling.iter().map(|&device| device.to_owned()).collect(),
        };
        let before = heat(50_000, Fact::Value(7), &[]);
        assert!(!too_hot(&before, &heat(90_000, Fact::Value(7), &[]), None));
        assert!(!too_hot(&before, &heat(90_000, Fact::Value(7), &[]), Some(90_000)));
        assert!(too_hot(&before, &heat(90_001, Fact::Value(7), &[]), Some(90_000)));
        assert!(too_hot(&before, &heat(50_000, Fact::Value(8), &[]), None));
        assert!(too_hot(&before, &heat(50_000, Fact::Absent, &["cpufreq-cpu0 at 1 of 2"]), None));
        assert!(!too_hot(&before, &heat(50_000, Fact::Unreadable(13), &[]), Some(90_000)));
    }
}
