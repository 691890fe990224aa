//! What a request becomes on this machine: a plan, the loads, where they write, and as whom.

use std::path::{Path, PathBuf};

use failure::{Error, Result};
use load::{Catalogue, Load};
use record::{CStates, LoadDirectory, LoadLeftOut, Machine, Request, RunPlan, Tuned, Wake};
use sysroot::SysRoot;
use units::Seed;

use crate::contexts::MakeContextTracer;
use crate::division::Division;
use crate::guest;
use crate::outputs::Page;
use crate::tracer::MakeTracer;

/// What a run needs beside a request, and what no message carries.
#[derive(Clone, Debug, Default)]
pub struct Means {
    /// A worstcase binary to start probe and load from; none for this program, which then has called [`crate::enter`].
    pub program: Option<PathBuf>,
    /// What makes a page of a record, for the record's directory.
    pub page: Option<Page>,
    /// What explains late wake-ups, for requests that want it.
    pub tracer: Option<MakeTracer>,
    /// What has the kernel measure beside, for requests that want it.
    pub contexts: Option<MakeContextTracer>,
    /// What tells which settings `worstcase tune` holds; none for a program that does not know.
    pub tuned: Option<AskTuned>,
}

/// What `worstcase tune` holds on this machine; none where that cannot be read.
pub type AskTuned = fn() -> Option<Vec<Tuned>>;

/// What explains late wake-ups, if the request wants it.
pub(crate) fn explain(request: &Request, means: &Means) -> Result<Option<(usize, MakeTracer)>> {
    let Some(wanted) = request.explain else { return Ok(None) };
    let hint = "measure with worstcase: worstcase-agent has nothing that explains";
    let make = means.tracer.ok_or_else(|| Error::new("this program cannot explain late wake-ups", hint))?;
    Ok(Some((usize::try_from(wanted).unwrap_or(usize::MAX), make)))
}

/// What has the kernel measure beside, if the request wants it.
pub(crate) fn contexts(plan: &RunPlan, means: &Means) -> Result<Option<MakeContextTracer>> {
    if !plan.timer().is_some_and(|timer| timer.contexts) {
        return Ok(None);
    }
    let hint = "measure with worstcase: worstcase-agent cannot use the kernel's tracers";
    let make = means.contexts.ok_or_else(|| Error::new("this program has no --contexts", hint))?;
    Ok(Some(make))
}

/// The catalogue, and the user's own command as one more.
pub(crate) fn known_loads(request: &Request) -> Result<Vec<Load>> {
    let mut known = Catalogue::shipped()?.loads().to_vec();
    known.extend(own_load(request));
    Ok(known)
}

fn own_load(request: &Request) -> Option<Load> {
    let own = request.command.as_ref()?;
    Some(Load::from_command(&own.command).proven_by(own.proof))
}

/// What is measured, on which CPUs and under which of `known` loads.
pub(crate) fn plan(request: &Request, division: &Division, known: &[Load]) -> Result<RunPlan> {
    let mut plan = RunPlan {
        instrument: request.instrument.clone(),
        loads: request.loads.clone(),
        cpus: division.measured.clone(),
        left_out: division.left_out.clone(),
        load_cpus: division.load.clone(),
        duration: request.duration,
        samples: request.samples,
        warm_up: request.warm_up,
        policy: Some(request.policy),
        priority: request.priority,
        cstates: request.cstates.clone(),
        repeat: request.repeat,
        seed: Some(request.seed.unwrap_or_else(drawn_seed)),
        limit: request.limit,
        stop_at: request.stop_at,
        fail_safe: request.fail_safe,
        perf: request.perf,
        partition: division.partition.clone(),
        preset: request.preset.clone(),
        ..RunPlan::default()
    };
    let own = own_load(request).map(|own| own.name);
    plan.loads.extend(own.filter(|own| !request.loads.contains(own)));
    if plan.keeps_the_cpu() && division.shared {
        return Err(Error::new(
            "threads that keep their CPUs while they wait would leave none to everything else",
            "leave a CPU out: --cpus names those that are measured",
        ));
    }
    if request.explain.is_some() {
        check_traced(&plan)?;
    }
    plan.pinned = if plan.is_reservation() { division.reservable() } else { division.measured.clone() };
    check_count(&plan)?;
    check_loads(&plan, known)?;
    plan.instrument.check(&plan)?;
    Ok(plan)
}

