//! Invariants 22, 23 and 26: timeouts and faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use units::Seed;

use super::{
    Behaviour, Finding, Make, Notes, Payload, Settings, Subject, Wanted, ensure, event, must, note, read,
    sent, settle, started,
};
use crate::contract::Contract;
use crate::contract::watch::Fault;
use crate::model::{Error, Kind};

const SIMULATED: Settings = Settings { cores: 1, burst: 1, is_weighted: false, is_simulated: true };

/// The period, ns.
const PERIOD: u64 = 1_000_000;

pub fn one_shot<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(SIMULATED);
    let pool = machine.pool(64);
    machine.advance(PERIOD);
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let sink = Behaviour::new(move |here, event: S::Event, _| note(&seen, event.word(0), here.now()));
    let (_, target) = started(&machine, Wanted::new(Kind::Atomic), sink)?;
    let timeouts: Vec<u32> = (0..16).map(|_| machine.timeout(target, 0, false)).collect();
    let setting = Behaviour::new(move |here, event: S::Event, _| {
        let (number, due) = (event.word(0) as usize, event.word(1));
        drop(here.set_timeout(timeouts[number], due, 0, event));
    });
    let (_, setter) = started(&machine, Wanted::new(Kind::Atomic), setting)?;
    let mut random = Seed(22).stream("timeouts");
    let dues: Vec<u64> = (0..16).map(|_| 2 * PERIOD + random.below(10 * PERIOD)).collect();
    for (number, due) in (0..).zip(&dues) {
        sent(machine.send(event(&machine, pool, &[number, *due])?, setter))?;
    }
    while machine.now() < 14 * PERIOD {
        settle(&machine, 1);
        machine.advance(PERIOD / 10);
    }
    let seen = read(&notes);
    ensure(seen.len() == 16, || format!("16 timeouts were set, {} events came", seen.len()))?;
    for (number, time) in seen {
        let due = dues[number as usize];
        ensure(time >= due, || format!("a timeout fired {} ns early", due - time))?;
        ensure(time <= due + PERIOD / 10, || format!("a timeout fired {} ns late", time - due))?;
    }
    Ok(())
}

pub fn periodic<S: Subject>(make: Make<'_, S>) -> Finding {
    no_drift(make)?;
    for catches_up in [false, true] {
        late_acknowledgement(make, catches_up)?;
    }
    cancelled(make)
}

/// An object that sets its timeout by an event of its own, and acknowledges what comes while `acknowledges` says so.
fn ticking<S: Subject>(
    machine: &S,
    catches_up: bool,
    acknowledges: &Arc<AtomicBool>,
) -> Result<(u32, u32, Notes), String> {
    let notes = Notes::default();
    let (seen, acknowledges) = (Arc::clone(&notes), Arc::clone(acknowledges));
    let kept: std::sync::Mutex<Option<S::Event>> = std::sync::Mutex::default();
    let timeout = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let which = Arc::clone(&timeout);
    let object = machine.object(Behaviour::new(move |here, event: S::Event, _| {
        match event.word(0) {
            0 => {
                let mut event = event;
                event.set_word(0, 1);
                drop(here.set_timeout(which.load(Ordering::SeqCst), 2 * PERIOD, PERIOD, event));
            }
            1 => {
                note(&seen, 1, here.now());
                if acknowledges.load(Ordering::SeqCst) {
                    drop(here.acknowledge(event));
                } else {
                    *crate::sync::locked(&kept) = Some(event);
                }
            }
            // Acknowledges what was kept.
            2 => {
                let answer = crate::sync::locked(&kept).take().map(|event| here.acknowledge(event));
                let code = match answer {
                    Some(Ok(())) => 0,
                    Some(Err((Error::Cancelled, Some(_)))) => 1,
                    _ => 2,
                };
                note(&seen, 2, code);
            }
            _ => {
                let code = match here.cancel(which.load(Ordering::SeqCst)) {
                    Ok(_) => 0,
                    Err(Error::TooNear) => 1,
                    Err(_) => 2,
                };
                note(&seen, 3, code);
            }
        }
    }));
    let queue = must(machine.queue(Wanted::new(Kind::Atomic), Some(object)), "a queue")?;
    must(machine.start(object), "a start")?;
    timeout.store(machine.timeout(queue, 0, catches_up), Ordering::SeqCst);
    Ok((queue, timeout.load(Ordering::SeqCst), notes))
}

/// Sends a word to the object above.
fn say<S: Subject>(machine: &S, pool: u32, queue: u32, word: u64) -> Finding {
    sent(machine.send(event(machine, pool, &[word])?, queue))?;
    settle(machine, 1);
    Ok(())
}

fn no_drift<S: Subject>(make: Make<'_, S>) -> Finding {
    const PERIODS: u64 = if cfg!(miri) { 100 } else { 100_000 };
    let machine = make(SIMULATED);
    let pool = machine.pool(16);
    let (queue, _, notes) = ticking(&machine, false, &Arc::new(AtomicBool::new(true)))?;
    say(&machine, pool, queue, 0)?;
    let mut random = Seed(23).stream("delays");
    // Each event is received up to a third of a period late.
    for number in 0..PERIODS {
        let target = (2 + number) * PERIOD + random.below(PERIOD / 3);
        machine.advance(target - machine.now());
        settle(&machine, 1);
        let seen = crate::sync::locked(&notes).len() as u64;
        ensure(seen == number + 1, || format!("after {} periods {seen} events came", number + 1))?;
    }
    Ok(())
}

