//! Invariants 1 to 12: events in queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use units::Seed;

use super::{
    Behaviour, Finding, Make, Notes, Payload, Settings, Subject, Wanted, ensure, event, must, note,
    one_round, read, sent, settle, started,
};
use crate::dispatch::Limits;
use crate::model::{Error, Kind};

pub fn ownership<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let pool = machine.pool(100);
    let waiting = must(machine.queue(Wanted::new(Kind::Unscheduled), None), "a queue")?;
    let mut queues = Vec::new();
    for kind in [Kind::Atomic, Kind::Parallel, Kind::Ordered] {
        let next = queues.last().copied();
        let forward = Behaviour::new(move |here: &dyn super::Calls<S::Event>, event: S::Event, _| {
            match (next, event.word(0) % 3) {
                (Some(next), 1) => drop(here.send(event, next)),
                (_, 2) => drop(here.send(event, waiting)),
                _ => drop(event),
            }
        });
        queues.push(started(&machine, Wanted::new(kind), forward)?.1);
    }
    let mut random = Seed(1).stream("ownership");
    for number in 0..1_000_u64 {
        let queue = queues[random.below(3) as usize];
        if let Ok(mut event) = machine.allocate(pool) {
            event.set_word(0, number);
            sent(machine.send(event, queue))?;
        }
        one_round(&machine, random.below(2) as usize);
        if number % 5 == 0 {
            drop(must(machine.take(waiting), "an event that waits")?);
        }
    }
    settle(&machine, 2);
    while must(machine.take(waiting), "an event that waits")?.is_some() {}
    let free = machine.free_events(pool);
    ensure(free == 100, || format!("{free} of 100 events are in the pool at the end"))
}

pub fn atomic_alone<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let pool = machine.pool(64);
    let inside: Arc<[AtomicU32; 2]> = Arc::default();
    let worst = Arc::new(AtomicU32::new(0));
    let behaviour = |place: usize| {
        let (inside, worst, again) = (Arc::clone(&inside), Arc::clone(&worst), machine.clone());
        Behaviour::new(move |here, _, _| {
            worst.fetch_max(inside[place].fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // The other core works meanwhile.
            (0..4).for_each(|_| {
                one_round(&again, 1 - here.core());
            });
            inside[place].fetch_sub(1, Ordering::SeqCst);
        })
    };
    let (_, single) = started(&machine, Wanted::new(Kind::Atomic), behaviour(0))?;
    let object = machine.object(behaviour(1));
    let pair = machine.atomic_pair([2, 5], object);
    must(machine.start(object), "a start")?;
    for number in 0..48 {
        let queue = [single, pair[0], pair[1]][number as usize % 3];
        sent(machine.send(event(&machine, pool, &[number])?, queue))?;
    }
    settle(&machine, 2);
    let worst = worst.load(Ordering::SeqCst);
    ensure(worst == 1, || format!("{worst} events of an atomic queue or group ran at once"))
}

pub fn atomic_order<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings { burst: 4, ..Settings::default() });
    let pool = machine.pool(256);
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let sink = Behaviour::new(move |_, event: S::Event, _| note(&seen, event.word(0), event.word(1)));
    let (_, target) = started(&machine, Wanted::new(Kind::Atomic), sink)?;
    // Two senders on cores, one outside.
    let mut sources = Vec::new();
    for core in 0..2 {
        let set = machine.cores(&[core]);
        let forward = Behaviour::new(move |here, event, _| drop(here.send(event, target)));
        sources.push(started(&machine, Wanted::new(Kind::Atomic).cores(set), forward)?.1);
    }
    let mut random = Seed(2).stream("order");
    for number in 0..300_u64 {
        let way = random.below(3);
        let queue = sources.get(way as usize).copied().unwrap_or(target);
        sent(machine.send(event(&machine, pool, &[way, number])?, queue))?;
        (0..random.below(6)).for_each(|_| {
            one_round(&machine, random.below(2) as usize);
        });
        if number % 50 == 0 {
            settle(&machine, 2);
        }
    }
    settle(&machine, 2);
    let seen = read(&notes);
    ensure(seen.len() == 300, || format!("{} of 300 events came", seen.len()))?;
    for way in 0..3 {
        let numbers: Vec<u64> = seen.iter().filter(|note| note.0 == way).map(|note| note.1).collect();
        ensure(numbers.is_sorted(), || format!("sender {way}'s events came out of order: {numbers:?}"))?;
    }
    Ok(())
}

