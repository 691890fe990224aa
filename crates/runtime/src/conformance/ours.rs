//! Our machine as a subject of the suite.

use std::sync::{Arc, Mutex};

use super::{Answer, Behaviour, Calls, Handle, Payload, Reported, Settings, Subject, Wanted};
use crate::breakage::Breakage;
use crate::clock::Clock;
use crate::dispatch::{Dispatcher, Limits, Outcome};
use crate::event::Event;
use crate::failure::{Failure, Handled, Refused};
use crate::group::Notification;
use crate::model::{
    Config, CoresId, Error, GroupId, Kind, LEVELS, Level, ObjectId, Order, PoolId, QueueId, QueueSpec,
    TimeoutId,
};
use crate::state::{Here, Machine, Object, State};
use crate::timeout::TimeoutSpec;

/// The machine of this crate.
#[derive(Clone)]
pub struct Ours {
    machine: Machine,
    cores: Arc<Vec<Mutex<Dispatcher>>>,
}

impl Ours {
    /// A sound one.
    #[allow(clippy::expect_used, reason = "a suite that cannot make a machine has nothing to check")]
    pub fn new(settings: Settings) -> Self {
        let order = if settings.is_weighted { Order::Weighted } else { Order::Strict };
        let config = Config {
            cores: settings.cores,
            events: 512,
            queues: 64,
            objects: 64,
            window: 64,
            bursts: [settings.burst; LEVELS],
            order,
            ..Config::default()
        };
        let clock = if settings.is_simulated { Clock::simulated() } else { Clock::of_this_machine() };
        let (machine, cores) = Machine::with_clock(config, clock).expect("a machine of a few cores");
        Self { machine, cores: Arc::new(cores.into_iter().map(Mutex::new).collect()) }
    }

    /// One that is broken on purpose.
    pub fn broken(settings: Settings, how: Breakage) -> Self {
        let ours = Self::new(settings);
        ours.machine.break_by(how);
        ours
    }
}

impl Payload for Event {
    fn word(&self, number: usize) -> u64 {
        Self::word(self, number)
    }

    fn set_word(&mut self, number: usize, word: u64) {
        Self::set_word(self, number, word);
    }
}

fn answer(result: Result<(), Refused>) -> Answer<Event> {
    result.map_err(|refused| (refused.error, refused.event))
}

fn applied(
    apply: impl FnOnce(&mut Vec<Notification>) -> Result<(), Error>,
    event: Event,
    queue: u32,
) -> Answer<Event> {
    let mut list = vec![Notification { event, queue: QueueId(queue), group: None }];
    apply(&mut list).map_err(|error| (error, list.pop().map(|notification| notification.event)))
}

impl Calls<Event> for Here<'_> {
    fn core(&self) -> usize {
        Here::core(*self)
    }

    fn now(&self) -> u64 {
        Here::now(*self)
    }

    fn allocate(&self, pool: u32) -> Result<Event, Error> {
        Here::allocate(*self, PoolId(pool), 64)
    }

    fn send(&self, event: Event, queue: u32) -> Answer<Event> {
        answer(Here::send(*self, event, QueueId(queue)))
    }

    fn send_group(&self, event: Event, queue: u32, group: u32) -> Answer<Event> {
        answer(Here::send_group(*self, event, QueueId(queue), GroupId(group)))
    }

    fn take(&self, queue: u32) -> Result<Option<Event>, Error> {
        Here::take(*self, QueueId(queue))
    }

    fn end_atomic(&self) {
        Here::end_atomic(*self);
    }

    fn end_order(&self) {
        Here::end_order(*self);
    }

    fn set_timeout(&self, timeout: u32, due: u64, period: u64, event: Event) -> Answer<Event> {
        answer(Here::set_timeout(self, TimeoutId(timeout), due, period, event))
    }

    fn acknowledge(&self, event: Event) -> Answer<Event> {
        answer(Here::acknowledge(self, event))
    }

    fn cancel(&self, timeout: u32) -> Result<Event, Error> {
        Here::cancel(self, TimeoutId(timeout))
    }

    fn apply(&self, group: u32, count: u32, event: Event, queue: u32) -> Answer<Event> {
        applied(|list| Here::apply(*self, GroupId(group), count, list), event, queue)
    }
}

impl Object for Behaviour<Event> {
    fn start(&self, here: &Here<'_>) -> Result<(), Error> {
        self.start.as_ref().map_or(Ok(()), |start| start(here))
    }

    fn start_local(&self, here: &Here<'_>) -> Result<(), Error> {
        self.start_local.as_ref().map_or(Ok(()), |start| start(here))
    }

    fn receive(&self, here: &Here<'_>, event: Event, queue: QueueId) {
        (self.receive)(here, event, queue.0);
    }

    fn batch(&self) -> usize {
        self.receive_many.as_ref().map_or(0, |(batch, _)| *batch)
    }

    fn receive_many(&self, here: &Here<'_>, events: &mut Vec<Event>, queue: QueueId) {
        if let Some((_, receive)) = &self.receive_many {
            receive(here, events, queue.0);
        }
    }

    fn stop_local(&self, here: &Here<'_>) {
        if let Some(stop) = &self.stop_local {
            stop(here);
        }
    }

    fn stop(&self, here: &Here<'_>) {
        if let Some(stop) = &self.stop {
            stop(here);
        }
    }

