//! Invariants 13 to 15, 19 to 21, 24 and 25: objects, dispatch, handlers, pools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{
    Behaviour, Finding, Make, Notes, Payload, Settings, Subject, Wanted, ensure, event, must, note, read,
    sent, settle, started,
};
use crate::dispatch::Limits;
use crate::failure::Handled;
use crate::model::{Error, Kind};

const START: u64 = 1;
const START_LOCAL: u64 = 2;
const RECEIVE: u64 = 3;
const STOP_LOCAL: u64 = 4;
const STOP: u64 = 5;

/// An object that notes all its calls and the core, and sends `sends` events to the queue it finds in `to`.
fn noting<S: Subject>(notes: &Notes) -> Behaviour<S::Event> {
    let noted = |what: u64| {
        let notes = Arc::clone(notes);
        move |core: usize| note(&notes, what, core as u64)
    };
    let (receive, start, local, stop_local, stop) =
        (noted(RECEIVE), noted(START), noted(START_LOCAL), noted(STOP_LOCAL), noted(STOP));
    Behaviour {
        start: Some(Box::new(move |here| {
            start(here.core());
            Ok(())
        })),
        start_local: Some(Box::new(move |here| {
            local(here.core());
            Ok(())
        })),
        stop_local: Some(Box::new(move |here| stop_local(here.core()))),
        stop: Some(Box::new(move |here| stop(here.core()))),
        ..Behaviour::new(move |here, _, _| receive(here.core()))
    }
}

pub fn life_cycle<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let pool = machine.pool(64);
    let notes = Notes::default();
    let object = machine.object(noting::<S>(&notes));
    let queue = must(machine.queue(Wanted::new(Kind::Parallel), Some(object)), "a queue")?;
    let send = |count: u64| {
        (0..count).try_for_each(|number| sent(machine.send(event(&machine, pool, &[number])?, queue)))?;
        settle(&machine, 2);
        Ok::<(), String>(())
    };
    send(3)?;
    ensure(machine.dropped(queue) == 3 && read(&notes).is_empty(), || {
        format!("before the start: {} dropped, calls {:?}", machine.dropped(queue), read(&notes))
    })?;
    must(machine.start(object), "a start")?;
    send(2)?;
    must(machine.stop(object), "a stop")?;
    send(4)?;
    let calls = read(&notes);
    let order: Vec<u64> = calls.iter().map(|call| call.0).collect();
    let expected = [START, START_LOCAL, START_LOCAL, RECEIVE, RECEIVE, STOP_LOCAL, STOP_LOCAL, STOP].to_vec();
    ensure(order == expected, || format!("start 1, local 2, receive 3, local stop 4, stop 5: {order:?}"))?;
    for what in [START_LOCAL, STOP_LOCAL] {
        let mut cores: Vec<u64> = calls.iter().filter(|call| call.0 == what).map(|call| call.1).collect();
        cores.sort_unstable();
        ensure(cores == [0, 1], || format!("local functions ran on cores {cores:?}"))?;
    }
    ensure(machine.dropped(queue) == 7, || {
        format!("{} of 7 events were counted as dropped", machine.dropped(queue))
    })
}

pub fn held_back<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let pool = machine.pool(64);
    let notes = Notes::default();
    let to = Arc::new(AtomicU32::new(0));
    let (seen, queue, alive) = (Arc::clone(&notes), Arc::clone(&to), machine.clone());
    let receive = Behaviour::new(move |_, event: S::Event, _| note(&seen, event.word(0), 0));
    let sends = move |here: &dyn super::Calls<S::Event>, first: u64| {
        for number in first..first + 3 {
            let mut event = here.allocate(pool)?;
            event.set_word(0, number);
            here.send(event, queue.load(Ordering::SeqCst)).map_err(|answer| answer.0)?;
        }
        // Cores go round meanwhile: nothing may come of it.
        super::one_round(&alive, 1 - here.core());
        Ok(())
    };
    let local = sends.clone();
    let object = machine.object(Behaviour {
        start: Some(Box::new(move |here| sends(here, 0))),
        start_local: Some(Box::new(move |here| local(here, 10 * (1 + here.core() as u64)))),
        ..receive
    });
    let queue = must(machine.queue(Wanted::new(Kind::Atomic), Some(object)), "a queue")?;
    to.store(queue, Ordering::SeqCst);
    must(machine.start(object), "a start")?;
    settle(&machine, 2);
    let seen: Vec<u64> = read(&notes).iter().map(|note| note.0).collect();
    ensure(seen == [0, 1, 2, 10, 11, 12, 20, 21, 22], || {
        format!("nine events were sent in start, {seen:?} came")
    })
}

