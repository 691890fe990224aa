//! What code may say where.

use super::source::Source;
use super::{Finding, Tree};

/// Crates that hold `unsafe`: system calls, the library that QEMU loads, which speaks its C interface, and a library of its
/// own whose stacks, rings and C face are made of it.
const UNSAFE: [&str; 4] = ["sys", "plugin", "runtime", "runtime-c"];

/// Crates that print: the binary, these tasks, and what tests say by a helper.
const PRINTING: [&str; 3] = ["worstcase", "xtask", "guest-tests"];

const PRINTS: [&str; 5] = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];

/// What writes past [`SHOWING`] to a terminal.
const SHOWN_PAST: [&str; 7] = ["println!", "eprintln!", "print!", "eprint!", "dbg!", "stdout()", "stderr()"];

/// Who writes to standard output and standard error: for a reader `output` alone, where text of others loses what a terminal
/// obeys. Beside it, each with its reason.
const SHOWING: [(&str, &str); 9] = [
    ("crates/worstcase/src/output.rs", "the one way out"),
    ("crates/lab/src/guest/", "process 1 of a guest: its console"),
    ("crates/load/src/supervisor/mod.rs", "a pipe to the process that started it"),
    ("crates/operation/src/process.rs", "likewise"),
    ("crates/probe/src/process.rs", "likewise"),
    ("crates/runner/src/scenario.rs", "where a load's own command prints to"),
    ("crates/runner/src/session.rs", "asks for the terminal's name"),
    ("crates/report/examples/", "an example"),
    ("crates/guest-tests/", "what tests say"),
];

/// Crates that open kernel files; the tasks read /proc to compare programs, fuzz targets name files that they make up.
const KERNEL_FILES: [&str; 9] =
    ["sysroot", "control", "machine", "survey", "trace", "tune", "load", "xtask", "fuzz"];

/// Parts of crates that do so too: process 1 of a guest is the init of its system, and recipes say what is written to kernel
/// files, of which their reader opens none. A double for tests names those that it answers for.
const KERNEL_FOLDERS: [&str; 3] =
    ["crates/lab/src/guest/", "crates/audit/src/recipe/", "crates/sys/src/evl/double.rs"];

/// Kernel files that others name, each with its reason.
const EXCEPTIONS: [(&str, &str); 37] = [
    ("files", "/proc/self/fd/{}"), // the very file that was looked at, opened to be written
    ("worstcase", "/dev/fd"),      // a pipe of the user's shell
    ("sys", "/dev/null"),          // where a child's output goes
    ("sys", "/dev/shm"),           // shared memory for kernels without memfd_create (before 3.17)
    ("sys", "/dev/zero"),          // whose read is measured
    ("sys", "/dev/hpet"),          // whose interrupts are waited for
    ("sys", "/dev"),               // likewise, of UIO
    ("sys", "/dev/vfio/vfio"),     // likewise, of VFIO
    ("sys", "/dev/vfio"),
    ("sys", "/dev/ptp{number}"), // a clock is its device's
    ("sys", "/dev/kvm"),         // whose guest is entered
    ("sys", "/dev/evl/control"), // the core that threads are attached to
    ("sys", "/dev/evl/clock/monotonic"),
    ("sys", "/dev/evl/thread/clone"),
    ("sys", "/sys/bus/pci/devices"),        // which of them is the device
    ("sys", "/proc"),                       // mounted in a new process namespace
    ("sys", "/proc/self/exe"),              // a program starts itself again
    ("probe", "/proc/self/exe"),            // likewise
    ("operation", "/proc/self/exe"),        // likewise
    ("sys", "/proc/self/ns/pid"),           // which process namespace this is
    ("sys", "/proc/self/task"),             // fork is safe only where there is one thread
    ("sys", "/proc/thread-self/schedstat"), // what a measuring thread reads of itself, as getrusage
    ("record", "/dev/shm"),                 // where a record may go, in memory
    ("record", "/dev/cpu_dma_latency"),     // the name of what a run holds, not opened
    ("record", "/dev/"),                    // the folder of a GPIO chip, left out where the chip is named
    ("worstcase", "/dev/{name}"),           // a GPIO chip that is named by its file alone
    ("lab", "/proc/self/fd/{}"),            // how QEMU is given files that have no name
    ("lab", "/dev/ttyS0"),                  // names in a guest, not opened here
    ("lab", "/dev/ttyS1"),
    ("lab", "/dev/ram0"),
    ("lab", "/dev/vda"),
    ("lab", "/dev/console"), // what a guest's root holds before anything is mounted
    ("lab", "/dev/null"),
    ("lab", "/proc"),
    ("lab", "/sys"),
    ("audit", "/dev/cpu_dma_latency"), // what a pasted recipe writes to, not opened
    ("audit", "/proc/sys/"),           // how a write is shown as a command, not opened
];

