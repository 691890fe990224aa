//! Kernel parameters, where the boot loader has them.

use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use sysroot::SysRoot;
use tune::boot_id;
use tune::persist::boot::effect::{Effect, effects, still_there};
use tune::persist::boot::{
    self, LivePrograms, Manner, NoPrograms, Note, ParameterEdit, Plan, Programs, Undone, line, loaders,
    written,
};
use tune::persist::{Contents, Edit, Files, Live, STATE};

use super::super::choice::Choice;
use super::super::shown;
use super::System;
use crate::output;
use failure::{Error, Result};

/// The name of the transaction.
const NAME: &str = "boot";

/// Which words, and in which way.
#[derive(Args, Default)]
#[command(next_help_heading = "Kernel parameters")]
pub struct BootOptions {
    /// Write the kernel parameters that failing rules ask for, instead of the service
    #[arg(long)]
    boot: bool,

    /// Write these words: "isolcpus=managed_irq,domain,2-3 nohz_full=2-3"
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    words: Option<String>,

    /// Take words with these names off the kernel command line
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    remove: Vec<String>,

    /// Put a word in the place of one that somebody else has set to another value
    #[arg(long)]
    replace: bool,

    /// Use the words at the next boot only, where the boot loader can do that
    #[arg(long, conflicts_with = "entry")]
    trial: bool,

    /// Make an entry of its own in the boot loader's menu and leave the default as it is
    #[arg(long)]
    entry: bool,

    /// Make words that were written with --trial or --entry the default
    #[arg(long, conflicts_with_all = ["words", "remove", "trial", "entry", "status", "undo"])]
    keep: bool,

    /// The boot loader, where several have left files [default: what the machine was booted by]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(loaders()))]
    loader: Option<String>,
}

/// What a command works on.
struct Parts {
    root: SysRoot,
    disk: Live,
    programs: Box<dyn Programs>,
}

impl Parts {
    fn of(system: &System) -> Self {
        match system.is_live() {
            true => Self { root: SysRoot::live(), disk: system.disk(), programs: Box::new(LivePrograms) },
            false => Self { root: system.files(), disk: system.disk(), programs: Box::new(NoPrograms) },
        }
    }

    fn system(&mut self) -> boot::System<'_> {
        let files = Files::at(&mut self.disk, STATE, NAME);
        boot::System { root: self.root.clone(), files, programs: self.programs.as_mut() }
    }
}

impl BootOptions {
    /// Those that make these words part of the default entry.
    pub fn of_words(words: String) -> Self {
        Self { words: Some(words), ..Self::default() }
    }

    /// Whether it is the kernel command line that is to be changed.
    pub fn is_asked(&self) -> bool {
        self.boot || self.words.is_some() || !self.remove.is_empty() || self.is_of_words()
    }

    fn is_of_words(&self) -> bool {
        self.replace || self.trial || self.entry || self.keep || self.loader.is_some()
    }

    fn manner(&self) -> Manner {
        match (self.trial, self.entry) {
            (true, _) => Manner::Trial,
            (_, true) => Manner::Entry,
            _ => Manner::Default,
        }
    }

    pub fn run(&self, system: &System, choice: &Choice, dry_run: bool) -> Result<ExitCode> {
        let mut parts = Parts::of(system);
        if self.keep {
            return keep(system, &mut parts, dry_run);
        }
        if let Some((note, _)) = boot::persisted(&parts.system().files)? {
            let message =
                format!("parameters were written already: {}", line(&ParameterEdit::of(&note.words)?.set));
            let hint = "take them back first: worstcase tune persist --boot --undo";
            return Err(Error::new(message, hint));
        }
        let edit = self.edit(&parts.root, choice)?;
        let plan =
            boot::plan(&parts.root, parts.programs.as_mut(), self.loader.as_deref(), &edit, self.manner())
                .map_err(|error| by_hand(error, &edit))?;
        if dry_run {
            output::final_data(&text(&plan))?;
            return Ok(ExitCode::SUCCESS);
        }
        let _lock = system.lock()?;
        carry_out(&mut parts, &plan)
    }

    /// The words that were given, else those that failing rules ask for.
    fn edit(&self, root: &SysRoot, choice: &Choice) -> Result<ParameterEdit> {
        let text = match &self.words {
            Some(words) => words.clone(),
            None if self.remove.is_empty() => of_rules(root, choice)?,
            None => String::new(),
        };
        let remove = self.remove.clone();
        Ok(ParameterEdit { remove, replace: self.replace, ..ParameterEdit::of(&text)? })
    }
}