/// An ordered queue whose events send `count(number)` events each to two targets, on two cores that take turns at random and
/// inside each other; what each target saw.
fn ordered_run<S: Subject>(
    machine: &S,
    count: fn(u64) -> u64,
    before: fn(u64),
) -> Result<[Vec<(u64, u64)>; 2], String> {
    let pool = machine.pool(256);
    let notes: [Notes; 2] = [Notes::default(), Notes::default()];
    let mut targets = [0; 2];
    for (target, notes) in targets.iter_mut().zip(&notes) {
        let seen = Arc::clone(notes);
        let sink = Behaviour::new(move |_, event: S::Event, _| note(&seen, event.word(0), event.word(1)));
        *target = started(machine, Wanted::new(Kind::Atomic).level(6), sink)?.1;
    }
    let again = machine.clone();
    let source = Behaviour::new(move |here, event: S::Event, _| {
        let number = event.word(0);
        before(number);
        // The other core runs later events first.
        if number % 4 == 0 {
            (0..3).for_each(|_| {
                one_round(&again, 1 - here.core());
            });
        }
        drop(event);
        for sub in 0..count(number) {
            if let Ok(mut event) = here.allocate(pool) {
                event.set_word(0, number);
                event.set_word(1, sub);
                drop(here.send(event, targets[(sub % 2) as usize]));
            }
        }
    });
    let (_, queue) = started(machine, Wanted::new(Kind::Ordered), source)?;
    let mut random = Seed(3).stream("ordered");
    for number in 0..200 {
        sent(machine.send(event(machine, pool, &[number])?, queue))?;
        if number % 32 == 31 {
            settle(machine, 2);
        } else if number % 8 == 7 {
            (0..12).for_each(|_| {
                one_round(machine, random.below(2) as usize);
            });
        }
    }
    settle(machine, 2);
    Ok([read(&notes[0]), read(&notes[1])])
}

pub fn ordered<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    for seen in ordered_run(&machine, |number| number % 4, |_| ())? {
        ensure(!seen.is_empty(), || "no event came through the ordered queue".to_owned())?;
        ensure(seen.is_sorted(), || format!("events came out of order: {seen:?}"))?;
    }
    Ok(())
}

pub fn ordered_skip<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let panics = |number: u64| {
        if number % 50 == 49 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    };
    let [first, _] = ordered_run(&machine, |number| number % 2, panics)?;
    let expected: Vec<(u64, u64)> = (0..200).filter(|n| n % 2 == 1 && n % 50 != 49).map(|n| (n, 0)).collect();
    ensure(first == expected, || format!("{} of {} events came in order", first.len(), expected.len()))
}

pub fn atomic_end<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let pool = machine.pool(128);
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let object = Behaviour::new(move |here, event: S::Event, _| {
        note(&seen, event.word(0), 0);
        here.end_atomic();
    });
    let (_, queue) = started(&machine, Wanted::new(Kind::Atomic), object)?;
    for number in 0..100 {
        sent(machine.send(event(&machine, pool, &[number])?, queue))?;
    }
    settle(&machine, 2);
    let mut seen: Vec<u64> = read(&notes).into_iter().map(|note| note.0).collect();
    seen.sort_unstable();
    ensure(seen == (0..100).collect::<Vec<_>>(), || format!("{} of 100 events came, once each", seen.len()))?;
    let free = machine.free_events(pool);
    ensure(free == 128, || format!("{free} of 128 events are free"))
}

