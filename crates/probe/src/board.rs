//! The memory that measuring threads write and the parent reads: one writer a word, no locks.
//!
//! After a word for the whole board comes one block a thread: a header, the worst samples, a ring of per-second
//! figures, the cells of both histograms and, where asked for, a ring of samples.

use histogram::{Counts, Histogram, Summary, layout, record_missed};
use record::{Block, Sample, WarmUp};
use sys::shared::Word;
use units::Nanos;

/// How many worst samples each thread keeps.
pub const WORST: usize = 16;
/// How many seconds the parent may come late before per-second figures are lost.
const SECONDS: usize = 1024;
/// How many samples the parent may come late before they are lost.
const SAMPLES: usize = 1 << 16;
/// Words before the first thread's block.
const SHARED: usize = 16;

/// Words of a thread's header.
mod at {
    pub const COUNT: usize = 0;
    pub const SUM: usize = 1;
    pub const MIN: usize = 2;
    pub const MAX: usize = 3;
    pub const LAST: usize = 4;
    pub const MISSED: usize = 5;
    pub const MISSED_SUM: usize = 6;
    pub const MISSED_MIN: usize = 7;
    pub const MISSED_MAX: usize = 8;
    pub const LATE: usize = 9;
    pub const EARLY: usize = 10;
    pub const CLOCK_STEPS: usize = 11;
    pub const REPHASED: usize = 12;
    pub const MIGRATIONS: usize = 13;
    pub const WARM_COUNT: usize = 14;
    pub const WARM_SUM: usize = 15;
    pub const WARM_MIN: usize = 16;
    pub const WARM_MAX: usize = 17;
    pub const WARM_MISSED: usize = 18;
    pub const SECONDS_WRITTEN: usize = 19;
    pub const SAMPLES_WRITTEN: usize = 20;
    pub const SAMPLES_READ: usize = 21;
    pub const SAMPLES_LOST: usize = 22;
    pub const STOPPED_BY: usize = 23;
    pub const STARTED: usize = 24;
    pub const WORST: usize = 32;
    pub const SECONDS: usize = WORST + 2 * super::WORST;
    pub const OBSERVED: usize = SECONDS + super::SECOND_WORDS * super::SECONDS;
    pub const MISSED_CELLS: usize = OBSERVED + super::layout::CELLS;
    pub const SAMPLES: usize = MISSED_CELLS + super::layout::CELLS;
}

/// Second, count, sum, min, max, missed.
const SECOND_WORDS: usize = 6;

/// Words that a board for `threads` threads needs.
pub fn words(threads: usize, every_sample: bool) -> usize {
    SHARED + threads * block_words(every_sample)
}

/// A whole number of 4 KiB pages, so that no two threads write to one cache line.
fn block_words(every_sample: bool) -> usize {
    let words = at::SAMPLES + if every_sample { 2 * SAMPLES } else { 0 };
    words.next_multiple_of(512)
}

/// The block of thread `thread` on a board.
pub fn block(board: &[Word], thread: usize, every_sample: bool) -> &[Word] {
    let size = block_words(every_sample);
    &board[SHARED + thread * size..SHARED + (thread + 1) * size]
}

/// Whether the threads were told to stop.
#[inline]
pub fn is_stopped(board: &[Word]) -> bool {
    board[0].get() != 0
}

/// Tells all threads to stop at their next wake-up.
pub fn stop(board: &[Word]) {
    board[0].set(1);
}

/// What a measuring thread writes with. Nothing here allocates, locks, blocks or calls the kernel.
pub struct Recorder<'a> {
    words: &'a [Word],
    /// Least of the kept worst samples, so that most latencies need one comparison.
    admission: u64,
    second: u64,
    /// The activation with which the next second begins.
    next_second: u64,
    interval: u64,
    block: Block,
    every_sample: bool,
}

/// The cells of one histogram.
struct Cells<'a>(&'a [Word]);

impl Counts for Cells<'_> {
    #[inline]
    fn add(&mut self, cell: usize, times: u64) {
        self.0[cell].add(times);
    }
}

impl<'a> Recorder<'a> {
    /// For the thread that owns `words`, its [`block`].
    pub fn new(words: &'a [Word], interval: Nanos, every_sample: bool) -> Self {
        let interval = interval.0.max(1);
        let mut recorder = Self {
            words,
            admission: 0,
            second: 0,
            next_second: 0,
            interval,
            block: Block::default(),
            every_sample,
        };
        recorder.next_second = recorder.first_activation_after(1);
        recorder
    }

    fn first_activation_after(&self, second: u64) -> u64 {
        second.saturating_mul(1_000_000_000).div_ceil(self.interval)
    }

