//! Bounds against simulated time: random systems never exceed them, an adversary comes near.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use runtime::contract::analysis::Bound;
use runtime::{
    Clock, Config, Contract, Dispatcher, Error, Event, Here, Kind, Limits, Machine, Overheads, PoolId,
    QueueId, QueueSpec,
};

/// What arrives when: the clock does not pass a time without what is due then.
struct World {
    machine: Machine,
    pool: PoolId,
    /// Latest first.
    arrivals: Mutex<Vec<(u64, QueueId)>>,
    overheads: Overheads,
    /// When the kernel takes the core next.
    interference: Mutex<u64>,
}

impl World {
    fn next_until(&self, time: u64) -> Option<(u64, QueueId)> {
        let mut arrivals = self.arrivals.lock().unwrap();
        arrivals.last().filter(|arrival| arrival.0 <= time)?;
        arrivals.pop()
    }

    /// Lets arrivals happen up to `time`, and the clock reach it.
    fn pass_to(&self, time: u64) {
        loop {
            let next = self.next_until(time);
            let now = self.machine.clock().now();
            let Some((due, queue)) = next else {
                break self.machine.clock().advance(time.saturating_sub(now));
            };
            self.machine.clock().advance(due.saturating_sub(now));
            let event = self.machine.allocate(self.pool, 64).unwrap();
            // What the contract refuses does not arrive.
            let _ = self.machine.send(event, queue);
        }
    }

    /// Runs for `length`; what the kernel takes comes on top.
    fn work(&self, length: u64) {
        let mut left = length;
        while left > 0 {
            let now = self.machine.clock().now();
            let mut next = self.interference.lock().unwrap();
            if self.overheads.interference_distance > 0 && *next <= now {
                *next = now + self.overheads.interference_distance;
                drop(next);
                self.pass_to(now + self.overheads.interference);
                continue;
            }
            let step = if self.overheads.interference_distance > 0 { left.min(*next - now) } else { left };
            drop(next);
            self.pass_to(now + step);
            left -= step;
        }
    }
}

#[derive(Clone, Debug)]
struct System {
    tasks: Vec<(u8, Contract)>,
    bursts: u8,
    overheads: Overheads,
}

struct Running {
    world: Arc<World>,
    dispatcher: Dispatcher,
    queues: Vec<QueueId>,
}

/// A machine of one core whose events run for all of their budget, or a part of it.
fn machine(system: &System, share: fn(u64) -> u64) -> Result<Running, Error> {
    let config =
        Config { events: 2048, bursts: [system.bursts; 8], overheads: system.overheads, ..Config::default() };
    let (machine, mut dispatchers) = Machine::with_clock(config, Clock::simulated())?;
    let pool = machine.pool(2000, 64)?;
    machine.clock().advance(1_000_000);
    let world = Arc::new(World {
        machine: machine.clone(),
        pool,
        arrivals: Mutex::default(),
        overheads: system.overheads,
        interference: Mutex::new(0),
    });
    let mut queues = Vec::new();
    for (level, contract) in &system.tasks {
        let (inside, budget) = (Arc::downgrade(&world), contract.budget);
        let object = machine.object("task", move |_: &Here<'_>, event: Event, _: QueueId| {
            let world = inside.upgrade().unwrap();
            world.work(world.overheads.event + share(budget));
            drop(event);
        })?;
        let spec = QueueSpec::new("task", Kind::Atomic).level(*level).contract(*contract);
        queues.push(machine.queue(&spec, Some(object))?);
        machine.start(object)?;
    }
    Ok(Running { world, dispatcher: dispatchers.remove(0), queues })
}

impl Running {
    /// Runs all arrivals, from the first to the last.
    fn run(&mut self, mut arrivals: Vec<(u64, QueueId)>) {
        arrivals.sort_by_key(|arrival| std::cmp::Reverse(arrival.0));
        *self.world.arrivals.lock().unwrap() = arrivals;
        loop {
            let now = self.world.machine.clock().now();
            self.world.pass_to(now);
            let ran = self.dispatcher.dispatch(Limits { rounds: 1, ..Limits::default() }).events;
            if ran > 0 {
                continue;
            }
            let next = self.world.arrivals.lock().unwrap().last().map(|arrival| arrival.0);
            match next {
                Some(next) => self.world.pass_to(next),
                None => return,
            }
        }
    }

    /// Worst observed and bound of each queue.
    fn outcome(&self) -> Vec<(u64, Bound)> {
        let machine = &self.world.machine;
        let worst = |queue: &QueueId| machine.figures_of(*queue).unwrap().worst_response;
        self.queues.iter().map(|queue| (worst(queue), machine.bound_of(*queue).unwrap())).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.machine.end();
    }
}

