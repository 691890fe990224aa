//! Invariants 16 to 18: event groups.

use std::sync::Arc;

use super::{
    Behaviour, Finding, Make, Notes, Payload, Settings, Subject, Wanted, ensure, event, must, note,
    one_round, read, sent, settle, started,
};
use crate::contract::watch::Fault;
use crate::model::Kind;

/// What a notification is noted as.
const NOTIFIED: u64 = u64::MAX;

pub fn notifies_once<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let (pool, group) = (machine.pool(64), machine.group());
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let again = Behaviour::new(move |here, event: S::Event, queue| {
        note(&seen, NOTIFIED, event.word(0));
        // A new cycle begins in the notification's own receive.
        if event.word(0) < 3 {
            let mut event = event;
            event.set_word(0, event.word(0) + 1);
            match here.apply(group, 4, event, queue) {
                Ok(()) => {}
                Err((error, _)) => note(&seen, NOTIFIED, 1_000 + error_number(error)),
            }
        }
    });
    let (_, notified) = started(&machine, Wanted::new(Kind::Atomic).level(7), again)?;
    let seen = Arc::clone(&notes);
    let member = Behaviour::new(move |_, event: S::Event, _| note(&seen, event.word(0), event.word(1)));
    let (_, queue) = started(&machine, Wanted::new(Kind::Parallel), member)?;
    must(
        machine.apply(group, 4, event(&machine, pool, &[1])?, notified).map_err(|answer| answer.0),
        "a cycle",
    )?;
    for cycle in 1..=3 {
        for number in 0..4 {
            sent(machine.send_group(event(&machine, pool, &[cycle, number])?, queue, group))?;
        }
        settle(&machine, 2);
    }
    let firsts: Vec<u64> = read(&notes).iter().map(|note| note.0).collect();
    let expected: Vec<u64> = (1..=3).flat_map(|cycle| [cycle, cycle, cycle, cycle, NOTIFIED]).collect();
    ensure(firsts == expected, || format!("events by cycle, notifications as {NOTIFIED}: {:?}", read(&notes)))
}

fn error_number(error: crate::model::Error) -> u64 {
    error.to_string().len() as u64
}

pub fn abort<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let (pool, group) = (machine.pool(64), machine.group());
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let sink = Behaviour::new(move |_, event: S::Event, _| note(&seen, NOTIFIED, event.word(0)));
    let (_, notified) = started(&machine, Wanted::new(Kind::Atomic).level(7), sink)?;
    let seen = Arc::clone(&notes);
    let member = Behaviour::new(move |_, event: S::Event, _| note(&seen, event.word(0), 0));
    let (_, queue) = started(&machine, Wanted::new(Kind::Atomic), member)?;
    let apply = |name: u64, count: u32| {
        let event = event(&machine, pool, &[name])?;
        must(machine.apply(group, count, event, notified).map_err(|answer| answer.0), "a cycle")
    };
    apply(1, 2)?;
    sent(machine.send_group(event(&machine, pool, &[10])?, queue, group))?;
    settle(&machine, 2);
    sent(machine.send_group(event(&machine, pool, &[11])?, queue, group))?;
    let back = must(machine.abort(group), "an abort")?;
    ensure(back.len() == 1, || format!("an abort that succeeded gave {} notifications back", back.len()))?;
    drop(back);
    // The late event comes within the next cycle, and must not count for it.
    apply(2, 1)?;
    settle(&machine, 2);
    let stale =
        machine.reports().iter().filter(|report| report.fault == Fault::Stale && report.event == 11).count();
    ensure(stale == 1, || format!("the late event was reported {stale} times"))?;
    ensure(read(&notes) == [(10, 0), (11, 0)], || format!("after an abort came {:?}", read(&notes)))?;
    sent(machine.send_group(event(&machine, pool, &[12])?, queue, group))?;
    settle(&machine, 2);
    ensure(read(&notes)[2..] == [(12, 0), (NOTIFIED, 2)], || format!("the next cycle: {:?}", read(&notes)))?;
    // Over already: the abort fails, and the one set of notifications came.
    ensure(machine.abort(group).is_err(), || "a cycle that was over was aborted".to_owned())
}

pub fn batches<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings { cores: 1, ..Settings::default() });
    let (pool, group) = (machine.pool(64), machine.group());
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let sink = Behaviour::new(move |_, _, _| note(&seen, NOTIFIED, 0));
    let (_, notified) = started(&machine, Wanted::new(Kind::Atomic).level(7), sink)?;
    let seen = Arc::clone(&notes);
    let many = move |_: &dyn super::Calls<S::Event>, events: &mut Vec<S::Event>, _| {
        let tagged = events.iter().filter(|event| event.word(0) == 1).count();
        note(&seen, events.len() as u64, tagged as u64);
    };
    let behaviour = Behaviour { receive_many: Some((4, Box::new(many))), ..Behaviour::new(|_, _, _| ()) };
    let (_, queue) = started(&machine, Wanted::new(Kind::Atomic), behaviour)?;
    must(
        machine.apply(group, 6, event(&machine, pool, &[])?, notified).map_err(|answer| answer.0),
        "a cycle",
    )?;
    for is_tagged in [true, true, false, false, false, true, true, true, true] {
        let event = event(&machine, pool, &[u64::from(is_tagged)])?;
        sent(if is_tagged { machine.send_group(event, queue, group) } else { machine.send(event, queue) })?;
    }
    (0..12).for_each(|_| {
        one_round(&machine, 0);
    });
    let expected = [(2, 2), (3, 0), (4, 4), (NOTIFIED, 0)];
    ensure(read(&notes) == expected, || format!("batches as (events, tagged): {:?}", read(&notes)))
}
