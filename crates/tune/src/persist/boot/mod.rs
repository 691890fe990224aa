//! Words for the kernel's command line, through the boot loader: planned by its back-end, written as one transaction, read
//! back by the loader's own grammar, and taken back.
//!
//! [`plan`] says what would be written; a back-end (one file a loader) knows which files, and what it cannot do.
//! [`carry_out`] does it. [`effect`] says after the reboot which word took effect.

mod bls;
mod carry;
pub mod effect;
mod entry;
mod extlinux;
mod grub;
mod limits;
mod program;
mod raspberry_pi;
mod setting;
mod systemd_boot;
#[cfg(test)]
mod tests;
mod u_boot;
mod word;

use machine::boot_loader::{self, Request, Requested};
use machine::command_line::{Word, words};
use record::Fact;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;
use units::errno_in_words;

use super::{Contents, Edit};
use crate::error::{Error, Result};

pub use carry::{Note, System, Undone, carry_out, counted_as, persisted, undo};
pub use program::{Answer, LivePrograms, NoPrograms, Programs};
pub use setting::Setting;
pub use word::{Merged, ParameterEdit, line, written};

/// What our own entries, labels and files are called.
const OWN: &str = "worstcase";

/// The first line of what we write, where the file's form has comments.
const HEADER: &str = "# Written by worstcase tune persist; worstcase tune persist --undo takes it back.";

/// The reason of the refusal where no boot loader has left files that are known.
pub const NO_LOADER: &str = "there are none that are known";

/// In which way the words come into force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// At each boot.
    #[default]
    Default,
    /// Where somebody chooses an entry of our own; the default stays as it is.
    Entry,
    /// At the next boot and no other.
    Trial,
}

/// What would be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The loader: a name of the fact `bootloader`, or `bls`.
    pub loader: &'static str,
    /// In which way.
    pub manner: Manner,
    /// What was asked for.
    pub edit: ParameterEdit,
    /// What comes of it.
    pub merged: Merged,
    /// What the default boots now.
    pub before: Request,
    /// What is written.
    pub draft: Draft,
}

/// What a back-end would write.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Files that are changed.
    pub edits: Vec<Edit>,
    /// A file that a program makes of them.
    pub generated: Option<Generated>,
    /// What only a program can set.
    pub setting: Option<Setting>,
    /// Whether our own entry is what is booted until its tries are used up.
    pub takes_over: bool,
    /// What is to be known about it.
    pub notes: Vec<String>,
    /// How it is booted.
    pub next: &'static str,
}

/// A file that a program makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generated {
    /// The program, which takes `-o FILE`.
    pub program: String,
    /// The absolute path of the file that it makes.
    pub path: String,
}

/// What a back-end is asked.
struct Case<'a> {
    root: &'a SysRoot,
    programs: &'a mut dyn Programs,
    request: &'a Request,
    edit: &'a ParameterEdit,
    merged: &'a Merged,
    manner: Manner,
}

/// A boot loader that can be written to.
struct BackEnd {
    name: &'static str,
    /// What would be written.
    plan: fn(&mut Case<'_>) -> Result<Draft>,
    /// The words of our own entry, as the loader would read them.
    own: fn(&SysRoot, &Request) -> Option<Vec<Requested>>,
}

const BACK_ENDS: [BackEnd; 6] = [
    BackEnd { name: "grub", plan: grub::plan, own: grub::own },
    BackEnd { name: "bls", plan: bls::plan, own: bls::own },
    BackEnd { name: "systemd-boot", plan: systemd_boot::plan, own: systemd_boot::own },
    BackEnd { name: "extlinux", plan: extlinux::plan, own: extlinux::own },
    BackEnd { name: "raspberry-pi", plan: raspberry_pi::plan, own: raspberry_pi::own },
    BackEnd { name: "u-boot", plan: u_boot::plan, own: |_, _| None },
];

/// The loaders that can be written to.
pub fn loaders() -> impl Iterator<Item = &'static str> {
    BACK_ENDS.iter().map(|back_end| back_end.name)
}

fn back_end(name: &str) -> Option<&'static BackEnd> {
    BACK_ENDS.iter().find(|back_end| back_end.name == name)
}

/// The name under which the loader's own files are read: entries of the specification are GRUB's.
fn reader(loader: &str) -> &str {
    if loader == "bls" { "grub" } else { loader }
}

/// What would be written so that the next boots have the words of `edit`. `loader` is one of [`loaders`], for where
/// several have left files. Nothing is changed, and programs are only asked.
///
/// # Errors
/// [`Error`] with the reason for which nothing is written: files that are not understood, a word that somebody else has
/// set, a loader that cannot do it, a line that the kernel would cut off or not look at.
pub fn plan(
    root: &SysRoot,
    programs: &mut dyn Programs,
    loader: Option<&str>,
    edit: &ParameterEdit,
    manner: Manner,
) -> Result<Plan> {
    let request = request(root, programs, loader)?;
    limits::refuse_forced_line(root)?;
    let back_end = of_request(&request)?;
    let merged = edit.merged(&base(&request))?;
    if merged.added.is_empty() && merged.dropped.is_empty() {
        let hint = "there is nothing to do; worstcase check says what is not in force";
        return Err(Error::new("change", request.file.as_ref(), "its words are so already", hint));
    }
    limits::refuse_long_line(root, &words_only(&request.words), &merged.line)?;
    let draft =
        (back_end.plan)(&mut Case { root, programs, request: &request, edit, merged: &merged, manner })?;
    let edit = edit.clone();
    Ok(Plan { loader: back_end.name, manner, edit, merged, before: request, draft })
}

