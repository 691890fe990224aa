//! What a kind of setting is, and what can be asked of any setting.

use std::fmt;

use control::Kernel;
use record::Fact;
use rustix::io::Errno;
use sysroot::SysRoot;

use super::{Form, Target};

/// When a setting is written, in the order that survives on real systems: who else changes the same is stopped first,
/// priorities come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// CPUs on and off, services that change settings, threads whose CPUs a partition makes the kernel forget.
    First,
    /// Control groups and partitions.
    Groups,
    /// CPUs of threads.
    Threads,
    /// CPUs of work queues.
    WorkQueues,
    /// CPUs of interrupts that come later.
    NewInterrupts,
    /// CPUs of interrupts.
    Interrupts,
    /// Clocks and idle states of single CPUs.
    Cpus,
    /// The limit on exit latencies for all CPUs.
    Latency,
    /// Other files, and swap.
    Others,
    /// Priorities.
    Priorities,
}

/// A kind of setting, lent one of its settings: how it is read, written, compared, found again. Displayed, it is where a
/// reader would look: a path, `CPUs of irq 24 (virtio0-config)`.
pub(crate) trait Kind: fmt::Display {
    /// What the kernel says of it now, as it stands there.
    fn text(&self, root: &SysRoot) -> Fact<String>;

    /// Writes `value`: what the kernel answered, `EINVAL` for a value that is none.
    fn write(&self, kernel: &mut dyn Kernel, value: &str) -> Result<(), Errno>;

    /// When it is written.
    fn phase(&self) -> Phase;

    /// The form of its value, where the kernel says `text`.
    fn form(&self, _text: &str) -> Form {
        Form::Whole
    }

    /// Whether the value `now` is what was `wanted`.
    fn same(&self, now: &str, wanted: &str) -> bool {
        self.form(now).same(now, wanted)
    }

    /// Whether what was written as `ours` holds where the value is `now`.
    fn holds(&self, now: &str, ours: &str) -> bool {
        self.same(now, ours)
    }

    /// Why what is set is not yet in effect, where the kernel takes its time.
    fn pending(&self, _root: &SysRoot) -> Option<String> {
        None
    }

    /// Whether what it is about can end, so that nothing is left that could hold or not. Everything else that is gone was
    /// taken away.
    fn can_end(&self) -> bool {
        false
    }

    /// Where what a journal calls `this` is now: numbers are given to others.
    fn find(&self, root: &SysRoot, this: &Target) -> Found {
        match self.text(root) {
            Fact::Absent => Found::gone(),
            _ => Found::Here(this.clone()),
        }
    }

    /// What stands in its place where it is gone.
    fn successor(&self, _root: &SysRoot) -> Option<Target> {
        None
    }

    /// The value that takes ours back, where several requests stand beside each other and the kernel obeys one of them.
    fn released(&self) -> Option<String> {
        None
    }

    /// Whether that the kernel refuses it is a fact about this machine and no failure: it keeps some interrupts and
    /// threads where they are, and does not always say so before.
    fn may_be_refused(&self) -> bool {
        false
    }

    /// Whether the kernel writes it as well, so that it says neither what was there before nor what we wrote.
    fn is_reset_by_the_kernel(&self) -> bool {
        false
    }

    /// Whether something else than what was asked for is of no use.
    fn is_all_or_nothing(&self) -> bool {
        false
    }

    /// Why it could not be put back if it says `old`.
    fn one_way(&self, _old: &str) -> Option<&'static str> {
        None
    }

    /// Why it is done only where somebody asks for just that.
    fn heavy(&self) -> Option<&'static str> {
        None
    }

    /// What a change does beside what it is for.
    fn effect(&self) -> Option<&'static str> {
        None
    }

    /// Why the kernel refuses it, where its answer alone does not say.
    fn why_refused(&self, _errno: i32) -> Option<&'static str> {
        None
    }
}

/// Where something is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Here, perhaps under another number.
    Here(Target),
    /// Gone, and why that is believed.
    Gone(String),
    /// It could be one of several.
    Unclear(String),
}

impl Found {
    pub(super) fn gone() -> Self {
        Self::Gone("it is no longer there".to_owned())
    }
}

impl Target {
    /// Its value now, as it would be written.
    pub fn value(&self, root: &SysRoot) -> Fact<String> {
        let kind = self.kind();
        kind.text(root).map(|text| kind.form(&text).value(&text))
    }

    /// Whether the value `now` is what was `wanted`.
    pub fn same(&self, now: &str, wanted: &str) -> bool {
        self.kind().same(now, wanted)
    }

    /// Whether the kernel writes it as well, so that it says neither what was there before nor what we wrote.
    pub fn is_reset_by_the_kernel(&self) -> bool {
        self.kind().is_reset_by_the_kernel()
    }

    /// Why the kernel refuses it, where its answer alone does not say.
    pub fn why_refused(&self, errno: i32) -> Option<&'static str> {
        self.kind().why_refused(errno)
    }

    /// It as it is now.
    pub(crate) fn find(&self, root: &SysRoot) -> Found {
        self.kind().find(root, self)
    }

    /// What stands in its place now: itself, or the one thread of the kernel that has its name.
    pub(crate) fn successor(&self, root: &SysRoot) -> Option<Self> {
        match self.find(root) {
            Found::Here(target) => Some(target),
            Found::Gone(_) => self.kind().successor(root),
            Found::Unclear(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}