/// Where no boot loader is known somebody else has to write the words, and must know them.
fn by_hand(error: tune::Error, edit: &ParameterEdit) -> Error {
    let is_unknown = error.reason == boot::NO_LOADER;
    let (add, remove) = (line(&edit.set), edit.remove.join(" "));
    let error = Error::from(error);
    let of = |what: &str, words: String| (!words.is_empty()).then(|| format!("{what} {words}"));
    let todo: Vec<String> = of("add", add).into_iter().chain(of("take off", remove)).collect();
    match is_unknown {
        true => {
            error.with_hint(format!("where this machine has its kernel command line: {}", todo.join("; ")))
        }
        false => error,
    }
}

fn of_rules(root: &SysRoot, choice: &Choice) -> Result<String> {
    let words = choice.selection()?.parameters(root)?;
    for (rule, why) in &words.left_out {
        output::words(&format!("left out: {rule}: {why}"));
    }
    match words.words.is_empty() {
        false => Ok(words.words.join(" ")),
        true => Err(Error::new(
            "no failing rule asks for a parameter on the kernel command line",
            "--isolate 2-3 says which CPUs are to be isolated; or give the words: --words",
        )),
    }
}

fn carry_out(parts: &mut Parts, plan: &Plan) -> Result<ExitCode> {
    boot::carry_out(&mut parts.system(), plan)?;
    let written: Vec<&str> = plan.draft.edits.iter().map(|edit| edit.path.as_str()).collect();
    let generated = plan.draft.generated.iter().map(|generated| generated.path.as_str());
    let mut text: String =
        written.into_iter().chain(generated).map(|path| shown::marked("written", path)).collect();
    text += &ending(plan);
    output::final_data(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What is to be known, and what is to be done.
fn ending(plan: &Plan) -> String {
    let notes: String = plan.draft.notes.iter().map(|note| shown::marked("note", note)).collect();
    let line = shown::marked("words", &line(&plan.merged.line));
    let after = match plan.manner {
        Manner::Default => "worstcase tune persist --status says then what took effect",
        _ => "worstcase tune persist --status says then what took effect, --keep makes it the default",
    };
    format!("{line}{notes}{}{}", shown::marked("next", plan.draft.next), shown::marked("", after))
}

/// What would be done.
fn text(plan: &Plan) -> String {
    let mut text = format!("boot loader: {}\n", plan.loader);
    text += &plan.draft.edits.iter().map(difference).collect::<String>();
    if let Some(generated) = &plan.draft.generated {
        text += &format!("then {} makes {} anew\n", generated.program, generated.path);
    }
    if let Some(setting) = &plan.draft.setting {
        text += &format!("then what is booted next is set to {}\n", setting.value());
    }
    text + &ending(plan)
}

/// The lines of a file that change.
fn difference(edit: &Edit) -> String {
    let text = |contents: &Option<Contents>| match contents {
        Some(Contents::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    let (before, after) = (text(&edit.before), text(&edit.after));
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let mut lines = format!("{}\n", edit.path);
    lines.extend(old[head..old.len() - tail].iter().map(|line| format!("- {line}\n")));
    lines.extend(new[head..new.len() - tail].iter().map(|line| format!("+ {line}\n")));
    lines
}

/// The words of a trial, or of an entry, for the default.
fn keep(system: &System, parts: &mut Parts, dry_run: bool) -> Result<ExitCode> {
    let Some((note, _)) = boot::persisted(&parts.system().files)? else {
        return Err(Error::new(
            "no kernel parameters were written",
            "worstcase tune persist --trial writes them",
        ));
    };
    if note.manner == Manner::Default {
        return Err(Error::new("the words are the default already", ""));
    }
    let edit = ParameterEdit {
        remove: note.removed.clone(),
        replace: note.replace,
        ..ParameterEdit::of(&note.words)?
    };
    if note.boot_id == boot_id()
        || !effects(&parts.root, &edit.set).iter().any(|(_, effect)| !effect.is_off())
    {
        let message = "keep words that this machine was not booted with";
        return Err(Error::new(message, "reboot into the trial first; --status says what took effect"));
    }
    if dry_run {
        output::final_data(&format!("{} would be the default\n", line(&edit.set)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = system.lock()?;
    if let Some((text, false)) = boot::undo(&mut parts.system())?.as_ref().map(undone_in_words) {
        output::words(text.trim_end());
        let hint = "mend that, then write the words anew: worstcase tune persist --words";
        return Err(Error::new("the trial could not be undone completely", hint));
    }
    let plan = boot::plan(&parts.root, parts.programs.as_mut(), Some(&note.loader), &edit, Manner::Default)?;
    carry_out(parts, &plan)
}

/// Takes the words back.
pub fn undo(system: &System) -> Result<ExitCode> {
    let mut parts = Parts::of(system);
    if boot::persisted(&parts.system().files)?.is_none() {
        output::final_data("no kernel parameters were written\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let _lock = system.lock()?;
    let Some(undone) = boot::undo(&mut parts.system())? else { return Ok(ExitCode::SUCCESS) };
    let (text, is_whole) = undone_in_words(&undone);
    output::final_data(&text)?;
    Ok(ExitCode::from(u8::from(!is_whole)))
}

fn undone_in_words(undone: &Undone) -> (String, bool) {
    let is_made_anew =
        |path: &str| undone.regenerated.as_ref().and_then(|made| made.as_deref().ok()) == Some(path);
    let mut text = String::new();
    for file in &undone.files {
        text += &match is_made_anew(&file.path) {
            true => {
                shown::marked("made anew", &format!("{}: others have made it anew since, too", file.path))
            }
            false => shown::put_back(&file.path, &file.back),
        };
    }
    if let Some(back) = &undone.setting {
        text += &shown::put_back("what is booted next", back);
    }
    if let Some(Err(error)) = &undone.regenerated {
        text += &shown::marked("failed", &format!("{error}: make its menu anew when that is mended"));
    }
    let files_are = undone.files.iter().all(|file| file.back.is_as_before() || is_made_anew(&file.path));
    let setting_is = undone.setting.as_ref().is_none_or(tune::undo::Back::is_as_before);
    match (files_are && setting_is, undone.left.is_empty()) {
        (true, true) => text += "proof: every file is as before, and the next boot has none of the words\n",
        (false, true) => text += "not everything is as before\n",
        (_, false) => text += &format!("the next boot would still have {}\n", line(&undone.left)),
    }
    (text, files_are && setting_is && undone.left.is_empty())
}

/// What was written, and what took effect.
pub fn status(system: &System) -> Result<ExitCode> {
    let mut parts = Parts::of(system);
    let parts_of = parts.system();
    let Some((note, is_whole)) = boot::persisted(&parts_of.files)? else {
        output::final_data("no kernel parameters were written\n")?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut text = String::new();
    let mut is_fine = is_whole;
    let counted = boot::counted_as(&parts_of.files, &note)?;
    for (path, now) in parts_of.files.now()? {
        if let Some(name) = counted.as_ref().filter(|_| note.counted.as_ref() == Some(&path)) {
            text += &shown::marked("counted", name);
            continue;
        }
        let is_made = note.generated.as_ref().is_some_and(|generated| generated.path == path);
        is_fine &= is_made || !now.is_off();
        text += &super::unit::of_file(&path, &now);
    }
    if !is_whole {
        text += "the command that wrote them was killed: worstcase tune persist --undo takes them back\n";
    }
    if system.is_live() {
        let (words, holds) = at_this_boot(&parts.root, &note)?;
        text += &words;
        is_fine &= holds;
    }
    output::final_data(&text)?;
    Ok(ExitCode::from(u8::from(!is_fine)))
}

/// What became of each word, and whether all took effect.
fn at_this_boot(root: &SysRoot, note: &Note) -> Result<(String, bool)> {
    if note.boot_id == boot_id() {
        return Ok((format!("{}: not booted since\n", note.words), true));
    }
    let effects = effects(root, &ParameterEdit::of(&note.words)?.set);
    let mut text: String = effects.iter().map(|(word, effect)| of_word(&written(word), effect)).collect();
    let still = still_there(root, &note.removed);
    text += &still
        .iter()
        .map(|name| shown::marked("there", &format!("{name}: it was to go")))
        .collect::<String>();
    Ok((text, still.is_empty() && !effects.iter().any(|(_, effect)| effect.is_off())))
}

fn of_word(word: &str, effect: &Effect) -> String {
    match effect {
        Effect::InForce(why) => shown::marked("in force", &format!("{word}: {why}")),
        Effect::Given => shown::marked("given", &format!("{word}: nothing of the kernel shows more")),
        Effect::NotGiven(why) => shown::marked("not given", &format!("{word}: {why}")),
        Effect::Ignored(why) => shown::marked("ignored", &format!("{word}: {why}")),
        Effect::Differs(why) => shown::marked("differs", &format!("{word}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that could not be written were not shown either.
    #[test]
    fn where_no_boot_loader_is_known_the_words_to_add_by_hand_are_named() {
        let root = tempfile::tempdir().unwrap();
        let edit = ParameterEdit {
            remove: vec!["quiet".into()],
            ..ParameterEdit::of("isolcpus=managed_irq,domain,1 threadirqs").unwrap()
        };
        let refused = boot::plan(&SysRoot::at(root.path()), &mut NoPrograms, None, &edit, Manner::Default);
        let error = by_hand(refused.unwrap_err(), &edit);
        assert_eq!(
            error.hint,
            "where this machine has its kernel command line: add isolcpus=managed_irq,domain,1 threadirqs; take off quiet"
        );
        let (path, reason) = ("grub.cfg".to_owned(), "it is damaged".to_owned());
        let other = tune::Error { operation: "understand", path, reason, hint: "mend it" };
        assert_eq!(by_hand(other, &edit).hint, "mend it");
    }
}
