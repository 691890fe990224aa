//! What is read of the workers ten times a second: CPU time, whether they are ready, whether they are stopped.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use record::LoadProof;
use sys::clock::{Clock, process_cpu_time};
use units::Nanos;

use super::looks::SHORTEST;
use super::processes::{self, Process};
use super::workers::WorkerSet;
use crate::{Stressor, Work};

/// A look may take one part in so many of a CPU's time: where there are thousands of processes to go through, looks are
/// further apart.
const PRICE: u32 = 50;

/// Starting a program takes a few milliseconds of CPU time, and is no work: its time counts in steps of this.
const STEP: u64 = 10_000_000;

/// A look that comes later than so many times what was intended speaks for no more than that, and for the time in which
/// this thread waited for a CPU.
const LATE: u64 = 4;

impl WorkerSet<'_> {
    /// Looks, if it is time.
    pub fn look_if_due(&mut self) {
        if self.looks.patience().is_zero() {
            self.look();
        }
    }

    /// Looks at every worker and writes down what it finds.
    pub fn look(&mut self) {
        let (price, at) = (process_cpu_time(), Nanos(Clock::Monotonic.now()));
        let since = at.saturating_sub(self.looks.last.replace(at).unwrap_or(at));
        // What is seen is taken to have been so since the last look; not where that was long ago and this process was not
        // kept from a CPU: it may have been stopped or frozen with all the others.
        let waited = processes::own_run_delay().unwrap_or_default();
        let late = waited.saturating_sub(std::mem::replace(&mut self.looks.waited, waited));
        let since = since.min(Nanos::from(self.looks.every).saturating_mul(LATE) + late);
        let stressors = &self.context.plan.load.stressors;
        // Going through all processes is dear; workers that start none of their own are known.
        let all = stressors.iter().any(|stressor| stressor.work.about().forks);
        let processes = if all { processes::all() } else { processes::these(self.pids()) };
        let mut accounts = self.ledger.take(&processes, self.own);
        let mut cpu_times = Vec::new();
        for (index, stressor) in stressors.iter().enumerate() {
            let account = accounts.remove(&index).unwrap_or_default();
            for worker in self.ready_workers(index, stressor, &account.processes) {
                self.looks.ready[index][worker] += since;
            }
            let is_program = matches!(stressor.work, Work::Program(_));
            let step = if is_program { STEP } else { 1 };
            cpu_times.push(Nanos(account.cpu_time.0 / step * step));
        }
        let ready = &self.looks.ready;
        self.context.board.write_look(at, &cpu_times, |stressor, worker| ready[stressor][worker]);
        let price = Duration::from_nanos(process_cpu_time().saturating_sub(price));
        self.looks.every = SHORTEST.max(price * PRICE);
        self.looks.next = Instant::now() + self.looks.every;
    }

    /// The workers of a stressor that are ready: their own process, or any that they started where they do that.
    fn ready_workers(&self, index: usize, stressor: &Stressor, processes: &[Process]) -> BTreeSet<usize> {
        let about = stressor.work.about();
        let (waits, lives) = (stressor.waits(), stressor.proof() == LoadProof::Alive);
        let is_ready = |process: &&Process| {
            process.is_runnable()
                || waits && process.waits()
                || lives && process.is_alive()
                || about.threads && process.has_runnable_thread()
        };
        let ready = processes.iter().filter(is_ready);
        let worker = |process: &Process| if about.forks { Some(0) } else { self.worker_of(process.pid) };
        ready.filter_map(worker).filter(|&worker| worker < self.looks.ready[index].len()).collect()
    }
}
