//! The kernel's own tracers that measure: timerlat, osnoise and hwlat (Documentation/trace/timerlat-tracer.rst,
//! osnoise-tracer.rst, hwlat_detector.rst).
//!
//! Each measures with threads of the kernel, which have the CPU that they measure: a second opinion beside our own threads, never
//! at the same time for the same figure. A tracer writes into an instance of its own ([`Instance`]); its settings are the
//! machine's, so they are read, set, and put back when [`Running`] is dropped, or by a child if the process is killed (where it
//! has one thread when it starts the tracer).
//!
//! ```no_run
//! use trace::tracer::{Plan, Running, Sample, Timerlat};
//!
//! # fn main() -> trace::Result<()> {
//! let mut timerlat = Running::start(&Plan::Timerlat(Timerlat::every("0-1".parse().unwrap(), units::Nanos(1_000_000))))?;
//! std::thread::sleep(std::time::Duration::from_secs(1));
//! timerlat.each(&mut |sample| {
//!     if let Sample::Timerlat { cpu, context, latency, .. } = sample {
//!         println!("{cpu} {context} {latency}");
//!     }
//! })?;
//! # Ok(()) }
//! ```

mod plan;
mod sample;

use control::{Changes, Live};
use record::Fact;
use sysroot::SysRoot;

pub use plan::{Hwlat, Kind, Osnoise, Plan, Timerlat};
pub use sample::{Context, Sample};

use crate::error::{Error, Result};
use crate::event::{Item, Losses};
use crate::live::{Form, Instance, place};

/// The tracers of this kernel that are known here.
///
/// # Errors
/// There is no tracefs, or it cannot be read.
pub fn available(root: &SysRoot) -> Result<Vec<Kind>> {
    let path = format!("{}/available_tracers", place(root)?);
    match root.read(&path) {
        Fact::Value(text) => {
            let has = |kind: &Kind| text.split_whitespace().any(|name| name == kind.name());
            Ok(Kind::ALL.into_iter().filter(has).collect())
        }
        fact => Err(Error::new("read", path, fact)),
    }
}

/// A tracer that measures. Dropped, it ends, and the machine has the settings that it had.
pub struct Running {
    kind: Kind,
    /// Before the settings: while the tracer runs, the kernel starts its threads again at each of them.
    instance: Instance,
    settings: Settings,
    losses: Losses,
}

/// Settings of the machine, which are put back when this is dropped.
struct Settings(Changes);

impl Settings {
    fn plan(plan: &Plan, top: &str) -> Result<Self> {
        let files = plan.files().into_iter().map(|(file, value)| (format!("{top}/{file}"), value));
        let planned = Changes::plan(&Live::default(), files);
        planned.map(Self).map_err(|(path, fact)| Error::new("read", path, fact))
    }

    fn make(&self, kind: Kind) -> Result<()> {
        let made = self.0.make(&mut Live::default());
        made.map_err(|(path, errno)| {
            Error::new("write", path, std::io::Error::from(errno)).hint(kind.limits())
        })
    }

    fn put_back(&self) -> Result<()> {
        let put_back = self.0.put_back(&mut Live::default());
        put_back.map_err(|(path, errno)| Error::new("write", path, std::io::Error::from(errno)))
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // Nothing can be done about a refusal here; `Running::stop` gives it.
        let _ = self.put_back();
    }
}

impl Running {
    /// Starts one in an instance of its own.
    ///
    /// # Errors
    /// There is no tracefs, the kernel lacks the tracer, somebody else uses it, or the kernel refuses a setting.
    pub fn start(plan: &Plan) -> Result<Self> {
        let root = SysRoot::live();
        let kind = plan.kind();
        if !available(&root)?.contains(&kind) {
            let path = format!("{}/available_tracers", place(&root)?);
            let reason = format!("the kernel has no tracer {kind}");
            return Err(Error::new("find", path, reason).hint(kind.needs()));
        }
        let settings = Settings::plan(plan, place(&root)?)?;
        let to_put_back = settings.0.clone();
        // The child that removes the instance if this process is killed puts the settings back then.
        let mut instance = Instance::make_with(None, move || {
            let _ = to_put_back.put_back(&mut Live::default());
        })?;
        settings.make(kind)?;
        instance.add_format(kind.event())?;
        if let Some(cpus) = plan.mask() {
            instance.write("tracing_cpumask", &cpus.to_mask())?;
        }
        let started = instance.write("current_tracer", kind.name());
        started
            .map_err(|error| error.hint(format!("somebody else may use {kind} or its sibling: end rtla")))?;
        instance.open(Form::Binary)?;
        Ok(Self { kind, instance, settings, losses: Losses::default() })
    }

    /// Which it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its instance: more events can be enabled in it, and are in its stream beside the samples.
    pub fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }

    /// Shows the samples that came since, in order of time; none are waited for.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn each(&mut self, see: &mut dyn FnMut(&Sample)) -> Result<()> {
        let losses = &mut self.losses;
        self.instance.each(&mut |item| match item {
            Item::Event(event) => {
                if let Some(sample) = Sample::of(event) {
                    see(&sample);
                }
            }
            Item::Lost(lost) => losses.add(lost),
        })
    }

    /// Samples and other events that were overwritten before they were read: figures are then of a part only.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Whether a threshold of the plan was met: the kernel then records no more.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn has_stopped(&self) -> Result<bool> {
        match self.instance.read("tracing_on") {
            Fact::Value(text) => Ok(text.trim() == "0"),
            fact => Err(Error::new("read", format!("{}/tracing_on", self.instance.directory()), fact)),
        }
    }

    /// Ends it and puts the settings back.
    ///
    /// # Errors
    /// A setting that could not be put back.
    pub fn stop(self) -> Result<()> {
        let Self { instance, settings, .. } = self;
        drop(instance);
        settings.put_back()
    }
}