pub fn parallel<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings { cores: 3, ..Settings::default() });
    let pool = machine.pool(64);
    let set = machine.cores(&[0, 2]);
    let (inside, worst) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (most, again) = (Arc::clone(&worst), machine.clone());
    let object = Behaviour::new(move |_, _, _| {
        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        (0..3).for_each(|core| {
            one_round(&again, core);
        });
        inside.fetch_sub(1, Ordering::SeqCst);
    });
    let (_, queue) = started(&machine, Wanted::new(Kind::Parallel).cores(set), object)?;
    for number in 0..30 {
        sent(machine.send(event(&machine, pool, &[number])?, queue))?;
    }
    settle(&machine, 3);
    let worst = worst.load(Ordering::SeqCst);
    ensure(worst == 2, || format!("{worst} events ran at once on a set of 2 cores"))
}

pub fn core_sets<S: Subject>(make: Make<'_, S>) -> Finding {
    for kind in [Kind::Atomic, Kind::Parallel, Kind::Ordered] {
        let machine = make(Settings::default());
        let pool = machine.pool(256);
        let set = machine.cores(&[1]);
        let notes = Notes::default();
        let seen = Arc::clone(&notes);
        let object =
            Behaviour::new(move |here, event: S::Event, _| note(&seen, here.core() as u64, event.word(0)));
        let (_, queue) = started(&machine, Wanted::new(kind).cores(set), object)?;
        let mut number = 0;
        let mut send_some = |count: u64| {
            (0..count).try_for_each(|_| {
                number += 1;
                sent(machine.send(event(&machine, pool, &[number])?, queue))
            })
        };
        send_some(40)?;
        (0..10).for_each(|_| {
            one_round(&machine, 1);
        });
        must(machine.change_cores(set, &[0]), "a change of the set")?;
        let before = read(&notes).len();
        send_some(20)?;
        settle(&machine, 2);
        let seen = read(&notes);
        ensure(seen[..before].iter().all(|note| note.0 == 1), || {
            "an event ran outside its first set".to_owned()
        })?;
        let outside = seen[before..].iter().filter(|note| note.0 != 0).count();
        ensure(outside == 0, || format!("{outside} events ran on a core that had left the set"))?;
        ensure(seen.len() == 60, || format!("{} of 60 events came", seen.len()))?;
        let numbers: Vec<u64> = seen.iter().map(|note| note.1).collect();
        ensure(kind != Kind::Atomic || numbers.is_sorted(), || {
            format!("the change broke the order: {numbers:?}")
        })?;
    }
    Ok(())
}

pub fn priority<S: Subject>(make: Make<'_, S>) -> Finding {
    for burst in [1_u8, 4] {
        let machine = make(Settings { cores: 1, burst, ..Settings::default() });
        let pool = machine.pool(128);
        let lower = Arc::new(AtomicU64::new(0));
        let worst = Arc::new(AtomicU64::new(0));
        let (since, most) = (Arc::clone(&lower), Arc::clone(&worst));
        let high = Behaviour::new(move |_, _, _| {
            most.fetch_max(since.swap(0, Ordering::SeqCst), Ordering::SeqCst);
        });
        let (_, high) = started(&machine, Wanted::new(Kind::Atomic).level(7), high)?;
        let (count, outside) = (Arc::clone(&lower), machine.clone());
        let low = Behaviour::new(move |_, event: S::Event, _| {
            count.fetch_add(1, Ordering::SeqCst);
            if event.word(0) % 7 == 3 {
                // From another thread's side, so that it is seen at the next look only.
                count.store(0, Ordering::SeqCst);
                drop(outside.send(event, high));
            }
        });
        let (_, low) = started(&machine, Wanted::new(Kind::Atomic).level(2), low)?;
        for number in 0..100 {
            sent(machine.send(event(&machine, pool, &[number])?, low))?;
        }
        settle(&machine, 1);
        let worst = worst.load(Ordering::SeqCst);
        ensure(worst <= u64::from(burst), || {
            format!("{worst} lower events started first, at most {burst} may")
        })?;
    }
    Ok(())
}