/// How a file is opened for writing, or a name made that leads elsewhere: by the standard library, and by the kernel's calls.
const OPENING: [&str; 16] = [
    "fs::write",
    "File::create",
    "File::create_new",
    "File::create_buffered",
    "File::options",
    "OpenOptions",
    "create_dir_all", // follows whoever's links: files::Directory
    "fs::copy",
    "OFlags::CREATE",
    "OFlags::WRONLY",
    "OFlags::RDWR",
    "OFlags::APPEND",
    "OFlags::TRUNC",
    "mknodat",
    "symlink",
    "hard_link",
];

/// Who opens files for writing: `control` those of the kernel, `files` our own. Beside them, each with its reason.
const WRITERS: [(&str, &str); 11] = [
    ("crates/control/", "the kernel's files"),
    ("crates/files/", "our own files"),
    ("crates/operation/src/family/", "files are what is measured, in a directory that was opened"),
    ("crates/tune/src/persist/disk.rs", "links of a unit, below a root that is resolved first"),
    ("crates/sys/", "system calls"),
    ("crates/sysroot/src/lib.rs", "opens so that reading does not wait, and writes nothing"),
    ("crates/sysroot/src/fake.rs", "trees that tests make up"),
    ("crates/lab/src/guest/", "process 1 of a guest: its console, its port, its disk"),
    ("crates/load/src/stressor/", "a load's work is to write files and devices"),
    ("crates/report/examples/", "an example"),
    ("xtask/", "tasks of those who work on this"),
];

/// How a file is opened for reading, through links and pipes, and without an end: by the standard library, and by the kernel's
/// calls.
const READING: [&str; 9] = [
    "fs::read",
    "fs::read_to_string",
    "fs::copy",
    "File::open",
    "File::open_buffered",
    "OFlags::RDONLY",
    "OFlags::empty",
    "openat",
    "openat2",
];

/// Who reads files so. Beside them `files` and `sysroot` do it for everybody, each with its reason.
const READERS: [(&str, &str); 11] = [
    ("crates/operation/src/family/", "files are what is measured, in a directory that was opened"),
    ("crates/files/", "our own files"),
    ("crates/sys/", "system calls"),
    ("crates/sysroot/", "the files of a system"),
    ("crates/lab/src/guest/", "process 1 of a guest: what is there is its own"),
    ("crates/load/src/", "files of the kernel, and a load's work is to read"),
    ("crates/tune/src/persist/disk.rs", "opens to bring to the disk what it has written"),
    ("crates/worstcase/src/commands/check/subject.rs", "a pipe of the user's shell"),
    ("crates/report/examples/", "an example"),
    ("crates/runtime", "a library of its own"),
    ("xtask/", "tasks of those who work on this"),
];

/// What is compiled again for each type that it is used with, and what is used in its place: the programs are small.
const MANY_TIMES_OVER: [(&str, &str); 7] = [
    (".sort_by(", "units::InOrder::order_by"),
    (".sort_by_key(", "units::InOrder::order_by_key"),
    (".sort_unstable_by_key(", "units::InOrder::order_by_key"),
    ("serde_json::from_slice", "record::json::read"),
    ("serde_json::from_str", "record::json::read"),
    ("serde_json::from_value", "record::json::read_value"),
    ("serde_json::from_reader", "record::json::read"),
];

/// Crates that are not in the programs, and those that sort numbers alone.
const MAY_BE_LARGE: [&str; 5] = ["xtask", "fuzz", "guest-tests", "statistics", "units"];

