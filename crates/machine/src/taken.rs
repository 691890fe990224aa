//! What the running kernel made of parameters on its command line, as far as its log and its files show.
//!
//! Three witnesses. `Unknown kernel command line parameters` (init/main.c, 5.14) names what no handler took. A complaint
//! about a value names a parameter that was refused. `/sys/module/NAME/parameters` has the parameters of modules. What
//! none of them can show is [`ParameterAnswer::Unknown`], never read:
//!
//! - The line leaves out every name with a dot: it is taken for the parameter of a module that is not loaded.
//! - It also names parameters that work, because something read them before the kernel's own handlers ([`ELSEWHERE`]).
//! - A handler that takes a value without looking at it, or that reads a prefix of the name, leaves no trace.

use record::{Fact, KernelParameter, ParameterAnswer};
use sysroot::SysRoot;
use units::KernelVersion;

use crate::command_line::{self, Word};
use crate::kernel_log::{BootLog, whole_log};
use crate::parameters;

/// Names that begin so are for experiments: no kernel reads them, by intention.
const OWN: &str = "worstcase.";

/// Since when the kernel names what it does not know.
const NAMES_UNKNOWN: KernelVersion = KernelVersion::new(5, 14);
/// Since when `sysctl.NAME=VALUE` is read.
const READS_SYSCTL: KernelVersion = KernelVersion::new(5, 8);

/// How the line begins that names unknown parameters: since 5.16, and in 5.14 and 5.15.
const UNKNOWN: [&str; 2] = ["nknown kernel command line parameters \"", "nknown command line parameters:"];
/// How it ends since 5.16, unless the log cut it off.
const UNKNOWN_ENDS: &str = "\", will be passed to user space.";

/// Parameters that the line names although they work: they are looked up in the command line itself, by the code that
/// unpacks the kernel, or before any handler runs (`cmdline_find_option`; 6.1 and 6.12), or by the boot loader.
const ELSEWHERE: [&str; 25] = [
    "BOOT_IMAGE",
    "clearcpuid",
    "dis_ucode_ldr",
    "initrd",
    "mem_encrypt",
    "no387",
    "no5lvl",
    "nofxsr",
    "nokaslr",
    "nopti",
    "nospec_store_bypass_disable",
    "nospectre_v2",
    "noxsave",
    "noxsaveopt",
    "noxsaves",
    "pti",
    "sev",
    "spec_store_bypass_disable",
    "spectre_bhi",
    "spectre_v2",
    "spectre_v2_user",
    "split_lock_detect",
    "tsx",
    "vdso32",
    "vga",
];

/// Parts of a message that says that a value, or a parameter, is not taken.
const COMPLAINTS: [&str; 15] = [
    "bad ",
    "error",
    "failed to set",
    "ignor",
    "illegal",
    "incorrect",
    "invalid",
    "malformed",
    "not recognized",
    "not supported",
    "out of range",
    "skipped",
    "too large",
    "unknown",
    "unsupported",
];

/// What the kernel made of each of `words`, which stand as on its command line. Parameters of this program's own
/// experiments (`worstcase.`) are left out.
pub fn taken(root: &SysRoot, words: &[String]) -> Vec<KernelParameter> {
    let kernel = Kernel {
        root,
        log: whole_log(root).value().cloned(),
        version: root.read("/proc/sys/kernel/osrelease").value().and_then(|text| text.parse().ok()),
    };
    let parsed = words.iter().flat_map(|text| command_line::words(text).map(|(at, word)| (&text[at], word)));
    let asked = parsed.filter(|(_, word)| !word.name.starts_with(OWN));
    let parameter = |(text, word): (&str, Word)| {
        let (answer, evidence) = kernel.answer(&word);
        KernelParameter { word: text.to_owned(), answer, evidence }
    };
    asked.map(parameter).collect()
}

struct Kernel<'a> {
    root: &'a SysRoot,
    log: Option<BootLog>,
    version: Option<KernelVersion>,
}

