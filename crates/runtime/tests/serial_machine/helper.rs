//! What the helper thread does is nothing to a core that sends to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use runtime::{
    Config, Cores, Event, Exclusive, Here, Kind, Machine, Place, QueueId, QueueSpec, TimeoutSpec, Wait,
};

const PERIOD: u64 = 1_000_000;
/// How long the helper blocks.
const BLOCKED: Duration = Duration::from_secs(1);
/// Activations before it does, and after it began.
const BEFORE: usize = 500;
const MEANWHILE: usize = 900;

/// The longest time between two activations, ns.
fn longest(times: &[u64]) -> u64 {
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

#[test]
fn a_helper_call_that_blocks_for_a_second_delays_no_activation_of_the_core() {
    let (machine, dispatchers) = Machine::new(Config::default()).unwrap();
    let pool = machine.pool(64, 64).unwrap();
    let slept = Arc::new(Mutex::new(None));
    let is_blocked = Arc::new(AtomicBool::new(false));
    let (length, blocked) = (Arc::clone(&slept), Arc::clone(&is_blocked));
    let blocks = move |_: &_, _: Event| {
        blocked.store(true, Ordering::Release);
        let begin = Instant::now();
        std::thread::sleep(BLOCKED);
        *length.lock().unwrap() = Some(begin.elapsed());
        blocked.store(false, Ordering::Release);
    };
    let helper = machine.helper("blocks", blocks).unwrap();
    // When it was activated, and whether the helper was in its call then.
    let activations = Arc::new(Mutex::new(Vec::with_capacity(10_000)));
    let (all, blocked) = (Arc::clone(&activations), Arc::clone(&is_blocked));
    let motor = Exclusive::new(move |here: &Here<'_>, tick: Event, _: QueueId| {
        let mut all = all.lock().unwrap();
        all.push((here.now(), blocked.load(Ordering::Acquire)));
        if all.len() == BEFORE {
            here.send(here.allocate(pool, 64).unwrap(), helper).ok();
        }
        drop(all);
        here.acknowledge(tick).ok();
    });
    let motor = machine.object("motor", motor).unwrap();
    let motors = machine.queue(&QueueSpec::new("motor", Kind::Atomic), Some(motor)).unwrap();
    machine.start(motor).unwrap();
    let ticks = machine.timeout(TimeoutSpec::new(motors)).unwrap();
    let cpu = sys::schedule::affinity(0).unwrap().iter().last();
    let place = Place { cpu, priority: "80".parse().ok(), wait: Wait::Block };
    let cores = Cores::start(&machine, dispatchers, &[place]).unwrap();
    let mut first = machine.allocate(pool, 64).ok();
    let mut begin = |here: &Here<'_>| {
        if let Some(event) = first.take() {
            here.set_timeout(ticks, here.now() + PERIOD, PERIOD, event).ok();
        }
    };
    machine.on(0, &mut begin).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while slept.lock().unwrap().is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = cores.end();
    let all = activations.lock().unwrap();
    let of = |wanted: bool| -> Vec<u64> {
        all.iter().filter(|(_, is_blocked)| *is_blocked == wanted).map(|(at, _)| *at).collect()
    };
    let meanwhile = of(true);
    let before: Vec<u64> = all.iter().take(BEFORE).map(|(at, _)| *at).collect();
    println!(
        "longest between two activations: {} ns before, {} ns while the helper blocked ({} activations); {ended:?}",
        longest(&before),
        longest(&meanwhile),
        meanwhile.len()
    );
    assert!(slept.lock().unwrap().is_some_and(|length| length >= BLOCKED), "it did not block");
    assert!(meanwhile.len() >= MEANWHILE, "{} activations while the helper blocked", meanwhile.len());
    // A core that waited for the helper would have been a second late.
    assert!(longest(&meanwhile) < BLOCKED.as_nanos() as u64 / 4, "{} ns", longest(&meanwhile));
}
