//! Wake paths: which way of waiting is safe at which priority.

use record::wake_path::{Program, Thread, Waiting, WakePath, WakePaths, Waker};
use units::Policy;

use crate::grid::{Cell, Column, Grid};
use crate::style::{Style, Tone};
use crate::text::{aligned, count_of, harmless, wrap};

/// Of which machine, the table, what it means and what helps.
pub fn text(found: &WakePaths, style: &Style) -> String {
    let machine = &found.machine;
    let of_which = harmless(&format!("{}, Linux {}", machine.host, machine.kernel.release));
    let mut text = wrap("machine: ", &of_which, 9, style.width).join("\n") + "\n\n";
    if let Some(program) = &found.program {
        text += &(threads(program, found).render(style) + "\n");
    }
    text += &grid(found).render(style);
    let mut add = |head: &str, words: &str, hang: usize| {
        wrap(head, words, hang, style.width).iter().for_each(|line| text += &format!("{line}\n"));
    };
    add("", "", 0);
    add("", &summary(found), 0);
    for (head, words) in cures(found) {
        add(&format!("  {head:<8}"), &words, 10);
    }
    for path in &found.paths {
        if let Some(why) = &path.unknown {
            add("note  ", &format!("{}: not known: {why}", path.title), 6);
        }
    }
    add("note  ", UNTRIED, 6);
    text
}

/// What no hog can try.
const UNTRIED: &str = "interrupts of devices (GPIO, UIO, network) wake through their handler's thread irq/N on PREEMPT_RT and with \
                       threadirqs: set its priority above whatever may run on its CPU (worstcase check knows rules for it). GPIO is not \
                       tried.";

const WAKERS: [(Waker, &str); 3] = [
    (Waker::Clock, "a clock wakes:"),
    (Waker::Thread, "another thread wakes:"),
    (Waker::Holder, "a thread at FIFO 1 lets go of:"),
];

fn grid(found: &WakePaths) -> Grid {
    let unit = found.machine.unit();
    let mut labels = Vec::new();
    let mut columns = ["latest", "delayed from", "through"]
        .map(|head| Column { head: vec![head.into()], cells: Vec::new() });
    let mut push = |label: String, cells: [Cell; 3]| {
        labels.push(label);
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.cells.push(cell));
    };
    for (waker, title) in WAKERS {
        let own: Vec<&WakePath> = found.paths.iter().filter(|path| path.waker == waker).collect();
        if !own.is_empty() {
            push(title.into(), [Cell::default(), Cell::default(), Cell::default()]);
        }
        for path in own {
            let latest = path.worst.map_or_else(Cell::none, |worst| Cell::plain(aligned(unit, worst)));
            push(format!("  {}", called(path)), [latest, from(path), Cell::plain(through(path))]);
        }
    }
    // No kernel thread on any of the ways: nothing to show.
    let columns = columns.into_iter().filter(|column| column.cells.iter().any(|cell| !cell.text.is_empty()));
    Grid { corner: unit.name().into(), labels, columns: columns.collect() }
}

/// `posix-timer: timer_create, sigwaitinfo`: what `--wake` calls it, and its calls.
fn called(path: &WakePath) -> String {
    if path.title.starts_with(&path.way) {
        return path.title.clone();
    }
    format!("{}: {}", path.way, path.title)
}

/// The threads of a program, and from which priority on others delay them.
fn threads(program: &Program, found: &WakePaths) -> Grid {
    let mut columns = ["waits by", "seen", "delayed from"]
        .map(|head| Column { head: vec![head.into()], cells: Vec::new() });
    let mut labels = Vec::new();
    for wait in &program.waits {
        let thread = &wait.thread;
        labels.push(format!("{} [{}] {}", name(thread), thread.tid, wait.cpus.named()));
        let seen = format!("{} of {}", wait.seen, program.looks);
        let cells = [Cell::plain(wait.call.clone()), Cell::plain(seen), delayed(wait, found)];
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.cells.push(cell));
    }
    Grid { corner: format!("threads of {}", program.pid), labels, columns: columns.into() }
}

/// By all the ways that a wait is, the lowest priority that delays it.
fn delayed(wait: &Waiting, found: &WakePaths) -> Cell {
    if !wait.thread.policy.is_real_time() {
        return Cell { text: "not real-time".into(), tone: Tone::Faint };
    }
    match (wait.delayed_from(&found.paths), wait.is_safe(&found.paths)) {
        (Some(priority), _) => Cell { text: format!("FIFO {priority}"), tone: Tone::Bad },
        (None, Some(true)) => Cell { text: "never".into(), tone: Tone::Good },
        (None, _) => Cell { text: "not known".into(), tone: Tone::Doubtful },
    }
}

fn from(path: &WakePath) -> Cell {
    match (path.is_safe(), path.delayed_from) {
        (Some(true), _) => Cell { text: "never".into(), tone: Tone::Good },
        (_, Some(priority)) => Cell { text: format!("FIFO {priority}"), tone: Tone::Bad },
        _ => Cell { text: "not known".into(), tone: Tone::Doubtful },
    }
}

fn through(path: &WakePath) -> String {
    path.through.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// `ktimers/0 (FIFO 1)`.
fn name(thread: &Thread) -> String {
    match thread.policy {
        Policy::Fifo | Policy::Rr => {
            format!("{} ({} {})", thread.name, policy(thread.policy), thread.priority)
        }
        other => format!("{} ({other})", thread.name),
    }
}

fn policy(policy: Policy) -> &'static str {
    if policy == Policy::Rr { "RR" } else { "FIFO" }
}

fn summary(found: &WakePaths) -> String {
    let WakePaths { cpu, priority, burst, wake_ups, paths, .. } = found;
    let unsafe_ones: Vec<&str> =
        paths.iter().filter(|path| path.is_safe() == Some(false)).map(|path| path.title.as_str()).collect();
    let tried = format!(
        "A thread at FIFO {priority} of CPU {cpu} waited while another one at a lower priority computed there for {burst}, {} \
         beside each priority.",
        count_of(u64::from(*wake_ups), "wake-up")
    );
    let judged = match unsafe_ones.as_slice() {
        [] => format!(
            "No lower priority delays {}.",
            if paths.len() == 1 { "it" } else { "any that was tried to the end" }
        ),
        several => format!(
            "Not safe: {}. A real-time thread of that CPU delays the wake-up from the priority in the table on, however high the one \
             that waits.",
            several.join("; ")
        ),
    };
    format!("{tried} {judged}")
}

/// Another way, or another priority for the thread that is passed through.
fn cures(found: &WakePaths) -> Vec<(&'static str, String)> {
    let mut cures: Vec<(&'static str, String)> = Vec::new();
    let mut threads: Vec<&Thread> = Vec::new();
    for path in found.paths.iter().filter(|path| path.is_safe() == Some(false)) {
        let cure = ("instead", path.instead.clone());
        if !path.instead.is_empty() && !cures.contains(&cure) {
            cures.push(cure);
        }
        path.through.iter().for_each(|thread| {
            if !threads.contains(&thread) {
                threads.push(thread);
            }
        });
    }
    for thread in threads {
        let words = format!(
            "chrt -f -p {} {}    {} before every thread that must not delay it; what it does for others comes first then",
            found.priority + 1,
            thread.tid,
            thread.name
        );
        cures.push(("or", words));
    }
    cures
}
