//! Writes what is planned, reads it back as the loader will, and takes it back: at once if it reads otherwise, later from
//! the journal alone.

use machine::boot_loader::{self, Request, Requested};
use machine::command_line::Word;
use record::Fact;
use serde::{Deserialize, Serialize};
use sysroot::SysRoot;

use super::program::Programs;
use super::setting::{Setting, run};
use super::word::{ParameterEdit, line, written};
use super::{Generated, Manner, Plan, back_end, base, reader, words_only};
use crate::error::{Error, Result};
use crate::journal::boot_id;
use crate::persist::{Contents, Edit, Files, PutBack};
use crate::undo::Back;

/// What stands in the journal beside the files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The back-end.
    pub loader: String,
    /// In which way.
    pub manner: Manner,
    /// The words that were asked for, as on a kernel command line.
    pub words: String,
    /// Names of words that were taken away.
    pub removed: Vec<String>,
    /// Whether they might take the place of others.
    pub replace: bool,
    /// Words that the default had before.
    pub before: String,
    /// The boot in which it was written: what is written comes into force in another one.
    pub boot_id: String,
    /// An entry of which the loader counts the boots in its name.
    pub counted: Option<String>,
    /// What a program makes of the files.
    pub generated: Option<Generated>,
    /// What a program set, and what was there before.
    pub setting: Option<(Setting, Option<String>)>,
}

/// The system that is changed.
pub struct System<'a> {
    /// To be read.
    pub root: SysRoot,
    /// To be written: the transaction.
    pub files: Files<'a>,
    /// Its programs.
    pub programs: &'a mut dyn Programs,
}

/// What was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The files.
    pub files: Vec<PutBack>,
    /// What a program had set.
    pub setting: Option<Back>,
    /// A file that a program made anew, because others had made it anew meanwhile; or why it could not.
    pub regenerated: Option<Result<String>>,
    /// Words of ours that the next boot would still have.
    pub left: Vec<Word>,
}

/// What the journal says of kernel parameters, and whether all was done that was to be done.
///
/// # Errors
/// [`Error`] where it cannot be read.
pub fn persisted(files: &Files<'_>) -> Result<Option<(Note, bool)>> {
    let Some(recorded) = files.recorded()? else { return Ok(None) };
    let failed =
        |error| Error::new("understand", "the journal".as_ref(), error, "was it written by a newer version?");
    Ok(Some((record::json::read_value(&recorded.note).map_err(failed)?, recorded.is_whole)))
}

/// Does what is planned. Where something fails or reads otherwise than it should, all is as before when this returns.
///
/// # Errors
/// [`Error`] with what failed; its hint says so if something could not be taken back.
pub fn carry_out(system: &mut System<'_>, plan: &Plan) -> Result<()> {
    let old = match &plan.draft.setting {
        Some(setting) => setting.now(system.programs)?,
        None => None,
    };
    let note = Note {
        loader: plan.loader.to_owned(),
        manner: plan.manner,
        words: line(&plan.edit.set),
        removed: plan.edit.remove.clone(),
        replace: plan.edit.replace,
        before: line(&words_only(&plan.before.words)),
        boot_id: boot_id(),
        counted: plan.draft.edits.first().filter(|_| plan.draft.takes_over).map(|edit| edit.path.clone()),
        generated: plan.draft.generated.clone(),
        setting: plan.draft.setting.clone().map(|setting| (setting, old)),
    };
    let failed = |error| Error::new("write down", "the plan".as_ref(), error, "");
    system.files.begin(&serde_json::to_value(&note).map_err(failed)?)?;
    do_it(system, plan).map_err(|error| {
        let setting = plan.draft.setting.as_ref().map(|_| put_back(system.programs, &note));
        let error = system.files.rolled_back(error);
        match setting {
            Some(back) if !back.is_as_before() => {
                Error { hint: "what a program has set could not be put back", ..error }
            }
            _ => error,
        }
    })
}

fn do_it(system: &mut System<'_>, plan: &Plan) -> Result<()> {
    system.files.add(&plan.draft.edits)?;
    if let Some(generated) = &plan.draft.generated {
        let made = make(system, generated)?;
        let edit = Edit::of(system.files.disk(), &generated.path, Some(Contents::Bytes(made)))?;
        system.files.add(&[edit])?;
    }
    verify(&system.root, plan)?;
    if let Some(setting) = &plan.draft.setting {
        setting.set(system.programs, Some(setting.value()))?;
        if setting.is_readable() && setting.now(system.programs)?.as_deref() != Some(setting.value()) {
            let reason = "it does not read as it was set";
            return Err(Error::new("set", setting.value().as_ref(), reason, ""));
        }
    }
    system.files.finish()
}

/// The name of what a program makes.
const MADE: &str = "made";

/// What the program makes of the files now; the file itself stays as it is.
fn make(system: &mut System<'_>, generated: &Generated) -> Result<Vec<u8>> {
    let aside = system.files.aside(MADE);
    let path = system.root.path(&aside);
    let made = run(system.programs, &generated.program, &["-o", &path.to_string_lossy()]);
    let bytes = system.files.take(&aside)?;
    made?;
    let empty = || Error::new("run", generated.program.as_ref(), "it made nothing", "");
    bytes.filter(|bytes| !bytes.is_empty()).ok_or_else(empty)
}

