//! The loop on a line and clocks that a test scripts.

use proptest::prelude::*;
use record::instrument::response::{PartName, ResponseSeries};
use sys::net::Stamp;
use sys::shared::SharedWords;
use units::Nanos;

use super::*;
use crate::board::View;
use crate::response::tally;

const INTERVAL: u64 = 1_000_000;
const ORIGIN: u64 = 1_000_000_000;
/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
const APART: i64 = 1_700_000_000_000_000_000;
/// What reading a clock takes.
const READING: u64 = 30;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Sent, at the peer, answered and received, each so long after the one before.
    Answered {
        send: u64,
        wire: u64,
        peer: u64,
        receive: u64,
    },
    /// As before, and once more at once.
    Twice,
    /// It comes when so many nanoseconds have passed.
    Late(u64),
    Lost,
    /// The kernel does not send it.
    NotSent,
}

const USUAL: Fate = Fate::Answered { send: 5_000, wire: 20_000, peer: 8_000, receive: 7_000 };

/// An answer under way.
struct Coming {
    at: u64,
    number: u64,
    received: Stamp,
    residence: Option<u64>,
}

/// A network card with a clock of its own. A quarter of the time on the wire passes before it has sent a frame, and half of it after
/// it has received the answer.
#[derive(Clone, Copy, Debug)]
struct Card {
    /// Its clock minus `CLOCK_MONOTONIC`.
    apart: i64,
    stamps_sent: bool,
    stamps_received: bool,
}

const CARD: Card = Card { apart: -900_000_000, stamps_sent: true, stamps_received: true };

/// A peer whose every answer is scripted.
struct Scripted {
    clock: u64,
    fates: Vec<Fate>,
    sent: u64,
    coming: Vec<Coming>,
    notes: Vec<(u64, Stamp)>,
    card: Option<Card>,
    /// Notes of the card, which come while the thread sleeps.
    later: Vec<(u64, Stamp)>,
    /// Frames before which the card's clock is set by a second.
    card_steps: Vec<usize>,
    /// How much later than asked each sleep ends, by its number.
    oversleeps: Vec<u64>,
    sleeps: usize,
    /// Cycles before which `CLOCK_REALTIME` is set by a second.
    steps: Vec<usize>,
    apart: i64,
    says_residence: bool,
    stamps: bool,
}

impl Scripted {
    fn new(fates: Vec<Fate>) -> Self {
        Self {
            clock: ORIGIN - 500_000,
            fates,
            sent: 0,
            coming: vec![],
            notes: vec![],
            card: None,
            later: vec![],
            card_steps: vec![],
            oversleeps: vec![],
            sleeps: 0,
            steps: vec![],
            apart: APART,
            says_residence: true,
            stamps: true,
        }
    }

    fn real(&self, at: u64) -> u64 {
        at.wrapping_add_signed(self.apart)
    }
}