impl Kernel<'_> {
    fn answer(&self, word: &Word) -> (ParameterAnswer, String) {
        use ParameterAnswer::{Read, Refused, Unknown};
        if let Some(line) = self.complaint(word) {
            return (Refused, line.to_owned());
        }
        if word.name.contains('.') {
            return self.dotted(word);
        }
        match self.named() {
            Err(why) => (Unknown, why.to_owned()),
            Ok(named) if !named.has(word) && named.is_whole => {
                (Read, "the kernel's log does not name it as unknown".to_owned())
            }
            Ok(named) if !named.has(word) => {
                (Unknown, "the line of the kernel's log that names unknown parameters is cut off".to_owned())
            }
            Ok(_) if ELSEWHERE.iter().any(|name| parameters::same(name, &word.name)) => {
                (Read, "early code looks it up itself, so the kernel's log names it as unknown".to_owned())
            }
            Ok(_) => self.unknown(word),
        }
    }

    /// Named as unknown. A handler that refuses a value in silence is as good as none.
    fn unknown(&self, word: &Word) -> (ParameterAnswer, String) {
        let documented = !parameters::versions_with(&word.name).is_empty();
        let why = match parameters::reader_of(&word.name) {
            Some(reader) => format!("the kernel's log names it as unknown; it is for {reader}"),
            None if documented => {
                "the kernel's log names it as unknown: this kernel was built without it, or does not take \
                                   its value"
                    .to_owned()
            }
            None => "the kernel's log names it as unknown, and no document has it".to_owned(),
        };
        (ParameterAnswer::NotRead, why)
    }

    /// A module's parameter, or one with a dot in its name.
    fn dotted(&self, word: &Word) -> (ParameterAnswer, String) {
        use ParameterAnswer::{Read, Unknown};
        let (module, parameter) = word.name.split_once('.').unwrap_or((&word.name, ""));
        if module == "sysctl" {
            return self.sysctl(parameter);
        }
        let module = format!("/sys/module/{}", module.replace('-', "_"));
        let file = format!("{module}/parameters/{}", parameter.replace('-', "_"));
        let is_there = |path: &str| self.root.exists(path).value().is_some();
        match () {
            () if is_there(&file) => (Read, format!("{file} is there")),
            () if parameters::reader_of(&word.name).is_some() => {
                let reader = parameters::reader_of(&word.name).unwrap_or_default();
                (Unknown, format!("it is for {reader}, and not for the kernel"))
            }
            () if is_there(&module) => {
                let documented = !parameters::versions_with(&word.name).is_empty();
                let more =
                    if documented { "documents have it" } else { "no document has it: is it misspelt?" };
                (Unknown, format!("{file} is not there, as for parameters that have no file; {more}"))
            }
            () => (
                Unknown,
                format!("{module} is not there: no such module is loaded, or it shows no parameter"),
            ),
        }
    }

    fn sysctl(&self, name: &str) -> (ParameterAnswer, String) {
        use ParameterAnswer::{NotRead, Read, Unknown};
        if self.version.is_some_and(|version| version < READS_SYSCTL) {
            return (NotRead, format!("the kernel reads sysctl. since {READS_SYSCTL}"));
        }
        let file = file_of_sysctl(name);
        match self.root.exists(&file) {
            Fact::Value(()) => {
                (Read, format!("{file} is there, and the kernel's log does not complain of it"))
            }
            Fact::Absent => (NotRead, format!("{file} is not there")),
            _ => (Unknown, format!("{file} cannot be read")),
        }
    }

    /// What the log names as unknown, or why that says nothing.
    fn named(&self) -> Result<Named<'_>, &'static str> {
        if self.version.is_none_or(|version| version < NAMES_UNKNOWN) {
            return Err("kernels name unknown parameters in their log since 5.14 only");
        }
        let log = self.log.as_ref().ok_or("the kernel's log cannot be read")?;
        let line = log.lines.iter().find_map(|line| {
            UNKNOWN.iter().find_map(|begins| line.split_once(begins).map(|(_, rest)| (begins, rest)))
        });
        match line {
            Some((begins, rest)) => {
                let text = rest.strip_suffix(UNKNOWN_ENDS);
                let is_whole = text.is_some() || *begins == UNKNOWN[1];
                Ok(Named { text: text.unwrap_or(rest), is_whole })
            }
            None if log.is_whole => Ok(Named { text: "", is_whole: true }),
            None => Err("the kernel's log has lost its beginning"),
        }
    }

    /// The line of the log that refuses a parameter.
    fn complaint(&self, word: &Word) -> Option<&str> {
        let is_list =
            |line: &str| line.contains("ommand line: ") || UNKNOWN.iter().any(|begins| line.contains(begins));
        let lines = self.log.iter().flat_map(|log| &log.lines).filter(|line| !is_list(line));
        lines.map(String::as_str).find(|line| complains_of(line, word))
    }
}

