//! The runtime's C face: `include/worstcase_runtime.h`. Each function's promises stand there.
//!
//! An event is a pointer that its holder owns; each function that takes one over makes an [`Event`] of it, and gives a pointer
//! back where the call failed.
//!
//! ```
//! // What C calls. A thread that is no core of a machine has no number.
//! assert_eq!(worstcase_runtime::wr_core(), u32::MAX);
//! ```
//!
//! As the runtime itself, it is empty for CPUs without atomics of 64 bits.
#![cfg(target_has_atomic = "64")]
#![allow(unsafe_code, clippy::missing_safety_doc, reason = "the header says what callers promise")]

mod source;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::Mutex;

use runtime::{
    Config, Contract, Dispatcher, Error, Event, GroupId, Here, Kind, LEVELS, Limits, Machine, Notification,
    Object, ObjectId, PoolId, QueueId, QueueSpec, Refused, TimeoutId, TimeoutSpec, Wait, with_here,
};

const NULL: c_int = 21;
const APPLICATION: c_int = 1000;

/// `wr_machine`
pub struct Handle {
    machine: Machine,
    cores: Vec<Mutex<Dispatcher>>,
}

/// `wr_config`
#[repr(C)]
pub struct CConfig {
    cores: u32,
    events: u32,
    burst: u32,
    wait: u32,
    watch: u32,
    publish: u32,
}

/// `wr_contract`
#[repr(C)]
pub struct CContract {
    distance: u64,
    burst: u32,
    budget: u64,
    deadline: u64,
}

/// `wr_limits`
#[repr(C)]
pub struct CLimits {
    rounds: u64,
    events: u64,
    nanos: u64,
    idle_rounds: u64,
}

/// `wr_outcome`
#[repr(C)]
pub struct COutcome {
    rounds: u64,
    events: u64,
    nanos: u64,
}

type Start = unsafe extern "C" fn(*mut c_void, *mut Handle) -> c_int;
type Stop = unsafe extern "C" fn(*mut c_void, *mut Handle);
type Receive = unsafe extern "C" fn(*mut c_void, *mut Handle, *mut u8, u32);

/// `wr_object`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CObject {
    start: Option<Start>,
    start_local: Option<Start>,
    receive: Option<Receive>,
    stop_local: Option<Stop>,
    stop: Option<Stop>,
}

/// A C program's object.
struct Foreign {
    functions: CObject,
    context: *mut c_void,
    machine: *mut Handle,
}

// SAFETY: the header promises that context and functions may be used from each core.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Foreign {
    fn started(&self, start: Option<Start>) -> Result<(), Error> {
        // SAFETY: the program's function, called as the header says.
        match start.map_or(0, |start| unsafe { start(self.context, self.machine) }) {
            0 => Ok(()),
            code => Err(Error::Application(code.unsigned_abs())),
        }
    }

    fn stopped(&self, stop: Option<Stop>) {
        if let Some(stop) = stop {
            // SAFETY: as above.
            unsafe { stop(self.context, self.machine) };
        }
    }
}

impl Object for Foreign {
    fn start(&self, _: &Here<'_>) -> Result<(), Error> {
        self.started(self.functions.start)
    }

    fn start_local(&self, _: &Here<'_>) -> Result<(), Error> {
        self.started(self.functions.start_local)
    }

    fn receive(&self, _: &Here<'_>, event: Event, queue: QueueId) {
        if let Some(receive) = self.functions.receive {
            // SAFETY: as above; the event is the function's from now on.
            unsafe { receive(self.context, self.machine, event.into_address(), queue.number()) };
        }
    }

    fn stop_local(&self, _: &Here<'_>) {
        self.stopped(self.functions.stop_local);
    }

    fn stop(&self, _: &Here<'_>) {
        self.stopped(self.functions.stop);
    }
}

