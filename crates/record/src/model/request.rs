//! What is asked of a run, before it is known what the machine has.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::{CpuList, Nanos, Policy, Priority, Seed};

use super::instrument::timer::TimerPlan;
use super::{CStates, InstrumentPlan, LoadProof};

/// Everything that a run is made from: what `bench` and `measure` make of their options, and what passes to a process or a
/// guest that measures. On a machine it becomes a [`super::RunPlan`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// The instrument, and what is asked of it.
    pub instrument: InstrumentPlan,
    /// Loads by name, one after the other.
    pub loads: Vec<String>,
    /// A command as a further load.
    pub command: Option<CommandLoad>,
    /// Whether loads that cannot write where they should are left out; otherwise that is an error.
    pub may_leave_out: bool,
    /// The CPUs to measure; none for all that may be used.
    pub cpus: Option<CpuList>,
    /// The partition that the probe is put into, by its directory or the end of it.
    pub partition: Option<String>,
    /// The CPUs on which load workers run; none for all that are not isolated.
    pub load_cpus: Option<CpuList>,
    /// Where loads write; none for the working directory.
    pub load_directory: Option<PathBuf>,
    /// The user whom load workers and commands run as, by name or by number; none for this one, without privileges.
    pub load_user: Option<String>,
    /// Length of one scenario; none where `samples` or the user ends it.
    pub duration: Option<Nanos>,
    /// Activations that every CPU delivers in one scenario.
    pub samples: Option<u64>,
    /// Length of the warm-up before each scenario.
    pub warm_up: Nanos,
    /// Scheduling policy of the measuring threads.
    pub policy: Policy,
    /// Priority; none for a policy without.
    pub priority: Option<Priority>,
    /// The C-state policies, each measured under each load.
    pub cstates: Vec<CStates>,
    /// How often each scenario is measured: 1 or more.
    pub repeat: u32,
    /// From which everything random is drawn; none for one that differs from run to run.
    pub seed: Option<Seed>,
    /// The requirement: a value above it is a failure.
    pub limit: Option<Nanos>,
    /// A value that ends the run.
    pub stop_at: Option<Nanos>,
    /// The time without a CPU for ordinary threads that ends the run; none: it goes on.
    pub fail_safe: Option<Nanos>,
    /// For the shell, when `stop_at` is reached.
    pub stop_command: Option<String>,
    /// The temperature that ends the run, in degrees Celsius.
    pub max_temperature: Option<i64>,
    /// Whether the CPUs' own counters of instructions, cycles and misses are read.
    pub perf: bool,
    /// The named set of options that the run began with.
    pub preset: Option<String>,
    /// How many of each scenario's worst wake-ups are explained, in a second pass that is traced; none: no such pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<u32>,
    /// Words to keep with the record.
    pub note: Option<String>,
    /// Where the record goes; none: nowhere.
    pub out: Option<Out>,
    /// File of every sample.
    pub samples_file: Option<PathBuf>,
}

impl Request {
    /// The first argument by which a worstcase binary knows that its second one is a request, and nothing else is wanted.
    pub const ARGUMENT: &str = "__measure";

    /// The arguments that make a worstcase binary measure this.
    ///
    /// # Errors
    /// As for [`message`].
    pub fn arguments(&self) -> failure::Result<[String; 2]> {
        message(Self::ARGUMENT, self)
    }
}

/// The arguments of a worstcase binary that is to do what `content` says: `argument`, and that as JSON.
///
/// # Errors
/// A path in it that is not UTF-8.
pub fn message(argument: &str, content: &impl Serialize) -> failure::Result<[String; 2]> {
    let text = serde_json::to_string(content).map_err(|error| {
        let hint = "choose directories and files whose names are UTF-8";
        failure::Error::new(format!("send a request to another process: {error}"), hint).caused_by(error)
    })?;
    Ok([argument.to_owned(), text])
}

/// A command of the user's own as a load, run by the shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandLoad {
    /// For the shell.
    pub command: String,
    /// By what it is known to run; none for its CPU time.
    pub proof: Option<LoadProof>,
}

/// Where a record goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Out {
    /// A new directory named after time and host: in the working directory, or where that cannot be written in /run,
    /// /dev/shm or /tmp.
    Named,
    /// The same, or none where none of these can be written.
    IfPossible,
    /// This directory, which is made.
    Directory(PathBuf),
}

/// The time without a CPU for ordinary threads that ends a run where nothing else is asked for: long enough for a busy machine,
/// and short enough for whoever waits for a shell.
pub const FAIL_SAFE: Nanos = Nanos::from_secs(10);

/// The defaults of `bench`, but for its loads: SCHED_FIFO 98 (above interrupt threads, which have 50, and below 99, which
/// the kernel's watchdog and migration threads keep for themselves), 1 s of warm-up, an idle machine, a timer every 1 ms.
impl Request {
    /// The loads of bench unless others are asked for: those of Enea's tables.
    pub const BENCH_LOADS: [&'static str; 6] = ["idle", "cpu", "io", "vm", "hdd", "full"];
    /// Length of a scenario of bench unless another is asked for.
    pub const BENCH_DURATION: Nanos = Nanos::from_secs(10);
}

impl Default for Request {
    fn default() -> Self {
        Self {
            instrument: InstrumentPlan::Timer(TimerPlan {
                intervals: vec![Nanos::from_millis(1)],
                ..TimerPlan::default()
            }),
            loads: vec!["idle".into()],
            command: None,
            may_leave_out: false,
            cpus: None,
            partition: None,
            load_cpus: None,
            load_directory: None,
            load_user: None,
            duration: None,
            samples: None,
            warm_up: Nanos::from_secs(1),
            policy: Policy::Fifo,
            priority: Priority::try_from(98).ok(),
            cstates: vec![CStates::AsIs],
            repeat: 1,
            seed: None,
            limit: None,
            stop_at: None,
            fail_safe: Some(FAIL_SAFE),
            stop_command: None,
            max_temperature: None,
            perf: false,
            preset: None,
            explain: None,
            note: None,
            out: None,
            samples_file: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_out_of_its_text_as_it_went_in() {
        let request = Request {
            command: Some(CommandLoad { command: "make -j4".into(), proof: Some(LoadProof::Work) }),
            cpus: "0-3".parse().ok(),
            seed: Some(Seed(7)),
            out: Some(Out::Directory("there".into())),
            ..Request::default()
        };
        let [_, text] = request.arguments().unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
        assert_eq!(serde_json::from_str::<Request>("{}").unwrap(), Request::default());
    }

    #[test]
    fn a_request_that_cannot_be_sent_is_an_error_and_no_empty_message() {
        use std::os::unix::ffi::OsStringExt;
        let path = PathBuf::from(std::ffi::OsString::from_vec(vec![b'a', 0xff]));
        let request = Request { out: Some(Out::Directory(path)), ..Request::default() };
        let error = request.arguments().unwrap_err();
        assert!(error.message.contains("UTF-8") && !error.hint.is_empty(), "{error:?}");
    }
}