/// The parameters that the log names.
struct Named<'a> {
    text: &'a str,
    /// Whether the line came to its end.
    is_whole: bool,
}

impl Named<'_> {
    /// They stand there without their quotes, with blanks between them.
    fn has(&self, word: &Word) -> bool {
        let plain = match &word.value {
            Some(value) => format!(" {}={value} ", word.name),
            None => format!(" {} ", word.name),
        };
        format!(" {} ", self.text.trim()).contains(&plain)
    }
}

/// Whether a message refuses a parameter: it has a word for that, and names the parameter in quotes, with its `=`, at its
/// beginning, or beside the very value.
fn complains_of(line: &str, word: &Word) -> bool {
    let lower = line.to_ascii_lowercase().replace('-', "_");
    let complains = COMPLAINTS.iter().any(|part| lower.contains(&part.replace('-', "_")));
    let name = word.name.to_ascii_lowercase().replace('-', "_");
    if !complains || name.is_empty() {
        return false;
    }
    let named = ["'", "`", "\""].iter().any(|quote| {
        lower.contains(&format!("{quote}{name}'"))
            || lower.contains(&format!("{quote}{name}\""))
            || lower.contains(&format!("{quote}{name}="))
    });
    let value = word.text().to_ascii_lowercase().replace('-', "_");
    let telling = value.len() > 2 && value.contains(|c: char| c.is_ascii_alphabetic());
    named
        || has_whole(&lower, &format!("{name}="))
        || lower.starts_with(&format!("{name}: "))
        || (telling && has_whole(&lower, &value) && has_whole(&lower, &name))
}

/// Whether `part` stands in `text` with no letter, digit, dot or underscore before it, nor behind it unless it ends in `=`.
fn has_whole(text: &str, part: &str) -> bool {
    let joins = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    text.match_indices(part).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(joins);
        let after =
            text[at + part.len()..].chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        !before && (!after || part.ends_with('='))
    })
}