    /// Counts the wake-up of `activation`.
    #[inline]
    pub fn observed(&mut self, activation: u64, latency: u64) {
        if activation >= self.next_second {
            self.begin_second(activation);
        }
        let words = self.words;
        if words[at::COUNT].add(1) == 1 || latency < words[at::MIN].get() {
            words[at::MIN].set(latency);
        }
        if latency > words[at::MAX].get() {
            words[at::MAX].set(latency);
        }
        words[at::SUM].add(latency);
        words[at::LAST].set(latency);
        words[at::OBSERVED + layout::index(latency)].add(1);
        self.block.observed.add(latency, 1);
        if latency > self.admission {
            self.admit(activation, latency);
        }
        if self.every_sample {
            self.pass_on(activation, latency);
        }
    }

    /// Counts the `missed` activations that a wake-up `latency` late slept through.
    pub fn missed(&mut self, latency: u64, missed: u64) {
        let words = self.words;
        let interval = self.interval;
        let (least, greatest) = (latency - missed * interval, latency - interval);
        if words[at::MISSED].add(missed) == missed || least < words[at::MISSED_MIN].get() {
            words[at::MISSED_MIN].set(least);
        }
        words[at::MISSED_MAX].set(greatest.max(words[at::MISSED_MAX].get()));
        let cells = &words[at::MISSED_CELLS..at::MISSED_CELLS + layout::CELLS];
        words[at::MISSED_SUM].add(record_missed(&mut Cells(cells), latency, interval, missed));
        self.block.missed += missed;
    }

    /// Counts a wake-up that came when its next activation was due.
    pub fn late(&mut self) {
        self.words[at::LATE].add(1);
    }

    /// Counts a wake-up before its time.
    pub fn early(&mut self) {
        self.words[at::EARLY].add(1);
    }

    /// Counts a step of the clock.
    pub fn clock_stepped(&mut self) {
        self.words[at::CLOCK_STEPS].add(1);
    }

    /// Counts a reservation that began its periods anew.
    pub fn rephased(&mut self) {
        self.words[at::REPHASED].add(1);
    }

    /// Counts a wake-up on another CPU than the one before.
    pub fn migrated(&mut self) {
        self.words[at::MIGRATIONS].add(1);
    }

    /// Counts a wake-up of the warm-up, and what it missed.
    pub fn warm_up(&mut self, latency: u64, missed: u64) {
        let words = self.words;
        if words[at::WARM_COUNT].add(1) == 1 || latency < words[at::WARM_MIN].get() {
            words[at::WARM_MIN].set(latency);
        }
        words[at::WARM_MAX].set(latency.max(words[at::WARM_MAX].get()));
        words[at::WARM_SUM].add(latency);
        words[at::WARM_MISSED].add(missed);
    }

    /// The warm-up is over: `clock` is the time of the first activation that is measured.
    pub fn started(&mut self, clock: u64) {
        self.words[at::STARTED].publish(clock.max(1));
    }

    /// Says that this thread's last sample ended the run.
    pub fn stopped_by_latency(&mut self) {
        self.words[at::STOPPED_BY].set(1);
    }

    /// Publishes the second that is under way.
    pub fn finish(&mut self) {
        self.publish_second();
    }

    #[cold]
    fn begin_second(&mut self, activation: u64) {
        self.publish_second();
        self.second = (u128::from(activation) * u128::from(self.interval) / 1_000_000_000) as u64;
        self.next_second = self.first_activation_after(self.second + 1);
    }

    fn publish_second(&mut self) {
        if self.block == Block::default() {
            return;
        }
        let written = self.words[at::SECONDS_WRITTEN].get();
        let place = at::SECONDS + (written % SECONDS as u64) as usize * SECOND_WORDS;
        let Block { observed, missed } = std::mem::take(&mut self.block);
        let values = [self.second, observed.count, observed.sum, observed.min, observed.max, missed];
        for (word, value) in self.words[place..place + SECOND_WORDS].iter().zip(values) {
            word.set(value);
        }
        self.words[at::SECONDS_WRITTEN].publish(written + 1);
    }

    /// Puts the sample in the place of the least of the worst.
    #[cold]
    fn admit(&mut self, activation: u64, latency: u64) {
        let kept = &self.words[at::WORST..at::WORST + 2 * WORST];
        let (mut place, mut least) = (0, u64::MAX);
        for (index, pair) in kept.chunks_exact(2).enumerate() {
            if pair[0].get() < least {
                (place, least) = (index, pair[0].get());
            }
        }
        kept[2 * place].set(latency);
        kept[2 * place + 1].set(activation);
        self.admission = kept.chunks_exact(2).map(|pair| pair[0].get()).min().unwrap_or(0);
    }

