//! The parent's side of the board: what it reads of one thread.

use super::*;
use record::instrument::noise::NoiseSeries;
use units::InOrder;

/// What the parent reads of one thread. Exact once the thread has ended; a moment old before.
pub struct View<'a>(pub &'a [Word]);

impl View<'_> {
    fn value(&self, place: usize) -> u64 {
        self.0[place].get()
    }

    /// Wake-ups so far.
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.value(at::COUNT),
            sum: self.value(at::SUM),
            min: self.value(at::MIN),
            max: self.value(at::MAX),
        }
    }

    /// Activations missed so far.
    pub fn missed_summary(&self) -> Summary {
        Summary {
            count: self.value(at::MISSED),
            sum: self.value(at::MISSED_SUM),
            min: self.value(at::MISSED_MIN),
            max: self.value(at::MISSED_MAX),
        }
    }

    /// The latest latency; none before the first.
    pub fn last(&self) -> Option<Nanos> {
        (self.value(at::COUNT) > 0).then(|| Nanos(self.value(at::LAST)))
    }

    /// How many wake-ups were marked in the trace, whether it took the mark or not.
    pub fn marked(&self) -> u64 {
        self.value(at::MARKS)
    }

    /// Late wake-ups that could not be marked: they came after the mark of their round.
    pub fn unmarked(&self) -> u64 {
        self.value(at::UNMARKED)
    }

    /// Wake-ups that came when their next activation was due.
    pub fn late(&self) -> u64 {
        self.value(at::LATE)
    }

    /// Wake-ups before their time.
    pub fn early(&self) -> u64 {
        self.value(at::EARLY)
    }

    /// Steps of the clock.
    pub fn clock_steps(&self) -> u64 {
        self.value(at::CLOCK_STEPS)
    }

    /// Times that a reservation began its periods anew.
    pub fn rephased(&self) -> u64 {
        self.value(at::REPHASED)
    }

    /// How often the thread left the CPU that it had been on.
    pub fn migrations(&self) -> u64 {
        self.value(at::MIGRATIONS)
    }

    /// Wake-ups of a pinned thread on another CPU than its own; none where there were none.
    pub fn elsewhere(&self) -> Option<Elsewhere> {
        let wakes = self.value(at::ELSEWHERE);
        (wakes > 0).then(|| Elsewhere {
            wakes,
            cpu: CpuId(self.value(at::ELSEWHERE_CPU) as u32),
            first: self.value(at::ELSEWHERE_FIRST),
            last: self.value(at::ELSEWHERE_LAST),
        })
    }

    /// The clock at the first activation that is measured; none while warming up.
    pub fn started(&self) -> Option<u64> {
        Some(self.0[at::STARTED].observe()).filter(|&clock| clock != 0)
    }

    /// Where activation 0 lies on the clock by now: what [`Grid::origin`] is; none while warming up.
    pub fn origin(&self) -> Option<u64> {
        self.started().map(|_| self.value(at::ORIGIN))
    }

    /// Activations accounted for: the number of the one that the thread waits for, counted from 0.
    pub fn accounted(&self) -> u64 {
        self.value(at::COUNT).saturating_add(self.value(at::MISSED))
    }

    /// Waits that were long enough to be a sleep.
    pub fn sleeps(&self) -> u64 {
        self.value(at::SLEEPS)
    }

    /// The errno with which a sleep failed, if one did.
    pub fn sleep_error(&self) -> Option<Errno> {
        let errno = self.value(at::SLEEP_ERROR);
        (errno != 0).then(|| Errno::from_raw_os_error(errno as i32))
    }

    /// Once the thread measures no more: the last reading of the clock at which it was not asked to stop.
    pub fn finished(&self) -> Option<u64> {
        Some(self.0[at::FINISHED].observe()).filter(|&clock| clock != 0)
    }

    /// Whether this thread's last sample ended the run.
    pub fn stopped_by_latency(&self) -> bool {
        self.value(at::STOPPED_BY) != 0
    }

    /// The warm-up.
    pub fn warm_up(&self) -> WarmUp {
        let observed = Summary {
            count: self.value(at::WARM_COUNT),
            sum: self.value(at::WARM_SUM),
            min: self.value(at::WARM_MIN),
            max: self.value(at::WARM_MAX),
        };
        WarmUp { observed, missed: self.value(at::WARM_MISSED) }
    }

    /// Latencies of wake-ups.
    pub fn observed(&self) -> Histogram {
        Histogram::from_parts(self.summary(), self.cells(at::OBSERVED))
    }

    /// Latencies that missed activations would have had.
    pub fn missed(&self) -> Histogram {
        Histogram::from_parts(self.missed_summary(), self.cells(at::MISSED_CELLS))
    }

    /// The greatest latencies of blocks of activations.
    pub fn maxima(&self) -> BlockMaxima {
        maxima::read(&self.0[at::MAXIMA..at::SAMPLES])
    }

    fn cells(&self, start: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0[start..start + layout::CELLS].iter().map(Word::get).enumerate().filter(|(_, count)| *count > 0)
    }

    /// The worst wake-ups, worst first.
    pub fn worst(&self, grid: &Grid) -> Vec<Sample> {
        let kept = &self.0[at::WORST..at::WORST + 2 * WORST];
        let mut worst: Vec<Sample> = kept
            .chunks_exact(2)
            .map(|pair| (pair[0].get(), pair[1].get()))
            .filter(|(latency, _)| *latency > 0)
            .map(|(latency, activation)| Sample {
                latency: Nanos(latency),
                due: grid.since_first(activation),
                activation,
            })
            .collect();
        worst.order_by_key(|sample| (std::cmp::Reverse(sample.latency), sample.activation));
        worst
    }

    /// Per-second figures from the `from`th on: where to go on from, the figures with their second, and how many were
    /// overwritten before they could be read.
    pub fn seconds(&self, from: u64) -> (u64, Vec<(u64, Block)>, u64) {
        let written = self.0[at::SECONDS_WRITTEN].observe();
        // One place is left for the writer, who may be writing it now.
        let oldest = written.saturating_sub(SECONDS as u64 - 1);
        let blocks = (from.max(oldest)..written)
            .map(|number| {
                let place = at::SECONDS + (number % SECONDS as u64) as usize * SECOND_WORDS;
                let value = |offset: usize| self.value(place + offset);
                let observed = Summary { count: value(1), sum: value(2), min: value(3), max: value(4) };
                (value(0), Block { observed, missed: value(5) })
            })
            .collect();
        (written, blocks, oldest.saturating_sub(from))
    }

    /// Takes out the samples that were passed on, as (activation, latency).
    pub fn take_samples(&self) -> Vec<(u64, u64)> {
        let (read, written) = (self.value(at::SAMPLES_READ), self.0[at::SAMPLES_WRITTEN].observe());
        let samples = (read..written)
            .map(|number| at::SAMPLES + 2 * (number % SAMPLES as u64) as usize)
            .map(|place| (self.value(place), self.value(place + 1)))
            .collect();
        self.0[at::SAMPLES_READ].publish(written);
        samples
    }

    /// Samples that did not fit.
    pub fn samples_lost(&self) -> u64 {
        self.value(at::SAMPLES_LOST)
    }

    /// What the noise probe has seen so far; what the kernel counted meanwhile is for the parent to add.
    pub fn noise(&self) -> NoiseSeries {
        NoiseSeries {
            began: Nanos(self.started().unwrap_or_default()),
            windows: self.value(at::WINDOWS),
            windows_missed: self.value(at::WINDOWS_MISSED),
            watched: Nanos(self.value(at::WATCHED)),
            readings: self.value(at::READINGS),
            resolution: Nanos(self.value(at::SHORTEST)),
            bookkeeping: Nanos(self.value(at::BOOKKEEPING)),
            preemptions: self.value(at::PREEMPTIONS),
            ..NoiseSeries::default()
        }
    }

    /// What the clock read when the noise probe's thread had its CPU last; none before that.
    pub fn read_at(&self) -> Option<u64> {
        Some(self.value(at::READ_AT)).filter(|&clock| clock != 0)
    }
}
