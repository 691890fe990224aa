//! A partition in a slice of systemd. Where systemd runs the control groups are its own: it takes the cpuset controller
//! away from all groups, partitions included, whenever no unit of its own needs it (`systemctl daemon-reload` is enough).
//! So the slice's CPUs are a property of a unit (systemd.resource-control(5), `AllowedCPUs=`), and only the partition is
//! written beside it.

use std::fmt;

use control::{Kernel, SliceProperty};
use machine::is_slice;
use record::Fact;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;

use super::{EFFECT, Expansion, NAME, Phase, STATE, Target, WHAT, nodes_of};
use crate::setting::{Form, Found, Kind, Step, freed};
use units::CpuList;

/// Whether systemd keeps the control groups below `top`.
pub(super) fn keeps(root: &SysRoot, top: &str) -> bool {
    let is_there = |path: &str| matches!(root.exists(path), Fact::Value(()));
    is_there("/run/systemd/system") && is_there(&format!("{top}/init.scope"))
}

pub(super) fn add(root: &SysRoot, expansion: &mut Expansion, top: &str, cpus: &CpuList) {
    let group = format!("{top}/{NAME}.slice");
    if let Some(why) = in_use(root, &group) {
        return expansion.refuse(WHAT, why);
    }
    freed::expand(root, expansion, cpus);
    let first = expansion.steps.len();
    let of_slice = |property, value: String| {
        Step::new(Target::Slice(Slice { group: group.clone(), property }), String::new(), value)
    };
    expansion.steps.push(of_slice(SliceProperty::AllowedCpus, cpus.to_string()));
    let nodes = root.cpu_list("/sys/devices/system/node/online").value().cloned().unwrap_or_default();
    if nodes.len() > 1 {
        expansion
            .steps
            .push(of_slice(SliceProperty::AllowedMemoryNodes, nodes_of(root, cpus, &nodes).to_string()));
    }
    let state = Target::File(format!("{group}/{STATE}"));
    expansion.steps.push(Step::new(state, "member".to_owned(), "isolated".to_owned()));
    if let Some(first) = expansion.steps.get_mut(first) {
        first.effects.push(EFFECT.to_owned());
        first.effects.push(format!(
            "a program gets in by: worstcase partition run; a service by Slice={NAME}.slice in its unit"
        ));
    }
}

/// A slice that is there without CPUs of its own is one into which services were put before.
fn in_use(root: &SysRoot, group: &str) -> Option<String> {
    let cpus = Slice { group: group.to_owned(), property: SliceProperty::AllowedCpus };
    let has_cpus = Owned(&cpus).text(root).value().is_some_and(|text| !text.is_empty());
    let state = root.read(&format!("{group}/{STATE}"));
    let has_own = has_cpus || state.value().is_some_and(|state| state != "member");
    has_own.then(|| format!("{group} has CPUs of its own already: not by this journal"))
}

/// What a slice of systemd has of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Slice {
    /// Its control group.
    pub group: String,
    /// What is set.
    pub property: SliceProperty,
}

/// What [`Slice`] says.
pub(in crate::setting) struct Owned<'a>(pub &'a Slice);

impl Owned<'_> {
    fn file(&self) -> String {
        format!("{}/{}", self.0.group, self.0.property.file())
    }
}

impl fmt::Display for Owned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.0.property, self.0.group)
    }
}

impl Kind for Owned<'_> {
    /// As the kernel was given it: what systemd was asked for alone separates nothing, nor does what all others have too.
    fn text(&self, root: &SysRoot) -> Fact<String> {
        match root.read(&self.file()) {
            Fact::Absent => Fact::Value(String::new()),
            own if own.value().is_some() && own == self.0.property.around(root, &self.0.group) => {
                Fact::Value(String::new())
            }
            other => other,
        }
    }

    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno> {
        if !is_slice(&self.0.group) {
            return Err(Errno::INVAL);
        }
        kernel.slice(&self.0.group, self.0.property, value)
    }

    fn form(&self, _text: &str) -> Form {
        Form::List
    }

    fn phase(&self) -> Phase {
        Phase::Groups
    }

    fn is_all_or_nothing(&self) -> bool {
        true
    }

    fn find(&self, _root: &SysRoot, this: &Target) -> Found {
        Found::Here(this.clone())
    }

    fn why_refused(&self, _errno: i32) -> Option<&'static str> {
        Some(
            "systemctl set-property failed: the journal of systemd says why; before version 244 it has no AllowedCPUs=",
        )
    }
}
