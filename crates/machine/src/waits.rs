//! What a thread of a program is blocked in, and what its descriptors are.

use record::Fact;
use sys::blocked::Blocked;
use sysroot::{SysRoot, parsed};

/// Descriptors of one wait that are looked at.
pub const MOST_DESCRIPTORS: usize = 64;

/// What a descriptor of a process leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// A file without a name, by its sort: `timerfd`, `eventfd`.
    Anonymous(String),
    /// A pipe.
    Pipe,
    /// A socket, as far as the tables of its network namespace have it.
    Socket(Option<Family>),
    /// A file or a device, by its path.
    File(String),
    /// It is closed, or may not be read.
    Unknown,
}

/// What a socket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Within the machine.
    Unix,
    /// Datagrams.
    Udp,
    /// Streams.
    Tcp,
}

/// The size of a program's words in bits, by which the numbers of its calls differ: the class in the head of its ELF file.
pub fn word_bits(root: &SysRoot, pid: i32) -> Fact<u32> {
    const CLASS: u64 = 4;
    let class = root.bytes_at::<1>(&format!("/proc/{pid}/exe"), CLASS);
    class.map(|[class]| if class == 1 { 32 } else { 64 })
}

/// The call in which a thread is blocked (proc(5)); absent where it runs, is blocked elsewhere, as in a page fault, or is not there.
pub fn blocked(root: &SysRoot, pid: i32, tid: i32) -> Fact<Blocked> {
    let text = root.read(&format!("/proc/{pid}/task/{tid}/syscall"));
    text.and_then(|text| match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => parsed(parse(&text).ok_or(())),
        false => Fact::Absent,
    })
}

/// The call of `230 0x1 0x7ffd.. .. SP PC`.
fn parse(text: &str) -> Option<Blocked> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(Blocked::of(number, arguments))
}

/// What a descriptor leads to.
pub fn descriptor(root: &SysRoot, pid: i32, fd: i32) -> Descriptor {
    let link = root.link(&format!("/proc/{pid}/fd/{fd}"));
    let Some(link) = link.value() else { return Descriptor::Unknown };
    if let Some(name) = link.strip_prefix("anon_inode:") {
        return Descriptor::Anonymous(name.trim_matches(['[', ']']).to_owned());
    }
    if link.starts_with("pipe:") {
        return Descriptor::Pipe;
    }
    match link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
        Some(inode) => Descriptor::Socket(family(root, pid, inode)),
        None => Descriptor::File(link.clone()),
    }
}

/// The table that has the inode of a socket.
fn family(root: &SysRoot, pid: i32, inode: &str) -> Option<Family> {
    const TABLES: [(&str, Family); 5] = [
        ("unix", Family::Unix),
        ("udp", Family::Udp),
        ("udp6", Family::Udp),
        ("tcp", Family::Tcp),
        ("tcp6", Family::Tcp),
    ];
    let has = |table: &str| {
        let text = root.read(&format!("/proc/{pid}/net/{table}"));
        text.value().is_some_and(|text| text.split_whitespace().any(|word| word == inode))
    };
    TABLES.into_iter().find(|(table, _)| has(table)).map(|(_, family)| family)
}

/// The descriptors of poll's array, in the memory of the process: `struct pollfd` is 8 bytes and begins with one (poll(2)). The
/// first 64 of them.
pub fn polled(root: &SysRoot, pid: i32, array: u64, count: u64) -> Vec<i32> {
    const LENGTH: u64 = 8;
    let one = |place: u64| {
        let bytes = root.bytes_at::<4>(&format!("/proc/{pid}/mem"), array.checked_add(place * LENGTH)?);
        Some(i32::from_ne_bytes(*bytes.value()?)).filter(|fd| *fd >= 0)
    };
    (0..count.min(MOST_DESCRIPTORS as u64)).filter_map(one).collect()
}

/// The descriptors of an epoll set: lines `tfd: 5 events: 19 ..` (proc(5)). The first 64 of them.
pub fn in_set(root: &SysRoot, pid: i32, fd: i32) -> Vec<i32> {
    let info = root.read(&format!("/proc/{pid}/fdinfo/{fd}"));
    let of_line = |line: &str| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok();
    let lines = info.value().map_or("", String::as_str).lines();
    lines.filter_map(of_line).take(MOST_DESCRIPTORS).collect()
}

#[cfg(test)]
mod tests {
    use sysroot::FakeTree;

    use super::*;

    #[test]
    fn lines_of_the_kernel_are_calls_with_arguments() {
        let call = |text: &str| {
            let tree = FakeTree::new(&[("/proc/7/task/8/syscall", text)]);
            blocked(&tree.root, 7, 8)
        };
        assert_eq!(call("999 0x1 0x1 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n"), Fact::Value(Blocked::Other(999)));
        for none in ["running\n", "-1 0x7ffd 0x7f01\n", ""] {
            assert_eq!(call(none), Fact::Absent, "{none}");
        }
        for foreign in ["230 0x1", "230 1 2 3 4 5 6", "99999999999999999999 0x1 0x1 0x1 0x1 0x1 0x1"] {
            assert!(matches!(call(foreign), Fact::Unreadable(_)), "{foreign}");
        }
    }

    #[test]
    fn descriptors_of_a_set_are_read_from_what_the_kernel_says_of_it() {
        let text =
            "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data:  5\ntfd: 12 events: 1\ntfd: x\n";
        let tree = FakeTree::new(&[("/proc/7/fdinfo/3", text)]);
        assert_eq!(in_set(&tree.root, 7, 3), [5, 12]);
        assert_eq!(in_set(&tree.root, 7, 4), [0; 0]);
        assert_eq!(descriptor(&tree.root, 7, 4), Descriptor::Unknown);
    }
}
