//! From evidence to warnings: what was read, what it does to the figures, how it is cured.
//!
//! A doubt that can only have made latencies longer is a note: the requirement was met all the same. One that can have
//! made them shorter, or that shows another set-up than the one asked for, makes a pass inconclusive. docs/evidence.md
//! has each with its reason.

mod around;
mod lab;
mod load;
mod measuring;
mod partition;
mod place;
mod placement;
mod throttling;
mod watched;

pub use load::LEAST_EXPOSURE_PERMILLE;
use units::{CpuList, Nanos, Policy};

use place::Need;

use crate::WarningId as Id;
use crate::instrument::call::CallSetup;
use crate::{CStates, Fact, Header, LoadEvidence, Machine, Scenario, Setup, ThreadEvidence, Warning};

/// Steal time above this share of a scenario (in per mille) makes the figures those of the hypervisor. Below, it can only
/// have made them worse.
const MOST_STEAL_PERMILLE: u64 = 100;
/// What /dev/cpu_dma_latency reads when nobody asks for anything, in microseconds (kernel/power/qos.c).
const NO_LATENCY_REQUEST: i64 = 2_000_000_000;
/// How the kernel's answer ends where a file is not there.
const MISSING: &str = "(os error 2)";
/// Console log levels up to this let no more than errors through (Documentation/core-api/printk-basics.rst).
const QUIET_CONSOLE: u32 = 4;

/// Warnings that follow from one scenario's evidence.
pub fn of_scenario(header: &Header, scenario: &Scenario) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for thread in &scenario.evidence.threads {
        warnings.extend(of_thread(header, scenario, thread));
        warnings.extend(measuring::of_sleep(header, scenario, thread));
    }
    warnings.extend(of_cpus(scenario));
    warnings.extend(partition::of_probe(header, scenario.evidence.partition.as_ref()));
    warnings.extend(around::of_machine(header, &scenario.evidence));
    warnings.extend(watched::of_threads(scenario));
    warnings.extend(throttling::of_scenario(header, scenario));
    warnings.extend(place::of_quotas(scenario));
    // Before anything was measured no load need have run.
    if scenario.is_measured() {
        warnings.extend(load::of_load(header, &scenario.load));
    }
    warnings.extend(measuring::of_accounts(header, scenario));
    warnings.extend(measuring::of_phases(scenario));
    warnings.extend(scenario.head.planned.setup.warnings(scenario));
    warnings.extend(measuring::of_recording(&scenario.evidence.recorder));
    warnings.extend(measuring::of_end(scenario));
    warnings
}

/// Warnings that follow from the machine and the plan, whatever was measured.
pub fn of_run(header: &Header, scenarios: &[Scenario]) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = lab::of_guest(header);
    warnings.extend(of_set_up(header));
    warnings.extend(place::of_machine(&header.machine));
    warnings.extend(of_division(header));
    warnings.extend(measuring::of_plan(header, scenarios));
    warnings.extend(load::left_out(header));
    warnings.extend(header.plan.instrument.warnings());
    let shares = scenarios.iter().find(|scenario| scenario.evidence.recorder.shares_measured_cpus);
    warnings.extend(shares.map(|scenario| {
        Warning::note(
            Id::RecorderShares,
            format!(
                "recorder and display may run on {}, all of them measured",
                scenario.evidence.recorder.cpus.named()
            ),
            "leave a CPU to them: choose the measured ones with --cpus",
        )
    }));
    warnings.retain(|warning| lab::has_sense(warning.id, header.machine.lab.as_ref()));
    warnings
}

/// That late wake-ups were to be explained and were not: why, and what helps, as far as that is known.
pub fn not_explained(why: &str, cure: &str) -> Warning {
    let cure = if cure.is_empty() { "explain a run on another machine, or as root" } else { cure };
    Warning::note(Id::NotExplained, why, cure)
}

/// Warnings that follow from a load that ran alone.
pub fn of_load_alone(load: &LoadEvidence) -> Vec<Warning> {
    load::of_load_alone(load)
}

