//! Tests that run in a guest, as root, with the kernel, the kernel parameters and the CPUs that they ask for.
//!
//! ```no_run
//! use guest_tests::Guests;
//!
//! static ISOLATED: Guests = Guests::new("debian-6.1-amd64", "isolcpus=1 nohz_full=1").processors(2);
//!
//! #[test]
//! fn an_isolated_cpu_is_seen() {
//!     ISOLATED.run(|| {
//!         let list = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap();
//!         assert_eq!(list.trim(), "1");
//!     });
//! }
//! ```
//!
//! The test binary itself is put into the guest, with its libraries, and runs there twice: as process 1, which is the
//! lab's own, and as the command, with the tests that were asked for. Those of this guest do what they are for, those of
//! another guest nothing. On the host the first test boots the guest, and each one takes its own result from what came back: a
//! test that failed in the guest fails here with what it printed there. So one boot serves all tests with one [`Guests`].
//! An executable with such tests has no others, since all of them are started in every guest; its name begins with `serial_`.
//!
//! Guests run in wall time unless a test asks for instructions: what they prove is that something works, never how fast it is.
#![allow(clippy::print_stdout)]

mod report;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use lab::boot::{self, Device, Guest, Time, Under};
use lab::kernels::{self, Architecture, Cache, Kernel};
use record::Lab;
use units::Bytes;

use report::Report;

/// Tests with a fast host are done in seconds; a slow and busy one may take this long.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often a guest is booted whose CPUs QEMU confused.
const BOOTS: u32 = 4;

/// A guest that tests ask for. Tests with the same static share one boot.
#[derive(Debug)]
pub struct Guests {
    kernel: &'static str,
    words: &'static str,
    processors: u32,
    threads_per_core: u32,
    programs: &'static [&'static str],
    kvm: bool,
    under: Option<&'static str>,
    patience: Duration,
    time: Time,
    report: OnceLock<Result<Report, Hindrance>>,
}

/// Why tests cannot run, or did not.
#[derive(Debug)]
enum Hindrance {
    /// Something is missing on this machine.
    Missing(String),
    /// The guest did not do what it is for.
    Failed(String),
}

impl Guests {
    /// One CPU, `kernel` as it is called in the lab's cache (it is fetched where it is not there), and kernel parameters, all
    /// of which the kernel must know: process 1 gets the others as arguments.
    pub const fn new(kernel: &'static str, words: &'static str) -> Self {
        Self {
            kernel,
            words,
            processors: 1,
            threads_per_core: 1,
            programs: &[],
            kvm: false,
            under: None,
            patience: PATIENCE,
            time: Time::Wall,
            report: OnceLock::new(),
        }
    }

    /// With so many CPUs.
    #[must_use]
    pub const fn processors(mut self, processors: u32) -> Self {
        self.processors = processors;
        self
    }

    /// With cores of two threads each.
    #[must_use]
    pub const fn siblings(mut self) -> Self {
        self.threads_per_core = 2;
        self
    }

