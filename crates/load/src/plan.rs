//! What a load is started with.

use std::path::PathBuf;

use record::LoadDirectory;
use serde::{Deserialize, Serialize};
use units::{Bytes, CpuList, Nanos, Seed};

use crate::{Error, Load};

/// A load, where it runs and within which bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// The load.
    pub load: Load,
    /// The CPUs that its workers may use.
    pub cpus: CpuList,
    /// The CPUs of those stressors that run on measured CPUs too.
    pub every_cpu: CpuList,
    /// Where files are written; needed by a load that writes.
    pub directory: Option<LoadDirectory>,
    /// How long it is meant to run, warm-up included, where that is known: the steps of a sequence share it.
    pub duration: Option<Nanos>,
    /// From which the workers' draws come.
    pub seed: Seed,
    /// What workers may take.
    pub limits: Limits,
    /// How processes are kept from outliving the run; none for the strongest way that this system offers.
    pub containment: Option<Containment>,
    /// The binary that becomes the supervisor when called with [`crate::SUPERVISOR_ARGUMENT`]: this one, unless a test
    /// says otherwise.
    #[serde(skip)]
    pub executable: PathBuf,
}

/// What workers may take from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Space that stays free on the file system written to.
    pub disk_floor: Bytes,
    /// What all workers together may map, in per mille of the memory that is available at the start.
    pub memory_permille: u32,
    /// Writes files with a name in a directory of their own even where the file system has files without.
    pub named_files: bool,
}

impl Default for Limits {
    /// 1 GiB stays free on the disk, half of the memory stays free.
    fn default() -> Self {
        Self { disk_floor: Bytes(1 << 30), memory_permille: 500, named_files: false }
    }
}

/// How the supervisor keeps processes from outliving the run, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Containment {
    /// A process namespace: the kernel kills all in it with its first process, whatever they did to hide.
    /// Needs CAP_SYS_ADMIN. Nothing survives even where parent and supervisor are killed at once.
    PidNamespace,
    /// A cgroup, ended by `cgroup.kill` (Linux 5.14). Nothing survives the parent. Where the supervisor is killed too,
    /// built-in workers die with it, and descendants of external programs that left their parent can survive.
    Cgroup,
    /// Descendants looked for in /proc and killed until none is left; orphans come to the supervisor as their
    /// subreaper (Linux 3.4). What can survive is as with a cgroup.
    Walk,
}

impl Containment {
    /// Every way, strongest first.
    pub const ALL: [Self; 3] = [Self::PidNamespace, Self::Cgroup, Self::Walk];
}

impl std::fmt::Display for Containment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::PidNamespace => "pid-namespace",
            Self::Cgroup => "cgroup",
            Self::Walk => "walk",
        })
    }
}

impl LoadPlan {
    /// `load` on `cpus`, with this binary as the supervisor and the default limits.
    pub fn new(load: Load, cpus: CpuList, seed: Seed) -> Self {
        Self {
            load,
            every_cpu: cpus.clone(),
            cpus,
            directory: None,
            duration: None,
            seed,
            limits: Limits::default(),
            containment: None,
            executable: PathBuf::from("/proc/self/exe"),
        }
    }

    /// The CPUs of stressor `index`.
    pub(crate) fn cpus_of(&self, index: usize) -> &CpuList {
        if self.load.stressors.get(index).is_some_and(|stressor| stressor.everywhere) {
            &self.every_cpu
        } else {
            &self.cpus
        }
    }

    /// The CPUs on which any of its workers may run.
    pub(crate) fn all_cpus(&self) -> CpuList {
        (0..self.load.stressors.len()).fold(CpuList::new(), |cpus, index| cpus.union(self.cpus_of(index)))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let (load, missing) = (&self.load, self.load.missing());
        if load.stressors.is_empty() {
            return Ok(());
        }
        if missing.len() == load.stressors.len() {
            return Err(Error::Missing { load: load.name.clone(), missing });
        }
        if (0..load.stressors.len()).any(|index| self.cpus_of(index).is_empty()) {
            return Err(Error::NoCpus(load.name.clone()));
        }
        if load.writes() && self.directory.is_none() {
            return Err(Error::NoDirectory(load.name.clone()));
        }
        Ok(())
    }
}