fn of_thread(header: &Header, scenario: &Scenario, thread: &ThreadEvidence) -> Vec<Warning> {
    let plan = &header.plan;
    let cpu = scenario.head.cpus.get(thread.thread as usize).copied().flatten();
    let who = scenario.thread_name(thread.thread as usize);
    let mut warnings = Vec::new();
    let wanted = if plan.is_reservation() { Some(Policy::Deadline) } else { plan.policy };
    if thread.policy != wanted {
        let read = thread.policy.map_or("unreadable", Policy::kernel_name);
        warnings.push(Warning::inconclusive(
            Id::PolicyDiffers,
            format!("{who} ran as {read}, {} was asked for", wanted.map_or("nothing", Policy::kernel_name)),
            place::cure(header, Need::Scheduling),
        ));
    } else if plan.priority.is_some_and(|priority| u32::from(priority.get()) != thread.priority) {
        warnings.push(Warning::inconclusive(
            Id::PriorityDiffers,
            format!("{who} ran at priority {}", thread.priority),
            "did another program change it while it ran? see chrt -p",
        ));
    }
    if let Some(cpu) = cpu.filter(|&cpu| thread.affinity != CpuList::from_iter([cpu])) {
        warnings.push(Warning::inconclusive(
            Id::AffinityDiffers,
            format!("{who} was allowed on {} instead of CPU {cpu} alone", thread.affinity.named()),
            "did another program change it while it ran? see taskset -p",
        ));
    }
    if cpu.is_none() {
        warnings.push(Warning::note(
            Id::NotPerCpu,
            format!("{who} was not pinned and changed CPUs {} times", thread.migrations),
            "a deadline thread can be pinned where its affinity spans its root domain: in an isolated cpuset partition",
        ));
    } else {
        warnings.extend(placement::of_thread(&who, &scenario.head, thread));
    }
    if !thread.memory_locked {
        warnings.push(Warning::note(
            Id::MemoryNotLocked,
            "mlockall was refused",
            place::cure(header, Need::Memory),
        ));
    }
    let are_measured =
        matches!(&scenario.head.planned.setup, Setup::Call(setup) if setup.call == CallSetup::FAULT);
    if thread.minor_faults + thread.major_faults > 0 && !are_measured {
        warnings.push(Warning::note(
            Id::PageFaults,
            format!("{who}: {} without and {} with I/O", thread.minor_faults, thread.major_faults),
            place::cure(header, Need::Memory),
        ));
    }
    if thread.timer_slack > Nanos(1) && thread.policy.is_some_and(|policy| !policy.is_real_time()) {
        warnings.push(Warning::note(
            Id::TimerSlack,
            format!("{who} has a timer slack of {}", thread.timer_slack),
            "timers of ordinary threads are late by up to the slack: see PR_SET_TIMERSLACK in prctl(2)",
        ));
    }
    if thread.clock_is_system_call {
        let source = &header.machine.clock_source;
        warnings.push(Warning::note(
            Id::SlowClock,
            format!("the clock source ({source}) has no vDSO path"),
            "its cost is in every latency; a clock source such as tsc or arch_sys_counter has none",
        ));
    }
    if thread.clock_steps > 0 {
        warnings.push(Warning::note(
            Id::ClockStepped,
            format!("{who} saw the {} clock set {} times", plan.clock(), thread.clock_steps),
            "the steps were taken out of the figures; measure on the monotonic clock, or stop what sets the clock",
        ));
    }
    warnings
}

