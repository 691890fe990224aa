//! The options of whatever boots several guests.

use std::path::PathBuf;

use clap::Args;
use lab::kernels::Architecture;
use record::LabTime;

use super::binary;
use crate::error::Result;

/// How many at once, and what runs in them.
#[derive(Args)]
pub struct Several {
    /// How many guests run side by side [default: one a core in instruction time, one in wall time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,

    /// The worstcase that runs in the guests [default: this one; for another architecture what `cargo xtask dist` made]
    #[arg(long, value_name = "FILE")]
    guest_binary: Option<PathBuf>,
}

impl Several {
    /// How many run side by side. In wall time they would disturb each other, so it takes the user's word.
    pub fn jobs(&self, time: LabTime) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        match (self.jobs, time) {
            (Some(jobs), _) => jobs as usize,
            (None, LabTime::Instructions) => cores(),
            (None, LabTime::Wall) => 1,
        }
    }

    /// The program that runs in guests of that architecture.
    pub fn binary(&self, architecture: Architecture) -> Result<PathBuf> {
        binary::choose(self.guest_binary.as_deref(), architecture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_in_wall_time_run_one_by_one_unless_asked_otherwise() {
        let several = |jobs| Several { jobs, guest_binary: None };
        assert_eq!(several(None).jobs(LabTime::Wall), 1);
        assert_eq!(several(Some(3)).jobs(LabTime::Wall), 3);
        assert!(several(None).jobs(LabTime::Instructions) >= 1);
    }
}