    fn pass_on(&mut self, activation: u64, latency: u64) {
        let written = self.words[at::SAMPLES_WRITTEN].get();
        if written - self.words[at::SAMPLES_READ].observe() >= SAMPLES as u64 {
            self.words[at::SAMPLES_LOST].add(1);
            return;
        }
        let place = at::SAMPLES + 2 * (written % SAMPLES as u64) as usize;
        self.words[place].set(activation);
        self.words[place + 1].set(latency);
        self.words[at::SAMPLES_WRITTEN].publish(written + 1);
    }
}

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

    /// Wake-ups on another CPU than the one before.
    pub fn migrations(&self) -> u64 {
        self.value(at::MIGRATIONS)
    }

    /// The clock at the first activation that is measured; none while warming up.
    pub fn started(&self) -> Option<u64> {
        Some(self.0[at::STARTED].observe()).filter(|&clock| clock != 0)
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

    fn cells(&self, start: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0[start..start + layout::CELLS].iter().map(Word::get).enumerate().filter(|(_, count)| *count > 0)
    }

    /// The worst wake-ups, worst first.
    pub fn worst(&self, interval: Nanos) -> Vec<Sample> {
        let kept = &self.0[at::WORST..at::WORST + 2 * WORST];
        let mut worst: Vec<Sample> = kept
            .chunks_exact(2)
            .map(|pair| (pair[0].get(), pair[1].get()))
            .filter(|(latency, _)| *latency > 0)
            .map(|(latency, activation)| Sample {
                latency: Nanos(latency),
                due: interval.saturating_mul(activation),
                activation,
            })
            .collect();
        worst.sort_by_key(|sample| (std::cmp::Reverse(sample.latency), sample.activation));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::shared::SharedWords;

    fn with_recorder(interval: u64, every_sample: bool, test: impl FnOnce(&mut Recorder<'_>, View<'_>)) {
        let (board, _file) = SharedWords::create(words(1, every_sample)).unwrap();
        let words = block(&board, 0, every_sample);
        test(&mut Recorder::new(words, Nanos(interval), every_sample), View(words));
    }

    #[test]
    fn what_is_recorded_reads_back_exactly() {
        with_recorder(1_000_000, false, |recorder, view| {
            let mut expected = Histogram::default();
            for activation in 0..5000 {
                let latency = 3_000 + activation * 37 % 900_000;
                recorder.observed(activation, latency);
                expected.record(Nanos(latency));
            }
            assert_eq!(view.observed(), expected);
            assert_eq!(view.last(), Some(Nanos(3_000 + 4999 * 37)));
        });
    }

    #[test]
    fn the_worst_samples_are_kept_in_order() {
        with_recorder(1_000_000, false, |recorder, view| {
            let latencies: Vec<u64> = (0..1000).map(|n| 1 + n * 7919 % 1009).collect();
            latencies.iter().enumerate().for_each(|(n, &latency)| recorder.observed(n as u64, latency));
            let mut sorted = latencies.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let worst = view.worst(Nanos(1_000_000));
            assert_eq!(worst.iter().map(|sample| sample.latency.0).collect::<Vec<_>>(), sorted[..WORST]);
            assert!(worst.iter().all(|sample| latencies[sample.activation as usize] == sample.latency.0));
            assert_eq!(worst[0].due.0, worst[0].activation * 1_000_000);
        });
    }

    #[test]
    fn seconds_add_up_to_the_whole_and_a_late_reader_is_told_what_it_lost() {
        with_recorder(250_000_000, false, |recorder, view| {
            for activation in 0..4 * 3000 {
                recorder.observed(activation, 1_000);
            }
            recorder.missed(750_000_000, 2);
            recorder.finish();
            let (written, blocks, lost) = view.seconds(0);
            assert_eq!((written, lost), (3000, 3000 - 1023));
            assert_eq!(blocks.len(), 1023);
            assert_eq!(blocks[0].0, lost);
            assert!(blocks.iter().all(|(_, block)| block.observed.count == 4));
            assert_eq!(blocks.last().unwrap().1.missed, 2);
            assert_eq!(view.seconds(written).1, vec![]);
        });
    }

    #[test]
    fn a_period_longer_than_a_second_skips_seconds() {
        with_recorder(2_500_000_000, false, |recorder, view| {
            (0..4).for_each(|activation| recorder.observed(activation, 5));
            recorder.finish();
            let seconds: Vec<u64> = view.seconds(0).1.iter().map(|(second, _)| *second).collect();
            assert_eq!(seconds, [0, 2, 5, 7]);
        });
    }

    #[test]
    fn samples_are_passed_on_in_order_and_counted_when_they_do_not_fit() {
        with_recorder(1_000, true, |recorder, view| {
            (0..10).for_each(|n| recorder.observed(n, n + 1));
            assert_eq!(view.take_samples(), (0..10).map(|n| (n, n + 1)).collect::<Vec<_>>());
            (0..SAMPLES as u64 + 3).for_each(|n| recorder.observed(n, 1));
            assert_eq!((view.take_samples().len(), view.samples_lost()), (SAMPLES, 3));
        });
    }
}
