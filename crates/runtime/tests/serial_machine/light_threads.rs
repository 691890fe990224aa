//! Light threads: turns, sleep, semaphores, mailboxes, panics; and what a core takes from the system meanwhile.

use std::sync::{Arc, Mutex};

use runtime::{
    Clock, Config, Dispatcher, Event, Here, Kind, Light, LightId, Limits, Machine, Mailbox, QueueId,
    QueueSpec,
};

fn one_core() -> (Machine, Dispatcher) {
    let (machine, mut dispatchers) = Machine::with_clock(Config::default(), Clock::simulated()).unwrap();
    (machine, dispatchers.remove(0))
}

fn spawn(machine: &Machine, level: u8, body: impl FnOnce(&Light<'_>) + Send + 'static) -> LightId {
    let (mut body, mut id) = (Some(body), None);
    machine.on(0, &mut |here| id = here.spawn(level, 64 << 10, body.take().unwrap()).ok()).unwrap();
    id.unwrap()
}

type Words = Arc<Mutex<Vec<&'static str>>>;

fn say(words: &Words, word: &'static str) {
    words.lock().unwrap().push(word);
}

fn settle(dispatcher: &mut Dispatcher) {
    dispatcher.dispatch(Limits { idle_rounds: 2, ..Limits::default() });
}

#[test]
fn threads_of_a_level_take_turns_and_a_higher_one_comes_first() {
    let (machine, mut dispatcher) = one_core();
    let words = Words::default();
    for (level, names) in [(3, ["a1", "a2"]), (3, ["b1", "b2"]), (5, ["c1", "c2"])] {
        let words = Arc::clone(&words);
        spawn(&machine, level, move |light| {
            say(&words, names[0]);
            light.give_way();
            say(&words, names[1]);
        });
    }
    settle(&mut dispatcher);
    assert_eq!(*words.lock().unwrap(), ["c1", "c2", "a1", "b1", "a2", "b2"]);
    machine.end();
}

#[test]
fn floating_point_and_deep_stacks_survive_switches() {
    let (machine, mut dispatcher) = one_core();
    fn deep(light: &Light<'_>, depth: u32, value: f64) -> f64 {
        if depth == 0 {
            return value;
        }
        let half = deep(light, depth - 1, value / 2.0);
        light.give_way();
        half + f64::from(depth)
    }
    let sums: Arc<Mutex<Vec<f64>>> = Arc::default();
    for start in [1024.0, 4096.0] {
        let sums = Arc::clone(&sums);
        spawn(&machine, 4, move |light| {
            let sum = deep(light, 10, start);
            sums.lock().unwrap().push(sum);
        });
    }
    settle(&mut dispatcher);
    assert_eq!(*sums.lock().unwrap(), [1.0 + 55.0, 4.0 + 55.0]);
    machine.end();
}

#[test]
fn sleepers_wake_in_the_order_of_their_times_and_never_early() {
    let (machine, mut dispatcher) = one_core();
    let woken: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
    for due in [300, 100, 200] {
        let woken = Arc::clone(&woken);
        spawn(&machine, 4, move |light| {
            light.sleep_until(due);
            woken.lock().unwrap().push((due, light.here().now()));
        });
    }
    for _ in 0..40 {
        settle(&mut dispatcher);
        machine.clock().advance(10);
    }
    assert_eq!(*woken.lock().unwrap(), [(100, 100), (200, 200), (300, 300)]);
    machine.end();
}

#[test]
fn a_semaphore_lets_as_many_pass_as_it_was_raised_and_the_highest_first() {
    let (machine, mut dispatcher) = one_core();
    let mut semaphore = None;
    machine.on(0, &mut |here| semaphore = here.semaphore(1).ok()).unwrap();
    let semaphore = semaphore.unwrap();
    let words = Words::default();
    for (level, name) in [(2, "low"), (6, "high"), (4, "middle")] {
        let words = Arc::clone(&words);
        spawn(&machine, level, move |light| {
            light.wait(semaphore);
            say(&words, name);
        });
    }
    settle(&mut dispatcher);
    assert_eq!(*words.lock().unwrap(), ["high"]);
    for expected in [["high", "middle"].as_slice(), &["high", "middle", "low"]] {
        machine.on(0, &mut |here| here.raise(semaphore)).unwrap();
        settle(&mut dispatcher);
        assert_eq!(*words.lock().unwrap(), expected);
    }
    machine.end();
}

#[test]
fn events_reach_a_thread_by_its_mailbox() {
    let (machine, mut dispatcher) = one_core();
    let pool = machine.pool(8, 64).unwrap();
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let inside = Arc::clone(&seen);
    let thread = spawn(&machine, 4, move |light| {
        for _ in 0..3 {
            let event = light.receive();
            inside.lock().unwrap().push(event.word(0));
        }
    });
    let object = machine.object("mailbox", Mailbox(thread)).unwrap();
    let queue = machine.queue(&QueueSpec::new("mailbox", Kind::Atomic), Some(object)).unwrap();
    machine.start(object).unwrap();
    for number in 1..=3 {
        let mut event = machine.allocate(pool, 64).unwrap();
        event.set_word(0, number);
        machine.send(event, queue).unwrap();
        settle(&mut dispatcher);
    }
    assert_eq!(*seen.lock().unwrap(), [1, 2, 3]);
    assert_eq!(machine.free_events(pool), 8);
    machine.end();
}

#[test]
fn a_panic_in_a_thread_ends_it_alone() {
    let (machine, mut dispatcher) = one_core();
    let words = Words::default();
    spawn(&machine, 4, |_| std::panic::resume_unwind(Box::new("on purpose")));
    let other = Arc::clone(&words);
    spawn(&machine, 3, move |light| {
        light.give_way();
        say(&other, "went on");
    });
    settle(&mut dispatcher);
    assert_eq!(*words.lock().unwrap(), ["went on"]);
    machine.end();
}

/// Allocation of an event, send, receive, timeout, light thread: none of it asks the system for memory, faults or sleeps.
#[test]
fn the_steady_state_allocates_nothing_faults_nowhere_and_never_sleeps() {
    let (machine, mut dispatchers) = Machine::new(Config::default()).unwrap();
    let mut dispatcher = dispatchers.remove(0);
    let pool = machine.pool(64, 64).unwrap();
    let object = machine.object("object", move |here: &Here<'_>, event: Event, queue: QueueId| {
        drop(event);
        drop(here.send(here.allocate(pool, 64).unwrap(), queue));
    });
    let object = object.unwrap();
    for kind in [Kind::Atomic, Kind::Parallel, Kind::Ordered] {
        let queue = machine.queue(&QueueSpec::new("queue", kind), Some(object)).unwrap();
        if kind == Kind::Atomic {
            machine.start(object).unwrap();
        }
        machine.send(machine.allocate(pool, 64).unwrap(), queue).unwrap();
    }
    spawn(&machine, 4, |light| {
        loop {
            light.sleep_until(light.here().now() + 1_000);
        }
    });
    dispatcher.dispatch(Limits { rounds: 20_000, ..Limits::default() });
    let before = sys::usage::thread();
    let mut events = 0;
    let requests = sys::allocation::count(|| {
        events = dispatcher.dispatch(Limits { rounds: 100_000, ..Limits::default() }).events;
    });
    let used = sys::usage::thread() - before;
    assert!(events >= 100_000 / 2, "{events} events");
    assert_eq!((requests, used.minor_faults, used.major_faults, used.voluntary), (0, 0, 0, 0));
    machine.end();
}