pub fn weighted<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings { cores: 1, is_weighted: true, ..Settings::default() });
    let pool = machine.pool(16);
    let again = Behaviour::new(|here, event, queue| drop(here.send(event, queue)));
    let (_, high) = started(&machine, Wanted::new(Kind::Atomic).level(7), again)?;
    let notes = Notes::default();
    let seen = Arc::clone(&notes);
    let low = Behaviour::new(move |_, event: S::Event, _| note(&seen, event.word(0), 0));
    let (_, low) = started(&machine, Wanted::new(Kind::Atomic).level(1), low)?;
    sent(machine.send(event(&machine, pool, &[0])?, high))?;
    machine.dispatch(0, Limits { rounds: 10, ..Limits::default() });
    sent(machine.send(event(&machine, pool, &[1])?, low))?;
    let rounds = u64::from(crate::model::Order::WEIGHTED_ROUNDS) + 1;
    machine.dispatch(0, Limits { rounds, ..Limits::default() });
    ensure(read(&notes).len() == 1, || format!("the lower level was not served within {rounds} rounds"))
}

pub fn local<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let pool = machine.pool(64);
    let notes = Notes::default();
    let object = |kind: u64| {
        let seen = Arc::clone(&notes);
        Behaviour::new(move |here: &dyn super::Calls<S::Event>, event: S::Event, _| {
            note(&seen, kind, event.word(0) * 10 + here.core() as u64);
        })
    };
    let (_, own) = started(&machine, Wanted::new(Kind::Local), object(1))?;
    let high = [machine.cores(&[0]), machine.cores(&[1])];
    let high = [
        started(&machine, Wanted::new(Kind::Atomic).level(7).cores(high[0]), object(2))?.1,
        started(&machine, Wanted::new(Kind::Atomic).level(7).cores(high[1]), object(2))?.1,
    ];
    let seen = Arc::clone(&notes);
    let source = Behaviour::new(move |here, event: S::Event, _| {
        for (queue, count) in [(high[here.core()], 1), (own, 2)] {
            for _ in 0..count {
                if let Ok(mut copy) = here.allocate(pool) {
                    copy.set_word(0, event.word(0));
                    drop(here.send(copy, queue));
                }
            }
        }
        note(&seen, 0, event.word(0) * 10 + here.core() as u64);
    });
    let (_, queue) = started(&machine, Wanted::new(Kind::Atomic).level(3), source)?;
    for number in 0..6 {
        sent(machine.send(event(&machine, pool, &[number])?, queue))?;
    }
    settle(&machine, 2);
    let kinds: Vec<u64> = read(&notes).iter().map(|note| note.0).collect();
    ensure(kinds.chunks(4).all(|four| four == [0, 1, 1, 2]) && kinds.len() == 24, || {
        format!("sender 0, local 1, other 2 ran in the order {kinds:?}")
    })?;
    let same = read(&notes).chunks(4).all(|four| four.iter().all(|note| note.1 == four[0].1));
    ensure(same, || "a local event ran on another core, or behind another sender".to_owned())
}

pub fn unscheduled<S: Subject>(make: Make<'_, S>) -> Finding {
    let machine = make(Settings::default());
    let pool = machine.pool(64);
    let queue = must(machine.queue(Wanted::new(Kind::Unscheduled), None), "a queue")?;
    for number in 0..20 {
        sent(machine.send(event(&machine, pool, &[number])?, queue))?;
    }
    let mut seen = Vec::new();
    while let Some(event) = must(machine.take(queue), "an event")? {
        seen.push(event.word(0));
    }
    ensure(seen == (0..20).collect::<Vec<_>>(), || format!("events came out as {seen:?}"))?;
    let group = machine.group();
    let (_, sink) = started(&machine, Wanted::new(Kind::Atomic), Behaviour::new(|_, _, _| ()))?;
    must(machine.apply(group, 1, event(&machine, pool, &[])?, sink).map_err(|answer| answer.0), "a group")?;
    let refused = machine.send_group(event(&machine, pool, &[])?, queue, group);
    let error = refused.map_err(|answer| answer.0);
    ensure(error == Err(Error::WrongKind), || format!("a group's event was taken: {error:?}"))
}
