//! The memory that measuring threads write and the parent reads: one writer a word, no locks.
//!
//! After a word for the whole board comes one block a thread: a header, the worst samples, a ring of per-second
//! figures, the cells of both histograms, the maxima of blocks and, where asked for, a ring of samples.

mod fail_safe;
mod view;
mod whereabouts;

use fail_safe::FailSafe;

pub use fail_safe::{BEATS, beat, has_failed_safe};
pub use view::View;

use control::{Mark, Marker};
use histogram::{Counts, Histogram, Summary, layout, record_missed};
use record::{Block, BlockMaxima, Elsewhere, Grid, Sample, WarmUp};
use std::ops::Range;
use sys::Errno;
use sys::cpu::CpuReader;
use sys::shared::Word;
use units::{CpuId, Nanos};

use whereabouts::Whereabouts;

use crate::maxima::{self, Maxima};

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
    pub const ORIGIN: usize = 25;
    pub const SLEEPS: usize = 26;
    pub const SLEEP_ERROR: usize = 27;
    pub const FINISHED: usize = 28;
    // Wake-ups elsewhere: how many, the CPU of the latest, the first and the latest activation.
    pub const ELSEWHERE: usize = 29;
    pub const ELSEWHERE_CPU: usize = 30;
    pub const ELSEWHERE_FIRST: usize = 31;
    pub const ELSEWHERE_LAST: usize = 32;
    // Of windows in which the thread spins.
    pub const WATCHED: usize = 33;
    pub const READINGS: usize = 34;
    pub const SHORTEST: usize = 35;
    pub const BOOKKEEPING: usize = 36;
    pub const WINDOWS: usize = 37;
    pub const WINDOWS_MISSED: usize = 38;
    pub const PREEMPTIONS: usize = 39;
    pub const READ_AT: usize = 40;
    // How many wake-ups were marked in the trace, and how many were late and could not be.
    pub const UNMARKED: usize = 43;
    pub const MARKS: usize = 44;
    pub const WORST: usize = 48;
    pub const SECONDS: usize = WORST + 2 * super::WORST;
    pub const OBSERVED: usize = SECONDS + super::SECOND_WORDS * super::SECONDS;
    pub const MISSED_CELLS: usize = OBSERVED + super::layout::CELLS;
    pub const MAXIMA: usize = MISSED_CELLS + super::layout::CELLS;
    pub const SAMPLES: usize = MAXIMA + super::maxima::WORDS;
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

/// Words that all threads and the parent share.
mod common {
    pub const STOPPED: usize = 0;
    pub const CLAIM: usize = 1;
    pub const INSTANT: usize = 2;
    pub const BEATS: usize = 3;
    pub const FAILED_SAFE: usize = 4;
    pub const MARK_FROM: usize = 8;
    pub const MARK_ROUND: usize = 9;
}

/// What the clock read when the threads were asked to stop; none while they run. One load while they do.
#[inline]
pub fn stopped_at(board: &[Word]) -> Option<u64> {
    if !board[common::STOPPED].is_raised() {
        return None;
    }
    Some(board[common::INSTANT].get())
}

/// Asks all threads to stop at their next wake-up; `now` is the reading of the plan's clock. What is due until then is
/// accounted for, what comes later is not part of the run. Of several that ask, the first one's instant counts.
pub fn stop(board: &[Word], now: u64) {
    if board[common::CLAIM].claim() {
        board[common::INSTANT].set(now);
        board[common::STOPPED].raise();
    }
}

/// From which latency in nanoseconds wake-ups are marked in the trace; `u64::MAX` while none are. One load.
#[inline]
pub fn mark_from(board: &[Word]) -> u64 {
    // One that is being written is looked at the next time.
    match board[common::MARK_FROM].observe_now() {
        None | Some(0) => u64::MAX,
        Some(latency) => latency,
    }
}

/// Has the next wake-up of each thread that is late by `latency` or more marked: one, because it stops the trace, until
/// this is asked again.
pub fn mark_next_from(board: &[Word], latency: Nanos) {
    board[common::MARK_FROM].set(latency.0.max(1));
    board[common::MARK_ROUND].publish(board[common::MARK_ROUND].get() + 1);
}

/// The round in which every late wake-up is marked.
const EVERY: u64 = u64::MAX;

/// Has every wake-up that is late by `latency` or more marked: their marks stop nothing.
pub fn mark_all_from(board: &[Word], latency: Nanos) {
    board[common::MARK_FROM].set(latency.0.max(1));
    board[common::MARK_ROUND].publish(EVERY);
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
    sleeps: u64,
    maxima: Maxima<'a>,
    every_sample: bool,
    fail_safe: Option<FailSafe>,
    /// How many samples the parent has taken, as far as this thread has looked.
    samples_read: u64,
    whereabouts: Option<Whereabouts>,
    /// What late wake-ups are marked with.
    marker: Option<&'a Marker>,
    /// In which round the last one was.
    marked_in: u64,
    /// Preemptions before the first window, where they are counted.
    preempted_before: Option<u64>,
}

