//! The kernel's trace for as long as something is counted by it.

use machine::activity::Tally;
use record::Fact;
use sysroot::SysRoot;
use units::CpuList;

use crate::counted::{self, EVENTS, Traced};
use crate::live::{Form, Instance};
use crate::{Error, Item, Losses, Result, Symbols};

/// An instance whose events are counted; it is taken away when this is dropped.
pub struct Counting {
    instance: Instance,
    symbols: Symbols,
    lacking: Vec<&'static Traced>,
    histogram: Option<String>,
    lost: Losses,
    failed: Option<String>,
}

impl Counting {
    /// Begins to trace what happens on `cpus`.
    ///
    /// # Errors
    /// Why that cannot be done here, in words.
    pub fn begin(cpus: &CpuList) -> std::result::Result<Self, String> {
        let symbols = Symbols::live(&SysRoot::live()).unwrap_or_default();
        let instance = Instance::make(None).map_err(in_words)?;
        let (lacking, lost) = (Vec::new(), Losses::default());
        let mut counting = Self { instance, symbols, lacking, histogram: None, lost, failed: None };
        // The kernel prints names of functions also where it hides their addresses.
        let form = if counting.symbols.is_empty() { Form::Text } else { Form::Binary };
        counting.instance.open(form).map_err(in_words)?;
        counting.enable(cpus).map_err(in_words)?;
        Ok(counting)
    }

    fn enable(&mut self, cpus: &CpuList) -> Result<()> {
        for traced in &EVENTS {
            if !self.instance.has(traced.event) {
                self.lacking.push(traced);
            } else if !self.is_counted_by_the_kernel(traced, cpus) {
                self.instance.enable(traced.event, traced.filter(cpus).as_deref())?;
            }
        }
        Ok(())
    }

    /// Not every kernel can: then each event is read.
    fn is_counted_by_the_kernel(&mut self, traced: &Traced, cpus: &CpuList) -> bool {
        let Some(histogram) = traced.histogram(cpus) else { return false };
        let event = format!("events/{}", traced.event);
        let is_counted = self.instance.write(&format!("{event}/trigger"), &histogram).is_ok();
        self.histogram = is_counted.then(|| format!("{event}/hist"));
        is_counted
    }

    /// Events that this kernel does not have.
    pub fn lacking(&self) -> &[&'static Traced] {
        &self.lacking
    }

    /// Leaves out what has happened so far.
    pub fn forget(&mut self) {
        self.each(&mut |_, _, _| {});
        self.lost = Losses::default();
    }

    /// Adds what has happened since.
    pub fn count(&mut self, tally: &mut Tally) {
        self.each(&mut |item, symbols, lost| match item {
            Item::Event(event) => counted::add(tally, event, symbols),
            Item::Lost(events) => lost.add(events),
        });
    }

    fn each(&mut self, see: &mut dyn FnMut(&Item<'_>, &Symbols, &mut Losses)) {
        let (symbols, lost) = (&self.symbols, &mut self.lost);
        if let Err(error) = self.instance.each(&mut |item| see(item, symbols, lost)) {
            self.failed.get_or_insert(error.to_string());
        }
    }

    /// Adds what the kernel has counted itself; how many system calls it had no room for.
    pub fn count_histogram(&mut self, tally: &mut Tally) -> u64 {
        let Some(path) = &self.histogram else { return 0 };
        match self.instance.read(path) {
            Fact::Value(text) => counted::add_histogram(tally, &text),
            fact => {
                self.failed.get_or_insert(format!("read {path}: {fact}"));
                0
            }
        }
    }

    /// Events that were not read in time.
    pub fn lost(&self) -> &Losses {
        &self.lost
    }

    /// Why the trace could not be read to its end.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}

fn in_words(error: Error) -> String {
    match error.hint.as_str() {
        "" => error.to_string(),
        hint => format!("{error}: {hint}"),
    }
}
