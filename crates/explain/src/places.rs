//! Where a thread waited.

use units::{CpuId, InOrder, Nanos};

use crate::event::Kind;
use crate::stages::{Stages, waking};
use crate::wake_up::ON_ITS_WAY;
use crate::window::Window;

/// A CPU whose events say what delayed the thread, in this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub cpu: CpuId,
    pub from: Nanos,
    pub to: Nanos,
}

/// The places of a wake-up, which follow one another from `due` until it woke: where it was woken, and where it was ready. Others may move
/// it while it is.
pub fn places(window: &Window, stages: &Stages) -> Vec<Place> {
    let (due, woke) = (window.due, window.woke.max(window.due));
    let ready = stages.waking.map_or(due, |waking| waking.clamp(due, woke));
    let mut places: Vec<Place> = Vec::new();
    let mut add = |cpu, from: Nanos, to: Nanos| match places.last_mut() {
        _ if to <= from => {}
        Some(Place { cpu: last, to: end, .. }) if *last == cpu => *end = to,
        _ => places.push(Place { cpu, from, to }),
    };
    let moves = moves(window, ready);
    let first = moves.first().map_or(window.cpu, |one| one.from);
    add(stages.waking_cpu.unwrap_or(first), due, ready);
    let mut from = ready;
    for one in &moves {
        add(one.from, from, one.at);
        from = from.max(one.at);
    }
    add(window.cpu, from, woke);
    places
}

struct Move {
    at: Nanos,
    from: CpuId,
}

/// Moves of the thread while it was ready. Who wakes a thread chooses a CPU for it: that is no move.
fn moves(window: &Window, ready: Nanos) -> Vec<Move> {
    let waking = waking(window, window.tid, window.woke);
    let from = waking.map_or(ready, |waking| Nanos(waking.at.0.saturating_add(ON_ITS_WAY.0)));
    let moved = window.all().filter(|event| event.at > from && event.at <= window.woke);
    let mut moves: Vec<Move> = moved
        .filter_map(|event| match event.kind {
            Kind::Migrate { tid, from, .. } if tid == window.tid => Some(Move { at: event.at, from }),
            _ => None,
        })
        .collect();
    moves.order_by_key(|one| one.at);
    moves
}