/// The kernel's trace has to show how threads are woken that are to be explained.
fn check_traced(plan: &RunPlan) -> Result<()> {
    if plan.keeps_the_cpu() {
        return Err(Error::new(
            "a thread that keeps its CPU while it waits is never woken: --explain has nothing to explain",
            "worstcase partition verify --trace names what takes its CPU",
        ));
    }
    let why = match plan.timer().map(|timer| timer.wake) {
        Some(Wake::Kvm) => {
            "a guest and its exits are one piece of the kernel's trace, the return to user space"
        }
        Some(Wake::Evl) => "EVL wakes its threads out of band, where the kernel's trace has no event",
        _ => return Ok(()),
    };
    Err(Error::new(
        format!("{why}: --explain would name the wrong cause"),
        "leave --explain out, or choose another --wake",
    ))
}

/// Leaves restricted C-states out where both policies are planned and it is known that there are none to restrict: the same
/// would be measured twice. Alone they are measured as asked for, and that nothing was restricted is said.
pub(crate) fn restrict(plan: &mut RunPlan, has_idle_states: Option<bool>) {
    let are_both = plan.cstates.contains(&CStates::AsIs) && plan.cstates.contains(&CStates::Restrict);
    if are_both && has_idle_states == Some(false) {
        plan.cstates.retain(|policy| *policy != CStates::Restrict);
        let why = "this kernel has no idle states to restrict (cpuidle): each load is measured once, as-is";
        plan.cstates_left_out = Some(why.to_owned());
    }
}

/// A seed that differs from run to run, short enough to be typed again.
pub fn drawn_seed() -> Seed {
    let clock = Seed(sys::clock::Clock::Realtime.now() ^ u64::from(std::process::id()) << 40);
    Seed(clock.stream("seed").below(1_000_000))
}

/// Refuses loads that do not exist, and those of which no part can run, before anything is measured.
fn check_loads(plan: &RunPlan, known: &[Load]) -> Result<()> {
    let again = plan.loads.iter().enumerate().find(|(place, name)| plan.loads[..*place].contains(name));
    if let Some((_, name)) = again {
        let message = format!("the load {name} is named twice");
        return Err(Error::new(message, "--repeat 2 measures each load twice"));
    }
    for name in &plan.loads {
        let Some(load) = known.iter().find(|load| load.name == *name) else {
            // Says which there are.
            Catalogue::shipped()?.get(name)?;
            continue;
        };
        let missing = load.missing();
        if !missing.is_empty() && missing.len() == load.stressors.len() {
            return Err(load::Error::Missing { load: load.name.clone(), missing }.into());
        }
    }
    Ok(())
}

/// A run whose order nobody could hold.
fn check_count(plan: &RunPlan) -> Result<()> {
    let intervals = plan.timer().map_or(1, |timer| timer.intervals.len());
    let factors = [plan.repeat as usize, plan.loads.len(), plan.cstates.len(), intervals];
    let scenarios = factors.into_iter().fold(1, usize::saturating_mul);
    if scenarios <= RunPlan::MOST_SCENARIOS {
        return Ok(());
    }
    let message = format!("{scenarios} scenarios are more than {}", RunPlan::MOST_SCENARIOS);
    Err(Error::new(message, "repeat them less often: --repeat"))
}

/// Where loads write, if some of them do. Where they cannot, those that write are left out if they may be.
pub(crate) fn directory(
    request: &Request,
    plan: &mut RunPlan,
    known: &[Load],
) -> Result<Option<LoadDirectory>> {
    let writes = |name: &String| known.iter().any(|load| load.name == *name && load.writes());
    if !plan.loads.iter().any(writes) {
        return Ok(None);
    }
    let error = match load_directory(request.load_directory.as_deref()) {
        Ok(directory) => return Ok(Some(directory)),
        Err(error) => error,
    };
    if !request.may_leave_out {
        return Err(error);
    }
    let (left_out, loads): (Vec<String>, Vec<String>) = plan.loads.drain(..).partition(writes);
    let reason = |load| LoadLeftOut { load, reason: error.message.clone() };
    plan.loads_left_out = left_out.into_iter().map(reason).collect();
    plan.loads = loads;
    Ok(None)
}