fn late_acknowledgement<S: Subject>(make: Make<'_, S>, catches_up: bool) -> Finding {
    let machine = make(SIMULATED);
    let pool = machine.pool(16);
    let acknowledges = Arc::new(AtomicBool::new(false));
    let (queue, _, notes) = ticking(&machine, catches_up, &acknowledges)?;
    say(&machine, pool, queue, 0)?;
    let ticks = || crate::sync::locked(&notes).iter().filter(|note| note.0 == 1).count();
    machine.advance(6 * PERIOD + PERIOD / 2);
    settle(&machine, 1);
    ensure(ticks() == 1, || format!("{} events came without an acknowledgement", ticks()))?;
    acknowledges.store(true, Ordering::SeqCst);
    say(&machine, pool, queue, 2)?;
    // Due were periods 2 to 6: one came; four are made up for, or skipped.
    let expected = if catches_up { 5 } else { 1 };
    ensure(ticks() == expected, || format!("{} events came of {expected}", ticks()))?;
    machine.advance(PERIOD / 2);
    settle(&machine, 1);
    ensure(ticks() == expected + 1, || "the next period came late or twice".to_owned())
}

fn cancelled<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(SIMULATED);
    let pool = machine.pool(16);
    let (queue, timeout, notes) = ticking(&machine, false, &Arc::new(AtomicBool::new(false)))?;
    let said =
        |word: u64| crate::sync::locked(&notes).iter().rev().find(|note| note.0 == word).map(|note| note.1);
    say(&machine, pool, queue, 0)?;
    ensure(machine.remove_timeout(timeout).is_err(), || "a timeout that is set was removed".to_owned())?;
    say(&machine, pool, queue, 3)?;
    ensure(said(3) == Some(0), || "a timeout that was far ahead could not be cancelled".to_owned())?;
    say(&machine, pool, queue, 0)?;
    machine.advance(3 * PERIOD);
    settle(&machine, 1);
    say(&machine, pool, queue, 3)?;
    ensure(said(3) == Some(1), || "a timeout whose event is out was cancelled".to_owned())?;
    say(&machine, pool, queue, 2)?;
    ensure(said(2) == Some(1), || {
        "the last acknowledgement did not answer that it was cancelled".to_owned()
    })?;
    must(machine.remove_timeout(timeout), "a removal")?;
    let free = machine.free_events(pool);
    ensure(free == 16, || format!("{free} of 16 events are free"))
}

pub fn faults<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(SIMULATED);
    let pool = machine.pool(16);
    machine.advance(PERIOD);
    let clock = machine.clone();
    let contract = Contract { distance: 10_000, burst: 1, budget: 1_000, deadline: 9_000 };
    let wanted = Wanted { contract: Some(contract), ..Wanted::new(Kind::Atomic) };
    let overrunning = Behaviour::new(move |_, event: S::Event, _| clock.advance(event.word(1)));
    let (_, overrun) = started(&machine, wanted, overrunning)?;
    let (_, panics) = started(
        &machine,
        Wanted::new(Kind::Atomic),
        Behaviour::new(|_, event: S::Event, _| {
            if event.word(0) == 7 {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        }),
    )?;
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let (_, other) = started(
        &machine,
        Wanted::new(Kind::Atomic).level(1),
        Behaviour::new(move |_, _, _| note(&seen, 0, 0)),
    )?;
    for (word, length) in [(1, 1_000), (2, 1_700)] {
        sent(machine.send(event(&machine, pool, &[word, length])?, overrun))?;
        sent(machine.send(event(&machine, pool, &[6 + word - 1])?, panics))?;
        sent(machine.send(event(&machine, pool, &[])?, other))?;
        settle(&machine, 1);
        machine.advance(20_000);
    }
    let reports = machine.reports();
    let overruns: Vec<(u32, u64, usize)> = reports
        .iter()
        .filter(|report| report.fault == Fault::Overrun)
        .map(|report| (report.queue, report.event, report.core))
        .collect();
    ensure(overruns == [(overrun, 2, 0)], || format!("overruns as (queue, event, core): {overruns:?}"))?;
    let named =
        reports.iter().filter(|report| report.fault == Fault::Panic && report.queue == panics).count();
    ensure(named == 1, || format!("one event panicked, {named} were reported"))?;
    let times = reports.iter().all(|report| report.time >= PERIOD && report.time <= machine.now());
    ensure(times, || format!("a report's time is not that of the fault: {reports:?}"))?;
    ensure(read(&notes).len() == 2, || {
        format!("the other object received {} of 2 events", read(&notes).len())
    })?;
    let free = machine.free_events(pool);
    ensure(free == 16, || format!("{free} of 16 events are free"))
}
