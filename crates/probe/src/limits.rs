//! What a probe refuses whoever asks for it: it may have privileges that the one who started it has not.

use failure::Error;
use units::Nanos;

use crate::plan::ProbePlan;

/// Below it a machine does nothing but wake up.
const SHORTEST_INTERVAL: Nanos = Nanos::from_micros(10);

/// By file capabilities: ten thousand activations a second leave others the CPU.
const SHORTEST_FOR_ALL: Nanos = Nanos::from_micros(100);

/// By file capabilities: 99 is the kernel's own threads'.
const HIGHEST_FOR_ALL: u8 = 98;

/// By file capabilities, in percent of a window: what is left is the machine's.
const LONGEST_SPIN: u64 = 95;

impl ProbePlan {
    /// Refuses a plan that would keep the machine from everything else. `for_all` where the program's file gave it its
    /// privileges: whoever may run it has them.
    ///
    /// # Errors
    /// What is refused, and what is not.
    pub fn check(&self, for_all: bool) -> Result<(), Error> {
        self.job.own().check(self.threads.len(), for_all)?;
        if !for_all {
            return Ok(());
        }
        let mut threads = self.threads.clone();
        threads.sort_unstable();
        if threads.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(refused("measure a CPU twice", "one thread a CPU", for_all));
        }
        match self.priority.map(u8::from).filter(|&priority| priority > HIGHEST_FOR_ALL) {
            Some(priority) => Err(refused(
                &format!("measure with priority {priority}"),
                &format!("the highest priority is {HIGHEST_FOR_ALL}"),
                for_all,
            )),
            None => Ok(()),
        }
    }
}

/// Refuses an interval so short that a machine does nothing but `what`.
pub(crate) fn interval(what: &str, interval: Nanos, for_all: bool) -> Result<(), Error> {
    let least = if for_all { SHORTEST_FOR_ALL } else { SHORTEST_INTERVAL };
    if interval >= least {
        return Ok(());
    }
    Err(refused(&format!("{what} every {interval}"), &format!("the shortest interval is {least}"), for_all))
}

/// Refuses to spin for `spin` of every `period` where that leaves the machine nothing.
pub(crate) fn spin(spin: Nanos, period: Nanos, for_all: bool) -> Result<(), Error> {
    if !for_all || spin.0 <= period.0 / 100 * LONGEST_SPIN {
        return Ok(());
    }
    Err(refused(
        &format!("spin {spin} of every {period}"),
        &format!("at most {LONGEST_SPIN} % of it"),
        for_all,
    ))
}

pub(crate) fn refused(what: &str, limit: &str, for_all: bool) -> Error {
    let why = if for_all {
        " for a program that has its privileges from file capabilities; root may do more"
    } else {
        ""
    };
    Error::new(what, format!("{limit}{why}"))
}

#[cfg(test)]
mod tests {
    use record::instrument::noise::NoiseSetup;
    use record::instrument::response::{Receive, ResponseSetup};
    use record::instrument::timer::TimerSetup;
    use record::{ClockName, Wake};
    use units::{CpuId, CpuList, Policy, Priority};

    use super::*;
    use crate::{Job, NoiseJob, ResponseJob, TimerJob};

    fn timer(interval: Nanos, priority: u8) -> ProbePlan {
        let job = TimerJob {
            setup: TimerSetup { interval, ..TimerSetup::default() },
            wake: Wake::Nanosleep,
            runtime: Nanos::ZERO,
            clock: ClockName::Monotonic,
            gravity: None,
            start_at_multiple_of: None,
            warm_up: 0,
            activations: None,
        };
        ProbePlan {
            threads: vec![Some(CpuId(0))],
            policy: Policy::Fifo,
            priority: Priority::try_from(priority).ok(),
            stop_at: None,
            every_sample: false,
            fail_safe: None,
            marker: None,
            housekeeping: CpuList::new(),
            job: Job::Timer(job),
        }
    }

    fn noise(spin: Nanos) -> ProbePlan {
        let setup = NoiseSetup { threshold: Nanos(500), window: Nanos::from_secs(1), spin };
        let job = Job::Noise(NoiseJob { setup, warm_up: 0, windows: None });
        ProbePlan { job, ..timer(Nanos::from_secs(1), 98) }
    }

    fn response(receive: Receive, patience: Nanos) -> ProbePlan {
        let setup = ResponseSetup {
            interval: Nanos::from_millis(1),
            patience,
            peer: "10.0.0.2:2307".into(),
            interface: None,
            frames: 1,
            size: 64,
            socket_priority: None,
            hardware_stamps: false,
            ptp_frames: false,
            receive,
        };
        let job = Job::Response(ResponseJob { setup, run: 1, warm_up: 0, cycles: None });
        ProbePlan { job, ..timer(Nanos::from_secs(1), 98) }
    }

    #[test]
    fn file_capabilities_do_not_spin_for_an_answer_all_the_time() {
        let (short, long) = (Nanos::from_micros(950), Nanos::from_millis(1));
        assert!(response(Receive::Spin, short).check(true).is_ok());
        assert!(response(Receive::Spin, long).check(false).is_ok());
        assert!(response(Receive::Sleep, long).check(true).is_ok());
        assert!(response(Receive::Spin, long).check(true).is_err());
    }

    #[test]
    fn nobody_measures_every_nanosecond() {
        assert!(timer(Nanos(1), 1).check(false).is_err());
        assert!(timer(Nanos::from_micros(10), 99).check(false).is_ok());
        assert!(noise(Nanos::from_secs(1)).check(false).is_ok());
    }

    #[test]
    fn file_capabilities_measure_within_limits() {
        assert!(timer(Nanos::from_micros(100), 98).check(true).is_ok());
        assert!(noise(Nanos::from_millis(900)).check(true).is_ok());
        let twice = ProbePlan { threads: vec![Some(CpuId(0)); 2], ..timer(Nanos::from_millis(1), 98) };
        for plan in [
            timer(Nanos::from_micros(50), 98),
            timer(Nanos::from_millis(1), 99),
            noise(Nanos::from_millis(990)),
            twice,
        ] {
            let error = plan.check(true).unwrap_err();
            assert!(error.hint.contains("file capabilities"), "{error:?}");
        }
    }
}
