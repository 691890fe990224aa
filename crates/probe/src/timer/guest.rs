//! Activations that a guest under KVM has: the thread sleeps until one is due, raises an interrupt and enters the guest, which is
//! the least that a guest can be ([`sys::kvm`]). The activation is late by what passes until the guest goes on after its handler.

use record::instrument::timer::{Exits, GuestFigures, GuestPart, GuestSample, HeldExit, PartOfGuest};
use record::{Fact, Sample};
use sys::Errno;
use sys::clock::Clock;
use sys::kvm::{self, COUNTED, Counts, Exit, Guest, Stamps};
use sys::shared::Word;
use units::Nanos;

use super::source::{Source, slept};
use crate::part;

const PARTS: usize = PartOfGuest::ALL.len();
/// How many of the worst keep their parts: as many as a board keeps.
const WORST: usize = crate::board::WORST;
/// Words of one of them: latency, when it was due, its parts, its exits, the longest exit to this program and its time.
const WORST_WORDS: usize = 4 + PARTS + COUNTED.len();
/// Turns that the guest takes before anything is measured, and as many in which it rests. In the first of them the kernel gives it its memory.
const TRIALS: u32 = 64;

mod at {
    pub const UNSPLIT: usize = 0;
    /// Whether KVM counts exits.
    pub const IS_COUNTED: usize = 1;
    pub const EXITS: usize = 2;
    pub const WORST: usize = EXITS + super::COUNTED.len();
    pub const PARTS: usize = WORST + super::WORST * super::WORST_WORDS;
}

/// Words that a thread needs: of its parts, and of the way back from the guest, which is in no latency.
pub const WORDS: usize = at::PARTS + (PARTS + 1) * part::WORDS;

/// The parts of an activation's latency, in nanoseconds and in the order of time. They sum to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// As [`PartOfGuest::ALL`].
    pub parts: [u64; PARTS],
    /// From the guest's last stamp until this thread goes on: after the latency.
    pub back: u64,
}

/// Two readings of the monotonic clock, each with one of the time-stamp counter; the counter's lie between the clock's.
#[derive(Clone, Copy, Debug)]
struct Between {
    clock: (u64, u64),
    counter: (u64, u64),
}

impl Between {
    /// What the clock read when the counter read `counter`; none outside. No rate has to be known.
    fn at(&self, counter: u64) -> Option<u64> {
        let (first, last) = self.counter;
        if !(first..=last).contains(&counter) || first == last {
            return None;
        }
        let part = u128::from(counter - first) * u128::from(self.clock.1 - self.clock.0);
        Some(self.clock.0 + (part / u128::from(last - first)) as u64)
    }

    /// Lays out an activation that was due at `due`; none where a stamp is missing, or lies before the one before it or outside.
    fn split(&self, due: u64, stamps: Stamps) -> Option<Split> {
        let Stamps { entry, interrupt, thread } = stamps;
        if !(entry <= interrupt && interrupt <= thread) {
            return None;
        }
        let [entry, interrupt, thread] = [self.at(entry)?, self.at(interrupt)?, self.at(thread)?];
        let host = self.clock.0;
        let parts = [host.checked_sub(due)?, entry - host, interrupt - entry, thread - interrupt];
        Some(Split { parts, back: self.clock.1 - thread })
    }
}

/// An exit to this program, and for how long the guest waited for it.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    exit: u64,
    took: u64,
}

/// Kinds of exits in a word: above the lower half.
const SIGNAL: u64 = 1 << 32;
const PORT: u64 = 2 << 32;

impl Held {
    fn name(exit: u64) -> String {
        if exit == SIGNAL { "a signal".to_owned() } else { format!("port {:#x}", exit & 0xffff) }
    }
}

/// A guest that has activations.
#[derive(Debug)]
pub struct InGuest {
    guest: Guest,
    clock: Clock,
    /// When the guest went on, until somebody asks.
    woken: Option<u64>,
    /// What KVM had counted when the guest left last.
    counted: Option<Counts>,
    /// The latest activation's.
    latest: Option<Split>,
    /// What is done where the guest leaves before its turn is over; a monitor of virtual machines has its devices there.
    pub at_exit: fn(Exit),
    /// Least of the worst that keep their parts; none while nothing is counted.
    admission: Option<u64>,
    words: Box<[Word]>,
}

impl InGuest {
    /// Makes the guest, and lets it take some turns.
    ///
    /// # Errors
    /// What the kernel refuses; a guest whose stamps cannot be laid beside this CPU's clock.
    pub fn new() -> failure::Result<Self> {
        let guest = Guest::new().map_err(refused)?;
        let words = (0..WORDS).map(|_| Word::default()).collect();
        let mut own = Self {
            guest,
            clock: Clock::Monotonic,
            woken: None,
            counted: None,
            latest: None,
            at_exit: |_| (),
            admission: None,
            words,
        };
        for number in 0..2 * TRIALS {
            if number == TRIALS {
                own.guest.rest();
            }
            let now = own.clock.now();
            let turn = own.turn(now, now).map_err(|errno| refused(sys::Error::new("KVM_RUN", errno)))?;
            if turn.is_none() {
                let why = match own.guest.stamps().interrupt {
                    0 => "no interrupt reached the guest",
                    _ => {
                        "the guest's time-stamp counter is not the host's: nothing in it can be laid beside the host's clock"
                    }
                };
                let hint = "bench in a guest of its own measures there, by that guest's clock";
                return Err(failure::Error::new(format!("--wake kvm: {why}"), hint));
            }
        }
        Ok(own)
    }