/// Paths that exist on one machine only. Written in two parts so that this file does not break its own rule.
const HOMES: [&str; 3] = [concat!("/", "work/"), concat!("/", "root/"), HOME];

/// A test may need a path that looks like a user's.
const HOME: &str = concat!("/", "home/");

pub fn unsafe_outside_sys(tree: &Tree) -> Vec<Finding> {
    let rust = tree.sources.iter().filter(|source| !UNSAFE.contains(&source.package()));
    lines(
        rust,
        |source| Box::new(source.all_code()),
        |line| has_word(line, "unsafe").then(|| "unsafe code".to_owned()),
    )
}

/// Build scripts speak to cargo by printing.
pub fn printing(tree: &Tree) -> Vec<Finding> {
    let is_library =
        |source: &&Source| !PRINTING.contains(&source.package()) && !source.path.ends_with("/build.rs");
    let libraries = tree.sources.iter().filter(is_library);
    let prints = |line: &str| PRINTS.into_iter().find(|print| has_word(line, print));
    lines(libraries, |source| Box::new(source.code()), |line| Some(format!("{} in a library", prints(line)?)))
}

/// See [`SHOWING`]. Tasks speak to those who work on this.
pub fn showing(tree: &Tree) -> Vec<Finding> {
    let may_show = |source: &Source| SHOWING.iter().any(|(place, _)| source.path.starts_with(place));
    let shipped = tree.sources.iter().filter(|source| {
        source.path.starts_with("crates/") && !source.path.ends_with("/build.rs") && !may_show(source)
    });
    let past = |line: &str| SHOWN_PAST.into_iter().find(|way| has_word(line, way));
    lines(shipped, |source| Box::new(source.code()), |line| Some(format!("{} past output", past(line)?)))
}

/// See [`MANY_TIMES_OVER`].
pub fn many_times_over(tree: &Tree) -> Vec<Finding> {
    let shipped = tree.sources.iter().filter(|source| {
        source.path.starts_with("crates/")
            && source.path.contains("/src/")
            && !MAY_BE_LARGE.contains(&source.package())
            // Modules of tests alone.
            && !["tests.rs", "/scripted.rs"].iter().any(|end| source.path.ends_with(end))
    });
    let large = |line: &str| {
        let (name, instead) = MANY_TIMES_OVER.into_iter().find(|(name, _)| line.contains(name))?;
        Some(format!("{name} is compiled for each type: {instead}"))
    };
    lines(shipped, |source| Box::new(source.code()), large)
}

pub fn machine_paths(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().flat_map(homes).collect()
}

fn homes(source: &Source) -> Vec<Finding> {
    let named = |(number, line): (usize, &str)| {
        let home = HOMES.into_iter().find(|home| line.contains(home))?;
        let allowed = home == HOME && source.is_test(number);
        (!allowed).then(|| Finding::new(&source.path, number, format!("{home} is a path of one machine")))
    };
    source.text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter_map(named).collect()
}

/// What git leaves where two changes meet.
pub fn conflicts(tree: &Tree) -> Vec<Finding> {
    let is_mark = |line: &str| ["<<<<<<< ", ">>>>>>> "].into_iter().any(|mark| line.starts_with(mark));
    let of_source = |source: &Source| {
        let mark = source.text.lines().position(is_mark);
        mark.map(|index| Finding::new(&source.path, index + 1, "a merge was left half done"))
    };
    tree.sources.iter().filter_map(of_source).collect()
}

pub fn kernel_paths(tree: &Tree) -> Vec<Finding> {
    let others = tree.sources.iter().filter(|source| {
        !KERNEL_FILES.contains(&source.package())
            && !KERNEL_FOLDERS.iter().any(|folder| source.path.starts_with(folder))
    });
    others.flat_map(kernel_literals).collect()
}

fn kernel_literals(source: &Source) -> Vec<Finding> {
    let outside = |(line, text): &&(usize, String)| {
        let excepted = EXCEPTIONS.iter().any(|(package, path)| *package == source.package() && path == text);
        !source.is_test(*line) && is_kernel_path(text) && !excepted
    };
    let finding =
        |(line, text): &(usize, String)| Finding::new(&source.path, *line, format!("opens {text}?"));
    source.scrubbed.literals.iter().filter(outside).map(finding).collect()
}