    fn failed(&self, failure: &mut Failure) -> Handled {
        self.failed.as_ref().map_or(Handled::Pass, |failed| failed(failure.error))
    }
}

#[allow(clippy::expect_used, reason = "what the suite makes fits its machine, or the suite is wrong")]
impl Subject for Ours {
    type Event = Event;

    fn dispatch(&self, core: usize, limits: Limits) -> Outcome {
        // A core that is inside a receive further up this stack cannot be dispatched again: it does nothing.
        self.cores[core]
            .try_lock()
            .map_or_else(|_| Outcome::default(), |mut dispatcher| dispatcher.dispatch(limits))
    }

    fn advance(&self, nanos: u64) {
        self.machine.clock().advance(nanos);
    }

    fn now(&self) -> u64 {
        self.machine.clock().now()
    }

    fn pool(&self, count: usize) -> u32 {
        self.machine.pool(count, 64).expect("room for a pool").0
    }

    fn free_events(&self, pool: u32) -> usize {
        self.machine.free_events(PoolId(pool))
    }

    fn object(&self, behaviour: Behaviour<Event>) -> u32 {
        self.machine.object("object", behaviour).expect("room for an object").0
    }

    fn queue(&self, wanted: Wanted, object: Option<u32>) -> Result<u32, Error> {
        let spec = QueueSpec::new("queue", wanted.kind).level(wanted.level).cores(CoresId(wanted.cores));
        let spec = QueueSpec { contract: wanted.contract, ..spec };
        self.machine.queue(&spec, object.map(ObjectId)).map(|queue| queue.0)
    }

    fn atomic_pair(&self, levels: [Level; 2], object: u32) -> [u32; 2] {
        let group = self.machine.atomic_group().expect("room for a group");
        levels.map(|level| {
            let spec = QueueSpec::new("pair", Kind::Atomic).level(level).group(group);
            self.machine.queue(&spec, Some(ObjectId(object))).expect("room for a queue").0
        })
    }

    fn remove_queue(&self, queue: u32) -> Result<(), Error> {
        self.machine.remove_queue(QueueId(queue))
    }

    fn cores(&self, cores: &[usize]) -> u32 {
        self.machine.cores(cores).expect("cores of the machine").0
    }

    fn change_cores(&self, set: u32, cores: &[usize]) -> Result<(), Error> {
        self.machine.change_cores(CoresId(set), cores)
    }

    fn start(&self, object: u32) -> Result<(), Error> {
        self.machine.start(ObjectId(object))
    }

    fn stop(&self, object: u32) -> Result<(), Error> {
        self.machine.stop(ObjectId(object))
    }

    fn is_running(&self, object: u32) -> bool {
        self.machine.state(ObjectId(object)) == Some(State::Running)
    }

    fn allocate(&self, pool: u32) -> Result<Event, Error> {
        self.machine.allocate(PoolId(pool), 64)
    }

    fn send(&self, event: Event, queue: u32) -> Answer<Event> {
        answer(self.machine.send(event, QueueId(queue)))
    }

    fn send_group(&self, event: Event, queue: u32, group: u32) -> Answer<Event> {
        answer(self.machine.send_group(event, QueueId(queue), GroupId(group)))
    }

    fn take(&self, queue: u32) -> Result<Option<Event>, Error> {
        self.machine.take(QueueId(queue))
    }

    fn dropped(&self, queue: u32) -> u64 {
        self.machine.figures_of(QueueId(queue)).map_or(0, |row| row.dropped)
    }

    fn group(&self) -> u32 {
        self.machine.group().expect("room for a group").0
    }

    fn apply(&self, group: u32, count: u32, event: Event, queue: u32) -> Answer<Event> {
        applied(|list| self.machine.apply(GroupId(group), count, list), event, queue)
    }

    fn abort(&self, group: u32) -> Result<Vec<Event>, Error> {
        let notifications = self.machine.abort(GroupId(group))?;
        Ok(notifications.into_iter().map(|notification| notification.event).collect())
    }

    fn timeout(&self, queue: u32, least: u64, catches_up: bool) -> u32 {
        let spec = TimeoutSpec { least, catches_up, ..TimeoutSpec::new(QueueId(queue)) };
        self.machine.timeout(spec).expect("room for a timeout").0
    }

    fn remove_timeout(&self, timeout: u32) -> Result<(), Error> {
        self.machine.remove_timeout(TimeoutId(timeout))
    }

    fn set_handler(&self, handle: Handle) {
        self.machine.set_handler(move |failure| handle(failure.error));
    }

    fn on_enter(&self, enter: Box<dyn Fn() -> bool + Send + Sync>) {
        self.machine.on_enter(move |_, _| enter()).expect("room for a callback");
    }

    fn on_exit(&self, exit: Box<dyn Fn() + Send + Sync>) {
        self.machine.on_exit(move |_| exit()).expect("room for a callback");
    }

    fn reports(&self) -> Vec<Reported> {
        let (reports, _) = self.machine.reports();
        let reported = |report: crate::contract::watch::Report| Reported {
            fault: report.fault,
            queue: report.queue.0,
            event: report.event,
            core: report.core,
            time: report.time,
        };
        reports.into_iter().map(reported).collect()
    }
}

impl Drop for Ours {
    /// The last one ends the helper.
    fn drop(&mut self) {
        if Arc::strong_count(&self.cores) == 1 {
            self.machine.end();
        }
    }
}
