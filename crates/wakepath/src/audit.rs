//! The lowest priority at which a hog delays each way of waiting, and which of the kernel's threads has it.

use failure::Result;
use record::wake_path::{Thread, WakePath as Path};
use sysroot::SysRoot;
use units::CpuId;

use crate::trial::{BURST, Trials, trials};
use crate::way::Way;

/// What is audited.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where both threads run.
    pub cpu: CpuId,
    /// The priority of the thread that waits: 2 to 98.
    pub priority: u32,
    /// Which ways.
    pub ways: Vec<Way>,
}

/// Audits each way of `plan`; `follow` is asked before each and ends all by false.
///
/// # Errors
/// Where real-time priorities are refused.
pub fn audit(root: &SysRoot, plan: &Plan, follow: &mut dyn FnMut(&Way) -> bool) -> Result<Vec<Path>> {
    // What runs at each trial whatever the way: the hog, the tick. Whether priorities are allowed is known after it.
    let runs = Runs::of(root, plan.cpu);
    let nanosleep = crate::WAYS[0];
    trials(nanosleep, plan.cpu, (plan.priority, 1), BURST)?;
    let usual = runs.since(root);
    let mut paths = Vec::new();
    for way in &plan.ways {
        if !follow(way) {
            break;
        }
        paths.push(path(root, plan, *way, &usual));
    }
    Ok(paths)
}

fn path(root: &SysRoot, plan: &Plan, way: Way, usual: &[(Thread, u64)]) -> Path {
    let mut path = Path {
        way: way.name.into(),
        title: way.title.into(),
        waker: way.waker,
        worst: None,
        delayed_from: None,
        through: Vec::new(),
        unknown: None,
        instead: way.instead.into(),
    };
    match lowest(plan, way, &mut path) {
        Ok(None) => {}
        Ok(Some(priority)) => {
            path.delayed_from = Some(priority);
            path.through = through(root, plan, way, priority, usual);
        }
        Err(why) => path.unknown = Some(why),
    }
    path
}

/// The lowest priority at which a hog delays the way, by bisection: where one delays, all above do.
fn lowest(plan: &Plan, way: Way, path: &mut Path) -> std::result::Result<Option<u32>, String> {
    let highest = plan.priority - 1;
    let mut delays = |hog: u32| {
        let found: Trials =
            trials(way, plan.cpu, (plan.priority, hog), BURST).map_err(|error| error.message)?;
        if hog == highest {
            path.worst = Some(found.worst());
        }
        match found.are_held_up() {
            Some(delays) => Ok(delays),
            // Once more: something else had the CPU.
            None => trials(way, plan.cpu, (plan.priority, hog), BURST)
                .map_err(|error| error.message)?
                .are_held_up()
                .ok_or_else(|| format!("beside a hog at {hog} some wake-ups were late and some were not")),
        }
    };
    if !delays(highest)? {
        return Ok(None);
    }
    let (mut low, mut high) = (1, highest);
    while low < high {
        let middle = low.midpoint(high);
        match delays(middle)? {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Ok(Some(low))
}

/// Threads of the kernel that run with each wake-up, more often than beside a way that needs none, and whose priority is the one
/// that was found. One without a real-time priority is delayed by any.
fn through(root: &SysRoot, plan: &Plan, way: Way, priority: u32, usual: &[(Thread, u64)]) -> Vec<Thread> {
    const MOST: u64 = crate::TRIALS as u64 * 8 / 10;
    let before = Runs::of(root, plan.cpu);
    if trials(way, plan.cpu, (plan.priority, plan.priority - 1), BURST).is_err() {
        return Vec::new();
    }
    let is_of = |thread: &Thread| match thread.policy.is_real_time() {
        true => thread.priority == priority,
        false => priority == 1,
    };
    let usual =
        |thread: &Thread| usual.iter().find(|(one, _)| one.tid == thread.tid).map_or(0, |(_, runs)| *runs);
    let ran = before.since(root);
    let ran = ran.into_iter().filter(|(thread, runs)| is_of(thread) && *runs >= usual(thread) + MOST);
    ran.map(|(thread, _)| thread).collect()
}

/// How often each thread of the kernel that belongs to a CPU has run.
struct Runs(Vec<(Thread, u64)>);

impl Runs {
    fn of(root: &SysRoot, cpu: CpuId) -> Self {
        let own = machine::tasks::all(root).into_iter().filter(|task| task.kernel);
        let own =
            own.map(|task| machine::tasks::with_affinity(root, task)).filter(|task| task.cpus.contains(cpu));
        let counted = own.filter_map(|task| {
            let runs = machine::tasks::runs(root, task.tid)?;
            let (name, tid, policy, priority) = (task.name, task.tid, task.policy, task.priority);
            Some((Thread { name, tid, policy, priority }, runs))
        });
        Self(counted.collect())
    }

    fn since(&self, root: &SysRoot) -> Vec<(Thread, u64)> {
        let later = |(thread, before): &(Thread, u64)| {
            let now = machine::tasks::runs(root, thread.tid)?;
            Some((thread.clone(), now.saturating_sub(*before)))
        };
        self.0.iter().filter_map(later).collect()
    }
}
