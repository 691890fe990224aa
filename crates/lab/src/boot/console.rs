//! What went wrong in a guest, read from its console.

use std::time::Duration;

use super::Guest;
use super::process::End;
use crate::Error;
use crate::frames::FrameError;

/// How many lines of a console stand in an error.
const TAIL: usize = 15;

/// A kernel that patches its code for all CPUs puts a breakpoint there first. QEMU, whose CPUs are threads of their own in
/// wall time, at times lets one run into a breakpoint that is gone already, as no hardware does: seen with 6.12.
pub const PATCHED: &str = "Oops: int3";

/// Why there are no results.
pub(crate) fn explain(
    guest: &Guest,
    end: &End,
    results: Option<FrameError>,
    boot: Option<Duration>,
    console: &str,
) -> Error {
    let name = &guest.kernel.name;
    let limit = guest.time_limit.as_secs();
    let (what, hint) = match (end, panic(console), boot) {
        (_, Some(panic), _) => {
            let hint = match panic.contains(PATCHED) {
                true => "QEMU let a CPU run an instruction that another one was patching: try again",
                false => "its last lines say what it was doing",
            };
            (format!("kernel {name} panicked: {panic}"), hint.to_owned())
        }
        (End::Failed(words), ..) => (
            format!("QEMU could not run kernel {name}: {words}"),
            format!("is {} a kernel for {}?", guest.kernel.image.display(), guest.kernel.architecture),
        ),
        (End::GivenUp, _, None) if console.trim().is_empty() => (
            format!("kernel {name} did not boot: it said nothing in {limit} s"),
            format!("is {} whole? is its serial console built in?", guest.kernel.image.display()),
        ),
        (End::GivenUp, _, None) => (
            format!("kernel {name} did not come to run the command in {limit} s"),
            "a busy host may need longer: --timeout".to_owned(),
        ),
        (End::GivenUp, _, Some(_)) => (
            format!("the guest was given up after {limit} s: the command had not ended"),
            "a longer run needs a longer --timeout; a guest whose console says nothing may hang".to_owned(),
        ),
        (End::Ended, _, None) => (
            format!("kernel {name} ended before it ran the command"),
            format!(
                "is {} a whole kernel with a serial console and initramfs?",
                guest.kernel.image.display()
            ),
        ),
        (End::Ended, _, Some(_)) => {
            let lost = results.map(|error| error.to_string()).unwrap_or_default();
            (format!("the guest ended without its results: {lost}"), String::new())
        }
    };
    Error::new(format!("{what}{}", tail(console))).hint(hint)
}

/// What process 1 itself said.
pub(crate) fn failure(guest: &Guest, words: &str, console: &str) -> Error {
    let program = guest.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let error = Error::new(format!("in the guest: {words}{}", tail(console)));
    if words.starts_with(&format!("run {program}:")) {
        return error.hint(format!("only what is put into the guest can run there: --with {program}"));
    }
    error.hint(format!("kernel {} may lack what the lab needs", guest.kernel.name))
}

/// What the kernel gave as the reason of its panic, and what went wrong first.
fn panic(console: &str) -> Option<String> {
    let (before, reason) = console.split_once("Kernel panic - not syncing: ")?;
    let reason = reason.lines().next().map(str::trim_end)?;
    let first = before.lines().find_map(|line| line.find("Oops: ").map(|start| line[start..].trim_end()));
    Some(first.map_or(reason.to_owned(), |first| format!("{reason}, after {first}")))
}

/// The console's last lines, for an error.
fn tail(console: &str) -> String {
    let lines: Vec<&str> = console.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(TAIL)..];
    if last.is_empty() {
        return String::new();
    }
    last.iter().fold("\nits console's last lines:".to_owned(), |text, line| text + "\n  " + &printable(line))
}

/// A guest does not send commands to the terminal.
fn printable(line: &str) -> String {
    line.chars().filter(|character| !character.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_tail_is_short_and_harmless() {
        let console = (0..100).map(|number| format!("line {number}\x1b[2J\r\n")).collect::<String>();
        let tail = tail(&console);
        assert_eq!(tail.lines().count(), TAIL + 2);
        assert!(tail.ends_with("\n  line 99[2J") && !tail.contains('\x1b'), "{tail}");
    }
}