/// Whether the loader will find what it was to find.
fn verify(root: &SysRoot, plan: &Plan) -> Result<()> {
    let wrong = |what: &str, words: Vec<Word>| {
        let reason = format!("{what}: {}", line(&words));
        let hint = "everything was put back; please report it with the loader's files";
        Err(Error::new("read back", plan.before.file.as_ref(), reason, hint))
    };
    if plan.before.file.is_empty() {
        return Ok(());
    }
    let Fact::Value(now) = boot_loader::find_of(root, reader(plan.loader)) else {
        return wrong("nothing in it can be understood any more", Vec::new());
    };
    if plan.manner == Manner::Default || plan.draft.takes_over {
        let seen = if is_made(plan) { words_only(&now.words) } else { words_only(&base(&now)) };
        return match holds(plan, &now, &seen) {
            true => Ok(()),
            false => wrong("the next boot would have", seen),
        };
    }
    let is_ours = |word: &&Word| now.words.iter().any(|of| of.word == **word);
    if plan.merged.added.iter().any(|word| is_ours(&word)) {
        return wrong("the default would be changed", words_only(&now.words));
    }
    let own = back_end(plan.loader).and_then(|back_end| (back_end.own)(root, &plan.before));
    let is_there = |words: &Vec<Requested>| holds(plan, &now, &words_only(words));
    match own {
        Some(words) if is_there(&words) => Ok(()),
        Some(words) => wrong("our entry would have", words_only(&words)),
        None if is_made(plan) || plan.draft.generated.is_some() => {
            wrong("there is no entry of ours", Vec::new())
        }
        None if plan.loader == "grub" => Ok(()),
        None => wrong("there is no entry of ours", Vec::new()),
    }
}

/// Whether the loader's own file was written, and not only what a program will make it of.
fn is_made(plan: &Plan) -> bool {
    plan.loader != "grub" || plan.draft.generated.is_some()
}

/// Whether a line has exactly the words that it is to have. What a program makes can have words that waited for it.
fn holds(plan: &Plan, now: &Request, seen: &[Word]) -> bool {
    if now.generator != "update-grub" {
        let sorted = |words: &[Word]| {
            let mut words: Vec<String> = words.iter().map(written).collect();
            words.sort_unstable();
            words
        };
        return sorted(seen) == sorted(&plan.merged.line);
    }
    let is_there = |word: &&Word| seen.contains(word);
    let others = seen.iter().filter(|word| !plan.edit.is_about(word));
    plan.merged.added.iter().all(|word| is_there(&word))
        && !plan.merged.dropped.iter().any(|of| seen.contains(&of.word))
        && others.eq(plan.merged.line.iter().filter(|word| !plan.edit.is_about(word)))
}

/// Takes everything back, from the journal alone. Nothing that somebody else has changed since is overwritten; a file that
/// a program makes is made anew if others have had it made anew meanwhile.
///
/// # Errors
/// [`Error`] where the journal cannot be read or put aside.
pub fn undo(system: &mut System<'_>) -> Result<Option<Undone>> {
    let Some((note, _)) = persisted(&system.files)? else { return Ok(None) };
    let setting = note.setting.as_ref().map(|_| put_back(system.programs, &note));
    if let (Some(path), Some(now)) = (&note.counted, counted_as(&system.files, &note)?) {
        system.files.rename(&now, path)?;
    }
    system.files.take(&system.files.aside(MADE))?;
    let files = system.files.restore()?;
    let is_foreign =
        |path: &str| files.iter().any(|file| file.path == path && matches!(file.back, Back::Foreign(_)));
    let made = note.generated.as_ref().filter(|generated| is_foreign(&generated.path));
    let regenerated = made.map(|generated| {
        let made = make(system, generated).and_then(|made| system.files.replace(&generated.path, made));
        made.map(|()| generated.path.clone())
    });
    system.files.close_after(&files)?;
    Ok(Some(Undone { files, setting, regenerated, left: left(&system.root, &note) }))
}

/// What an entry whose boots are counted is called now, where that is another name: `a+1.conf` becomes `a+0-1.conf` when
/// it is tried, and `a.conf` when the boot was good.
///
/// # Errors
/// [`Error`] where the directory cannot be read.
pub fn counted_as(files: &Files<'_>, note: &Note) -> Result<Option<String>> {
    let Some((directory, name)) = note.counted.as_ref().and_then(|path| path.rsplit_once('/')) else {
        return Ok(None);
    };
    let plain = name.strip_suffix("+1.conf").unwrap_or(name);
    let is_it = |other: &String| {
        let rest = other.strip_prefix(plain).and_then(|rest| rest.strip_suffix(".conf"));
        other != name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
    };
    let names = files.names(directory)?;
    let is_there = names.iter().any(|other| other == name);
    Ok(names.into_iter().find(is_it).filter(|_| !is_there).map(|other| format!("{directory}/{other}")))
}

/// Words of ours that the next boot would still have, and did not have before.
fn left(root: &SysRoot, note: &Note) -> Vec<Word> {
    let Fact::Value(request) = boot_loader::find_of(root, reader(&note.loader)) else { return Vec::new() };
    let before = machine::CommandLine::parse(&note.before).words;
    let edit = ParameterEdit::of(&note.words).unwrap_or_default();
    let is_left = |word: &Word| !before.contains(word) && words_only(&base(&request)).contains(word);
    edit.set.into_iter().filter(is_left).collect()
}

/// A setting is put back where it is still ours. One that the loader forgets by itself may be gone.
fn put_back(programs: &mut dyn Programs, note: &Note) -> Back {
    let Some((setting, old)) = &note.setting else { return Back::AsBefore };
    let now = match setting.now(programs) {
        Ok(now) => now,
        Err(error) => return Back::Unclear(error.to_string()),
    };
    if setting.is_readable() && now == *old {
        return Back::AsBefore;
    }
    match now {
        Some(now) if now != setting.value() => Back::Foreign(now),
        None if setting.is_readable() => Back::AsBefore,
        _ => match setting.set(programs, old.as_deref()) {
            Ok(()) => Back::Restored,
            Err(error) => Back::Unclear(error.to_string()),
        },
    }
}
