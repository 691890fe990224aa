//! Containment: whatever workers do to hide, they end with the supervisor.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use sys::process::{self, Ended, Pid};
use sys::{Errno, namespace};

use super::cgroup::Group;
use super::workers::WorkerSet;
use super::{Context, hung_up, processes};
use crate::error::Trying;
use crate::message::Message;
use crate::pipe::pipe;
use crate::{Containment, Error};

/// The status of a first process that could not make itself at home in its namespace.
const NOT_AT_HOME: u8 = 3;

/// Runs the workers in the strongest containment that this system offers, or in the one that the plan names, until the
/// parent lets go of the leash; then sees to it that nothing is left.
pub(super) fn run(context: &Context) -> Result<(), Error> {
    let ways: &[Containment] = match &context.plan.containment {
        Some(way) => std::slice::from_ref(way),
        None => &Containment::ALL,
    };
    for way in ways {
        let done = match way {
            Containment::PidNamespace => in_namespace(context)?,
            Containment::Cgroup => in_cgroup(context)?,
            Containment::Walk => in_the_open(context, None).map(|()| true)?,
        };
        if done {
            return Ok(());
        }
    }
    Err(Error::Supervisor("this system does not offer the containment asked for".into()))
}

/// False where there are no namespaces to be had. The first process of the new one runs the workers. It watches the
/// leash, a pipe from this process, and this process's death: each of the three ends it, and the kernel ends the rest.
fn in_namespace(context: &Context) -> Result<bool, Error> {
    let Ok(former) = namespace::separate() else { return Ok(false) };
    let (keeper, held) = pipe().trying("a pipe to the first process of the namespace")?;
    // The writing end stays here. Its copy in the child must go, or the pipe would not end with this process.
    let held = Cell::new(Some(held));
    let first = process::fork(|| {
        drop(held.take());
        first_process(context, keeper)
    });
    let first = first.trying("starting the first process of the namespace")?;
    let ended = wait_or_kill(first)?;
    if ended == Ended::Exited(i32::from(NOT_AT_HOME)) {
        former.restore().trying("leaving the namespace")?;
        return Ok(false);
    }
    match ended {
        Ended::Exited(0) | Ended::Killed(_) => Ok(true),
        other => Err(Error::Supervisor(format!("the first process of the namespace {other}"))),
    }
}

/// The namespace's first process. Its parent cannot be seen from inside, hence the pipe beside the signal.
fn first_process(context: &Context, keeper: OwnedFd) -> u8 {
    if process::die_with(None).is_err() || namespace::mount_proc().is_err() {
        return NOT_AT_HOME;
    }
    let _ = process::set_name("load:init");
    context.reporter.tell(&Message::Contained(Containment::PidNamespace));
    WorkerSet::new(context, None).run(Some(keeper.as_fd()));
    0
}

/// Waits for the first process; kills it as soon as the parent is gone.
fn wait_or_kill(first: Pid) -> Result<Ended, Error> {
    loop {
        if hung_up(std::io::stdin().as_fd(), Duration::from_millis(50)) {
            process::kill(first).trying("ending the namespace")?;
            return process::wait(first).map(|reaped| reaped.ended).trying("waiting for the namespace");
        }
        if let Ok(Some(reaped)) = process::reap() {
            if reaped.pid == first {
                return Ok(reaped.ended);
            }
        }
    }
}

fn in_cgroup(context: &Context) -> Result<bool, Error> {
    let Some(group) = Group::make() else { return Ok(false) };
    in_the_open(context, Some(&group))?;
    Ok(true)
}

/// Runs the workers in this process and afterwards kills every descendant until none is left.
fn in_the_open(context: &Context, group: Option<&Group>) -> Result<(), Error> {
    let way = if group.is_some() { Containment::Cgroup } else { Containment::Walk };
    context.reporter.tell(&Message::Contained(way));
    WorkerSet::new(context, group).run(None);
    end_descendants(group);
    Ok(())
}

/// Orphans become children of this process, so that descendants stay descendants: what forks while it is being killed
/// is found the next time around.
fn end_descendants(group: Option<&Group>) {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(group) = group {
            group.kill();
        }
        for pid in processes::descendants(process::own_pid()) {
            // A process that has become another user's cannot be killed; it is waited for.
            let _ = process::kill(pid);
        }
        if !reap_all() {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// Whether children are left.
fn reap_all() -> bool {
    loop {
        match process::reap() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(error) if error.errno == Errno::INTR => {}
            Err(_) => return false,
        }
    }
}