fn of_cpus(scenario: &Scenario) -> Vec<Warning> {
    let measured: CpuList = scenario.head.cpus.iter().flatten().copied().collect();
    let mut warnings = Vec::new();
    for cpu in scenario.evidence.cpus.iter().filter(|cpu| measured.contains(cpu.cpu)) {
        let name = cpu.cpu;
        if let Some(&steal) = cpu.steal.value().filter(|steal| steal.0 > 0) {
            let permille = steal.0.saturating_mul(1000) / scenario.length.0.max(1);
            let warn = if permille > MOST_STEAL_PERMILLE { Warning::inconclusive } else { Warning::note };
            warnings.push(warn(
                Id::Steal,
                format!(
                    "CPU {name}: {} ms stolen, {}.{} % of the time",
                    steal.0 / 1_000_000,
                    permille / 10,
                    permille % 10
                ),
                "measure on the hardware itself, or give the guest CPUs of its own",
            ));
        }
        if let Some(&smis) = cpu.smis.value().filter(|count| **count > 0) {
            warnings.push(Warning::note(
                Id::Smi,
                format!("CPU {name}: {smis} (MSR 0x34)"),
                "the firmware takes the CPU unseen by the kernel: look for USB legacy and power options in its set-up",
            ));
        }
        if let Some(&events) = cpu.thermal_throttles.value().filter(|count| **count > 0) {
            warnings.push(Warning::note(
                Id::ThermalThrottle,
                format!("CPU {name}: {events} times"),
                "improve the cooling, or lower the load; what was measured is a slower machine",
            ));
        }
    }
    warnings
}

fn of_set_up(header: &Header) -> Vec<Warning> {
    let (machine, plan) = (&header.machine, &header.plan);
    let mut warnings = Vec::new();
    if let Fact::Value(hypervisor) = &machine.virtualization {
        if hypervisor != "none" {
            warnings.push(Warning::note(
                Id::Guest,
                format!("under {hypervisor}"),
                "its host can stop it at any time, seen or unseen: a bound holds for this guest on this host only",
            ));
        }
    }
    if plan.policy == Some(Policy::Other) && !plan.is_reservation() {
        let cure = "for a real-time thread's latency use --policy fifo";
        warnings.push(Warning::note(Id::NotRealTime, "policy other was asked for", cure));
    }
    if plan.is_reservation() {
        warnings.push(Warning::inconclusive(
            Id::Jitter,
            "zero is the earliest wake-up of the warm-up, not the start of the period, which the kernel does not tell",
            "for latencies use --wake nanosleep; for a reservation's jitter give no limit",
        ));
    }
    warnings.extend(of_throttling(machine));
    let own_request = header.held.iter().any(|held| held.what == "/dev/cpu_dma_latency");
    if let Some(&limit) = machine.dma_latency_us.value().filter(|&&limit| limit != NO_LATENCY_REQUEST) {
        // Without its holder an application finds deeper idle states; a request of our own is as strict.
        let warn = if own_request { Warning::note } else { Warning::inconclusive };
        warnings.push(warn(
            Id::ForeignLatencyRequest,
            format!("/dev/cpu_dma_latency was at {limit} us before the run"),
            "find who holds it (fuser /dev/cpu_dma_latency): without it the idle states are deeper",
        ));
    }
    let refused =
        header.held.iter().find(|held| held.what == "/dev/cpu_dma_latency" && held.effective != held.value);
    if let Some(held) = refused.filter(|_| own_request) {
        warnings.push(Warning::inconclusive(
            Id::LatencyRequestFailed,
            format!("asked for {} us, it is {}", held.value, held.effective),
            if held.effective.ends_with(MISSING) {
                "this kernel has no such device, or /dev does not show it: mount -t devtmpfs devtmpfs /dev"
            } else {
                "run as root: only root may open /dev/cpu_dma_latency"
            },
        ));
    } else if plan.cstates.contains(&CStates::Restrict) && !own_request {
        let evidence = "no request is held";
        warnings.push(Warning::inconclusive(
            Id::LatencyRequestFailed,
            evidence,
            "run as root, on a kernel with cpuidle",
        ));
    }
    for governor in machine.governors.iter().filter(|governor| governor.name != "performance") {
        warnings.push(Warning::note(
            Id::Governor,
            format!("{} on {}", governor.name, governor.cpus.named()),
            "fix it: echo performance > /sys/devices/system/cpu/cpuN/cpufreq/scaling_governor",
        ));
    }
    warnings.extend(of_consoles(machine));
    if let Some(&load) = machine.load_average_hundredths.value() {
        let cpus = machine.cpus.online.len().max(1) as u32;
        if load > 50 * cpus {
            warnings.push(Warning::note(
                Id::BusyBefore,
                format!("load average {}.{:02} on {cpus} CPUs", load / 100, load % 100),
                "`idle` means no load of ours: end other work for a quieter figure",
            ));
        }
    }
    warnings
}