impl Line for Scripted {
    fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
        let late = self.oversleeps.get(self.sleeps).copied().unwrap_or(0);
        self.sleeps += 1;
        self.notes.append(&mut self.later);
        self.clock = self.clock.max(due + late);
        Ok(())
    }

    fn now(&mut self) -> u64 {
        self.clock += READING;
        self.clock
    }

    fn offset(&mut self) -> Offset {
        Offset { nanos: self.apart, width: READING }
    }

    fn card(&mut self) -> Option<Offset> {
        self.card.map(|card| Offset { nanos: card.apart, width: READING })
    }

    fn send(&mut self) -> Result<u64, Errno> {
        let fate = self.fates.get((self.sent) as usize).copied().unwrap_or(USUAL);
        if fate == Fate::NotSent {
            self.fates.remove(self.sent as usize);
            return Err(Errno::NOBUFS);
        }
        let number = self.sent;
        self.sent += 1;
        if self.steps.contains(&(number as usize)) {
            self.apart += 1_000_000_000;
        }
        if let Some(card) = self.card.as_mut().filter(|_| self.card_steps.contains(&(number as usize))) {
            card.apart += 1_000_000_000;
        }
        let (send, wire, peer, receive) = match fate {
            Fate::Answered { send, wire, peer, receive } => (send, wire, peer, receive),
            Fate::Late(late) => (5_000, late, 8_000, 7_000),
            _ => (5_000, 20_000, 8_000, 7_000),
        };
        let given = self.clock + send;
        let received = given + wire + peer;
        if self.stamps {
            self.notes.push((number, Stamp { software: Some(self.real(given)), hardware: None }));
        }
        let by_card = |at: u64| self.card.map(|card| at.wrapping_add_signed(card.apart));
        if let Some(hardware) =
            by_card(given + wire / 4).filter(|_| self.card.is_some_and(|card| card.stamps_sent))
        {
            self.later.push((number, Stamp { software: None, hardware: Some(hardware) }));
        }
        let hardware =
            by_card(received - wire / 2).filter(|_| self.card.is_some_and(|card| card.stamps_received));
        let came = Stamp { software: Some(self.real(received)), hardware };
        let copies = match fate {
            Fate::Lost => 0,
            Fate::Twice => 2,
            _ => 1,
        };
        for _ in 0..copies {
            self.coming.push(Coming {
                at: received + receive,
                number,
                received: came,
                residence: self.says_residence.then_some(peer),
            });
        }
        Ok(number)
    }

    fn receive(&mut self, until: u64) -> Result<Option<Answer>, Errno> {
        let next = (0..self.coming.len()).min_by_key(|&place| self.coming[place].at);
        match next.filter(|&place| self.coming[place].at <= until.max(self.clock)) {
            None => {
                self.clock = self.clock.max(until);
                Ok(None)
            }
            Some(place) => {
                let Coming { at, number, received, residence } = self.coming.remove(place);
                self.clock = self.clock.max(at);
                Ok(Some(Answer::To { number, received, residence }))
            }
        }
    }

    fn noted(&mut self) -> Option<(u64, Stamp)> {
        (!self.notes.is_empty()).then(|| self.notes.remove(0))
    }
}

fn task(cycles: u64, frames: u32) -> Task {
    let grid = Grid::fixed(ORIGIN, INTERVAL);
    Task { grid, cycles, frames, patience: INTERVAL / 10 * 9, stop_at: u64::MAX }
}

fn measured(line: &mut Scripted, task: &Task) -> (ResponseSeries, u64, u64, u64) {
    let (words, _file) = SharedWords::create(board::words(1, false)).unwrap();
    let (tallied, _file) = SharedWords::create(tally::WORDS).unwrap();
    let block = board::block(&words, 0, false);
    let mut recorder = Recorder::new(block, Nanos(INTERVAL), false);
    recorder.started(&task.grid);
    run(line, task, &mut Flight::new(), &words, &mut recorder, &mut Tally::new(&tallied));
    let view = View(block);
    let (observed, missed) = (view.summary(), view.missed_summary());
    (
        tally::read(&tallied, &view.worst(&task.grid), &PartName::WITH_HARDWARE),
        observed.count,
        missed.count,
        observed.max,
    )
}

#[test]
fn a_response_is_the_sum_of_its_parts() {
    let slow = Fate::Answered { send: 90_000, wire: 20_000, peer: 300_000, receive: 45_000 };
    let (series, observed, missed, max) = measured(&mut Scripted::new(vec![USUAL, slow]), &task(10, 1));
    assert_eq!((observed, missed, max), (10, 0, 455_000 + READING));
    let maximum = |name| series.part(name).unwrap().summary().max;
    assert_eq!(PartName::OF_SOFTWARE.map(maximum), [90_000, 20_000, 300_000, 45_000 + READING]);
    assert_eq!(series.split.count, 10);
    let worst = series.worst_parts[0].value().unwrap();
    let expected = [Some(90_000), None, Some(20_000), Some(300_000), None, Some(45_000 + READING)];
    assert_eq!(*worst, expected.map(|nanos| nanos.map(Nanos)));
}

#[test]
fn what_is_lost_twice_or_late_is_counted_as_that() {
    let fates = vec![USUAL, Fate::Lost, Fate::Twice, Fate::Late(950_000), USUAL, Fate::NotSent, USUAL];
    let (series, observed, missed, _) = measured(&mut Scripted::new(fates), &task(8, 1));
    let frames = series.frames;
    assert_eq!((observed, missed), (5, 3), "{frames:?}");
    assert_eq!((frames.sent, frames.answered, frames.lost, frames.late), (7, 6, 1, 1), "{frames:?}");
    assert_eq!((frames.duplicated, frames.not_sent, frames.foreign), (1, 1, 0), "{frames:?}");
}

