//! The kernel's trace of events (Documentation/trace/ftrace.rst, events.rst): where it is, which events there are, what a
//! line says.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use record::Fact;
use rustix::fs::OFlags;
use units::CpuId;

use crate::SysRoot;

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Where the file system is, if this process may look into it.
///
/// # Errors
/// Why it cannot be had, in words.
pub fn place(root: &SysRoot) -> Result<&'static str, String> {
    let look = |place: &'static str| (place, root.read(&format!("{place}/current_tracer")));
    let mut looked = PLACES.map(look).into_iter().filter(|(_, tracer)| *tracer != Fact::Absent);
    match looked.next() {
        Some((place, Fact::Value(_))) => Ok(place),
        Some((place, tracer)) => Err(format!("{place}: {tracer}")),
        None => Err(format!("no tracefs: mount -t tracefs none {}", PLACES[0])),
    }
}

/// The instances beside the top one that worstcase has made, each with the id of the process that did.
pub fn instances(root: &SysRoot) -> Vec<(String, i32)> {
    let Ok(place) = place(root) else { return Vec::new() };
    let directory = format!("{place}/instances");
    let names = root.directories(&directory).value().cloned().unwrap_or_default();
    let of = |name: String| Some((format!("{directory}/{name}"), name.strip_prefix(OWN)?.parse().ok()?));
    names.into_iter().filter_map(of).collect()
}

/// What the name of an instance of ours begins with; the id of the process follows.
pub const OWN: &str = "worstcase-";

/// The events of an instance as they come. What is read is gone.
#[derive(Debug)]
pub struct Pipe {
    file: File,
    unread: Vec<u8>,
}

impl Pipe {
    /// Opens the one of the instance in `directory`.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn open(directory: &str) -> std::io::Result<Self> {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let path = SysRoot::live().path(&format!("{directory}/trace_pipe"));
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Self { file, unread: Vec::new() })
    }

    /// The whole lines that have come since; none are waited for. Where they come faster than they are read, a part.
    pub fn lines(&mut self) -> String {
        const MOST: usize = 1 << 20;
        let mut piece = vec![0; 64 * 1024];
        while self.unread.len() < MOST {
            match self.file.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => self.unread.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let end = self.unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        let whole: Vec<u8> = self.unread.drain(..end).collect();
        String::from_utf8_lossy(&whole).into_owned()
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The name of the thread that was running.
    pub thread: &'a str,
    /// Its id; 0 for an idle CPU.
    pub tid: i32,
    /// Where it happened.
    pub cpu: CpuId,
    /// Its name, without that of its system.
    pub name: &'a str,
    /// The rest: words such as `function=tick_sched_timer`.
    pub details: &'a str,
}

impl<'a> Event<'a> {
    /// What a line of `trace_pipe` says; none for one of another form.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (head, cpu, rest) = line.match_indices(" [").find_map(|(place, _)| head(line, place))?;
        let (thread, tid) = head.rsplit_once('-')?;
        let (_, rest) = rest.split_once(": ")?;
        let (name, details) = rest.split_once(':')?;
        let (name, details) = (name.trim(), details.trim());
        let thread = thread.trim_start();
        (!name.contains(' ')).then_some(Self { thread, tid: tid.parse().ok()?, cpu, name, details })
    }

    /// The value of `key=value`, up to the next blank.
    pub fn field(&self, key: &str) -> Option<&'a str> {
        self.after(&format!("{key}="))
    }

    /// What stands after `words`, up to the next blank.
    pub fn after(&self, words: &str) -> Option<&'a str> {
        let begins = |place: &usize| *place == 0 || self.details[..*place].ends_with(' ');
        let place = self.details.match_indices(words).map(|(place, _)| place).find(begins)?;
        self.details[place + words.len()..].split_whitespace().next()
    }
}

/// The thread, the CPU and what follows, where those stand at ` [` of a line: names of threads may hold brackets too.
fn head(line: &str, place: usize) -> Option<(&str, CpuId, &str)> {
    let (cpu, rest) = line[place + 2..].split_once("] ")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Kernels that note process ids put them in parentheses before the CPU.
    let before = line[..place].trim_end();
    let before = match before.rsplit_once('(') {
        Some((before, process)) if process.ends_with(')') => before.trim_end(),
        _ => before,
    };
    let (_, tid) = before.rsplit_once('-')?;
    (is_number(cpu) && is_number(tid)).then_some((before, CpuId(cpu.parse().ok()?), rest))
}

/// How many events a line says were lost: `CPU:1 [LOST 45 EVENTS]`. Where the kernel does not know, at least one.
pub fn lost(line: &str) -> u64 {
    let told = line.strip_prefix("CPU:").and_then(|rest| rest.split_once("[LOST "));
    told.map_or(0, |(_, rest)| rest.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeTree;
    use proptest::prelude::*;

    const LINE: &str = "   kworker/1:2 [a]-47      [001] d..2.    12.345678: workqueue_execute_start: work struct 00000000c0: function vmstat_update";

    #[test]
    fn a_line_is_an_event_of_a_thread_on_a_cpu() {
        let event = Event::parse(LINE).unwrap();
        assert_eq!((event.thread, event.tid, event.cpu), ("kworker/1:2 [a]", 47, CpuId(1)));
        assert_eq!(
            (event.name, event.after("function ")),
            ("workqueue_execute_start", Some("vmstat_update"))
        );
        let line =
            "          <idle>-0       [000] d.h1.     3.1: timer_expire_entry: timer=0x1 function=tick now=4";
        let event = Event::parse(line).unwrap();
        assert_eq!((event.tid, event.field("function"), event.field("now")), (0, Some("tick"), Some("4")));
        assert_eq!((event.field("imer"), event.field("nothing")), (None, None));
        let noted = "  yes-70 (     70) [001] ..... 3.1: sys_enter: NR 1 (1, 2)";
        assert_eq!(Event::parse(noted).unwrap().after("NR "), Some("1"));
    }

    #[test]
    fn what_is_no_event_is_none_and_lost_events_are_counted() {
        for line in ["", "# tracer: nop", "CPU:1 [LOST 45 EVENTS]", "x-1 [z] y", " [001] d: 1: a: b"] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
        assert_eq!((lost("CPU:1 [LOST 45 EVENTS]"), lost("CPU:1 [LOST EVENTS]"), lost(LINE)), (45, 1, 0));
    }

    #[test]
    fn instances_of_ours_are_told_from_those_of_others() {
        let tree = FakeTree::new(&[
            ("/sys/kernel/tracing/current_tracer", "nop"),
            ("/sys/kernel/tracing/instances/worstcase-70/trace", ""),
            ("/sys/kernel/tracing/instances/other/trace", ""),
        ]);
        assert_eq!(instances(&tree.root), [("/sys/kernel/tracing/instances/worstcase-70".to_owned(), 70)]);
        assert!(place(&FakeTree::empty().root).unwrap_err().contains("no tracefs"));
    }

    proptest! {
        #[test]
        fn any_line_is_answered_without_a_panic(line in "(-[0-9]{0,3}|\\[[0-9]{0,3}\\] |: |[a-z=é ]{0,5}|\\(){0,12}") {
            if let Some(event) = Event::parse(&line) {
                let _ = (event.field("a"), event.after("é "));
            }
            let _ = lost(&line);
        }
    }
}