    /// With these programs of the host in the guest's PATH: paths, or names.
    #[must_use]
    pub const fn programs(mut self, programs: &'static [&'static str]) -> Self {
        self.programs = programs;
        self
    }

    /// With /dev/kvm, by a CPU that has AMD's virtualization.
    #[must_use]
    pub const fn kvm(mut self) -> Self {
        self.kvm = true;
        self
    }

    /// As the first domain of this hypervisor, as it is called in the lab's cache; it is fetched where it is not there.
    #[must_use]
    pub const fn under(mut self, hypervisor: &'static str) -> Self {
        self.under = Some(hypervisor);
        self
    }

    /// Given up after so long: for tests that repeat what takes its time.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// With a clock that counts instructions: no host is too busy for it. For one CPU.
    #[must_use]
    pub const fn in_instructions(mut self) -> Self {
        self.time = Time::Instructions;
        self
    }

    /// Does `body` in the guest, in the test's own directory. To be called by the test's own thread, and once.
    ///
    /// # Panics
    /// Where it fails in the guest, or the guest fails. Where the guest cannot be had, `skipped: ` and the reason are
    /// printed instead.
    pub fn run(&self, body: impl FnOnce()) {
        become_process_one();
        if let Some(lab) = lab_of_this_guest() {
            if self.is(&lab) {
                body();
            }
            return;
        }
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        match self.report.get_or_init(|| self.boot()) {
            Ok(report) => {
                let printed_result = report.of(name);
                let printed = printed_result
                    .as_ref()
                    .map_or_else(|reason| reason.clone(), |printed| (*printed).to_owned());
                print!("{printed}");
                assert!(printed_result.is_ok(), "{name} failed in the guest");
            }
            Err(Hindrance::Missing(what)) => println!("skipped: {what}"),
            Err(Hindrance::Failed(why)) => panic!("{why}"),
        }
    }

    /// What is missing on this machine for such a guest, if anything is.
    pub fn missing(&self) -> Option<String> {
        self.kernel().err().or_else(|| self.hypervisor().err())
    }

    /// Whether this is the guest that is asked for.
    fn is(&self, lab: &Lab) -> bool {
        lab.words == self.all_words() && lab.processors == self.processors
    }

    /// With one that nobody reads and that names the kernel, the time and the programs: a guest does not learn its kernel's
    /// name, and a test that waits for a program that is not there hangs.
    fn all_words(&self) -> Vec<String> {
        let names = self.programs.iter().filter_map(|program| Path::new(program).file_name()?.to_str());
        let programs: Vec<&str> = names.collect();
        let time = if self.time == Time::Wall { "wall" } else { "instructions" };
        let named = format!(
            "worstcase.guest={}{}{}:{time}:{}",
            self.kernel,
            if self.kvm { "+kvm" } else { "" },
            self.under.unwrap_or_default(),
            programs.join(",")
        );
        // In instruction time the lab adds a parameter that the kernel hands on to process 1, which takes it for a part of the
        // paths of tests that it is to run. This one is in all paths.
        let any_test = (self.time == Time::Instructions).then(|| "::".to_owned());
        let is_alone = self.processors == 1 || self.time == Time::Instructions;
        let panics = (!is_alone).then(|| boot::PANICS_WHEN_LOCKED_UP.to_owned());
        self.words
            .split_whitespace()
            .map(str::to_owned)
            .chain(panics)
            .chain([named])
            .chain(any_test)
            .collect()
    }

    fn boot(&self) -> Result<Report, Hindrance> {
        let kernel = self.kernel().map_err(Hindrance::Missing)?;
        let binary = std::env::current_exe().map_err(|error| Hindrance::Failed(error.to_string()))?;
        let under = self.hypervisor().map_err(Hindrance::Missing)?;
        let guest = self.guest(kernel, under, binary);
        let mut outcome = boot::run(&guest, &|| false);
        for _ in 1..BOOTS {
            match &outcome {
                Err(failure) if boot::is_confused(&failure.error.message) => {
                    println!("again, after: {failure}");
                }
                _ => break,
            }
            outcome = boot::run(&guest, &|| false);
        }
        let outcome = outcome.map_err(|failure| Hindrance::Failed(in_words(&failure)))?;
        Ok(Report::of_output(
            &String::from_utf8_lossy(&outcome.left.output),
            &String::from_utf8_lossy(&outcome.left.errors),
        ))
    }

    fn guest(&self, kernel: Kernel, under: Option<Under>, binary: PathBuf) -> Guest {
        let ignored_too = std::env::args().any(|word| ["--ignored", "--include-ignored"].contains(&&*word));
        let words = ["/init", "--test-threads=1", "--show-output", "--color=never"].map(str::to_owned);
        let words = words.into_iter().chain(ignored_too.then(|| "--include-ignored".to_owned()));
        let words = words.chain(selection(std::env::args().skip(1).collect()));
        Guest {
            kernel,
            under,
            words: self.all_words(),
            processors: self.processors,
            threads_per_core: self.threads_per_core,
            cpu_model: None,
            memory: Bytes::from_mebibytes(1024),
            time: self.time,
            devices: self.kvm.then_some(Device::Kvm).into_iter().collect(),
            disk: None,
            system: None,
            binary,
            programs: self.programs.iter().map(PathBuf::from).collect(),
            command: words.map(Into::into).collect(),
            time_limit: self.patience,
        }
    }

    /// The hypervisor that is asked for, or what is missing.
    fn hypervisor(&self) -> Result<Option<Under>, String> {
        let Some(name) = self.under else { return Ok(None) };
        let found = Cache::of_user().and_then(|cache| kernels::hypervisor(&cache, name, &mut |_| {}));
        let hypervisor = found.map_err(|error| format!("no hypervisor {name}: {error}"))?;
        Ok(Some(Under { hypervisor, words: Vec::new() }))
    }

    /// The kernel, or what is missing.
    fn kernel(&self) -> Result<Kernel, String> {
        if Architecture::own() != Some(Architecture::Amd64) {
            return Err("needs a host with an x86-64 CPU, as the guest has".into());
        }
        let mut needed = ["qemu-system-x86_64"].iter().chain(self.programs);
        if let Some(program) = needed.find(|program| lab::find_program(Path::new(program)).is_none()) {
            return Err(format!("needs {program}"));
        }
        let kernel = Cache::of_user().and_then(|cache| kernels::named(&cache, self.kernel, &mut |_| {}));
        kernel.map_err(|error| format!("no kernel {}: {error}", self.kernel))
    }
}

