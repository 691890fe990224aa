//! What went wrong in a guest, or with it: read from its end and from its console.

use std::time::Duration;
use units::Bytes;

use record::LabTime;

use super::guest::Guest;
use super::process::End;
use crate::Error;
use crate::frames::FrameError;

/// How many lines of a console that shows no trouble stand in an error: the last ones.
const TAIL: usize = 15;
/// How many lines stand there from the first sign of trouble on: a trace with its registers.
const TROUBLE: usize = 60;

/// A kernel that patches its code for all CPUs puts a breakpoint there first. QEMU, whose CPUs are threads of their own in
/// wall time, at times lets one run into a breakpoint that is gone already, as no hardware does. The kernel gives up, which
/// was seen with 6.12, or runs the instruction again: for ever, where QEMU keeps what it translated, seen with 6.1 and QEMU 7.2
/// (one CPU in `exc_int3` with interrupts off, the other in `smp_call_function_many_cond`). The other is then locked up, which
/// the kernel finds where it still takes interrupts.
const PATCHED: [&str; 3] = ["Oops: int3", "softlockup: hung tasks", SILENT];

const CONFUSED: &str = "QEMU may have let a CPU run an instruction that another one was patching: try again";

/// What is said of a guest of several CPUs that took all the time it had and did not do what it was asked.
const SILENT: &str = "none of its CPUs answered";

/// With this a guest of several CPUs that is locked up so panics, instead of running until it is given up.
pub const PANICS_WHEN_LOCKED_UP: &str = "softlockup_panic=1";

/// Whether what a guest failed by is QEMU's fault, as far as the kernel's words tell: it may well run the next time.
pub fn is_confused(message: &str) -> bool {
    has_any(message, &PATCHED)
}

/// What the first line of a kernel's trouble holds.
const TROUBLES: [&str; 9] = [
    "BUG: ",
    "Oops: ",
    "Internal error: ",
    "general protection fault",
    "Unable to handle kernel",
    "Kernel panic - ",
    "detected stalls on CPUs",
    "(XEN) Panic on CPU",
    "(XEN) domain_crash",
];

/// What a console says where the guest has too little memory.
const TOO_LITTLE_MEMORY: [&str; 6] = [
    "ut of memory",
    "deadlocked on memory",
    "unpacking failed",
    "initrd extends beyond end of memory",
    "Failed to allocate",
    "page allocation failure",
];

/// What QEMU says when it fails by itself, and what to do then.
const FATAL: [(&str, Cure); 8] = [
    ("Cannot allocate memory", Cure::LessMemory),
    ("cannot set up guest memory", Cure::LessMemory),
    ("ram size too large", Cure::LessMemory),
    ("exceeds addressable space", Cure::LessMemory),
    ("too large", Cure::MoreMemory),
    ("exceeds the guest RAM", Cure::MoreMemory),
    ("load kernel", Cure::Image),
    ("No such file or directory", Cure::Emulator),
];

/// A distribution's kernel with the lab's root needs more than this.
const SMALL: Bytes = Bytes::from_mebibytes(128);

#[derive(Clone, Copy)]
enum Cure {
    LessMemory,
    MoreMemory,
    Image,
    Emulator,
}

impl Cure {
    fn of(message: &str) -> Self {
        FATAL.iter().find(|(sign, _)| message.contains(sign)).map_or(Self::Emulator, |(_, cure)| *cure)
    }

    fn hint(self, guest: &Guest) -> String {
        match self {
            Self::LessMemory => {
                format!(
                    "this host cannot give a guest {} of memory: ask for less with --memory",
                    guest.memory
                )
            }
            Self::MoreMemory => {
                format!(
                    "the guest has {} of memory, too little for its root: give it more with --memory",
                    guest.memory
                )
            }
            Self::Image => {
                format!("is {} a kernel for {}?", guest.kernel.image.display(), guest.kernel.architecture)
            }
            Self::Emulator => {
                "this is QEMU's own message: does this QEMU fit, as its distribution's package does?"
                    .to_owned()
            }
        }
    }
}