/// Whether a literal is a path below /proc, /sys or /dev; a sentence that names one has a blank.
fn is_kernel_path(text: &str) -> bool {
    let below =
        |root: &str| text == root || text.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
    ["/proc", "/sys", "/dev"].into_iter().any(below) && !text.contains(' ')
}

pub fn writers(tree: &Tree) -> Vec<Finding> {
    let is_writer = |source: &Source| {
        let is_named = WRITERS.iter().any(|(place, _)| source.path.starts_with(place));
        is_named || source.path.ends_with("_tests.rs") || source.path.ends_with("/build.rs")
    };
    let opening = |line: &str| OPENING.into_iter().find(|way| is_named(line, way));
    lines(
        tree.sources.iter().filter(|source| !is_writer(source)),
        |source| Box::new(source.code()),
        |line| Some(format!("{} outside of control and files", opening(line)?)),
    )
}

pub fn readers(tree: &Tree) -> Vec<Finding> {
    let is_reader = |source: &Source| {
        let is_named = READERS.iter().any(|(place, _)| source.path.starts_with(place));
        is_named || source.path.ends_with("tests.rs") || source.path.ends_with("/build.rs")
    };
    let opening = |line: &str| READING.into_iter().find(|way| is_named(line, way));
    lines(
        tree.sources.iter().filter(|source| !is_reader(source)),
        |source| Box::new(source.code()),
        |line| Some(format!("{} reads pipes, and without an end: files::read", opening(line)?)),
    )
}

type Lines<'a> = Box<dyn Iterator<Item = (usize, &'a str)> + 'a>;

/// One finding for each line that breaks the rule.
fn lines<'a>(
    sources: impl Iterator<Item = &'a Source>,
    look: fn(&'a Source) -> Lines<'a>,
    rule: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let found = |source: &'a Source| look(source).map(move |(number, line)| (source, number, line));
    sources
        .flat_map(found)
        .filter_map(|(source, number, line)| Some(Finding::new(&source.path, number, rule(line)?)))
        .collect()
}

/// Whether `way` stands in `line`, in full or as one of several names that are imported: `use std::fs::{read, write}`.
fn is_named(line: &str, way: &str) -> bool {
    let imported = |(module, name): (&str, &str)| {
        let listed = line.split_once(&format!("{module}::{{")).map(|(_, listed)| listed);
        listed.is_some_and(|listed| has_word(listed, name))
    };
    has_word(line, way) || way.split_once("::").is_some_and(imported)
}