fn system() -> impl Strategy<Value = System> {
    let task = (0_u8..8, 2_000_u64..20_000, 50_u64..900, 1_u32..4);
    let tasks = prop::collection::vec(task, 1..6);
    let overheads = (0_u64..20, prop_oneof![Just(0_u64), 1_000_u64..5_000], 0_u64..200);
    (tasks, 1_u8..4, overheads).prop_map(|(tasks, bursts, (event, distance, interference))| {
        let contract = |(level, distance, budget, burst)| {
            (level, Contract { distance, burst, budget, deadline: u64::MAX >> 8 })
        };
        System {
            tasks: tasks.into_iter().map(contract).collect(),
            bursts,
            overheads: Overheads { event, poll: 0, interference, interference_distance: distance },
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_response_exceeds_its_bound(system in system(), seed in any::<u64>()) {
        let Ok(mut running) = machine(&system, |budget| budget) else { return Ok(()) };
        let mut random = units::Seed(seed).stream("arrivals");
        let mut arrivals = Vec::new();
        for (queue, (_, contract)) in running.queues.iter().zip(&system.tasks) {
            let mut time = 1_000_000 + random.below(3) * random.below(2_000);
            for _ in 0..40 {
                arrivals.push((time, *queue));
                // Often at once, often as soon as is allowed, sometimes later.
                time += [0, 0, contract.distance, contract.distance, random.below(3 * contract.distance)]
                    [random.below(5) as usize];
            }
        }
        running.run(arrivals);
        for (worst, bound) in running.outcome() {
            prop_assert!(worst <= bound.response, "{worst} ns observed, bound {bound:?}");
        }
    }
}

/// The longest event of a lower level has just begun; then everything that may arrive at this level and above does.
#[test]
fn an_adversary_reaches_four_fifths_of_each_bound() {
    let task = |level, distance, budget, burst| {
        (level, Contract { distance, burst, budget, deadline: u64::MAX >> 8 })
    };
    let system = System {
        tasks: vec![
            task(7, 5_000, 300, 2),
            task(5, 9_000, 700, 1),
            task(5, 11_000, 500, 1),
            task(3, 20_000, 1_500, 1),
            task(1, 40_000, 2_000, 1),
        ],
        bursts: 1,
        overheads: Overheads::default(),
    };
    for victim in 0..system.tasks.len() {
        let mut running = machine(&system, |budget| budget).unwrap();
        let (start, level) = (2_000_000, system.tasks[victim].0);
        let lower = (0..system.tasks.len()).filter(|task| system.tasks[*task].0 < level);
        let blocker = lower.max_by_key(|task| system.tasks[*task].1.budget);
        let mut arrivals: Vec<(u64, QueueId)> =
            blocker.map(|task| (start - 1, running.queues[task])).into_iter().collect();
        let rivals = (0..system.tasks.len()).filter(|task| system.tasks[*task].0 >= level && *task != victim);
        for task in rivals.chain([victim]) {
            let contract = system.tasks[task].1;
            for number in 1..=u64::from(contract.burst) + 8 {
                arrivals.push((start + contract.earliest(number), running.queues[task]));
            }
        }
        running.run(arrivals);
        let (worst, bound) = running.outcome()[victim];
        assert!(worst <= bound.response, "{worst} ns, bound {bound:?}");
        assert!(worst * 10 >= bound.response * 8, "task {victim}: {worst} ns of a bound of {bound:?}");
    }
}

#[test]
fn a_configuration_whose_bounds_exceed_its_deadlines_is_refused() {
    let (machine, _dispatchers) = Machine::with_clock(Config::default(), Clock::simulated()).unwrap();
    let object = machine.object("object", |_: &Here<'_>, _: Event, _: QueueId| ()).unwrap();
    let queue = |level: u8, contract: Contract| {
        machine.queue(&QueueSpec::new("queue", Kind::Atomic).level(level).contract(contract), Some(object))
    };
    queue(7, Contract::periodic(1_000, 400).deadline(900)).unwrap();
    // Its own deadline.
    assert_eq!(queue(6, Contract::periodic(2_000, 400).deadline(700)), Err(Error::Deadline));
    // That of a queue which is there already: this one would block it.
    assert_eq!(queue(6, Contract::periodic(20_000, 600)), Err(Error::Deadline));
    // More work than there is time.
    assert_eq!(queue(6, Contract::periodic(1_000, 700)), Err(Error::Overload));
    assert!(queue(6, Contract::periodic(10_000, 450)).is_ok());
    assert_eq!(machine.table().0.len(), 2);
    machine.end();
}

#[test]
fn the_sender_is_refused_who_sends_more_than_the_contract_and_can_send_again() {
    let (machine, _dispatchers) = Machine::with_clock(Config::default(), Clock::simulated()).unwrap();
    machine.clock().advance(1_000_000);
    let pool = machine.pool(8, 64).unwrap();
    let object = machine.object("object", |_: &Here<'_>, _: Event, _: QueueId| ()).unwrap();
    let contract = Contract::periodic(1_000, 100);
    let spec = QueueSpec::new("queue", Kind::Atomic).contract(contract);
    let queue = machine.queue(&spec, Some(object)).unwrap();
    machine.start(object).unwrap();
    let mut event = machine.allocate(pool, 64).unwrap();
    event.set_word(0, 5);
    machine.send(event, queue).unwrap();
    let refused = machine.send(machine.allocate(pool, 64).unwrap(), queue).unwrap_err();
    assert_eq!(refused.error, Error::TooSoon);
    machine.clock().advance(1_000);
    machine.send(refused.event.unwrap(), queue).unwrap();
    assert_eq!(machine.figures_of(queue).unwrap().refused, 1);
    machine.end();
}