/// The file that sysctl(8) means by a name such as `vm.swappiness`, whether it is there or not.
pub fn file_of_sysctl(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ParameterAnswer::{NotRead, Read, Refused, Unknown};
    use proptest::prelude::*;
    use sysroot::FakeTree;

    /// A kernel of that release, whose log has these messages after its first one.
    fn kernel(release: &str, messages: &[&str]) -> FakeTree {
        let lines: String = (1..)
            .zip(messages)
            .map(|(number, message)| format!("5,{number},{number}00,-;{message}\n"))
            .collect();
        let tree = FakeTree::new(&[("/proc/sys/kernel/osrelease", release)]);
        tree.write("/dev/kmsg", format!("5,0,0,-;Linux version {release}\n{lines}"));
        tree
    }

    fn answers(tree: &FakeTree, words: &[&str]) -> Vec<ParameterAnswer> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        taken(&tree.root, &words).into_iter().map(|parameter| parameter.answer).collect()
    }

    #[test]
    fn misspelt_parameters_are_not_read_and_refused_values_are_refused() {
        let tree = kernel(
            "6.1.0-56-amd64",
            &[
                "Command line: console=ttyS0 nokaslr preempt=nonne thredirqs mitigatoins=off threadirqs bogus_error=1",
                "Dynamic Preempt: unsupported mode: nonne",
                "Malformed early option 'nohz'",
                "Unknown kernel command line parameters \"nokaslr preempt=nonne thredirqs mitigatoins=off\", will be passed to user space.",
                "Housekeeping: nohz_full= or isolcpus= incorrect CPU range",
                "Booting kernel: `x' invalid for parameter `skew_tick'",
                "Unsupported mitigations=auto,nosmtt, system may still be vulnerable",
            ],
        );
        let asked = [
            ("preempt=nonne", Refused),
            ("thredirqs", NotRead),
            ("mitigatoins=off", NotRead),
            ("threadirqs", Read),
            ("nokaslr", Read),
            ("nohz=x", Refused),
            ("isolcpus=7", Refused),
            ("nohz-full=7", Refused),
            ("skew_tick=x", Refused),
            ("mitigations=auto,nosmtt", Refused),
        ];
        let (words, expected): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        assert_eq!(answers(&tree, &words), expected);
        let evidence = taken(&tree.root, &["thredirqs".to_owned()]).remove(0).evidence;
        assert!(evidence.contains("names it as unknown, and no document has it"), "{evidence}");
    }

    #[test]
    fn a_quoted_parameter_is_one_and_is_named_without_its_quotes() {
        let tree = kernel(
            "6.12.1",
            &["Unknown kernel command line parameters \"foo=a b c=d\", will be passed to user space."],
        );
        // The kernel names it without its quotes: `foo=a` stands in that line as much as `foo=a b` does.
        assert_eq!(answers(&tree, &["foo=\"a b\"", "\"c=d\"", "foo=a", "b", "e"]), {
            [NotRead, NotRead, NotRead, NotRead, Read]
        });
        let shown = taken(&tree.root, &["foo=\"a b\"".to_owned()]).remove(0);
        assert_eq!(shown.word, "foo=\"a b\"");
    }

    #[test]
    fn a_dotted_parameter_is_shown_by_its_file_alone() {
        let tree = kernel("6.1.0", &[]);
        tree.write("/sys/module/rcu_nocb/parameters/poll", "N");
        tree.write("/sys/module/printk/parameters/time", "Y");
        tree.write("/proc/sys/vm/swappiness", "10");
        let asked = [
            ("printk.time=1", Read),
            ("rcu-nocb.poll=1", Read),
            ("printk.timme=1", Unknown),
            ("igb.x=1", Unknown),
            ("systemd.unit=rescue.target", Unknown),
            ("sysctl.vm.swappiness=10", Read),
            ("sysctl.vm.swapiness=10", NotRead),
        ];
        let (words, expected): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        assert_eq!(answers(&tree, &words), expected);
        assert!(taken(&tree.root, &["worstcase.control=1".to_owned()]).is_empty(), "nobody is to read it");
    }

    #[test]
    fn what_the_log_cannot_show_is_unknown_and_never_read() {
        let words = ["quiet", "thredirqs"];
        assert_eq!(answers(&kernel("5.10.0", &[]), &words), [Unknown, Unknown], "it names none");
        let lost = kernel("6.1.0", &[]);
        lost.write("/dev/kmsg", "5,77,100,-;later\n");
        assert_eq!(answers(&lost, &words), [Unknown, Unknown], "its beginning is lost");
        let cut_off =
            kernel("6.1.0", &["Unknown kernel command line parameters \"thredirqs a=1 b=2 and so o"]);
        assert_eq!(answers(&cut_off, &words), [Unknown, NotRead]);
        assert_eq!(answers(&FakeTree::empty(), &words), [Unknown, Unknown], "there is no log");
        let old = kernel("5.15.1", &["Unknown command line parameters: thredirqs a=1"]);
        assert_eq!(answers(&old, &words), [Read, NotRead]);
    }

    #[test]
    fn ordinary_messages_are_no_complaints() {
        let tree = kernel(
            "6.1.0",
            &[
                "Dynamic Preempt: full",
                "ACPI BIOS Error (bug): Could not resolve symbol",
                "tsc: Unable to calibrate against PIT",
                "ACPI: Ignoring the unknown device on bus 1",
            ],
        );
        let words = ["preempt=full", "tsc=reliable", "acpi_osi=1", "panic=1", "bus=1"];
        assert_eq!(answers(&tree, &words), [Read; 5]);
    }

    proptest! {
        #[test]
        fn any_log_and_any_word_are_answered(line in ".{0,60}", word in "[a-z._=\"' -]{0,20}") {
            let tree = kernel("6.1.0", &[&line.replace('\n', " ")]);
            let _ = taken(&tree.root, &[word]);
        }
    }
}