/// Whether `word` stands in `line` by itself, not within a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let in_name = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(place, _)| {
        !line[..place].ends_with(in_name) && !line[place + word.len()..].starts_with(in_name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    #[test]
    fn what_is_compiled_for_each_type_is_found_outside_tests() {
        let text = "fn f() {\n    x.sort_by_key(|x| x.y);\n    serde_json::from_str(x);\n}\n";
        let tree =
            tree(&[("crates/a/src/f.rs", text), ("crates/a/tests/f.rs", text), ("xtask/src/f.rs", text)]);
        let found: Vec<_> = many_times_over(&tree).iter().map(|finding| finding.line).collect();
        assert_eq!(found, [2, 3]);
    }

    fn places(findings: Vec<Finding>) -> Vec<(String, usize)> {
        findings.into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn files_are_opened_for_writing_in_few_places() {
        let guilty = "fn f() {\n    std::fs::write(path, text)?;\n    File::create_new(path)\n}\n";
        let found = writers(&tree(&[
            ("crates/tune/src/apply.rs", guilty),
            ("crates/files/src/lib.rs", guilty),
            ("crates/tune/tests/apply.rs", guilty),
        ]));
        let place = |line| ("crates/tune/src/apply.rs".to_owned(), line);
        assert_eq!(places(found), [place(2), place(3)]);
    }

    /// One call of each kind, and where each is looked for.
    #[test]
    fn no_call_gets_past_the_one_way_to_write_to_read_and_to_show() {
        let found = |look: fn(&Tree) -> Vec<Finding>, line: &str| {
            let text = format!("fn f() {{\n    {line};\n}}\n");
            places(look(&tree(&[("crates/report/src/f.rs", &text)])))
        };
        let there = [("crates/report/src/f.rs".to_owned(), 2)];
        for line in [
            "std::fs::write(path, text)?",
            "use std::fs::{self, write}",
            "File::create_buffered(path)",
            "fs::OpenOptions::new().append(true).open(path)",
            "open(path, OFlags::WRONLY | OFlags::CREATE, mode)?",
            "std::os::unix::fs::symlink(target, path)?",
            "std::fs::hard_link(target, path)?",
            "mknodat(CWD, path, kind, mode, 0)?",
        ] {
            assert_eq!(found(writers, line), there, "{line}");
        }
        for line in [
            "fs::read_to_string(path)?",
            "use std::fs::{read_dir, read}",
            "File::open(path)?",
            "rustix::fs::open(path, OFlags::empty(), mode)?",
            "rustix::fs::openat(directory, name, flags, mode)?",
        ] {
            assert_eq!(found(readers, line), there, "{line}");
        }
        for line in ["println!(\"{name}\")", "writeln!(io::stderr(), \"{name}\")", "std::io::stdout().lock()"]
        {
            assert_eq!(found(showing, line), there, "{line}");
        }
        assert!(found(writers, "use std::fs::{self, read_dir}").is_empty());
        assert!(found(readers, "fs::read_dir(path)?").is_empty());
        assert!(found(showing, "command.stdout(Stdio::piped())").is_empty());
    }

    #[test]
    fn files_of_others_are_read_with_an_end() {
        let guilty =
            "fn f() {\n    fs::read(path)?;\n    fs::read_dir(path)?;\n    std::fs::File::open(path)\n}\n";
        let found = readers(&tree(&[
            ("crates/lab/src/hash.rs", guilty),
            ("crates/lab/src/guest/mod.rs", guilty),
            ("crates/lab/tests/hash.rs", guilty),
        ]));
        let place = |line| ("crates/lab/src/hash.rs".to_owned(), line);
        assert_eq!(places(found), [place(2), place(4)]);
    }

    #[test]
    fn unsafe_is_found_in_code_and_not_in_words_about_it() {
        let guilty = "// unsafe is fine here\n#![deny(unsafe_code)]\nfn f() { unsafe { g() } }\n";
        let found = unsafe_outside_sys(&tree(&[
            ("crates/load/src/lib.rs", guilty),
            ("crates/sys/src/lib.rs", guilty),
        ]));
        assert_eq!(places(found), [("crates/load/src/lib.rs".to_owned(), 3)]);
    }

    #[test]
    fn a_library_prints_in_its_tests_only() {
        let text = "fn f() { eprintln!(\"x\") }\n#[cfg(test)]\nmod tests { fn g() { println!() } }\n";
        let files = [
            ("crates/probe/src/a.rs", text),
            ("crates/worstcase/src/main.rs", text),
            ("crates/probe/tests/b.rs", text),
        ];
        assert_eq!(places(printing(&tree(&files))), [("crates/probe/src/a.rs".to_owned(), 1)]);
    }

    #[test]
    fn a_merge_that_was_left_half_done_is_found() {
        let files =
            [("docs/a.md", "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n"), ("docs/b.md", "a\n=====\n")];
        assert_eq!(places(conflicts(&tree(&files))), [("docs/a.md".to_owned(), 2)]);
    }

    #[test]
    fn kernel_files_are_found_in_literals_of_other_crates() {
        let text =
            "// \"/proc/stat\"\nf(\"/proc/stat\");\ng(\"/dev/null\");\nh(\"/system\", \"/sys is full\");\n";
        let files = [
            ("crates/sys/src/a.rs", text),
            ("crates/machine/src/a.rs", text),
            ("crates/report/src/a.rs", text),
        ];
        let found = places(kernel_paths(&tree(&files)));
        let report = "crates/report/src/a.rs".to_owned();
        assert_eq!(found, [("crates/sys/src/a.rs".to_owned(), 2), (report.clone(), 2), (report, 3)]);
    }

    #[test]
    fn homes_are_found_in_any_text() {
        let files = [("README.md", concat!("see /", "home/me/x\n")), ("a.toml", "path = \"/usr/share\"\n")];
        assert_eq!(places(machine_paths(&tree(&files))), [("README.md".to_owned(), 1)]);
    }
}
