//! What lasts a whole run: the plan, the machine, its CPUs, the loads, the signals, the outputs.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;

use control::LatencyRequest;
use load::Load;
use machine::KernelLog;
use record::time::UtcTime;
use record::{CStates, Header, Held, LoadDirectory, Machine, Request, RunPlan, SCHEMA_VERSION, Tool};
use sys::signal::{Signal, Signals};
use sysroot::SysRoot;

use crate::contexts::MakeContextTracer;
use crate::division::{Claims, Division};
use crate::guest;
use crate::outputs::Outputs;
use crate::plan::{self, Means};
use crate::program::program;
use crate::tracer::MakeTracer;
use failure::{Error, Result};

/// A run that is going on.
pub struct Session {
    /// The live machine.
    pub root: SysRoot,
    /// Plan, machine and all that the record begins with.
    pub header: Header,
    /// The CPUs.
    pub division: Division,
    /// What probe and load are started from.
    pub program: PathBuf,
    /// The loads that are known: the catalogue and commands of the user's own.
    pub loads: Vec<Load>,
    /// Where they write.
    pub directory: Option<LoadDirectory>,
    /// Whom they run as.
    pub load_user: Option<load::User>,
    /// Ctrl-C and the like.
    pub signals: Signals,
    /// The highest temperature allowed, in thousandths of a degree.
    pub max_temperature: Option<i64>,
    /// For the shell, when --stop-at is reached.
    pub stop_command: Option<String>,
    /// Why that command failed, if it did.
    pub stop_failure: Option<Error>,
    /// Why not all was explained that should be.
    pub explanation_failure: Option<Error>,
    /// How many of the worst wake-ups are explained, by what; none where none is.
    pub explain: Option<(usize, MakeTracer)>,
    /// What has the kernel measure beside; none where it does not.
    pub contexts: Option<MakeContextTracer>,
    /// The kernel's log from the run's start.
    pub kernel_log: KernelLog,
    /// Whether a signal has asked the run to end.
    pub asked_to_end: bool,
    /// When the run began.
    pub began: Instant,
    /// What is written.
    pub outputs: Outputs,
    _claims: Claims,
}

impl Session {
    /// Looks at the machine, makes a plan of the request, claims the CPUs, and begins the record.
    ///
    /// # Errors
    /// What cannot be measured as asked, with a hint.
    pub fn begin(request: Request, means: &Means) -> Result<Self> {
        let program = program(means.program.as_deref())?;
        let root = SysRoot::live();
        let machine = guest::machine(&root)?;
        let division = Division::asked(&root, &machine, &request)?;
        let loads = plan::known_loads(&request)?;
        let mut plan = plan::plan(&request, &division, &loads)?;
        plan::restrict(&mut plan, machine::has_idle_states(&root));
        let directory = plan::directory(&request, &mut plan, &loads)?;
        let explain = plan::explain(&request, means)?;
        let contexts = plan::contexts(&plan, means)?;
        let load_user = request.load_user.as_deref().map(plan::load_user).transpose()?;
        // Before there is a record: from then on a signal ends the run as one, not the process.
        let signals = Signals::take()?;
        let mut claims = Claims::on(&division.measured)?;
        plan.claimed_by_others = std::mem::take(&mut claims.by_others);
        let mut header = header(plan, machine, request.note);
        header.tuned = means.tuned.and_then(|tuned| tuned());
        let outputs = Outputs::begin(&header, request.out, request.samples_file, means.page)?;
        let kernel_log = KernelLog::open(&root);
        // Keeps off the measured CPUs where there are others.
        let _ = sys::schedule::set_affinity(0, &division.own);
        Ok(Self {
            root,
            header,
            division,
            program,
            loads,
            directory,
            load_user,
            signals,
            max_temperature: request.max_temperature.map(|degrees| degrees * 1000),
            stop_command: request.stop_command,
            stop_failure: None,
            explanation_failure: None,
            explain,
            contexts,
            kernel_log,
            asked_to_end: false,
            began: Instant::now(),
            outputs,
            _claims: claims,
        })
    }

    /// Whether a signal has asked the run to end, until now or at this moment. A request for a look is dropped: nothing
    /// is measured.
    pub fn was_asked_to_end(&mut self) -> bool {
        while let Some(signal) = self.signals.next() {
            self.asked_to_end |= signal != Signal::User1;
        }
        self.asked_to_end
    }

    /// Whether another signal than a request for a look has come since the last one was taken.
    pub fn has_signal(&mut self) -> bool {
        let signals = std::iter::from_fn(|| self.signals.next());
        signals.filter(|signal| *signal != Signal::User1).count() > 0
    }

    /// Whether somebody still looks. A view that could not be shown ends the run and weighs in its verdict.
    pub fn is_watched(&mut self, shown: Result<bool>) -> bool {
        shown.unwrap_or_else(|error| {
            self.outputs.lost(error.message);
            false
        })
    }
}

/// What the record begins with.
fn header(plan: RunPlan, mut machine: Machine, note: Option<String>) -> Header {
    machine.terminal = terminal();
    Header {
        schema_version: SCHEMA_VERSION,
        tool: tool(),
        command_line: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        note,
        started: UtcTime(sys::clock::unix_seconds()),
        held: held(&plan),
        tuned: None,
        machine,
        plan,
    }
}

/// The terminal that progress or results are shown on, if it is one.
fn terminal() -> Option<String> {
    let name = |stream: &dyn AsFd| rustix::termios::ttyname(stream.as_fd(), Vec::new()).ok();
    let name = name(&std::io::stdout()).or_else(|| name(&std::io::stderr()))?;
    Some(name.to_string_lossy().into_owned())
}

/// This program, as records name it.
pub fn tool() -> Tool {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let linking = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    Tool {
        version: env!("CARGO_PKG_VERSION").into(),
        build: format!("{}-linux-{libc} {linking} {profile}", std::env::consts::ARCH),
    }
}

/// Settings that the run will hold, for the header; what they came to is read back when they are held.
fn held(plan: &RunPlan) -> Vec<Held> {
    if !plan.cstates.contains(&CStates::Restrict) {
        return Vec::new();
    }
    let effective = LatencyRequest::hold(0)
        .map_or_else(|error| error.to_string(), |request| request.effective().to_string());
    vec![Held {
        what: machine::latency_request::PATH.into(),
        value: "0".into(),
        effective,
        during: "scenarios with restricted C-states".into(),
    }]
}
