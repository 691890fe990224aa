//! What can be changed, one small file a family: how its objects are found, read, written and compared.

mod file;
mod form;
mod freed;
mod frequency;
mod hazard;
mod idle;
mod interrupt;
mod partition;
mod service;
mod swap;
mod target;
mod thread;

use record::Fact;
use sysroot::SysRoot;
use units::{CpuList, KernelVersion};

use crate::plan::{Change, Refusal, Step};

pub use file::{is_of_kernel, is_setting};
pub use form::Form;
pub(crate) use frequency::order_limits;
pub use hazard::why_refused;
pub(crate) use hazard::{effect, heavy};
pub use partition::NAME as PARTITION;
pub use target::{Target, Thread};

/// The version of the kernel that runs; none where it cannot be read.
fn kernel_version(root: &SysRoot) -> Option<KernelVersion> {
    root.read("/proc/sys/kernel/osrelease").value()?.parse().ok()
}

/// What a change comes to on this machine.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    pub steps: Vec<Step>,
    pub refusals: Vec<Refusal>,
}

impl Expansion {
    fn refuse(&mut self, what: impl Into<String>, why_not: impl Into<String>) {
        self.refusals.push(Refusal { rule: String::new(), what: what.into(), why_not: why_not.into() });
    }

    /// Adds the change of `target` towards `wanted`, if it is not so already.
    fn change(&mut self, root: &SysRoot, target: Target, wanted: &str) {
        self.add(root, target, |form, now| form.change(now, wanted));
    }

    /// Adds the change of `target` to just `wanted`, if it is not so already: sets of CPUs are widened too, and stricter
    /// limits are loosened.
    fn set(&mut self, root: &SysRoot, target: Target, wanted: &str) {
        let exactly =
            |form: Form, now: &str| (!form.same(&form.value(now), wanted)).then(|| wanted.to_owned());
        self.add(root, target, exactly);
    }

    fn add(&mut self, root: &SysRoot, target: Target, new: impl FnOnce(Form, &str) -> Option<String>) {
        let now = match target.text(root) {
            Fact::Value(text) => text,
            Fact::Unreadable(errno) => {
                return self.refuse(target.to_string(), hazard::unreadable(&target.to_string(), errno));
            }
            Fact::Absent | Fact::Unsupported => return,
        };
        let form = target.form(&now);
        let Some(new) = new(form, &now) else { return };
        let old = form.value(&now);
        match hazard::one_way(&target, &old) {
            Some(why) => self.refuse(target.to_string(), why),
            None => self.steps.push(Step::new(target, old, new)),
        }
    }
}

/// The changes that `change` comes to on the machine at `root`. Files of single CPUs are changed for the CPUs
/// `real_time` only.
pub(crate) fn expand(root: &SysRoot, change: &Change, real_time: &CpuList) -> Expansion {
    match change {
        Change::Files { path, value } if path.ends_with(idle::LIMIT) => idle::expand(root, value, real_time),
        Change::Files { path, value } if path.ends_with(frequency::GOVERNOR) => {
            frequency::expand(root, value, real_time)
        }
        Change::Files { path, value } if path.as_str() == interrupt::FILES => interrupt::expand(root, value),
        Change::Files { path, value } => file::expand(root, path, value, real_time),
        Change::Named { path, value } => file::named(root, path, value),
        Change::Partition(cpus) => partition::expand(root, cpus),
        Change::Threads(threads) => thread::expand(root, threads, real_time),
        Change::Stop(program) => service::expand(root, program),
        Change::SwapOff => swap::expand(root),
        Change::Handlers(handlers) => interrupt::handlers(root, handlers),
    }
}