/// Why there are no results.
pub(crate) fn explain(
    guest: &Guest,
    end: &End,
    results: Option<FrameError>,
    boot: Option<Duration>,
    console: &str,
) -> Error {
    let name = &guest.kernel.name;
    let (what, hint) = match (end, panic(console), boot) {
        (_, Some(panic), _) => (format!("kernel {name} panicked: {panic}"), of_panic(guest, &panic, console)),
        (End::Killed(signal), ..) => killed(*signal),
        (End::Failed(words), ..) => {
            (format!("QEMU failed: {}", printable::lines(words)), Cure::of(words).hint(guest))
        }
        (End::GivenUp { cpu, is_silent }, _, boot) => given_up(guest, *cpu, *is_silent, boot, console),
        (End::Ended, _, None) => {
            // A kernel that has no room to unpack itself resets without a word.
            let silent = console.trim().is_empty() && guest.memory < SMALL;
            let hint = if silent || has_any(console, &TOO_LITTLE_MEMORY) {
                Cure::MoreMemory.hint(guest)
            } else {
                format!(
                    "is {} a whole kernel with a serial console and initramfs? has the guest enough memory ({})?",
                    guest.kernel.image.display(),
                    guest.memory
                )
            };
            (format!("kernel {name} ended before it ran the command"), hint)
        }
        (End::Ended, _, Some(_)) => {
            let lost = results.map_or_else(|| "no exit code came back".to_owned(), |error| error.to_string());
            let hint = "its console may say why it was switched off".to_owned();
            (format!("the guest ended without its results: {lost}"), hint)
        }
    };
    Error::new(format!("{what}{}", excerpt(console))).hint(hint)
}

fn of_panic(guest: &Guest, panic: &str, console: &str) -> String {
    match () {
        () if is_confused(panic) => CONFUSED.to_owned(),
        () if has_any(console, &TOO_LITTLE_MEMORY) => Cure::MoreMemory.hint(guest),
        () => "the first of these lines says where it went wrong".to_owned(),
    }
}

/// signal(7).
fn killed(signal: i32) -> (String, String) {
    let hint = match signal {
        9 => {
            "another process killed it, or this host's kernel for want of memory: `dmesg` has a line for that"
        }
        _ => {
            "it came from outside the guest, or QEMU crashed: a boot of the same guest that ends so again is QEMU's fault"
        }
    };
    (format!("QEMU was killed by signal {signal}"), hint.to_owned())
}

/// Whether it was slow or hung: in instruction time a guest never waits, so that QEMU takes all the CPU time it can get.
fn given_up(
    guest: &Guest,
    cpu: Option<Duration>,
    is_silent: bool,
    boot: Option<Duration>,
    console: &str,
) -> (String, String) {
    let limit = guest.time_limit.as_secs();
    // Before the command begins nobody is there to answer; a single CPU that hangs is the kernel's own doing.
    let is_locked_up = is_silent && guest.processors > 1;
    let done = match boot {
        Some(_) if is_locked_up => &format!("the command had not ended, and {SILENT}"),
        Some(_) => "the command had not ended",
        None if console.trim().is_empty() => "the kernel had said nothing",
        None => "the kernel had not come to run the command",
    };
    let had = cpu
        .map_or(String::new(), |cpu| format!(", of which QEMU had {:.1} s of CPU time", cpu.as_secs_f64()));
    let is_starved = guest.time == LabTime::Instructions && cpu.is_some_and(|cpu| cpu < guest.time_limit / 2);
    let hint = match boot {
        _ if is_starved => {
            "this host is busy: a longer time limit (--timeout), or fewer guests at once (--jobs)".to_owned()
        }
        None if console.trim().is_empty() => {
            format!("is {} whole? is its serial console built in?", guest.kernel.image.display())
        }
        Some(_) if is_locked_up => {
            format!("do threads of real-time priority that never sleep have all its CPUs? if not: {CONFUSED}")
        }
        _ => "what takes longer needs a longer time limit (--timeout); a console that ends in the middle shows a hang"
            .to_owned(),
    };
    (format!("the guest was given up after {limit} s{had}: {done}"), hint)
}