pub fn failed_start<S: Subject>(make: Make<'_, S>) -> Finding {
    for fails_globally in [true, false] {
        let machine = make(Settings::default());
        let pool = machine.pool(16);
        let notes = Notes::default();
        let seen = Arc::clone(&notes);
        let fail = |fails: bool| {
            move |_: &dyn super::Calls<S::Event>| if fails { Err(Error::Application(1)) } else { Ok(()) }
        };
        let object = machine.object(Behaviour {
            start: Some(Box::new(fail(fails_globally))),
            start_local: Some(Box::new(fail(!fails_globally))),
            ..Behaviour::new(move |_, _, _| note(&seen, RECEIVE, 0))
        });
        let queue = must(machine.queue(Wanted::new(Kind::Atomic), Some(object)), "a queue")?;
        let error = machine.start(object);
        ensure(error == Err(Error::StartFailed), || format!("a start that failed answered {error:?}"))?;
        ensure(!machine.is_running(object), || "the object runs".to_owned())?;
        sent(machine.send(event(&machine, pool, &[])?, queue))?;
        settle(&machine, 2);
        ensure(read(&notes).is_empty(), || "the object received".to_owned())?;
    }
    Ok(())
}

pub fn dispatch_limits<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings { cores: 1, burst: 4, ..Settings::default() });
    let pool = machine.pool(64);
    let again = Behaviour::new(|here, event, queue| drop(here.send(event, queue)));
    let (_, queue) = started(&machine, Wanted::new(Kind::Atomic), again)?;
    for number in 0..32 {
        sent(machine.send(event(&machine, pool, &[number])?, queue))?;
    }
    for rounds in [1, 2, 7, 100] {
        let outcome = machine.dispatch(0, Limits { rounds, ..Limits::default() });
        ensure(outcome.rounds == rounds, || format!("{} rounds of {rounds}", outcome.rounds))?;
    }
    for events in [1, 4, 5, 99] {
        let outcome = machine.dispatch(0, Limits { events, ..Limits::default() });
        ensure((events..events + 4).contains(&outcome.events), || {
            format!("{} events where {events} were asked for, in bursts of 4", outcome.events)
        })?;
    }
    let outcome = machine.dispatch(0, Limits { nanos: 100_000, ..Limits::default() });
    ensure(outcome.nanos >= 100_000, || format!("{} ns where 100000 were asked for", outcome.nanos))
}

pub fn callbacks<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings { cores: 1, ..Settings::default() });
    let pool = machine.pool(16);
    let notes = Notes::default();
    let drops = Arc::new(std::sync::atomic::AtomicBool::new(false));
    for number in 1..=2 {
        let (seen, drops) = (Arc::clone(&notes), Arc::clone(&drops));
        machine.on_enter(Box::new(move || {
            note(&seen, number, 0);
            !drops.load(Ordering::SeqCst)
        }));
        let seen = Arc::clone(&notes);
        machine.on_exit(Box::new(move || note(&seen, 10 + number, 0)));
    }
    let seen = Arc::clone(&notes);
    let (_, queue) =
        started(&machine, Wanted::new(Kind::Atomic), Behaviour::new(move |_, _, _| note(&seen, 5, 0)))?;
    for is_dropped in [false, true] {
        drops.store(is_dropped, Ordering::SeqCst);
        sent(machine.send(event(&machine, pool, &[])?, queue))?;
        settle(&machine, 1);
    }
    let calls: Vec<u64> = read(&notes).iter().map(|note| note.0).collect();
    ensure(calls == [1, 2, 5, 11, 12, 1, 11, 12], || {
        format!("enter 1 and 2, receive 5, exit 11 and 12; the second event is dropped by 1: {calls:?}")
    })
}