fn code(error: Error) -> c_int {
    match error {
        Error::PoolEmpty => 1,
        Error::TooLarge => 2,
        Error::NoSuchQueue => 3,
        Error::NoSuchThing => 4,
        Error::WrongKind => 5,
        Error::NoRoom => 6,
        Error::TooSoon => 7,
        Error::OrderFull => 8,
        Error::WrongState => 9,
        Error::StartFailed => 10,
        Error::TooNear => 11,
        Error::TooFar => 12,
        Error::Cancelled => 13,
        Error::GroupBusy => 14,
        Error::GroupIdle => 15,
        Error::GroupStale => 16,
        Error::NoSuchCore => 17,
        Error::Deadline => 18,
        Error::Overload => 19,
        Error::Panic => 20,
        Error::Application(code) => APPLICATION.saturating_add(c_int::try_from(code).unwrap_or(c_int::MAX)),
    }
}

fn answer(result: Result<(), Error>) -> c_int {
    result.map_or_else(code, |()| 0)
}

/// A number made by a call, to where the program wants it.
unsafe fn made(result: Result<u32, Error>, place: *mut u32) -> c_int {
    match result {
        Ok(number) if !place.is_null() => {
            // SAFETY: the header promises that the pointer can be written.
            unsafe { place.write(number) };
            0
        }
        Ok(_) => NULL,
        Err(error) => code(error),
    }
}

/// The event stays with the caller where the call failed.
fn answered(result: Result<(), Refused>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(refused) => {
            // The pointer that the caller has is this event's.
            refused.event.map(Event::into_address);
            code(refused.error)
        }
    }
}

unsafe fn handle<'a>(machine: *const Handle) -> Option<&'a Handle> {
    // SAFETY: null, or what `wr_machine_new` gave and `wr_machine_end` did not end.
    unsafe { machine.as_ref() }
}

unsafe fn name(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the header promises a string that ends.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

unsafe fn event(address: *mut u8) -> Option<Event> {
    // SAFETY: the caller owns the event, and gives it away.
    (!address.is_null()).then(|| unsafe { Event::from_address(address) })
}

/// A machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_machine_new(config: *const CConfig) -> *mut Handle {
    // SAFETY: null, or a configuration.
    let Some(config) = (unsafe { config.as_ref() }) else { return ptr::null_mut() };
    let wait = [Wait::Spin, Wait::Pause, Wait::Block][config.wait.min(2) as usize];
    let config = Config {
        cores: config.cores as usize,
        events: config.events as usize,
        bursts: [config.burst.clamp(1, 255) as u8; LEVELS],
        wait,
        watch: config.watch != 0,
        publish: config.publish as usize,
        ..Config::default()
    };
    match Machine::new(config) {
        Ok((machine, cores)) => {
            Box::into_raw(Box::new(Handle { machine, cores: cores.into_iter().map(Mutex::new).collect() }))
        }
        Err(_) => ptr::null_mut(),
    }
}

/// Ends a machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_machine_end(machine: *mut Handle) {
    if !machine.is_null() {
        // SAFETY: made by `wr_machine_new`; the header promises that nobody uses it any more.
        unsafe { Box::from_raw(machine) }.machine.end();
    }
}

macro_rules! machine {
    ($machine:expr, $otherwise:expr) => {
        // SAFETY: the header's promise.
        match unsafe { handle($machine) } {
            Some(handle) => handle,
            None => return $otherwise,
        }
    };
}

/// A pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_pool_create(
    machine: *mut Handle,
    count: u32,
    size: u32,
    pool: *mut u32,
) -> c_int {
    let handle = machine!(machine, NULL);
    let made_pool = handle.machine.pool(count as usize, size as usize).map(PoolId::number);
    // SAFETY: the header's promise.
    unsafe { made(made_pool, pool) }
}

/// An object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_object_create(
    machine: *mut Handle,
    text: *const c_char,
    functions: *const CObject,
    context: *mut c_void,
    object: *mut u32,
) -> c_int {
    let handle = machine!(machine, NULL);
    // SAFETY: the header's promise.
    let Some(functions) = (unsafe { functions.as_ref() }) else { return NULL };
    let foreign = Foreign { functions: *functions, context, machine };
    // SAFETY: as above.
    unsafe { made(handle.machine.object(&name(text), foreign).map(ObjectId::number), object) }
}

/// Starts it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_object_start(machine: *mut Handle, object: u32) -> c_int {
    answer(machine!(machine, NULL).machine.start(ObjectId::from_number(object)))
}

/// Stops it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_object_stop(machine: *mut Handle, object: u32) -> c_int {
    answer(machine!(machine, NULL).machine.stop(ObjectId::from_number(object)))
}