/// What process 1 itself said.
pub(crate) fn failure(guest: &Guest, words: &str, console: &str) -> Error {
    let program = guest.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let error = Error::new(format!("in the guest: {words}{}", excerpt(console)));
    if words.starts_with(&format!("run {program}:")) {
        return error.hint(format!("only what is put into the guest can run there: --with {program}"));
    }
    error.hint(format!("kernel {} may lack what the lab needs", guest.kernel.name))
}

/// What the kernel gave as the reason of its panic, and what went wrong first.
fn panic(console: &str) -> Option<String> {
    let (before, reason) = console.split_once("Kernel panic - not syncing: ")?;
    let reason = printable::lines(reason.lines().next()?.trim_end());
    let first = before.lines().find_map(|line| {
        TROUBLES
            .iter()
            .find_map(|sign| line.find(sign))
            .map(|start| printable::lines(line[start..].trim_end()))
    });
    Some(first.map_or(reason.to_string(), |first| format!("{reason}, after {first}")))
}

/// The console from the first sign of trouble on, or its last lines, for an error.
fn excerpt(console: &str) -> String {
    let lines: Vec<&str> = console.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let trouble = lines.iter().position(|line| has_any(line, &TROUBLES));
    let (head, chosen) = match trouble {
        Some(first) => ("its console from the first sign of trouble on:", &lines[first..]),
        None => ("its console's last lines:", &lines[lines.len().saturating_sub(TAIL)..]),
    };
    if chosen.is_empty() {
        return String::new();
    }
    let shown = &chosen[..chosen.len().min(TROUBLE)];
    let text = shown.iter().fold(format!("\n{head}"), |text, line| text + "\n  " + &printable::lines(line));
    match chosen.len() - shown.len() {
        0 => text,
        more => format!("{text}\n  ({more} more lines)"),
    }
}