    /// The guest, to change it between two activations.
    pub fn guest(&mut self) -> &mut Guest {
        &mut self.guest
    }

    /// The latest activation's parts; none where they are not known.
    pub fn latest(&self) -> Option<Split> {
        self.latest
    }

    /// An activation that was due at `due`, for which this thread was awake at `began`: what it consisted of, if that is known.
    #[inline]
    fn turn(&mut self, due: u64, began: u64) -> Result<Option<Split>, Errno> {
        self.guest.forget();
        let first = kvm::counter();
        self.guest.raise()?;
        let mut longest = Held::default();
        loop {
            let exit = match self.guest.enter()? {
                Exit::Done => break,
                Exit::Signal => SIGNAL,
                Exit::Port(port) => PORT | u64::from(port),
                // It cannot go on: an instruction or a state that KVM has no way with.
                Exit::Other(_) => return Err(Errno::IO),
            };
            let left = self.clock.now();
            (self.at_exit)(if exit == SIGNAL { Exit::Signal } else { Exit::Port(exit as u16) });
            let took = self.clock.now() - left;
            if took >= longest.took {
                longest = Held { exit, took };
            }
        }
        let last = kvm::counter();
        let ended = self.clock.now();
        self.guest.lower()?;
        let split = Between { clock: (began, ended), counter: (first, last) }.split(due, self.guest.stamps());
        self.latest = split;
        self.woken = Some(split.map_or(ended, |split| ended - split.back));
        self.tally(due, split, longest);
        Ok(split)
    }

    /// Counts it. Nothing here allocates or locks; the counters are one read.
    fn tally(&mut self, due: u64, split: Option<Split>, longest: Held) {
        let counts = self.guest.counts();
        let before = std::mem::replace(&mut self.counted, counts);
        let Some(admission) = self.admission else { return };
        let mut exits = Counts::default();
        if let Some((before, after)) = before.zip(counts) {
            self.words[at::IS_COUNTED].set(1);
            exits = std::array::from_fn(|kind| after[kind].saturating_sub(before[kind]));
            self.words[at::EXITS..].iter().zip(exits).for_each(|(word, count)| _ = word.add(count));
        }
        let Some(split) = split else {
            self.words[at::UNSPLIT].add(1);
            return;
        };
        let all = split.parts.into_iter().chain([split.back]);
        all.enumerate().for_each(|(number, took)| part::observe(part_words(&self.words, number), took));
        let latency = split.parts.iter().sum();
        if latency > admission {
            self.admit(latency, due, split, exits, longest);
        }
    }

    /// Takes the place of the least of the worst.
    #[cold]
    fn admit(&mut self, latency: u64, due: u64, split: Split, exits: Counts, longest: Held) {
        let kept = &self.words[at::WORST..at::PARTS];
        let least = kept.chunks_exact(WORST_WORDS).min_by_key(|words| words[0].get());
        if let Some(words) = least {
            let values =
                [latency, due, longest.exit, longest.took].into_iter().chain(split.parts).chain(exits);
            words.iter().zip(values).for_each(|(word, value)| word.set(value));
        }
        self.admission = kept.chunks_exact(WORST_WORDS).map(|words| words[0].get()).min();
    }
}

impl Source for InGuest {
    #[inline]
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        slept(self.clock.sleep_until(due))?;
        let began = self.clock.now();
        if began < due { Ok(()) } else { self.turn(due, began).map(drop) }
    }

    #[inline]
    fn now(&mut self) -> u64 {
        self.woken.take().unwrap_or_else(|| self.clock.now())
    }

    fn begin(&mut self) {
        self.counted = self.guest.counts();
        self.admission = Some(0);
    }

    fn end(&mut self, own: &[Word]) -> u64 {
        own.iter().zip(&self.words).for_each(|(to, from)| to.set(from.get()));
        0
    }
}

fn part_words(words: &[Word], number: usize) -> &[Word] {
    &words[at::PARTS + number * part::WORDS..at::PARTS + (number + 1) * part::WORDS]
}

/// What a thread left in `words` of its guest, whose first activation was due at `first_due` and whose worst are these; none where it
/// did not come to its end.
pub fn figures(words: &[Word], first_due: u64, worst: &[Sample]) -> Option<GuestFigures> {
    let part = |(number, name)| GuestPart { name, took: part::histogram(part_words(words, number)) };
    let parts: Vec<GuestPart> = PartOfGuest::ALL.into_iter().enumerate().map(part).collect();
    let unsplit = words[at::UNSPLIT].get();
    let is_there = unsplit > 0 || parts.iter().any(|part| part.took.summary().count > 0);
    let is_counted = words[at::IS_COUNTED].get() > 0;
    is_there.then(|| GuestFigures {
        parts,
        back: part::histogram(part_words(words, PARTS)),
        exits: exits(&words[at::EXITS..at::WORST], is_counted),
        worst: worst.iter().map(|sample| kept(words, first_due, sample, is_counted)).collect(),
        unsplit,
    })
}

