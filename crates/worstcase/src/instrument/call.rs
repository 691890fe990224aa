//! The options of `--probe call`.

use clap::Args;
use failure::Error;
use probe::call::{CALLS, Known};
use record::InstrumentPlan;
use record::instrument::call::{CallPlan, CallsLeftOut, ChosenCall};
use units::{CpuList, InOrder, Nanos};

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
        let own = sys::schedule::affinity(0)?;
        let place = Place::of(self.partners.as_ref(), common.cpus.as_ref().unwrap_or(&own), &own);
        let (calls, left_out) = self.chosen(&place)?;
        let all = self.calls.iter().any(|name| name == ALL);
        let partners = self.partners.clone().unwrap_or(own);
        Ok(InstrumentPlan::Call(CallPlan { calls, all, interval, burst, partners, left_out }))
    }
}

/// Whether calls can be made across two CPUs.
struct Place {
    /// Why they cannot, if they cannot.
    no_second: Option<String>,
    /// Whether other threads are to have the measured CPU.
    is_wanted: bool,
}

impl Place {
    /// With the partners that were named, from the CPUs `measured`, by a process that may use `own`.
    fn of(named: Option<&CpuList>, measured: &CpuList, own: &CpuList) -> Self {
        let partners = named.unwrap_or(own);
        let lonely = measured.iter().find(|cpu| partners.iter().all(|partner| partner == *cpu));
        let no_second = lonely.map(|cpu| match named {
            Some(_) => format!("--partners has no other CPU than CPU {cpu}, which is measured"),
            None => format!("this process may use CPU {cpu} alone, and the other thread needs a second one"),
        });
        Self { is_wanted: named.is_some() && no_second.is_some(), no_second }
    }
}

impl CallOptions {
    /// The calls that can be made, and those that cannot.
    ///
    /// # Errors
    /// One that was named cannot be made at all.
    fn chosen(&self, place: &Place) -> Result<(Vec<ChosenCall>, Vec<CallsLeftOut>), Error> {
        let is_named = |known: &Known| match &self.calls[..] {
            [] => known.name == CallPlan::USUAL,
            names => names.iter().any(|name| name == known.name),
        };
        let is_all = self.calls.iter().any(|name| name == ALL);
        let (mut calls, mut left_out) = (Vec::new(), Vec::<CallsLeftOut>::new());
        let mut leave_out = |chosen: &ChosenCall, why: &str| {
            let name = chosen.to_string();
            match left_out.iter_mut().find(|one| one.why == why) {
                Some(same) => same.calls.push(name),
                None => left_out.push(CallsLeftOut { calls: vec![name], why: why.to_owned() }),
            }
        };
        let is_wanted = |known: &&Known| is_named(known) || is_all && !known.takes_a_device();
        for known in CALLS.iter().filter(is_wanted) {
            let of = |across| ChosenCall { call: known.name.to_owned(), across };
            let no_second = place.no_second.as_deref();
            let why = known.hindrance().or(no_second.filter(|_| !known.alone));
            match why {
                Some(why) if is_named(known) => {
                    let hint = "leave it out; `--calls all` measures each that can be made here";
                    return Err(Error::new(format!("--calls {}: {why}", known.name), hint));
                }
                Some(why) => leave_out(&of(!known.alone), why),
                None => {
                    calls.extend(known.alone.then(|| of(false)));
                    match no_second {
                        None => calls.extend(known.across.then(|| of(true))),
                        Some(why) if known.across && !place.is_wanted => leave_out(&of(true), why),
                        Some(_) => {}
                    }
                }
            }
        }
        // First those of which nothing is measured at all.
        let is_made_elsewhere = |name: &String| calls.iter().any(|made| name.starts_with(&*made.call));
        left_out.iter_mut().for_each(|one| one.calls.order_by_key(is_made_elsewhere));
        Ok((calls, left_out))
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

    fn options(names: &[&str]) -> CallOptions {
        let calls = names.iter().map(|name| (*name).to_owned()).collect();
        CallOptions { calls, burst: None, partners: None }
    }

    fn place(partners: Option<&str>, measured: &str, own: &str) -> Place {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        Place::of(partners.map(list).as_ref(), &list(measured), &list(own))
    }

    #[test]
    fn each_call_is_measured_where_it_can_be_made() {
        let (one, two) = (place(None, "1", "1"), place(None, "0,1", "0,1"));
        let places = |names: &[&str], place: &Place| -> Vec<String> {
            options(names).chosen(place).unwrap().0.iter().map(ToString::to_string).collect()
        };
        assert_eq!(places(&[], &one), ["pi-mutex"]);
        assert_eq!(places(&["eventfd"], &two), ["eventfd", "eventfd across"]);
        // The other thread's CPU may be one that is not measured.
        assert_eq!(places(&["shootdown"], &place(Some("1"), "0", "0,1")), ["shootdown across"]);
        assert_eq!(places(&["eventfd"], &place(Some("0"), "0,1", "0,1")), ["eventfd"]);
        assert!(places(&["all"], &two).len() > CALLS.len());
        assert!(known("eventfds").is_err());
    }

    #[test]
    fn a_call_that_cannot_be_made_is_named_with_the_reason() {
        let one = place(None, "1", "1");
        let error = options(&["futex", "runtime-spin"]).chosen(&one).unwrap_err();
        assert!(
            error.message.contains("runtime-spin: this process may use CPU 1 alone"),
            "{}",
            error.message
        );
        let (calls, left_out) = options(&["all"]).chosen(&one).unwrap();
        for known in CALLS.iter().filter(|known| !known.takes_a_device()) {
            for across in
                [false, true].into_iter().filter(|&across| if across { known.across } else { known.alone })
            {
                let chosen = ChosenCall { call: known.name.to_owned(), across };
                let is_said = left_out.iter().any(|one| one.calls.contains(&chosen.to_string()));
                let is_said = is_said || known.hindrance().is_some();
                assert!(calls.contains(&chosen) != is_said || known.hindrance().is_some(), "{chosen}");
            }
        }
        // Who names the measured CPU for the other thread wants nothing across.
        let wanted = options(&["futex"]).chosen(&place(Some("0"), "0", "0,1")).unwrap();
        assert_eq!((wanted.0.len(), wanted.1.len()), (1, 0));
    }
}