#[test]
fn answers_in_another_order_are_counted_and_the_last_one_is_the_response() {
    let first = Fate::Answered { send: 5_000, wire: 400_000, peer: 0, receive: 5_000 };
    let (series, observed, _, max) = measured(&mut Scripted::new(vec![first, USUAL, USUAL]), &task(1, 3));
    assert_eq!((observed, max, series.frames.reordered), (1, 410_000 + READING, 1));
    assert_eq!(series.part(PartName::Wire).unwrap().summary().max, 400_000);
}

#[test]
fn a_step_of_the_stamps_clock_voids_the_parts_and_not_the_response() {
    let mut line = Scripted::new(vec![]);
    line.steps = vec![4];
    let (series, observed, missed, max) = measured(&mut line, &task(10, 1));
    assert_eq!((observed, missed, max), (10, 0, 40_000 + READING));
    assert_eq!((series.split.count, series.unsplit.clock_set, series.unsplit.count()), (9, 1, 1));
}

#[test]
fn a_peer_that_says_nothing_leaves_its_part_to_the_wire() {
    let mut line = Scripted::new(vec![]);
    line.says_residence = false;
    let (series, ..) = measured(&mut line, &task(5, 1));
    assert_eq!(series.part(PartName::Peer), None);
    assert_eq!(series.part(PartName::Wire).unwrap().summary().max, 28_000);
    assert_eq!(series.worst_parts[0].value().unwrap()[3], None);
}

#[test]
fn a_driver_without_stamps_has_responses_without_parts() {
    let mut line = Scripted::new(vec![]);
    line.stamps = false;
    let (series, observed, ..) = measured(&mut line, &task(5, 1));
    assert_eq!((observed, series.split.count, series.unsplit.not_stamped_sent), (5, 0, 5));
}

#[test]
fn a_card_that_stamps_takes_its_share_from_the_wire_though_its_notes_come_late() {
    let slow = Fate::Answered { send: 9_000, wire: 400_000, peer: 30_000, receive: 7_000 };
    let mut line = Scripted::new(vec![USUAL, slow]);
    line.card = Some(CARD);
    let (series, observed, ..) = measured(&mut line, &task(5, 1));
    assert_eq!((observed, series.split.count, series.card_readings.count), (5, 5, 10));
    let count = |name| series.part(name).unwrap().summary().count;
    assert_eq!(PartName::WITH_HARDWARE.map(count), [5; 6], "the last cycle's too");
    let expected = [9_000, 100_000, 100_000, 30_000, 200_000, 7_000 + READING];
    assert_eq!(*series.worst_parts[0].value().unwrap(), expected.map(|nanos| Some(Nanos(nanos))));
}

#[test]
fn what_a_card_does_not_stamp_stays_on_the_wire() {
    for (card, [sent, received], wire) in [
        (Card { stamps_received: false, ..CARD }, [5, 0], 15_000),
        (Card { stamps_sent: false, ..CARD }, [0, 5], 10_000),
    ] {
        let mut line = Scripted::new(vec![]);
        line.card = Some(card);
        let (series, ..) = measured(&mut line, &task(5, 1));
        let count = |name| series.part(name).map_or(0, |part| part.summary().count);
        assert_eq!([PartName::Transmit, PartName::Deliver].map(count), [sent, received]);
        assert_eq!(series.part(PartName::Wire).unwrap().summary().max, wire);
    }
}

#[test]
fn a_cards_clock_that_is_set_meanwhile_stamps_nothing() {
    let mut line = Scripted::new(vec![]);
    (line.card, line.card_steps) = (Some(CARD), vec![2]);
    let (series, ..) = measured(&mut line, &task(5, 1));
    assert_eq!((series.split.count, series.unsplit.count()), (5, 0));
    assert_eq!(series.part(PartName::Transmit).unwrap().summary().count, 4);
    assert_eq!(series.part(PartName::Wire).unwrap().summary().max, 20_000, "all of it, in that cycle");
}

#[test]
fn cycles_that_were_over_when_the_thread_woke_are_missed_and_not_sent() {
    let mut line = Scripted::new(vec![]);
    line.oversleeps = vec![0, 0, 3 * INTERVAL + 5];
    let (series, observed, missed, max) = measured(&mut line, &task(10, 1));
    assert_eq!((observed, missed, series.skipped, series.frames.sent), (7, 3, 3, 7));
    assert_eq!(max, 40_000 + READING, "the thread's own lateness is no response");
}