/// A queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_queue_create(
    machine: *mut Handle,
    text: *const c_char,
    kind: u32,
    level: u32,
    object: u32,
    contract: *const CContract,
    queue: *mut u32,
) -> c_int {
    let handle = machine!(machine, NULL);
    let kinds = [Kind::Atomic, Kind::Parallel, Kind::Ordered, Kind::Local, Kind::Unscheduled];
    let Some(kind) = kinds.get(kind as usize).copied() else { return code(Error::WrongKind) };
    // SAFETY: the header's promise.
    let mut spec = QueueSpec::new(&unsafe { name(text) }, kind).level(level.min(7) as u8);
    // SAFETY: null, or a contract.
    spec.contract = unsafe { contract.as_ref() }.map(|contract| Contract {
        distance: contract.distance,
        burst: contract.burst,
        budget: contract.budget,
        deadline: contract.deadline,
    });
    let object = (kind != Kind::Unscheduled).then(|| ObjectId::from_number(object));
    // SAFETY: the header's promise.
    unsafe { made(handle.machine.queue(&spec, object).map(QueueId::number), queue) }
}

/// Removes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_queue_remove(machine: *mut Handle, queue: u32) -> c_int {
    answer(machine!(machine, NULL).machine.remove_queue(QueueId::from_number(queue)))
}

/// Its bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_queue_bound(machine: *mut Handle, queue: u32, nanos: *mut u64) -> c_int {
    let handle = machine!(machine, NULL);
    match handle.machine.bound_of(QueueId::from_number(queue)) {
        Some(bound) if !nanos.is_null() => {
            // SAFETY: the header promises that it can be written.
            unsafe { nanos.write(bound.response) };
            0
        }
        Some(_) => NULL,
        None => code(Error::NoSuchThing),
    }
}

/// An event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_alloc(machine: *mut Handle, pool: u32, size: u32) -> *mut u8 {
    let handle = machine!(machine, ptr::null_mut());
    let (pool, size) = (PoolId::from_number(pool), size as usize);
    let made = with_here(|here| match here {
        Some(here) => here.allocate(pool, size),
        None => handle.machine.allocate(pool, size),
    });
    made.map_or(ptr::null_mut(), Event::into_address)
}

/// Frees one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_free(address: *mut u8) {
    // SAFETY: the header's promise.
    drop(unsafe { event(address) });
}

/// Its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_event_data(address: *mut u8) -> *mut u8 {
    // SAFETY: the caller owns it; it is given back at once.
    let Some(mut event) = (unsafe { event(address) }) else { return ptr::null_mut() };
    let bytes = event.bytes_mut().as_mut_ptr();
    event.into_address();
    bytes
}

/// How many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_event_size(address: *mut u8) -> u32 {
    // SAFETY: as above.
    let Some(event) = (unsafe { event(address) }) else { return 0 };
    let size = event.len() as u32;
    event.into_address();
    size
}

/// Sends one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_send(machine: *mut Handle, address: *mut u8, queue: u32) -> c_int {
    let handle = machine!(machine, NULL);
    // SAFETY: the header's promise.
    let Some(event) = (unsafe { event(address) }) else { return NULL };
    let queue = QueueId::from_number(queue);
    answered(with_here(|here| match here {
        Some(here) => here.send(event, queue),
        None => handle.machine.send(event, queue),
    }))
}

/// Takes one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_take(machine: *mut Handle, queue: u32) -> *mut u8 {
    let handle = machine!(machine, ptr::null_mut());
    let taken = handle.machine.take(QueueId::from_number(queue)).ok().flatten();
    taken.map_or(ptr::null_mut(), Event::into_address)
}

/// Dispatches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_dispatch(
    machine: *mut Handle,
    core: u32,
    limits: *const CLimits,
    outcome: *mut COutcome,
) -> c_int {
    let handle = machine!(machine, NULL);
    // SAFETY: null, or limits.
    let limits = unsafe { limits.as_ref() }.map_or_else(Limits::default, |limits| Limits {
        rounds: limits.rounds,
        events: limits.events,
        nanos: limits.nanos,
        idle_rounds: limits.idle_rounds,
    });
    let Some(core) = handle.cores.get(core as usize) else { return code(Error::NoSuchCore) };
    let Ok(mut core) = core.try_lock() else { return code(Error::WrongState) };
    let done = core.dispatch(limits);
    // SAFETY: null, or can be written.
    if let Some(outcome) = unsafe { outcome.as_mut() } {
        *outcome = COutcome { rounds: done.rounds, events: done.events, nanos: done.nanos };
    }
    0
}

