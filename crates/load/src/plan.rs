//! What a load is started with.

use std::path::PathBuf;

use record::LoadDirectory;
use serde::{Deserialize, Serialize};
use units::{Bytes, CpuList, Nanos, Seed};

use crate::{Error, Load, Work};

/// Workers begin within this time of each other.
const START_SPREAD: Nanos = Nanos::from_millis(20);
/// What a worker may take whose work says nothing of memory, compared with those whose work does.
const MODEST: Bytes = Bytes::from_mebibytes(16);

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
    /// Whom workers run as; none for the one who started them, without privileges.
    #[serde(default)]
    pub user: Option<User>,
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

/// A user and a group, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// passwd(5).
    pub user: u32,
    /// The user's own.
    pub group: u32,
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
            user: None,
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

    /// How long worker `worker` of stressor `index` waits before it begins: random, so that another seed puts the
    /// stressors into another relation to each other and to the probe.
    pub fn start_offset(&self, index: usize, worker: usize) -> Nanos {
        let mut drawn = self.seed.stream(&format!("{}/{index}/{worker}/start", self.load.name));
        Nanos(drawn.below(START_SPREAD.0))
    }

    /// What a worker of stressor `index` may map of `all` bytes for all `workers` (one count a stressor) together: the
    /// more, the more its work needs.
    pub(crate) fn memory_of(&self, index: usize, all: u64, workers: &[usize]) -> u64 {
        let needs = self.load.stressors.iter().map(|stressor| need(&stressor.work));
        let sum = needs.clone().zip(workers).fold(0, |sum, (need, &workers)| sum + need * workers as u128);
        let own = needs.clone().nth(index).unwrap_or_default();
        u64::try_from(u128::from(all) * own / sum.max(1)).unwrap_or(all)
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
        let in_memory = self.directory.as_ref().filter(|directory| directory.is_in_memory());
        if let Some(directory) = in_memory.filter(|_| load.needs_device()) {
            let (load, directory, system) =
                (load.name.clone(), directory.path.clone(), directory.file_system.clone());
            return Err(Error::NoDevice { load, directory, system });
        }
        Ok(())
    }
}

fn need(work: &Work) -> u128 {
    u128::from(work.about().memory.0) + u128::from(MODEST.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    fn plan(load: &str, seed: u64) -> LoadPlan {
        let load = Catalogue::shipped().unwrap().get(load).unwrap().clone();
        LoadPlan::new(load, "0".parse().unwrap(), Seed(seed))
    }

    #[test]
    fn offsets_come_from_the_seed_and_differ_from_worker_to_worker() {
        let offsets = |seed| {
            [(0, 0), (0, 1), (1, 0)]
                .map(|(stressor, worker)| plan("full", seed).start_offset(stressor, worker))
        };
        assert_eq!(offsets(1), offsets(1));
        assert_ne!(offsets(1), offsets(2));
        let [one, two, three] = offsets(1);
        assert!(one != two && two != three && offsets(1).iter().all(|offset| *offset < START_SPREAD));
    }

    #[test]
    fn the_copy_of_128_mib_fits_where_half_of_400_mib_may_be_taken() {
        let plan = plan("scary-grinder", 1);
        let shares: Vec<u64> = (0..2).map(|index| plan.memory_of(index, 200 << 20, &[1, 1])).collect();
        assert!(shares[1] > 150 << 20 && shares[0] > 10 << 20, "{shares:?}");
        assert!(shares.iter().sum::<u64>() <= 200 << 20);
        assert_eq!(plan.memory_of(1, 0, &[1, 1]), 0);
    }

    #[test]
    fn workers_that_need_the_same_may_take_the_same() {
        let plan = plan("cpu", 1);
        assert_eq!(plan.memory_of(0, 400, &[4]), 100);
    }
}
