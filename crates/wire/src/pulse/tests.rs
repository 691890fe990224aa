//! The monitor's loop against wires that are scripted, with a clock of their own.

use proptest::prelude::*;
use units::Seed;

use super::*;

const MS: u64 = 1_000_000;

/// A responder behind the wires: a test double of the kernel's interface. Its clock moves only when somebody waits.
#[derive(Debug, Default)]
struct Scripted {
    now: u64,
    /// For each pulse how long until its answers; none: it is not answered.
    answers: Vec<Vec<u64>>,
    pulses: usize,
    edges: std::collections::VecDeque<Event>,
    is_active: bool,
    /// How long driving the line takes.
    write: u64,
    /// After so many pulses the chip is gone.
    gone_after: Option<usize>,
    number: u32,
}

impl Wires for &mut Scripted {
    fn drive(&mut self, active: bool) -> Result<(), Errno> {
        if active && self.gone_after == Some(self.pulses) {
            return Err(Errno::NODEV);
        }
        self.is_active = active;
        if !active {
            return Ok(());
        }
        let begin = self.now;
        self.now += self.write;
        for delay in self.answers.get(self.pulses).cloned().unwrap_or_default() {
            for rose in [false, true] {
                self.number += 1;
                let stamp = begin + delay + u64::from(rose);
                self.edges.push_back(Event { stamp, rose, number: Some(self.number) });
            }
        }
        self.pulses += 1;
        Ok(())
    }

    fn edge(&mut self, until: u64) -> Result<Option<Event>, Errno> {
        match self.edges.front().copied() {
            Some(event) if event.stamp <= until.max(self.now) => {
                self.now = self.now.max(event.stamp);
                self.edges.pop_front();
                Ok(Some(event))
            }
            _ => {
                self.now = self.now.max(until);
                Ok(None)
            }
        }
    }

    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        self.now = self.now.max(due);
        Ok(())
    }

    fn now(&mut self) -> u64 {
        self.now
    }
}

fn pace(jitter: u64) -> Pace {
    let (period, patience) = (Nanos(MS), Nanos(MS * 8 / 10));
    Pace { period, jitter: Nanos(jitter), patience, rises: false }
}

fn run(scripted: &mut Scripted, pulses: usize, jitter: u64) -> Vec<Pulse> {
    let mut monitor = Monitor::new(scripted, pace(jitter), Seed(7).stream("pulses"));
    (0..pulses).map(|_| monitor.pulse().unwrap()).collect()
}

#[test]
fn an_answer_is_as_late_as_its_stamp_and_what_is_missed_is_counted() {
    let answers = vec![vec![5_000], vec![], vec![7_000, 20_000], vec![900_000], vec![6_000]];
    let mut scripted = Scripted { answers, write: 300, ..Scripted::default() };
    let pulses = run(&mut scripted, 5, 0);
    let answered: Vec<_> = pulses.iter().map(|pulse| pulse.answer).collect();
    assert_eq!(answered, [Some(5_000), None, Some(7_000), None, Some(6_000)]);
    assert!(pulses.iter().all(|pulse| pulse.write == 300 && pulse.skipped == 0 && pulse.lost == 0));
    // The second answer of the third pulse, and the late one of the fourth, are seen by the next.
    assert_eq!((pulses[3].again, pulses[4].late), (1, 1));
    assert!(!scripted.is_active, "the line is back");
}

#[test]
fn the_jitter_is_that_of_the_seed_and_no_pulse_leaves_its_period() {
    let answers = vec![vec![1_000]; 50];
    let begins = || {
        let mut scripted = Scripted { answers: answers.clone(), ..Scripted::default() };
        run(&mut scripted, 50, MS / 10).iter().map(|pulse| pulse.begin).collect::<Vec<_>>()
    };
    let first = begins();
    assert_eq!(first, begins());
    let phases: Vec<u64> = first.iter().map(|begin| begin % MS).collect();
    assert!(phases.iter().all(|phase| *phase < MS / 10));
    assert!(phases.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn a_chip_that_goes_away_is_an_error() {
    let mut scripted = Scripted { answers: vec![vec![1]; 9], gone_after: Some(2), ..Scripted::default() };
    let mut monitor = Monitor::new(&mut scripted, pace(0), Seed(1).stream("pulses"));
    assert!(monitor.pulse().is_ok() && monitor.pulse().is_ok());
    assert_eq!(monitor.pulse(), Err(Errno::NODEV));
}

proptest! {
    #[test]
    fn answered_and_missed_are_all_that_was_sent(
        answers in proptest::collection::vec(proptest::collection::vec(0..2 * MS, 0..3), 1..40),
        write in 0..50_000_u64,
    ) {
        let count = answers.len();
        let mut scripted = Scripted { answers, write, ..Scripted::default() };
        let pulses = run(&mut scripted, count, MS / 20);
        prop_assert_eq!(pulses.len(), scripted.pulses);
        for pulse in &pulses {
            prop_assert!(pulse.answer.is_none_or(|answer| answer <= MS * 8 / 10));
        }
        let counted: u64 = pulses.iter().map(|pulse| {
            u64::from(pulse.answer.is_some()) + pulse.again + pulse.late + pulse.astray
        }).sum();
        prop_assert!(counted <= u64::from(scripted.number));
    }
}