fn exits(words: &[Word], is_counted: bool) -> Fact<Exits> {
    let count = |(name, word): (&&str, &Word)| Some(((*name).to_owned(), word.get())).filter(|one| one.1 > 0);
    if is_counted { Fact::Value(COUNTED.iter().zip(words).filter_map(count).collect()) } else { Fact::Absent }
}

/// One of the worst, if it was kept.
fn kept(words: &[Word], first_due: u64, sample: &Sample, is_counted: bool) -> Fact<GuestSample> {
    let due = first_due.wrapping_add(sample.due.0);
    let mut all = words[at::WORST..at::PARTS].chunks_exact(WORST_WORDS);
    let is_it = |words: &&[Word]| words[0].get() == sample.latency.0 && words[1].get() == due;
    let found = all.find(is_it).filter(|_| sample.latency.0 > 0);
    let Some(words) = found else { return Fact::Absent };
    let [by, took] = [words[2].get(), words[3].get()];
    Fact::Value(GuestSample {
        parts: words[4..4 + PARTS].iter().map(|word| Some(Nanos(word.get()))).collect(),
        exits: exits(&words[4 + PARTS..], is_counted),
        held: (by != 0).then(|| HeldExit { by: Held::name(by), took: Nanos(took) }),
    })
}

fn refused(error: sys::Error) -> failure::Error {
    let hint = match error.errno {
        Errno::NOENT => {
            "load kvm-intel or kvm-amd; a virtual machine has it where its host nests them. On PREEMPT_RT KVM needs a constant TSC: \
             dmesg | grep -i kvm"
        }
        Errno::ACCESS | Errno::PERM => "run as root, or in the group of /dev/kvm",
        Errno::NXIO | Errno::INVAL | Errno::NOTTY => {
            "a guest with the host's time-stamp counter and an interrupt controller takes Linux 5.16 or newer"
        }
        Errno::BUSY => "another hypervisor has this CPU's virtualization",
        _ => "the kernel's log may say more: dmesg | grep -i kvm",
    };
    failure::Error::new(format!("--wake kvm: {error}"), hint).caused_by(error)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stamp_that_is_missing_or_not_in_order_is_not_laid_out() {
        let between = Between { clock: (1_000, 2_000), counter: (50_000, 53_000) };
        let of = |entry, interrupt, thread| between.split(900, Stamps { entry, interrupt, thread });
        let split = of(50_300, 50_600, 52_700).unwrap();
        assert_eq!((split.parts, split.back), ([100, 100, 100, 700], 100));
        assert_eq!(of(50_300, 0, 52_700), None, "no interrupt came");
        assert_eq!(of(49_999, 50_600, 52_700), None, "before it was entered");
        assert_eq!(of(50_300, 50_600, 53_001), None, "after it had left");
        assert_eq!(of(50_600, 50_300, 52_700), None);
        assert_eq!(between.split(1_001, Stamps { entry: 50_300, interrupt: 50_600, thread: 50_700 }), None);
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_latency(
            began in 0..1_u64 << 60, late in 0..1_u64 << 40, took in 1..1_u64 << 40, first in 0..1_u64 << 62,
            ticks in 1..1_u64 << 41, mut stamps in proptest::array::uniform3(0_f64..=1.0)
        ) {
            stamps.sort_by(f64::total_cmp);
            let [entry, interrupt, thread] = stamps.map(|part| first + (ticks as f64 * part) as u64);
            let between = Between { clock: (began + late, began + late + took), counter: (first, first + ticks) };
            let split = between.split(began, Stamps { entry, interrupt, thread }).unwrap();
            let went_on = between.at(thread).unwrap();
            prop_assert_eq!(split.parts.iter().sum::<u64>(), went_on - began);
            prop_assert_eq!(went_on + split.back, between.clock.1);
        }
    }

    #[test]
    fn activations_where_there_is_kvm() {
        let mut source = match InGuest::new() {
            Ok(source) => source,
            Err(error) => return assert!(!error.hint.is_empty(), "{error:?}"),
        };
        source.begin();
        for number in 0..200 {
            let due = source.now() + 100_000;
            source.sleep_until(due).unwrap();
            let latency = source.now() - due;
            let split = source.latest().unwrap();
            assert_eq!(split.parts.iter().sum::<u64>(), latency, "{number}");
        }
    }

    #[test]
    fn a_machine_without_kvm_is_refused_with_what_helps() {
        if !kvm::is_there() {
            let error = InGuest::new().unwrap_err();
            assert!(error.message.contains("/dev/kvm") && error.hint.contains("kvm-amd"), "{error:?}");
        }
    }
}
