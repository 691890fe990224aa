//! Processes and memory as /proc shows them: proc_pid_stat(5), proc_meminfo(5).

use std::collections::{HashMap, HashSet};
use std::fs;

use sys::process::Pid;
use units::Nanos;

/// A process and its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: Pid,
    pub parent: i32,
    /// The letter of proc_pid_stat(5): `R`, `S`, `D`, `T`.
    pub state: u8,
    /// Of its own threads and of those of its children that it has waited for.
    pub cpu_time: Nanos,
}

/// Where a frozen process waits: cgroup v2 and v1 (kernel/cgroup/freezer.c, kernel/freezer.c).
const FROZEN: [&str; 2] = ["do_freezer_trap", "__refrigerator"];

impl Process {
    /// As it is now, if it is there. Its own CPU time to the nanosecond: /proc counts ticks of 10 ms, and of hundreds of
    /// processes on one CPU none has one in a second. What its children used is in ticks.
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (process, children) = parse(&stat)?;
        let own = u32::try_from(pid).ok().and_then(sys::usage::cpu_time_of);
        Some(own.map_or(process, |own| Self { cpu_time: Nanos::from(own) + children, ..process }))
    }

    /// Whether it runs or waits for a CPU.
    pub fn is_runnable(&self) -> bool {
        self.state == b'R'
    }

    /// Whether one of its threads runs or waits for a CPU.
    pub fn has_runnable_thread(&self) -> bool {
        let threads = format!("/proc/{}/task", self.pid.as_raw_pid());
        let runs = |thread: fs::DirEntry| {
            let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
            Some(parse(&stat)?.0.is_runnable())
        };
        fs::read_dir(threads)
            .is_ok_and(|threads| threads.flatten().any(|thread| runs(thread).unwrap_or(false)))
    }

    /// Whether it waits for a device, or whatever else cannot be interrupted. Frozen by cgroup v1 it would look alike.
    pub fn waits(&self) -> bool {
        self.state == b'D' && !self.is_frozen()
    }

    /// Whether it goes on by itself: not stopped, not traced, not ended, not frozen.
    pub fn is_alive(&self) -> bool {
        !b"TtZXx".contains(&self.state) && !self.is_frozen()
    }

    /// Whether the cgroup freezer holds it. A kernel without symbols does not say: then it is taken for not frozen.
    fn is_frozen(&self) -> bool {
        let sleeps = matches!(self.state, b'S' | b'D');
        let path = format!("/proc/{}/wchan", self.pid.as_raw_pid());
        sleeps && fs::read_to_string(path).is_ok_and(|place| FROZEN.contains(&place.trim()))
    }
}

/// Those of `pids` that can be read.
pub(super) fn these(pids: impl Iterator<Item = Pid>) -> Vec<Process> {
    pids.filter_map(|pid| Process::read(pid.as_raw_pid())).collect()
}

/// Every process of this namespace that can be read; those that end meanwhile are left out.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::read).collect()
}

/// How long the calling thread has waited for a CPU so far while it could have run; none where the kernel does not say.
/// The second figure of schedstat (Documentation/scheduler/sched-stats.rst).
pub fn own_run_delay() -> Option<Nanos> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Nanos)
}

/// A process and, of its CPU time, that of its children. The fields come after the name, which may hold spaces and
/// parentheses itself.
fn parse(stat: &str) -> Option<(Process, Nanos)> {
    let pid = stat.split(' ').next()?.parse().ok().and_then(Pid::from_raw)?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    // state is field 3; ppid 4; utime, stime, cutime and cstime 14 to 17.
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let own = Nanos((number(11)? + number(12)?) * tick);
    let children = Nanos((number(13)? + number(14)?) * tick);
    let state = *fields.first()?.as_bytes().first()?;
    let process = Process { pid, parent: fields.get(1)?.parse().ok()?, state, cpu_time: own + children };
    Some((process, children))
}

/// All that `ancestor` started, and what those started.
pub(super) fn descendants(ancestor: Pid) -> Vec<Pid> {
    below(&all(), ancestor)
}

fn below(processes: &[Process], ancestor: Pid) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<Pid>> = HashMap::new();
    processes.iter().for_each(|process| children.entry(process.parent).or_default().push(process.pid));
    let (mut found, mut seen, mut next) = (Vec::new(), HashSet::new(), vec![ancestor]);
    while let Some(pid) = next.pop() {
        for &child in children.get(&pid.as_raw_pid()).into_iter().flatten() {
            if seen.insert(child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// Memory that can be had without swapping, in bytes. Kernels before 3.14 have no `MemAvailable`: there it is what is
/// free or holds clean copies of files.
pub(super) fn available_memory() -> u64 {
    memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
}

fn memory(text: &str) -> u64 {
    let kibibytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
    };
    let older = || ["MemFree", "Buffers", "Cached"].into_iter().filter_map(kibibytes).sum();
    kibibytes("MemAvailable").unwrap_or_else(older) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    #[test]
    fn a_stat_line_parses_whatever_the_name() {
        let line = "42 (a) (b c) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 1 0 5 6 7";
        let (process, children) = parse(line).unwrap();
        assert_eq!((process.pid, process.parent, process.state), (pid(42), 7, b'S'));
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!((process.cpu_time, children), (Nanos(124 * tick), Nanos(4 * tick)));
        assert_eq!(parse("42 (cut"), None);
    }

    #[test]
    fn cpu_time_is_finer_than_the_ticks_of_proc() {
        let own = sys::process::own_pid().as_raw_pid();
        let first = Process::read(own).unwrap().cpu_time;
        let until = sys::clock::process_cpu_time() + 1_000_000;
        while sys::clock::process_cpu_time() < until {}
        let more = Process::read(own).unwrap().cpu_time.saturating_sub(first);
        assert!(more >= Nanos::from_millis(1), "{more}");
        assert!(!more.0.is_multiple_of(1_000_000), "{more}");
    }

    #[test]
    fn a_process_lives_unless_it_is_stopped_or_ended() {
        let own = these([sys::process::own_pid()].into_iter()).remove(0);
        assert!(own.is_alive() && !own.waits());
        for (state, alive) in
            [(b'R', true), (b'S', true), (b'D', true), (b'T', false), (b't', false), (b'Z', false)]
        {
            assert_eq!(Process { state, ..own }.is_alive(), alive, "{}", char::from(state));
        }
        assert!(Process { state: b'D', ..own }.waits());
    }

    #[test]
    fn this_process_is_among_all() {
        let own = sys::process::own_pid();
        let process = all().into_iter().find(|process| process.pid == own).unwrap();
        assert!(process.parent > 0);
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_nothing_else() {
        let make =
            |(number, parent)| Process { pid: pid(number), parent, state: b'S', cpu_time: Nanos::ZERO };
        let processes: Vec<Process> = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (7, 7)].map(make).to_vec();
        let mut found = below(&processes, pid(2));
        found.sort_by_key(|pid| pid.as_raw_pid());
        assert_eq!(found, [pid(3), pid(4)]);
        assert_eq!(below(&processes, pid(7)), [pid(7)]);
    }

    #[test]
    fn available_memory_is_estimated_where_the_kernel_does_not_say() {
        assert_eq!(memory("MemTotal: 9 kB\nMemAvailable:   4 kB\nMemFree: 1 kB\n"), 4096);
        assert_eq!(memory("MemFree: 1 kB\nBuffers: 2 kB\nCached: 3 kB\nSwapCached: 9 kB\n"), 6144);
        assert_eq!(memory(""), 0);
    }
}