pub fn handlers<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings { cores: 1, ..Settings::default() });
    let pool = machine.pool(16);
    let notes = Notes::default();
    let (by_machine, by_object, seen) = (Arc::clone(&notes), Arc::clone(&notes), Arc::clone(&notes));
    machine.set_handler(Box::new(move |_| {
        note(&by_machine, 2, 0);
        Handled::Return(Err(Error::Application(2)))
    }));
    let receive = move |here: &dyn super::Calls<S::Event>, event: S::Event, _| {
        let answer = here.send(event, u32::MAX).map_err(|answer| answer.0);
        let code = match answer {
            Ok(()) => 0,
            Err(Error::Application(code)) => u64::from(code),
            Err(_) => 99,
        };
        note(&seen, 10, code);
    };
    let failed = move |_: Error| {
        let before = crate::sync::locked(&by_object).iter().filter(|note| note.0 == 1).count();
        note(&by_object, 1, 0);
        // Passed on at first, then an error of its own, then all is well.
        match before {
            0 => Handled::Pass,
            1 => Handled::Return(Err(Error::Application(1))),
            _ => Handled::Return(Ok(())),
        }
    };
    let behaviour = Behaviour { failed: Some(Box::new(failed)), ..Behaviour::new(receive) };
    let (_, queue) = started(&machine, Wanted::new(Kind::Atomic), behaviour)?;
    for _ in 0..3 {
        sent(machine.send(event(&machine, pool, &[])?, queue))?;
    }
    settle(&machine, 1);
    let expected = [(1, 0), (2, 0), (10, 2), (1, 0), (10, 1), (1, 0), (10, 0)];
    ensure(read(&notes) == expected, || {
        format!("object 1, machine 2, the call's answer 10: {:?}", read(&notes))
    })?;
    // A matter of time is no error of a program: nobody is asked.
    let before = read(&notes).len();
    let answers = Notes::default();
    let answered = Arc::clone(&answers);
    let timeout = machine.timeout(queue, 1_000_000, false);
    let timing = Behaviour::new(move |here, event, _| {
        let answer =
            here.set_timeout(timeout, here.now(), 0, event).map_err(|answer| (answer.0, answer.1.is_some()));
        note(&answered, u64::from(answer == Err((Error::TooNear, true))), 0);
    });
    let (_, timing) = started(&machine, Wanted::new(Kind::Atomic), timing)?;
    sent(machine.send(event(&machine, pool, &[])?, timing))?;
    settle(&machine, 1);
    ensure(read(&answers) == [(1, 0)], || "a due time that is too near gave no event back".to_owned())?;
    ensure(read(&notes).len() == before, || "a timing error was given to a handler".to_owned())
}

pub fn exhaustion<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings { cores: 1, ..Settings::default() });
    let pool = machine.pool(24);
    for _ in 0..3 {
        let mut events = Vec::new();
        while let Ok(event) = machine.allocate(pool) {
            events.push(event);
        }
        ensure(events.len() == 24, || format!("{} of 24 events could be had", events.len()))?;
        let error = machine.allocate(pool).err();
        ensure(error == Some(Error::PoolEmpty), || format!("an empty pool answered {error:?}"))?;
        drop(events);
    }
    // On a core too, where events that are sent away come back.
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let object = Behaviour::new(move |here, event, _| {
        drop(event);
        let events: Vec<S::Event> = std::iter::from_fn(|| here.allocate(pool).ok()).collect();
        note(&seen, events.len() as u64, 0);
    });
    let (_, queue) = started(&machine, Wanted::new(Kind::Atomic), object)?;
    for _ in 0..2 {
        sent(machine.send(event(&machine, pool, &[])?, queue))?;
        settle(&machine, 1);
    }
    ensure(read(&notes) == [(24, 0), (24, 0)], || {
        format!("a core could have {:?} of 24 events", read(&notes))
    })?;
    let free = machine.free_events(pool);
    ensure(free == 24, || format!("{free} of 24 events are free"))
}

pub fn teardown<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let pool = machine.pool(128);
    let (_, target) = started(&machine, Wanted::new(Kind::Atomic), Behaviour::new(|_, _, _| ()))?;
    let mut objects = Vec::new();
    for kind in [Kind::Atomic, Kind::Parallel, Kind::Ordered] {
        let forward = Behaviour::new(move |here, event, _| drop(here.send(event, target)));
        objects.push(started(&machine, Wanted::new(kind), forward)?);
    }
    let waiting = must(machine.queue(Wanted::new(Kind::Unscheduled), None), "a queue")?;
    let queues: Vec<u32> = objects.iter().map(|object| object.1).chain([waiting]).collect();
    for number in 0..80 {
        sent(machine.send(event(&machine, pool, &[number])?, queues[number as usize % 4]))?;
    }
    // Some run, most are under way.
    (0..2).for_each(|core| {
        machine.dispatch(core, Limits { rounds: 5, ..Limits::default() });
    });
    for (object, queue) in objects {
        must(machine.stop(object), "a stop")?;
        must(machine.remove_queue(queue), "a removal")?;
    }
    must(machine.remove_queue(waiting), "a removal")?;
    settle(&machine, 2);
    let free = machine.free_events(pool);
    ensure(free == 128, || format!("{free} of 128 events are free after the queues were removed"))
}
