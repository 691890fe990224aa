//! The process that takes one sample. It is two: one that works, and one that waits for its end, or for that of the program
//! that started both, and then takes away what the first may have left: threads, children, files.

use std::ffi::CStr;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::cost::Sample;
use serde::{Deserialize, Serialize};
use sys::process::{Ended, Pid};
use sys::signal::{Signals, wait_readable};
use units::{CpuId, Nanos};

use crate::Operation;
use crate::work::{At, Kit, Result, Unable, Work, only};

/// The first argument of a process that takes a sample; the second is its [`Order`].
pub const ARGUMENT: &str = "operation-sample";
/// The argument of a program that does nothing: what executing one takes.
pub const NOTHING: &CStr = c"operation-nothing";
/// This program, to be executed.
pub const OWN_PROGRAM: &CStr = c"/proc/self/exe";

/// A sample to be taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// Who waits for it: a process that is gone needs no sample.
    pub parent: i32,
    /// The operation's name.
    pub operation: String,
    /// Where it runs.
    pub cpu: CpuId,
    /// Where its partner runs.
    pub partner: CpuId,
    /// How long it is measured, at least.
    pub length: Nanos,
    /// The number of the round.
    pub round: u32,
    /// Where files are made.
    pub directory: PathBuf,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// It was taken.
    Sample(Sample),
    /// It could not be, and why.
    Unable(String),
}

/// Takes the sample that `order` asks for, and prints the answer; the process's exit status.
pub fn main(order: &str) -> u8 {
    let Ok(order) = record::json::read::<Order>(order.as_bytes()) else { return 2 };
    // Before anything is made: what ends the program ends this by a signal, which is waited for.
    let (Ok(signals), Some(parent)) = (Signals::take(), Pid::from_raw(order.parent)) else { return 2 };
    if sys::process::end_with(parent).is_err() {
        return 2;
    }
    let own = Own::make(&order.directory);
    let name = own
        .as_ref()
        .map_or_else(|_| format!("worstcase-cost-{}", std::process::id()), |own| own.name.clone());
    let kit = Kit { partner: order.partner, directory: own.as_ref().map(drop).map_err(Clone::clone), name };
    let kept = keep(&order, &kit, &signals);
    own.iter().for_each(Own::remove);
    match kept {
        Ok(()) => 0,
        Err(Unable(why)) => say(&Answer::Unable(why)),
    }
}

fn say(answer: &Answer) -> u8 {
    let text = serde_json::to_string(answer).unwrap_or_default();
    u8::from(writeln!(std::io::stdout(), "{text}").is_err())
}

/// Has another process work; when that ends or this is asked to end, nothing of it is left.
fn keep(order: &Order, kit: &Kit, signals: &Signals) -> Result<()> {
    let worked = work_apart(order, kit, signals);
    let _ = sys::message_queue::unlink(&kit.name);
    worked
}

/// The directory of a sample, which is the working directory of all processes that take part. It is alone in another one that
/// file systems are asked to spread directories in: where one lies decides what making a file takes, and what others left there
/// changes slowly, so samples that all lie beside the record would agree with each other and not with the next record.
struct Own {
    above: files::Directory,
    name: String,
    outer: files::Directory,
    inner: String,
}

impl Own {
    fn make(above: &Path) -> std::result::Result<Self, String> {
        let made = || {
            let above = files::Directory::open(above)?;
            let (name, outer) = above.make_own("worstcase-cost")?;
            outer.spread();
            let entered = outer.make_own("sample").and_then(|(inner, own)| own.enter().map(|()| inner));
            match entered {
                Ok(inner) => Ok(Self { above, name, outer, inner }),
                Err(error) => {
                    let _ = above.remove_empty(&name);
                    Err(error)
                }
            }
        };
        made().map_err(|error: files::Error| error.to_string())
    }

    /// Takes it away, and the files in it, which are ours.
    fn remove(&self) {
        for name in ["file", "fifo"] {
            let _ = rustix::fs::unlink(name);
        }
        let _ = self.outer.remove_empty(&self.inner);
        let _ = self.above.remove_empty(&self.name);
    }
}

fn work_apart(order: &Order, kit: &Kit, signals: &Signals) -> Result<()> {
    // Its end is seen by the end of a pipe that nobody writes to.
    let (lives, life) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at("make a pipe")?;
    let keeper = sys::process::own_pid();
    let worker = sys::process::fork(|| {
        sys::process::reset_signals();
        let bound = sys::process::new_group().and_then(|()| sys::process::die_with(Some(keeper)));
        if bound.is_err() {
            return 2;
        }
        let _life = &life;
        say(&match sample(order, kit) {
            Ok(sample) => Answer::Sample(sample),
            Err(Unable(why)) => Answer::Unable(why),
        })
    })
    .at("start a process")?;
    drop(life);
    const LONG: Duration = Duration::from_secs(3600);
    let ended = loop {
        match wait_readable(&[lives.as_fd(), signals.as_fd()], LONG) {
            Ok(ready) if ready.iter().any(|ready| *ready) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    // The group is there once the worker has made it; the worker itself is there in any case.
    let _ = sys::process::kill_group(worker);
    let _ = sys::process::kill(worker);
    let reaped = sys::process::wait(worker).at("wait for the worker")?;
    ended.at("wait for the worker")?;
    match reaped.ended {
        Ended::Exited(_) => Ok(()),
        Ended::Killed(_) => Err(Unable(format!("the process that took the sample {}", reaped.ended))),
    }
}

/// Warms up for a tenth of the length, then measures.
fn sample(order: &Order, kit: &Kit) -> Result<Sample> {
    let operation = Operation::find(&order.operation)
        .ok_or_else(|| Unable(format!("there is no operation {}", order.operation)))?;
    sys::schedule::set_affinity(0, &only(order.cpu)).at(&format!("run on CPU {}", order.cpu))?;
    let mut work = (operation.begin)(kit)?;
    let warm_up = Nanos((order.length.0 / 10).max(1));
    // Batches grow until one takes a tenth of the warm-up, so that looking at the clock between them costs nothing.
    let fixed = work.batch();
    let mut batch = fixed.unwrap_or(1);
    let mut warmed = Sum::default();
    while warmed.time < warm_up {
        let before = warmed.time;
        warmed.add(work.as_mut(), batch)?;
        if fixed.is_none() && (warmed.time - before).0 < warm_up.0 / 10 {
            batch *= 2;
        }
    }
    let mut sum = Sum::default();
    while sum.time < order.length {
        sum.add(work.as_mut(), batch)?;
    }
    // Its partners end with the process, after the answer: one that writes to a pipe that is gone would end it before.
    std::mem::forget(work);
    Ok(Sample {
        round: order.round,
        count: sum.count,
        time: sum.time,
        cpu_time: sum.cpu_time,
        switches: sum.switches,
    })
}

#[derive(Default)]
struct Sum {
    count: u64,
    time: Nanos,
    cpu_time: Nanos,
    switches: u64,
}

impl Sum {
    fn add(&mut self, work: &mut dyn Work, batch: u64) -> Result<()> {
        let clock = sys::clock::Clock::Monotonic;
        work.prepare(batch)?;
        let (used, began) = (sys::usage::together(), clock.now());
        work.run(batch)?;
        let (ended, uses) = (clock.now(), sys::usage::together());
        work.clear();
        self.count += batch;
        self.time += Nanos(ended.saturating_sub(began));
        self.cpu_time += uses.cpu_time - used.cpu_time;
        self.switches += uses.switches.saturating_sub(used.switches);
        Ok(())
    }
}