/// A wait of at least this many nanoseconds is a sleep that the kernel counts as a voluntary switch: what is shorter may
/// be over before the thread is off its CPU.
const SLEEP: u64 = 20_000;

/// What a thread saw while it spun; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// From its first reading of the clock to the last, without what recording took.
    pub watched: u64,
    /// Readings of the clock.
    pub readings: u64,
    /// The shortest time between two of them.
    pub shortest: u64,
    /// What recording gaps took.
    pub bookkeeping: u64,
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
            sleeps: 0,
            maxima: Maxima::new(&words[at::MAXIMA..at::SAMPLES]),
            every_sample,
            fail_safe: None,
            samples_read: 0,
            whereabouts: None,
            marker: None,
            marked_in: 0,
            preempted_before: None,
        };
        recorder.next_second = recorder.first_activation_after(1);
        recorder
    }

    /// From now on [`Recorder::look_out`] ends the run where nothing else had a CPU for so long.
    pub fn fail_safe(&mut self, limit: Nanos) {
        self.fail_safe = Some(FailSafe::new(limit));
    }

    /// Looks whether ordinary threads have a CPU, if that is asked for. `now` is what the plan's clock reads.
    #[inline]
    pub fn look_out(&mut self, board: &[Word], now: u64) {
        if let Some(fail_safe) = &mut self.fail_safe {
            fail_safe.look(board, now);
        }
    }

    fn first_activation_after(&self, second: u64) -> u64 {
        second.saturating_mul(1_000_000_000).div_ceil(self.interval)
    }

    /// Counts the wake-up of `activation`.
    #[inline]
    pub fn observed(&mut self, activation: u64, latency: u64) {
        self.count(activation, latency);
        self.maxima.observed(activation, latency);
    }

    #[inline]
    fn count(&mut self, activation: u64, latency: u64) {
        // Before it is counted: whoever reads a count and then the samples finds as many.
        if self.every_sample {
            self.pass_on(activation, latency);
        }
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
    }

    /// Counts the activations in `missed` that a wake-up at `now` slept through.
    pub fn missed(&mut self, grid: &Grid, missed: Range<u64>, now: u64) {
        for range in grid.even_ranges(missed) {
            self.missed_evenly(now.saturating_sub(grid.due(range.start)), range.end - range.start);
        }
    }

    /// Counts `missed` activations that lie a period apart, the first of them `greatest` late.
    fn missed_evenly(&mut self, greatest: u64, missed: u64) {
        let words = self.words;
        let interval = self.interval;
        let least = greatest - (missed - 1) * interval;
        if words[at::MISSED].add(missed) == missed || least < words[at::MISSED_MIN].get() {
            words[at::MISSED_MIN].set(least);
        }
        words[at::MISSED_MAX].set(greatest.max(words[at::MISSED_MAX].get()));
        let cells = &words[at::MISSED_CELLS..at::MISSED_CELLS + layout::CELLS];
        words[at::MISSED_SUM].add(record_missed(&mut Cells(cells), greatest + interval, interval, missed));
        self.block.missed += missed;
        self.maxima.missed(greatest + interval, missed, interval);
    }

    /// Counts a wait of `length` ns that begins, if it is long enough to be a sleep.
    #[inline]
    pub fn sleeps(&mut self, length: u64) {
        self.sleeps += u64::from(length >= SLEEP);
    }

    /// Says that the thread could not sleep.
    pub fn sleep_failed(&mut self, errno: Errno) {
        self.words[at::SLEEP_ERROR].set(errno.raw_os_error().unsigned_abs().into());
    }

    /// Says that the ideal times have moved.
    pub fn moved(&mut self, grid: &Grid) {
        self.words[at::ORIGIN].set(grid.origin);
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

    /// Counts the wake-up of `activation` where it was on another CPU than it should have been, as
    /// [`Recorder::watch_cpu`] has it. After [`Recorder::observed`].
    #[inline]
    pub fn placed(&mut self, activation: u64) {
        if let Some(whereabouts) = &mut self.whereabouts {
            whereabouts.look(self.words, activation);
        }
    }

    /// From now on the CPU of each wake-up is looked at: a thread pinned to `home` should be there, another one where
    /// it was before.
    pub fn watch_cpu(&mut self, reader: CpuReader, home: Option<CpuId>) {
        self.whereabouts = Some(Whereabouts::new(reader, home));
    }

    /// From now on [`Recorder::mark`] marks the trace.
    pub fn mark_with(&mut self, marker: &'a Marker) {
        self.marker = Some(marker);
    }

    /// Marks the wake-up at `now` in the trace, or counts it where this round has its mark.
    pub fn mark(&mut self, board: &[Word], activation: u64, due: u64, now: u64) {
        let Some(marker) = self.marker else { return };
        let round = board[common::MARK_ROUND].get();
        if round == self.marked_in && round != EVERY {
            self.words[at::UNMARKED].add(1);
            return;
        }
        self.marked_in = round;
        // Where the trace is stopped already it takes no mark: another thread was late a moment before.
        let _ = marker.mark(&Mark { activation, due, woke: now, interval: self.interval });
        self.words[at::MARKS].add(1);
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

    /// The warm-up is over: activations are due on `grid` from now on.
    pub fn started(&mut self, grid: &Grid) {
        self.moved(grid);
        self.words[at::STARTED].publish(grid.due(0).max(1));
    }

    /// Says that this thread's last sample ended the run.
    pub fn stopped_by_latency(&mut self) {
        self.words[at::STOPPED_BY].set(1);
    }

    /// The thread measures no more: publishes the second that is under way, and `running`, the last reading of the clock
    /// at which it was not asked to stop. Until then it has accounted for everything.
    pub fn finish(&mut self, running: u64) {
        self.publish_second();
        self.words[at::SLEEPS].set(self.sleeps);
        self.words[at::FINISHED].publish(running.max(1));
    }

    /// A gap of `length` that began `at` after the first window, both in nanoseconds.
    #[inline]
    pub fn gap(&mut self, at: u64, length: u64) {
        self.count(at, length);
    }

    /// The thread has the CPU when the clock reads `now`.
    #[inline]
    pub fn read_at(&mut self, now: u64) {
        self.words[at::READ_AT].set(now);
    }

    /// What was seen in a window.
    pub fn window(&mut self, window: &Window) {
        let words = self.words;
        words[at::WATCHED].add(window.watched);
        words[at::READINGS].add(window.readings);
        words[at::BOOKKEEPING].add(window.bookkeeping);
        if words[at::WINDOWS].get() == 0 || window.shortest < words[at::SHORTEST].get() {
            words[at::SHORTEST].set(window.shortest);
        }
    }

    /// From now on preemptions of the calling thread are counted. getrusage(2).
    pub fn watch_preemptions(&mut self) {
        self.preempted_before = Some(sys::usage::thread().involuntary);
    }

    /// The pause after a window begins.
    pub fn window_ended(&mut self) {
        if let Some(before) = self.preempted_before {
            self.words[at::PREEMPTIONS].set(sys::usage::thread().involuntary.saturating_sub(before));
        }
        self.words[at::WINDOWS].publish(self.words[at::WINDOWS].get() + 1);
    }

    /// So many windows were over before the thread got its CPU.
    pub fn windows_missed(&mut self, count: u64) {
        if count > 0 {
            self.words[at::WINDOWS_MISSED].add(count);
        }
    }

    #[cold]
    fn begin_second(&mut self, activation: u64) {
        self.publish_second();
        self.words[at::SLEEPS].set(self.sleeps);
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
        if written - self.samples_read >= SAMPLES as u64 {
            // A reader that is in the middle of writing this is not waited for: it may be kept off its CPU by this thread.
            self.samples_read = self.words[at::SAMPLES_READ].observe_now().unwrap_or(self.samples_read);
        }
        if written - self.samples_read >= SAMPLES as u64 {
            self.words[at::SAMPLES_LOST].add(1);
            return;
        }
        let place = at::SAMPLES + 2 * (written % SAMPLES as u64) as usize;
        self.words[place].set(activation);
        self.words[place + 1].set(latency);
        self.words[at::SAMPLES_WRITTEN].publish(written + 1);
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
            let worst = view.worst(&Grid::fixed(0, 1_000_000));
            assert_eq!(worst.iter().map(|sample| sample.latency.0).collect::<Vec<_>>(), sorted[..WORST]);
            assert!(worst.iter().all(|sample| latencies[sample.activation as usize] == sample.latency.0));
            assert_eq!(worst[0].due.0, worst[0].activation * 1_000_000);
        });
    }

    #[test]
    fn seconds_add_up_to_the_whole_and_a_late_reader_is_reported_what_it_lost() {
        with_recorder(250_000_000, false, |recorder, view| {
            for activation in 0..4 * 3000 {
                recorder.observed(activation, 1_000);
            }
            let grid = Grid::fixed(0, 250_000_000);
            recorder.missed(&grid, 12_000..12_002, grid.due(12_002));
            recorder.finish(1);
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
            recorder.finish(1);
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