/// Where loads write: a real disk, unless a directory was named.
///
/// # Errors
/// It is no directory, may not be written to, or is in memory and was not named.
pub fn load_directory(named: Option<&Path>) -> Result<LoadDirectory> {
    let path = named.unwrap_or(Path::new("."));
    let hint = "name a directory on the disk that is to be stressed with --load-dir";
    let failed =
        |error: std::io::Error| Error::new(format!("load directory {}: {error}", path.display()), hint);
    // Neither through a link of another user.
    let opened = files::Directory::open(path).map_err(|error| failed(error.source))?;
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(|errno| failed(errno.into()))?;
    let directory = machine::directory_of(&SysRoot::live(), path);
    let directory =
        directory.ok_or_else(|| Error::new(format!("{} is on no known mount", path.display()), hint))?;
    if !opened.is(Path::new(&directory.path)) {
        return Err(Error::new(
            format!("load directory {}: it was replaced meanwhile", path.display()),
            hint,
        ));
    }
    if named.is_none() && directory.is_in_memory() {
        let message =
            format!("{} is on {}: writing there stresses no disk", directory.path, directory.file_system);
        let hint = match guest::guest()? {
            Some(_) => "give the guest a disk: worstcase lab run --disk",
            None => "name a directory with --load-dir (this one too, if you mean it)",
        };
        return Err(Error::new(message, hint));
    }
    Ok(directory)
}

/// The user that `--load-user` names: by name, or as `UID` or `UID:GID`.
///
/// # Errors
/// There is none of that name, or this is not root, which alone becomes others.
pub fn load_user(named: &str) -> Result<load::User> {
    let own = rustix::process::geteuid().as_raw();
    let user = by_numbers(named).or_else(|| machine::users::find(&SysRoot::live(), named));
    let (user, group) = user.ok_or_else(|| {
        Error::new(format!("--load-user: there is no user {named} in /etc/passwd"), "give UID or UID:GID")
    })?;
    if own != 0 && user != own {
        return Err(Error::new(
            format!("--load-user {named}: only root becomes another user"),
            "run it as root",
        ));
    }
    Ok(load::User { user, group })
}

fn by_numbers(text: &str) -> Option<(u32, u32)> {
    let (user, group) = text.split_once(':').unwrap_or((text, text));
    Some((user.parse().ok()?, group.parse().ok()?))
}

/// The facts that a run is planned by.
impl Division {
    pub(crate) fn asked(root: &SysRoot, machine: &Machine, request: &Request) -> Result<Self> {
        let (wanted, load) = (request.cpus.as_ref(), request.load_cpus.as_ref());
        match &request.partition {
            Some(name) => Self::inside(root, machine, name, wanted, load),
            None => Self::of(root, machine, wanted, load),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_trace_does_not_show_is_not_explained() {
        let refused = |wake| {
            let mut plan = RunPlan::default();
            plan.timer_mut().expect("the timer is the default").wake = wake;
            check_traced(&plan).is_err()
        };
        assert!([Wake::Kvm, Wake::Evl, Wake::RuntimeSpin].into_iter().all(refused));
        assert!(![Wake::Nanosleep, Wake::Timerfd, Wake::RuntimeBlock].into_iter().any(refused));
    }

    #[test]
    fn both_policies_of_c_states_are_measured_unless_it_is_known_that_there_are_none() {
        let both = vec![CStates::AsIs, CStates::Restrict];
        let of = |cstates: &[CStates], known| {
            let mut plan = RunPlan { cstates: cstates.to_vec(), ..RunPlan::default() };
            restrict(&mut plan, known);
            (plan.cstates, plan.cstates_left_out.is_some())
        };
        assert_eq!(of(&both, Some(true)), (both.clone(), false));
        assert_eq!(of(&both, None), (both.clone(), false), "unknown");
        assert_eq!(of(&both, Some(false)), (vec![CStates::AsIs], true));
        assert_eq!(of(&[CStates::Restrict], Some(false)), (vec![CStates::Restrict], false), "as asked for");
    }
}
