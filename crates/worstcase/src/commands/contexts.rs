//! What has the kernel measure beside a run: timerlat.

use failure::{Error, Result};
use runner::{ContextSample, ContextTracer};
use trace::tracer::{Context, Plan, Running, Sample, Timerlat};
use units::{CpuList, Nanos};

struct OfTimerlat(Running);

/// For [`runner::Means`].
pub fn make(cpus: &CpuList, period: Nanos) -> Result<Box<dyn ContextTracer>> {
    let plan = Plan::Timerlat(Timerlat::every(cpus.clone(), period));
    let mut running = Running::start(&plan).map_err(Error::from)?;
    running.instance().leave_names_out();
    Ok(Box::new(OfTimerlat(running)))
}

impl ContextTracer for OfTimerlat {
    fn read(&mut self, see: &mut dyn FnMut(ContextSample)) -> Result<()> {
        let read = self.0.each(&mut |sample| {
            if let Some(sample) = of_context(sample) {
                see(sample);
            }
        });
        read.map_err(Error::from)
    }

    fn lost(&self) -> Option<String> {
        let losses = self.0.losses();
        (!losses.is_empty()).then(|| format!("lost {losses}"))
    }

    fn stop(self: Box<Self>) -> Result<()> {
        self.0.stop().map_err(Error::from)
    }
}

/// A sample of interrupt or thread.
fn of_context(sample: &Sample) -> Option<ContextSample> {
    let Sample::Timerlat { cpu, at, context, latency, .. } = *sample else { return None };
    let in_interrupt = match context {
        Context::Interrupt => true,
        Context::Thread => false,
        // Of a program that reads timerlat_fd: none does here.
        Context::User => return None,
    };
    Some(ContextSample { cpu, at, in_interrupt, latency })
}
