//! Which profiles fit a machine.

use record::Fact;
use survey::{Reading, Survey};

use crate::division::Division;
use crate::profile::{Profile, Profiles};

/// The profiles that are audited for, and why, one reason each in the order in which they are shown.
pub(crate) fn choose(survey: &Survey, division: &Division, asked: &[Profile]) -> (Profiles, Vec<String>) {
    let (kernel, kernel_why) = kernel(survey);
    let (usage, usage_why) = usage(survey, division);
    let (virtualization, virtualization_why) = virtualization(survey);
    let found = Profiles { usage, kernel, virtualization };
    let profiles = asked.iter().fold(found.clone(), |profiles, &profile| profiles.with(profile));
    let reason = |profile: Profile, why: String| {
        if asked.contains(&profile) { format!("{profile} (asked for)") } else { format!("{profile} ({why})") }
    };
    let reasons = profiles
        .virtualization
        .map(|profile| reason(profile, virtualization_why))
        .into_iter()
        .chain([reason(profiles.kernel, kernel_why), reason(profiles.usage, usage_why)]);
    let reasons = reasons.collect();
    (profiles, reasons)
}

fn text(reading: &Reading) -> Option<String> {
    reading.value.value().map(ToString::to_string)
}

fn kernel(survey: &Survey) -> (Profile, String) {
    let built =
        |symbol: &str| text(&survey.read(&format!("config:{symbol}"))).is_some_and(|value| value == "y");
    if let Some(symbol) = ["EVL", "XENOMAI"].into_iter().find(|symbol| built(symbol)) {
        return (Profile::Evl, format!("CONFIG_{symbol}=y"));
    }
    let preemption = survey.read("preemption");
    match text(&preemption).as_deref() {
        Some("rt") => (Profile::Rt, "PREEMPT_RT".to_owned()),
        Some(mode) => (Profile::Stock, format!("preemption {mode}")),
        None if built("PREEMPT_RT") => (Profile::Rt, "CONFIG_PREEMPT_RT=y".to_owned()),
        None => (Profile::Stock, "nothing says PREEMPT_RT".to_owned()),
    }
}

fn usage(survey: &Survey, division: &Division) -> (Profile, String) {
    let isolated = &division.isolated;
    if isolated.is_empty() {
        return (Profile::General, "no CPU is isolated".to_owned());
    }
    let tickless = match survey.read("cpus.nohz_full").value {
        Fact::Value(survey::Value::Cpus(cpus)) => cpus.intersection(isolated),
        _ => units::CpuList::new(),
    };
    if tickless.is_empty() {
        (Profile::Isolated, isolated.named())
    } else {
        (Profile::Poll, format!("{} can do without a tick", tickless.named()))
    }
}

fn virtualization(survey: &Survey) -> (Option<Profile>, String) {
    match text(&survey.read("guest")) {
        Some(hypervisor) if hypervisor != "none" => (Some(Profile::Guest), hypervisor),
        _ => (None, String::new()),
    }
}