/// Which tests of this guest are asked for: what the test command leaves for later is not run in the guest before. A value of
/// another option than the number of threads among the names selects some more.
fn selection(words: Vec<String>) -> Vec<String> {
    if words.iter().any(|word| word.starts_with("--skip")) {
        return Vec::new();
    }
    let mut is_value = false;
    let mut is_name = |word: &String| {
        let is_name = !std::mem::replace(&mut is_value, word == "--test-threads");
        is_name && (word == "--exact" || !word.starts_with('-'))
    };
    words.into_iter().filter(|word| is_name(word)).collect()
}

/// Why a guest failed, and what it had said until then: where it came to is half of the reason.
fn in_words(failure: &boot::Failure) -> String {
    let said = failure.left.as_ref().map(|left| [left.output.as_slice(), left.errors.as_slice()].concat());
    let said = said.unwrap_or_default();
    format!("{}\n{}", failure.error.message, String::from_utf8_lossy(&said))
}

/// In a guest the test binary is process 1 first. The test that comes here first is that, and powers the guest off in
/// the end; the others wait.
fn become_process_one() {
    static FIRST: Mutex<()> = Mutex::new(());
    if lab::guest::is_process_one() {
        let _first = FIRST.lock();
        lab::guest::main();
    }
}

/// What the lab says about the guest that this process runs in; none on the host.
pub fn lab_of_this_guest() -> Option<Lab> {
    Lab::of_this_guest().ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_runs_the_tests_that_were_asked_for() {
        let of = |words: &str| selection(words.split_whitespace().map(str::to_owned).collect()).join(" ");
        assert_eq!(of("--show-output --test-threads=1 --exact a::b a::c"), "--exact a::b a::c");
        assert_eq!(of("a:: --include-ignored"), "a::");
        assert_eq!(of("--test-threads 1 a"), "a");
        assert_eq!(of("--skip a"), "", "all but some: all are run");
        assert_eq!(of("--include-ignored"), "");
    }

    #[test]
    fn guests_with_other_programs_are_other_guests() {
        let with = |programs| Guests::new("debian-6.1-amd64", "quiet").programs(programs);
        assert_eq!(with(&["/a/worstcase", "sh"]).all_words(), with(&["/b/worstcase", "sh"]).all_words());
        assert_ne!(with(&["/a/worstcase", "sh"]).all_words(), with(&["/a/worstcase"]).all_words());
        assert_ne!(with(&["sh"]).in_instructions().all_words(), with(&["sh"]).all_words());
    }
}
