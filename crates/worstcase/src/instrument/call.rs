//! The options of `--probe call`.

use clap::Args;
use failure::Error;
use probe::call::{CALLS, Known};
use record::InstrumentPlan;
use record::instrument::call::{CallPlan, ChosenCall};
use units::{CpuList, Nanos};

use super::{Common, Options, refuse};
use crate::lengths::between;

/// What stands for each call that the machine can make.
const ALL: &str = "all";
const CALL: &str = "Calls of the kernel (--probe call)";

/// Which calls, beside what.
#[derive(Args, Clone, Debug)]
pub struct CallOptions {
    /// Calls to measure, each in a scenario, as in pi-mutex,eventfd; `all` for each that this machine can make, but hpet, uio,
    /// uio-event and vfio, which take a device [default: pi-mutex]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = known, help_heading = CALL)]
    calls: Vec<String>,

    /// How long the thread between the two that want a mutex computes; 0us for none [default: 200us]
    #[arg(long, value_name = "TIME", value_parser = burst, help_heading = CALL)]
    burst: Option<Nanos>,

    /// CPUs on which other threads may run, for calls across two CPUs; one and the same as the measured CPU: none across
    /// [default: all that this process may use]
    #[arg(long, value_name = "LIST", help_heading = CALL)]
    partners: Option<CpuList>,
}

impl Options for CallOptions {
    fn given(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("--calls", !self.calls.is_empty()),
            ("--burst", self.burst.is_some()),
            ("--partners", self.partners.is_some()),
        ]
    }

    fn plan(&self, common: &Common) -> Result<InstrumentPlan, Error> {
        let interval = common.intervals.single("call")?;
        refuse(&[("--samples", common.has_samples)], "--probe call: it measures for a time")?;
        let burst = self.burst.unwrap_or(CallPlan::BURST);
        if burst.0 > interval.0 / 2 {
            let message = format!("--burst {burst} is more than half of the interval of {interval}");
            return Err(Error::new(message, "choose a longer --interval"));
        }
        let partners = match &self.partners {
            Some(cpus) => cpus.clone(),
            None => sys::schedule::affinity(0)?,
        };
        let calls = self.chosen(partners.len() > 1);
        let all = self.calls.iter().any(|name| name == ALL);
        Ok(InstrumentPlan::Call(CallPlan { calls, all, interval, burst, partners }))
    }
}

impl CallOptions {
    fn chosen(&self, has_second: bool) -> Vec<ChosenCall> {
        let is_chosen = |known: &&Known| match &self.calls[..] {
            [] => known.name == CallPlan::USUAL,
            names => names.iter().any(|name| match &**name {
                ALL => known.is_in_all(),
                name => name == known.name,
            }),
        };
        let places = |known: &'static Known| {
            let place = |across| ChosenCall { call: known.name.to_owned(), across };
            let alone = known.alone.then(|| place(false));
            alone.into_iter().chain((known.across && has_second).then(|| place(true)))
        };
        CALLS.iter().filter(is_chosen).flat_map(places).collect()
    }
}

fn known(name: &str) -> Result<String, String> {
    if name == ALL || Known::find(name).is_some() {
        return Ok(name.to_owned());
    }
    let names: Vec<_> = CALLS.iter().map(|call| call.name).collect();
    Err(format!("`{name}` is none of all, {}", names.join(", ")))
}

fn burst(text: &str) -> Result<Nanos, String> {
    between(text, Nanos::ZERO, Nanos::from_millis(100), "0us to 100ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_measured_where_it_can_be_made() {
        let options = |names: &[&str]| CallOptions {
            calls: names.iter().map(|name| (*name).to_owned()).collect(),
            burst: None,
            partners: None,
        };
        let places = |names: &[&str], has_second| -> Vec<(String, bool)> {
            options(names).chosen(has_second).into_iter().map(|chosen| (chosen.call, chosen.across)).collect()
        };
        assert_eq!(places(&[], false), [("pi-mutex".to_owned(), false)]);
        assert_eq!(places(&["eventfd"], true), [("eventfd".to_owned(), false), ("eventfd".to_owned(), true)]);
        assert_eq!(places(&["shootdown"], false), []);
        assert!(places(&["all"], true).len() > CALLS.len());
        assert!(known("eventfds").is_err());
    }
}