#[test]
fn a_peer_that_leaves_is_silent_to_the_end() {
    let mut fates = vec![USUAL; 4];
    fates.extend(vec![Fate::Lost; 6]);
    let (series, observed, missed, _) = measured(&mut Scripted::new(fates), &task(10, 1));
    assert_eq!((observed, missed, series.frames.silent_cycles, series.frames.lost), (4, 6, 6, 6));
}

#[test]
fn a_response_at_the_threshold_stops_the_run_and_so_does_an_answer_that_never_comes() {
    for fate in [Fate::Lost, Fate::Answered { send: 0, wire: 0, peer: 700_000, receive: 0 }] {
        let stopping = Task { stop_at: 600_000, ..task(10, 1) };
        let (series, ..) = measured(&mut Scripted::new(vec![USUAL, fate]), &stopping);
        assert_eq!(series.frames.sent, 2, "{fate:?}");
    }
}

#[test]
fn answers_that_nobody_asked_for_do_not_keep_a_cycle_open() {
    struct Flood(Scripted);
    impl Line for Flood {
        fn sleep_until(&mut self, due: u64) -> Result<(), Errno> {
            self.0.sleep_until(due)
        }
        fn now(&mut self) -> u64 {
            self.0.now()
        }
        fn offset(&mut self) -> Offset {
            self.0.offset()
        }
        fn card(&mut self) -> Option<Offset> {
            self.0.card()
        }
        fn send(&mut self) -> Result<u64, Errno> {
            self.0.send()
        }
        fn receive(&mut self, _: u64) -> Result<Option<Answer>, Errno> {
            let number = self.0.clock;
            Ok(Some(if number % 2 == 0 {
                Answer::Foreign
            } else {
                Answer::To { number, received: Stamp::default(), residence: None }
            }))
        }
        fn noted(&mut self) -> Option<(u64, Stamp)> {
            None
        }
    }
    let (words, _file) = SharedWords::create(board::words(1, false)).unwrap();
    let (tallied, _file) = SharedWords::create(tally::WORDS).unwrap();
    let mut recorder = Recorder::new(board::block(&words, 0, false), Nanos(INTERVAL), false);
    let (task, mut flight) = (task(4, 1), Flight::new());
    let mut line = Flood(Scripted::new(vec![]));
    run(&mut line, &task, &mut flight, &words, &mut recorder, &mut Tally::new(&tallied));
    let series = tally::read(&tallied, &[], &PartName::OF_SOFTWARE);
    assert_eq!((series.frames.answered, series.frames.lost), (0, series.frames.sent));
    assert!(series.frames.foreign > 0);
}

fn fate() -> impl Strategy<Value = Fate> {
    let part = 0..400_000_u64;
    prop_oneof![
        8 => (part.clone(), part.clone(), part.clone(), part)
            .prop_map(|(send, wire, peer, receive)| Fate::Answered { send, wire, peer, receive }),
        1 => Just(Fate::Twice),
        1 => (0..5_000_000_u64).prop_map(Fate::Late),
        1 => Just(Fate::Lost),
        1 => Just(Fate::NotSent),
    ]
}

proptest! {
    #[test]
    fn every_cycle_and_every_frame_is_accounted_for_and_parts_sum_to_the_whole(
        fates in proptest::collection::vec(fate(), 0..200),
        oversleeps in proptest::collection::vec(prop_oneof![4 => Just(0), 1 => 0..3_500_000_u64], 0..60),
        frames in 1..5_u32,
        steps in proptest::collection::vec(0..100_usize, 0..3),
        card in proptest::option::of((any::<bool>(), any::<bool>(), any::<i64>())),
        card_steps in proptest::collection::vec(0..100_usize, 0..3),
    ) {
        let mut line = Scripted::new(fates);
        (line.oversleeps, line.steps, line.card_steps) = (oversleeps, steps, card_steps);
        line.card = card.map(|(stamps_sent, stamps_received, apart)| Card { apart: apart / 2, stamps_sent, stamps_received });
        let (series, observed, missed, _) = measured(&mut line, &task(50, frames));
        prop_assert_eq!(observed + missed, 50);
        prop_assert_eq!(series.frames.answered + series.frames.lost, series.frames.sent);
        prop_assert_eq!(series.frames.sent, line.sent);
        prop_assert_eq!(series.split.count + series.unsplit.count(), observed);
        let sums: u64 = series.parts.iter().map(|part| part.took.summary().sum).sum();
        prop_assert_eq!(sums, series.split.sum);
    }
}
