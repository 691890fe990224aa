//! POSIX message queues.

use std::sync::Arc;

use sys::message_queue::Queue;

use super::{BOTH, Operation, SOURCE_STRESS_NG};
use crate::work::{At, Kit, Result, Work};

/// What an ordinary user may have (fs.mqueue.msg_max).
const DEPTH: u32 = 10;

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "mqueue-ping-pong",
        title: "mqueue ping-pong RTT",
        unit: "1 message of 8 bytes there and back",
        bytes: 0,
        places: BOTH,
        source: "rt-tests pmqtest",
        stands_for: "real-time programs that take turns by messages",
        begin: ping_pong,
    },
    Operation {
        name: "mqueue-stream",
        title: "mqueue stream 8 B",
        unit: "1 message of 8 bytes that another thread receives",
        bytes: 8,
        places: BOTH,
        source: SOURCE_STRESS_NG,
        stands_for: "a stream of commands or logs out of a real-time thread",
        begin: stream,
    },
];

fn queue(kit: &Kit) -> Result<Arc<Queue>> {
    Queue::new(&kit.name, DEPTH).at("make a message queue").map(Arc::new)
}

fn ping_pong(kit: &Kit) -> Result<Box<dyn Work>> {
    let (there, back) = (queue(kit)?, queue(kit)?);
    let (theirs, answers) = (there.clone(), back.clone());
    kit.partner(move || {
        let mut message = [0; Queue::LONGEST];
        while theirs.receive(&mut message).is_ok() && answers.send(&[1; 8]).is_ok() {}
    })?;
    let mut message = [0; Queue::LONGEST];
    Ok(Box::new(move || {
        there.send(&[1; 8]).at("send a message")?;
        back.receive(&mut message).at("receive a message").map(drop)
    }))
}

fn stream(kit: &Kit) -> Result<Box<dyn Work>> {
    let queue = queue(kit)?;
    let theirs = queue.clone();
    kit.partner(move || {
        let mut message = [0; Queue::LONGEST];
        while theirs.receive(&mut message).is_ok() {}
    })?;
    Ok(Box::new(move || queue.send(&[1; 8]).at("send a message")))
}
