//! Perfetto's traces (protos/perfetto/trace): packets of ftrace events, from which its tools make tracks of CPUs and threads,
//! and the account of each late wake-up as slices of a track.

use record::{Activity, Explanation, Hit, ThreadState};

use crate::trace_events::{Kept, Thread, What, all};

/// Fields of a `TracePacket`.
const PACKET: u32 = 1;
const FTRACE_EVENTS: u32 = 1;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const TRACK_EVENT: u32 = 11;
const TRACK_DESCRIPTOR: u32 = 60;

/// What `TrackEvent.type` says.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// The file.
pub fn file(explanations: &[Explanation]) -> Vec<u8> {
    let mut trace = Message::default();
    for (cpu, events) in all(explanations) {
        let mut bundle = Message::default();
        bundle.number(1, cpu.into());
        events.iter().for_each(|event| bundle.message(2, &ftrace(event)));
        let mut packet = Message::default();
        packet.message(FTRACE_EVENTS, &bundle);
        packet.number(SEQUENCE, 1);
        trace.message(PACKET, &packet);
    }
    let hits = explanations.iter().flat_map(|explanation| &explanation.hits);
    for (track, hit) in (1_u64..).zip(hits) {
        account(track, hit, &mut trace);
    }
    trace.0
}

/// A message of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        loop {
            let seven = (number & 0x7f) as u8;
            number >>= 7;
            if number == 0 {
                return self.0.push(seven);
            }
            self.0.push(seven | 0x80);
        }
    }

    fn number(&mut self, field: u32, number: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(number);
    }

    /// Negative numbers have all 64 bits.
    fn signed(&mut self, field: u32, number: i32) {
        self.number(field, i64::from(number) as u64);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }
}

fn ftrace(event: &Kept) -> Message {
    let mut message = Message::default();
    message.number(1, event.at);
    message.signed(2, event.task);
    let mut inner = Message::default();
    match &event.what {
        What::Switch(previous, next) => {
            thread(&mut inner, 1, previous);
            // Without it Perfetto takes the thread for runnable.
            previous.state.into_iter().for_each(|state| inner.number(4, state_of_old(state)));
            thread(&mut inner, 5, next);
            message.message(4, &inner);
        }
        What::Waking(woken) => {
            thread(&mut inner, 1, woken);
            inner.number(4, 1);
            inner.number(5, event.cpu.into());
            message.message(20, &inner);
        }
        What::Words(words) => {
            inner.number(1, 0);
            inner.text(2, words);
            message.message(3, &inner);
        }
    }
    message
}

/// Without the kernel's version Perfetto reads states as those of Linux 4.4 (src/trace_processor/types/task_state.cc), which had
/// other bits from the fifth on: preempted, parked, and no idle kernel thread, which is in no interruptible sleep.
fn state_of_old(state: ThreadState) -> u64 {
    let state = state.bits();
    const ALIKE: u16 = 0xf;
    let others = [(0x10, 0x10), (0x20, 0x20), (0x40, 0x200), (0x80, 0x2), (ThreadState::PREEMPTED, 0x800)];
    let moved = others.iter().filter(|(new, _)| state & new != 0);
    moved.fold(u64::from(state & ALIKE), |bits, (_, old)| bits | old)
}

/// Name, id and priority, in three fields from `field` on.
fn thread(message: &mut Message, field: u32, thread: &Thread) {
    message.text(field, &thread.name);
    message.signed(field + 1, thread.tid);
    message.signed(field + 2, thread.priority);
}

/// A track with the pieces of a wake-up, one after the other, in a slice that is the whole of it.
fn account(track: u64, hit: &Hit, trace: &mut Message) {
    let name = format!("late wake-up on CPU {}, activation {}", hit.cpu, hit.activation);
    let mut descriptor = Message::default();
    descriptor.number(1, track);
    descriptor.text(2, &name);
    packet(None, TRACK_DESCRIPTOR, &descriptor, trace);
    slice(track, hit.due.0, Some(&format!("{} ns late", hit.latency.0)), trace);
    let mut at = hit.due.0;
    for piece in &hit.pieces {
        slice(track, at, Some(&format!("{}: {}", piece.stage.words(), activity(&piece.activity))), trace);
        at = at.saturating_add(piece.length.0);
        slice(track, at, None, trace);
    }
    slice(track, at, None, trace);
}

/// The begin of a slice, by its name, or the end of the one that began last.
fn slice(track: u64, at: u64, name: Option<&str>, trace: &mut Message) {
    let mut event = Message::default();
    event.number(9, if name.is_some() { SLICE_BEGIN } else { SLICE_END });
    event.number(11, track);
    name.into_iter().for_each(|name| event.text(23, name));
    packet(Some(at), TRACK_EVENT, &event, trace);
}

fn packet(at: Option<u64>, field: u32, content: &Message, trace: &mut Message) {
    let mut packet = Message::default();
    at.into_iter().for_each(|at| packet.number(TIMESTAMP, at));
    packet.number(SEQUENCE, 1);
    packet.message(field, content);
    trace.message(PACKET, &packet);
}

/// A slice of the idle thread has one name, however deep it slept.
fn activity(activity: &Activity) -> String {
    match activity {
        Activity::Idle { .. } => "idle".to_owned(),
        other => other.words(),
    }
}
