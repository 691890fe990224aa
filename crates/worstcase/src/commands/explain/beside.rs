//! A tracer of the kernel's own that measures while `worstcase explain --live` watches: a second opinion.

use std::collections::BTreeMap;

use clap::ValueEnum;
use sys::schedule;
use trace::tracer::{Context, Kind, Plan, Running, Sample};
use units::Nanos;

use failure::{Error, Result};

/// Which tracer.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tracer {
    /// A timer and a thread of the kernel on each CPU; its threads are then those that are watched
    Timerlat,
    /// A thread of the kernel on each CPU that reads the clock without pause
    Osnoise,
    /// The same with interrupts off, one CPU after the other
    Hwlat,
}

impl Tracer {
    fn kind(self) -> Kind {
        match self {
            Self::Timerlat => Kind::Timerlat,
            Self::Osnoise => Kind::Osnoise,
            Self::Hwlat => Kind::Hwlat,
        }
    }

    /// What the names of its threads begin with, where these wait for a timer.
    pub fn waits(self) -> Option<&'static str> {
        (self == Self::Timerlat).then_some("timerlat/")
    }
}

/// A tracer that measures, and what it has said so far.
pub struct Beside {
    running: Running,
    said: Said,
}

#[derive(Debug, Default)]
struct Said {
    samples: u64,
    /// Of timerlat, at each place.
    late: BTreeMap<Context, (u64, Nanos)>,
    /// Of osnoise.
    looked: u64,
    taken: u64,
    hardware: u64,
    /// The longest of osnoise and hwlat.
    longest: Nanos,
}

impl Beside {
    /// Starts it on the CPUs of this process.
    pub fn start(tracer: Tracer) -> Result<Self> {
        let plan = Plan::usual(tracer.kind(), schedule::affinity(0)?);
        Ok(Self { running: Running::start(&plan).map_err(Error::from)?, said: Said::default() })
    }

    /// Takes what it has said since.
    pub fn look(&mut self) -> Result<()> {
        let said = &mut self.said;
        self.running.each(&mut |sample| said.add(sample)).map_err(Error::from)
    }

    /// Ends it. What it said, in lines.
    pub fn finish(mut self) -> Result<String> {
        self.look()?;
        let kind = self.running.kind();
        let mut text = self.said.words(kind);
        if !self.running.losses().is_empty() {
            text += &format!("  {kind} lost {}\n", self.running.losses());
        }
        self.running.stop().map_err(Error::from)?;
        Ok(text)
    }
}

impl Said {
    fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        match sample {
            Sample::Timerlat { context, latency, .. } => {
                let one = self.late.entry(*context).or_default();
                *one = (one.0 + 1, one.1.max(*latency));
            }
            Sample::Osnoise { runtime, noise, worst, hardware, .. } => {
                self.looked += runtime.0;
                self.taken += noise.0;
                self.hardware += hardware;
                self.longest = self.longest.max(*worst);
            }
            Sample::Hwlat { worst, .. } => self.longest = self.longest.max(*worst),
        }
    }

    fn words(&self, kind: Kind) -> String {
        let micros = |time: Nanos| format!("{:.1} us", time.0 as f64 / 1e3);
        match kind {
            _ if self.samples == 0 && kind == Kind::Hwlat => {
                "hwlat, beside: nothing took the CPU from a thread with interrupts off for 10 us or more\n"
                    .into()
            }
            _ if self.samples == 0 => format!("{kind}, beside: no sample\n"),
            Kind::Timerlat => {
                let place = |(context, (count, worst)): (&Context, &(u64, Nanos))| {
                    format!("timerlat, beside: {context}: {count} samples, worst {}\n", micros(*worst))
                };
                self.late.iter().map(place).collect()
            }
            Kind::Osnoise => format!(
                "osnoise, beside: {} samples, {:.3} % of the time was taken, {} at most at once; {} times by the \
                 machine below the kernel\n",
                self.samples,
                100.0 * self.taken as f64 / self.looked.max(1) as f64,
                micros(self.longest),
                self.hardware
            ),
            Kind::Hwlat => format!(
                "hwlat, beside: {} samples, {} at most at once with interrupts off\n",
                self.samples,
                micros(self.longest)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::CpuId;

    fn late(context: Context, latency: u64) -> Sample {
        Sample::Timerlat { cpu: CpuId(0), at: Nanos(1), number: 1, context, latency: Nanos(latency) }
    }

    #[test]
    fn the_worst_of_each_place_is_said_and_silence_is_no_good_news_but_of_hwlat() {
        let mut said = Said::default();
        assert_eq!(said.words(Kind::Timerlat), "timerlat, beside: no sample\n");
        assert!(said.words(Kind::Hwlat).contains("nothing took the CPU"));
        for sample in
            [late(Context::Thread, 9_100), late(Context::Interrupt, 1_000), late(Context::Thread, 500)]
        {
            said.add(&sample);
        }
        let text = said.words(Kind::Timerlat);
        assert!(text.contains("interrupt: 1 samples, worst 1.0 us"), "{text}");
        assert!(text.contains("thread: 2 samples, worst 9.1 us"), "{text}");
    }
}