fn has_any(text: &str, signs: &[&str]) -> bool {
    signs.iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::guest;

    fn given_up_after(cpu: Option<Duration>) -> End {
        End::GivenUp { cpu, is_silent: false }
    }

    fn explained(end: &End, boot: bool, console: &str) -> Error {
        let boot = boot.then_some(Duration::from_secs(3));
        explain(&guest("plain"), end, Some(FrameError::Short(0)), boot, console)
    }

    #[test]
    fn a_panic_is_found_with_its_reason() {
        let console =
            "[ 1.0] a\r\n[ 1.1] Kernel panic - not syncing: sysrq triggered crash\r\n[ 1.1] CPU: 0\r\n";
        assert_eq!(panic(console).unwrap(), "sysrq triggered crash");
        let console =
            "[ 8.2] Oops: int3: 0000 [#1] SMP\r\n[ 8.3] Kernel panic - not syncing: Fatal exception\r\n";
        assert_eq!(panic(console).unwrap(), "Fatal exception, after Oops: int3: 0000 [#1] SMP");
        assert_eq!(panic("all is well"), None);
    }

    #[test]
    fn what_is_an_emulators_fault_is_not_taken_for_the_kernels() {
        let console = "[ 48.4] watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [exe:116]\r\n\
                       [ 48.5] Kernel panic - not syncing: softlockup: hung tasks\r\n";
        let error = explained(&End::Ended, true, console);
        assert!(is_confused(&error.message), "{error:?}");
        assert!(error.hint.is_some_and(|hint| hint.contains("QEMU")));
        let error =
            explained(&End::Ended, true, "[ 1.0] Kernel panic - not syncing: Attempted to kill init!");
        assert!(!is_confused(&error.message), "{error:?}");
        assert!(!is_confused(&explained(&given_up_after(None), true, "all is well").message));
    }

    #[test]
    fn a_guest_of_several_cpus_none_of_which_answers_is_an_emulators_fault() {
        let end = End::GivenUp { cpu: Some(Duration::from_secs(50)), is_silent: true };
        let of = |processors| Guest { processors, ..guest("plain") };
        let explained = |processors, boot| explain(&of(processors), &end, None, boot, "all is well");
        let began = Some(Duration::from_secs(1));
        let locked_up = explained(2, began);
        assert!(is_confused(&locked_up.message), "{locked_up:?}");
        assert!(locked_up.hint.is_some_and(|hint| hint.contains("QEMU")));
        assert!(!is_confused(&explained(1, began).message), "a kernel that hangs");
        assert!(!is_confused(&explained(2, None).message), "a kernel that does not boot");
    }

    #[test]
    fn the_tail_is_short_and_harmless() {
        let console = (0..100).map(|number| format!("line {number}\x1b[2J\r\n")).collect::<String>();
        let tail = excerpt(&console);
        assert_eq!(tail.lines().count(), TAIL + 2);
        assert!(tail.ends_with("\n  line 99[2J") && !tail.contains('\x1b'), "{tail}");
    }

    #[test]
    fn a_panic_is_shown_from_its_first_line_of_trouble_on() {
        let before: String = (0..30).map(|number| format!("calm {number}\n")).collect();
        let after: String = (0..20).map(|number| format!("Call Trace {number}\n")).collect();
        let console = format!(
            "{before}BUG: kernel NULL pointer dereference\n{after}Kernel panic - not syncing: Fatal\n"
        );
        let error = explained(&End::Ended, true, &console);
        assert!(error.message.starts_with("kernel plain panicked: Fatal, after BUG: kernel NULL"), "{error}");
        assert!(error.message.contains("Call Trace 0\n") && !error.message.contains("calm"), "{error}");
        let flood = "Oops: x\n".repeat(TROUBLE + 7);
        assert!(excerpt(&flood).ends_with("(7 more lines)"));
    }

    /// Who ended the guest is who is named: the kernel's image is not to blame for what the host did.
    #[test]
    fn each_end_names_its_true_cause() {
        let second = Duration::from_secs(1);
        let fatal = |words: &str| End::Failed(words.into());
        for (end, boot, console, message, hint) in [
            (End::Killed(9), true, "", "QEMU was killed by signal 9", "dmesg"),
            (End::Killed(11), false, "", "signal 11", "crashed"),
            (
                fatal("cannot set up guest memory 'pc.ram': Cannot allocate memory"),
                false,
                "",
                "QEMU failed: cannot set up",
                "ask for less",
            ),
            (
                fatal("qemu: initrd is too large, cannot support this. (max: 1, need 2)"),
                false,
                "",
                "initrd is too large",
                "too little for its root",
            ),
            (
                fatal("could not load kernel '/proc/self/fd/3'"),
                false,
                "",
                "could not load",
                "a kernel for amd64?",
            ),
            (fatal("unknown option"), false, "", "QEMU failed: unknown option", "QEMU's own message"),
            (
                given_up_after(Some(second)),
                true,
                "a",
                "given up after 30 s, of which QEMU had 1.0 s of CPU time: the command had not",
                "this host is busy",
            ),
            (given_up_after(Some(29 * second)), true, "a", "the command had not ended", "shows a hang"),
            (
                given_up_after(Some(29 * second)),
                false,
                "",
                "the kernel had said nothing",
                "is nowhere whole?",
            ),
            (given_up_after(None), false, "a", "after 30 s: the kernel had not come to run", "--timeout"),
            (
                End::Ended,
                false,
                "Initramfs unpacking failed: write error",
                "ended before it ran the command",
                "--memory",
            ),
            (
                End::Ended,
                false,
                "Kernel panic - not syncing: System is deadlocked on memory",
                "panicked: System is deadlocked",
                "--memory",
            ),
            (End::Ended, true, "", "without its results: the results end after 0 bytes", "switched off"),
        ] {
            let error = explained(&end, boot, console);
            assert!(error.message.contains(message), "{end:?}: {error}");
            assert!(error.hint.as_ref().is_some_and(|text| text.contains(hint)), "{end:?}: {error:?}");
        }
    }
}