/// Output to a serial line runs with interrupts off in many drivers, the kernel's as well as our own (EVL).
fn of_consoles(machine: &Machine) -> Vec<Warning> {
    let console = machine.consoles.value().and_then(|consoles| consoles.iter().find(|name| is_serial(name)));
    let loud = machine.console_log_level.value().is_none_or(|&level| level > QUIET_CONSOLE);
    let kernel = console.filter(|_| loud).map(|console| {
        let evidence = format!("{console}, log level {}", machine.console_log_level);
        let cure = "boot with `quiet`, or lower the console log level: dmesg -n 1";
        Warning::note(Id::SerialConsole, evidence, cure)
    });
    let own = machine.terminal.as_deref().filter(|name| is_serial(name)).map(|terminal| {
        let cure = "run it over ssh, or send its output to a file";
        Warning::note(Id::SerialConsole, format!("this program shows its progress on {terminal}"), cure)
    });
    kernel.into_iter().chain(own).collect()
}

/// Whether a terminal or console of this name is a serial line, so that each character printed costs time: `ttyS0`,
/// `/dev/ttyAMA0`, `ttymxc1`, and the hypervisor's `hvc0`; `tty0` is a screen.
fn is_serial(terminal: &str) -> bool {
    let name = terminal.rsplit('/').next().unwrap_or_default();
    let after_tty = name.strip_prefix("tty").and_then(|rest| rest.chars().next());
    name != "ttynull" && (after_tty.is_some_and(|c| c.is_ascii_alphabetic()) || name.starts_with("hvc"))
}

fn of_throttling(machine: &Machine) -> Option<Warning> {
    let throttling = &machine.throttling;
    let fair_server = throttling.fair_server_runtime.value().filter(|runtime| runtime.0 > 0);
    let (runtime, period) = (throttling.runtime_us.value().copied(), throttling.period_us.value().copied());
    let evidence = match (fair_server, runtime, period) {
        (Some(runtime), ..) => format!("the fair server holds {runtime} of each second for ordinary threads"),
        (None, Some(runtime), Some(period)) if runtime >= 0 && runtime < period => {
            format!("sched_rt_runtime_us is {runtime} of {period}")
        }
        _ => return None,
    };
    let cure =
        "of no consequence unless real-time threads fill a CPU; then it stops them, and the figures show it";
    Some(Warning::note(Id::ThrottlingOn, evidence, cure))
}