fn of_request(request: &Request) -> Result<&'static BackEnd> {
    let is_entry = request.loader == "grub" && request.file.ends_with(".conf");
    let name = if is_entry { "bls" } else { request.loader };
    let unknown = || Error::new("write to", name.as_ref(), "it has no back-end", "");
    back_end(name).ok_or_else(unknown)
}

/// What the loader boots now.
fn request(root: &SysRoot, programs: &mut dyn Programs, loader: Option<&str>) -> Result<Request> {
    let found = match loader {
        Some(name) => boot_loader::find_of(root, reader(name)),
        None => boot_loader::find(root),
    };
    let failed = |reason: &str, hint| {
        let whose = loader
            .map_or_else(|| "the boot loader's files".to_owned(), |name| format!("the files of {name}"));
        Err(Error::new("understand", whose.as_ref(), reason, hint))
    };
    match found {
        Fact::Value(request) if request.is_whole || request.loader == "u-boot" => Ok(request),
        Fact::Value(_) => failed("not all of them can be read", "run it as root"),
        Fact::Unreadable(errno) => failed(&errno_in_words(errno), "run it as root"),
        Fact::Absent => {
            let environment = match loader {
                None | Some("u-boot") => u_boot::of_environment(programs),
                Some(_) => None,
            };
            environment.map_or_else(
                || {
                    failed(
                        NO_LOADER,
                        "the words can be given where the machine's loader has them",
                    )
                },
                Ok,
            )
        }
        Fact::Unsupported => below_a_filter(root).unwrap_or_else(|| failed(
            "they do not say what is booted: a line sealed in a signed image, a choice in the firmware, or a script",
            "the words go where the image is built (/etc/kernel/cmdline), or into the script",
        )),
    }
}

/// The refusal to choose where the Raspberry Pi's firmware alone knows which file has the words.
fn below_a_filter(root: &SysRoot) -> Option<Result<Request>> {
    let filter = boot_loader::firmware_filter(root)?;
    let reason = format!(
        "it names the file with the kernel's words below {filter}, which holds for some boards or cables only"
    );
    let hint = "write cmdline= and os_prefix= below [all]";
    Some(Err(Error::new("understand", "config.txt".as_ref(), reason, hint)))
}

/// The words that a edit meets: those of the next boot, each where somebody wrote it rather than where a program put it,
/// and those that wait for that program.
fn base(request: &Request) -> Vec<Requested> {
    if request.loader != "grub" {
        return request.words.clone();
    }
    let same =
        |among: &[Requested], of: &Requested| among.iter().find(|other| other.word == of.word).cloned();
    let written = |of: &Requested| same(&request.sources, of).unwrap_or_else(|| of.clone());
    let waiting = request.sources.iter().filter(|of| same(&request.words, of).is_none()).cloned();
    request.words.iter().map(written).chain(waiting).collect()
}

/// The text of a file, and the edit that makes it `after`.
fn edit(path: &str, before: Option<String>, after: String) -> Edit {
    let before = before.map(|text| Contents::Bytes(text.into_bytes()));
    Edit { path: path.to_owned(), before, after: Some(Contents::Bytes(after.into_bytes())), mode: 0o644 }
}

/// The text of a file that must be there.
fn text(root: &SysRoot, path: &str) -> Result<String> {
    let failed = |reason: String| Error::new("read", path.as_ref(), reason, "run it as root");
    match root.bytes(path) {
        Fact::Value(bytes) => String::from_utf8(bytes).map_err(|_| failed("it is no text".to_owned())),
        Fact::Unreadable(errno) => Err(failed(errno_in_words(errno))),
        Fact::Absent | Fact::Unsupported => Err(failed("it is not there".to_owned())),
    }
}

/// The same of a file that need not be there.
fn text_if_any(root: &SysRoot, path: &str) -> Result<Option<String>> {
    if root.bytes(path) == Fact::Absent { Ok(None) } else { text(root, path).map(Some) }
}

/// A file of ours that nobody may have made yet.
fn own_file(root: &SysRoot, path: &str, text: String) -> Result<Edit> {
    match root.exists(path) {
        Fact::Absent => Ok(edit(path, None, text)),
        _ => {
            let hint = "it has the name of ours, and no journal lists it: move it away first";
            Err(Error::new("write", path.as_ref(), "it is there already", hint))
        }
    }
}

fn cannot(loader: &str, reason: &str, hint: &'static str) -> Error {
    Error::new("boot once or beside the default by", loader.as_ref(), reason, hint)
}

fn words_only(words: &[Requested]) -> Vec<Word> {
    words.iter().map(|of| of.word.clone()).collect()
}

impl Case<'_> {
    /// A line without the words that go, and with the new ones behind if it is `last`.
    fn edited(&self, old: &str, last: bool) -> String {
        match last {
            true => edited(old, self.merged),
            false => edited(old, &Merged { added: Vec::new(), ..self.merged.clone() }),
        }
    }
}

/// A line in which the words that go are left out and the new ones stand behind, all else as it stands there. What is for
/// init stays behind them.
fn edited(old: &str, merged: &Merged) -> String {
    let (mut kept, mut end) = (String::with_capacity(old.len()), 0);
    for (span, word) in words(old) {
        if word.name == "--" && word.value.is_none() {
            break;
        }
        if !merged.dropped.iter().any(|of| of.word == word) {
            kept.push_str(&old[end..span.end]);
        }
        end = span.end;
    }
    let added = line(&merged.added);
    let space = if kept.is_empty() || added.is_empty() { "" } else { " " };
    format!("{kept}{space}{added}{}", &old[end..])
}