/// The time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_now(machine: *const Handle) -> u64 {
    machine!(machine, 0).machine.clock().now()
}

/// Which core the caller is.
#[unsafe(no_mangle)]
pub extern "C" fn wr_core() -> u32 {
    with_here(|here| here.map_or(u32::MAX, |here| here.core() as u32))
}

/// Ends the atomic context.
#[unsafe(no_mangle)]
pub extern "C" fn wr_atomic_processing_end() {
    with_here(|here| here.map(Here::end_atomic));
}

/// Ends the ordered context.
#[unsafe(no_mangle)]
pub extern "C" fn wr_ordered_processing_end() {
    with_here(|here| here.map(Here::end_order));
}

/// An event group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_group_create(machine: *mut Handle, group: *mut u32) -> c_int {
    let handle = machine!(machine, NULL);
    // SAFETY: the header's promise.
    unsafe { made(handle.machine.group().map(GroupId::number), group) }
}

/// Begins its cycle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_group_apply(
    machine: *mut Handle,
    group: u32,
    count: u32,
    address: *mut u8,
    queue: u32,
) -> c_int {
    let handle = machine!(machine, NULL);
    // SAFETY: the header's promise.
    let Some(event) = (unsafe { event(address) }) else { return NULL };
    let mut list = vec![Notification { event, queue: QueueId::from_number(queue), group: None }];
    let applied = handle.machine.apply(GroupId::from_number(group), count, &mut list);
    list.pop().map(|notification| notification.event.into_address());
    answer(applied)
}

/// Sends an event of a group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_send_group(
    machine: *mut Handle,
    address: *mut u8,
    queue: u32,
    group: u32,
) -> c_int {
    let handle = machine!(machine, NULL);
    // SAFETY: the header's promise.
    let Some(event) = (unsafe { event(address) }) else { return NULL };
    let (queue, group) = (QueueId::from_number(queue), GroupId::from_number(group));
    answered(with_here(|here| match here {
        Some(here) => here.send_group(event, queue, group),
        None => handle.machine.send_group(event, queue, group),
    }))
}

/// A timeout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_timeout_create(machine: *mut Handle, queue: u32, timeout: *mut u32) -> c_int {
    let handle = machine!(machine, NULL);
    let spec = TimeoutSpec::new(QueueId::from_number(queue));
    // SAFETY: the header's promise.
    unsafe { made(handle.machine.timeout(spec).map(TimeoutId::number), timeout) }
}

/// Sets it, on a core.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_timeout_set(timeout: u32, due: u64, period: u64, address: *mut u8) -> c_int {
    // SAFETY: the header's promise.
    let Some(event) = (unsafe { event(address) }) else { return NULL };
    answered(with_here(|here| match here {
        Some(here) => here.set_timeout(TimeoutId::from_number(timeout), due, period, event),
        None => Err(Refused { error: Error::NoSuchCore, event: Some(event) }),
    }))
}

/// Acknowledges its event, on a core.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_timeout_acknowledge(address: *mut u8) -> c_int {
    // SAFETY: the header's promise.
    let Some(event) = (unsafe { event(address) }) else { return NULL };
    answered(with_here(|here| match here {
        Some(here) => here.acknowledge(event),
        None => Err(Refused { error: Error::NoSuchCore, event: Some(event) }),
    }))
}

/// The table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wr_table(machine: *mut Handle, text: *mut c_char, size: usize) -> usize {
    let table = machine!(machine, 0).machine.table().to_string();
    let count = table.len().min(size.saturating_sub(1));
    if !text.is_null() && size > 0 {
        // SAFETY: the header promises `size` bytes.
        unsafe {
            ptr::copy_nonoverlapping(table.as_ptr(), text.cast(), count);
            text.cast::<u8>().add(count).write(0);
        }
    }
    table.len()
}