fn of_division(header: &Header) -> Vec<Warning> {
    let (cpus, plan) = (&header.machine.cpus, &header.plan);
    let mut warnings = Vec::new();
    warnings.extend(plan.cstates_left_out.as_ref().map(|why| {
        let cure = "nothing to do: restricted they would be the same figures again";
        Warning::note(Id::CStatesLeftOut, why, cure)
    }));
    let isolated = cpus.isolated.value().cloned().unwrap_or_default();
    let apart = plan.partition.as_ref().map_or(isolated.clone(), |partition| isolated.union(&partition.cpus));
    let common = plan.cpus.difference(&apart);
    if !common.is_empty() {
        warnings.push(Warning::note(
            Id::NotIsolated,
            format!("everything else may run on {} too", common.named()),
            "isolate CPUs for real-time work (isolcpus=managed_irq,domain,CPUS, or a cpuset partition) and measure those",
        ));
    }
    if !plan.claimed_by_others.is_empty() {
        warnings.push(Warning::note(
            Id::ClaimedByOthers,
            format!("a process of another user claims {}", plan.claimed_by_others.named()),
            "if it measures too, each makes the other late: `ss -xlp | grep worstcase` names it",
        ));
    }
    for left_out in &plan.left_out {
        warnings.push(Warning::note(
            Id::CpusLeftOut,
            format!("{}: {}", left_out.cpus.named(), left_out.reason),
            "the verdict does not speak for them; name the CPUs you mean with --cpus",
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{header, scenario};
    use crate::{CpuEvidence, Effect};
    use units::CpuId;

    fn ids(warnings: &[Warning]) -> Vec<(Id, Effect)> {
        warnings.iter().map(|warning| (warning.id, warning.effect)).collect()
    }

    #[test]
    fn every_doubt_has_its_effect_and_reason_in_the_documents() {
        let text = include_str!("../../../docs/evidence.md");
        let (_, table) = text.split_once("## What a doubt does to a verdict").unwrap();
        for id in Id::ALL {
            assert!(
                table.contains(&format!("`{id}`")),
                "{id} is not in docs/evidence.md, under What a doubt does to a verdict"
            );
        }
    }

    #[test]
    fn a_clean_scenario_has_no_warnings() {
        let warnings = of_scenario(&header(), &scenario(&[5_000]));
        assert_eq!(
            warnings,
            vec![],
            "does a new condition read what verdict::tests::scenario lacks? add it there"
        );
    }

    #[test]
    fn a_thread_that_was_not_what_was_asked_for_makes_it_inconclusive() {
        let mut scenario = scenario(&[5_000]);
        let thread = &mut scenario.evidence.threads[0];
        (thread.policy, thread.priority) = (Some(Policy::Other), 0);
        thread.affinity = "0-1".parse().unwrap();
        let inconclusive = [Id::PolicyDiffers, Id::AffinityDiffers].map(|id| (id, Effect::Inconclusive));
        assert_eq!(ids(&of_scenario(&header(), &scenario)), inconclusive);
    }

    #[test]
    fn little_steal_is_noted_and_much_is_not_this_kernels_latency() {
        let mut scenario = scenario(&[5_000]);
        for (stolen, effect) in
            [(Nanos::from_millis(1_000), Effect::Note), (Nanos::from_millis(1_020), Effect::Inconclusive)]
        {
            let steal = Fact::Value(stolen);
            scenario.evidence.cpus = vec![CpuEvidence { cpu: CpuId(0), steal, ..CpuEvidence::default() }];
            assert_eq!(ids(&of_scenario(&header(), &scenario)), [(Id::Steal, effect)]);
        }
    }

    #[test]
    fn what_can_only_delay_is_a_note_and_what_can_flatter_is_not() {
        let mut slow = scenario(&[5_000]);
        slow.evidence.threads[0].minor_faults = 2;
        slow.evidence.cpus =
            vec![CpuEvidence { cpu: CpuId(0), thermal_throttles: Fact::Value(3), ..CpuEvidence::default() }];
        let notes = [Id::PageFaults, Id::ThermalThrottle].map(|id| (id, Effect::Note));
        assert_eq!(ids(&of_scenario(&header(), &slow)), notes);
        let mut flattered = scenario(&[5_000]);
        flattered.evidence.watch.latency_request_us = Fact::Value(0);
        let foreign = [(Id::ForeignLatencyRequest, Effect::Inconclusive)];
        assert_eq!(ids(&of_scenario(&header(), &flattered)), foreign);
        let mut before = header();
        before.machine.dma_latency_us = Fact::Value(0);
        assert_eq!(ids(&of_scenario(&before, &flattered)), []);
        assert_eq!(ids(&of_run(&before, &[scenario(&[5_000])])), foreign);
    }

    #[test]
    fn a_reservation_has_jitter_and_no_latency_that_could_pass() {
        let mut header = header();
        header.plan.timer_mut().unwrap().wake = crate::Wake::Deadline;
        let warnings = of_run(&header, &[scenario(&[5_000])]);
        assert_eq!(ids(&warnings), [(Id::Jitter, Effect::Inconclusive)]);
    }

    #[test]
    fn being_a_guest_is_a_note() {
        let mut header = header();
        header.machine.virtualization = Fact::Value("kvm".into());
        assert_eq!(ids(&of_run(&header, &[scenario(&[5_000])])), [(Id::Guest, Effect::Note)]);
    }

    #[test]
    fn a_request_for_shallow_idle_states_that_was_not_honoured_is_not_passed_over() {
        let mut header = header();
        header.plan.cstates = vec![CStates::Restrict];
        assert_eq!(
            ids(&of_run(&header, &[scenario(&[5_000])])),
            [(Id::LatencyRequestFailed, Effect::Inconclusive)]
        );
    }

    #[test]
    fn a_device_that_is_not_there_is_not_cured_by_root() {
        let cure = |errno: i32| {
            let mut header = header();
            header.plan.cstates = vec![CStates::Restrict];
            let error = std::io::Error::from_raw_os_error(errno);
            header.held = vec![crate::Held {
                what: "/dev/cpu_dma_latency".into(),
                value: "0".into(),
                effective: format!("cannot open /dev/cpu_dma_latency: {error}"),
                during: String::new(),
            }];
            let warnings = of_run(&header, &[scenario(&[5_000])]);
            warnings.into_iter().find(|warning| warning.id == Id::LatencyRequestFailed).unwrap().cure
        };
        assert!(cure(2).contains("no such device"), "{}", cure(2));
        assert!(cure(13).contains("as root"), "{}", cure(13));
    }

    #[test]
    fn a_serial_console_is_noted_where_something_prints_on_it() {
        let mut machine =
            Machine { consoles: Fact::Value(vec!["tty0".into(), "ttyAMA0".into()]), ..Machine::default() };
        machine.console_log_level = Fact::Value(4);
        assert!(of_consoles(&machine).is_empty());
        machine.console_log_level = Fact::Value(7);
        assert_eq!(ids(&of_consoles(&machine)), [(Id::SerialConsole, Effect::Note)]);
        machine.terminal = Some("/dev/ttyS0".into());
        assert_eq!(of_consoles(&machine).len(), 2);
        machine.terminal = Some("/dev/pts/3".into());
        assert_eq!(of_consoles(&machine).len(), 1);
    }

    #[test]
    fn serial_lines_are_distinguished_from_screens() {
        for (name, serial) in [
            ("ttyS0", true),
            ("ttyAMA0", true),
            ("ttymxc1", true),
            ("hvc0", true),
            ("tty0", false),
            ("tty1", false),
            ("ttynull", false),
            ("netcon0", false),
            ("", false),
        ] {
            assert_eq!(is_serial(name), serial, "{name}");
        }
    }

    #[test]
    fn a_policy_of_c_states_that_was_left_out_is_noted_with_its_reason() {
        let mut header = header();
        header.plan.cstates_left_out = Some("there are none".into());
        let warnings = of_run(&header, &[scenario(&[5_000])]);
        assert_eq!(ids(&warnings), [(Id::CStatesLeftOut, Effect::Note)]);
        assert_eq!(warnings[0].evidence, "there are none");
    }

    #[test]
    fn what_was_not_explained_is_a_note_with_a_cure() {
        let known = not_explained("idle was not explained: no tracefs", "mount it");
        assert_eq!((known.effect, known.cure.as_str()), (Effect::Note, "mount it"));
        assert!(!not_explained("idle was not explained", "").cure.is_empty());
    }

    #[test]
    fn unreadable_throttling_is_not_taken_for_throttling_off() {
        let mut machine = Machine::default();
        assert!(of_throttling(&machine).is_none());
        (machine.throttling.runtime_us, machine.throttling.period_us) =
            (Fact::Value(950_000), Fact::Value(1_000_000));
        assert_eq!(of_throttling(&machine).unwrap().id, Id::ThrottlingOn);
        machine.throttling.runtime_us = Fact::Value(-1);
        assert!(of_throttling(&machine).is_none());
    }
}
