//! Workers: what each does after it has been forked off.
//!
//! A worker is an ordinary process: `SCHED_OTHER`, nice 0, on the load's CPUs, first to go when memory runs out, bound
//! in what it may map, and killed when its parent ends. It works for ever and counts on the board what it has done.
//!
//! A stressor is one file here: a type with its options, as `loads/*.toml` gives them, that is [`BuiltIn`]. It stands in
//! the list below, and nobody else knows it.

pub(crate) mod about;
mod copy;
mod counters;
mod cpu;
mod crowd;
mod disk;
mod files;
mod hackbench;
mod hdd;
mod io;
mod network;
mod scratch;
mod vm;
mod worker;

use serde::{Deserialize, Serialize};

pub(crate) use about::About;
pub(crate) use files::has_unnamed_files;
pub(crate) use scratch::Scratch;
pub(crate) use worker::{Space, Surroundings, Worker};

use worker::BuiltIn;

use crate::program::Program;

/// [`Work`], from the list of stressors.
macro_rules! stressors {
    ($($module:ident::$stressor:ident),* $(,)?) => {
        /// What a worker does, for ever.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub enum Work {
            $(
                #[doc = concat!("The stressor `", stringify!($module), "`.")]
                $stressor($module::$stressor),
            )*
            /// A program that is not ours.
            Program(Program),
        }

        impl Work {
            /// What its stressor says of itself.
            pub(crate) fn about(&self) -> About {
                match self {
                    $(Self::$stressor(stressor) => stressor.about(),)*
                    Self::Program(program) => program.about(),
                }
            }

            /// Does the work, and returns only why it cannot go on.
            pub(crate) fn run(&self, worker: &mut Worker<'_>) -> String {
                match self {
                    $(Self::$stressor(stressor) => stressor.run(worker),)*
                    Self::Program(_) => "a program is not built in".to_owned(),
                }
            }
        }
    };
}

// The stressors, each by its module and its type; in `loads/*.toml` the type's name in kebab-case.
stressors! {
    cpu::Cpu,
    io::Io,
    vm::Vm,
    hdd::Hdd,
    disk::Disk,
    copy::Copy,
    hackbench::Hackbench,
    network::Network,
    crowd::Crowd,
}
