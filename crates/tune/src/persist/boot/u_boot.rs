//! U-Boot: a variable in the text that a board's script reads, or one of our own in the environment itself, which the
//! board's boot command has to name.

use machine::boot_loader::{Request, Requested, cmdline_txt};

use super::program::Programs;
use super::setting::Setting;
use super::word::refuse_characters;
use super::{Case, Draft, Manner, cannot, edit, line, text};
use crate::error::{Error, Result};

/// Variables of such texts that hold words beside the board's own, the best first.
const VARIABLES: [&str; 5] = ["extraargs", "optargs", "extrabootargs", "cmdline", "bootargs"];

/// Our variable of the environment.
const OWN_VARIABLE: &str = "worstcase_args";

pub(super) fn plan(case: &mut Case<'_>) -> Result<Draft> {
    if case.manner != Manner::Default {
        let reason = "it counts boots only where the board's bootcmd and altbootcmd do, and has no menu";
        return Err(cannot("U-Boot", reason, "leave --trial and --entry out; keep a serial console at hand"));
    }
    refuse_characters("U-Boot", &case.merged.added, "\"'\\$;&|<>`#")?;
    if case.request.file.is_empty() {
        return of_variable(case);
    }
    let path = &case.request.file;
    let old = text(case.root, path)?;
    let new = with_words(case, &old)?;
    Ok(Draft { edits: vec![edit(path, Some(old), new)], next: "reboot", ..Draft::default() })
}

/// The text with the words in the variable that is there; Armbian's script reads `extraargs` whether it is there or not.
fn with_words(case: &Case<'_>, old: &str) -> Result<String> {
    let path = &case.request.file;
    let is_set =
        |name: &&&str| old.lines().any(|line| variable(line).is_some_and(|(found, _)| found == **name));
    let name = VARIABLES.iter().find(is_set).copied();
    let end = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    match name {
        Some(name) => Ok(changed(case, old, name)),
        None if path.ends_with("/armbianEnv.txt") => {
            Ok(format!("{old}{end}{}={}\n", VARIABLES[0], line(&case.merged.added)))
        }
        None => {
            let reason = format!("it sets none of {}", VARIABLES.join(", "));
            let hint =
                "look into the board's boot script which variable it puts on the line, and set that one";
            Err(Error::new("change", path.as_ref(), reason, hint))
        }
    }
}

/// Blanks in front of a name do not belong to it; those behind it do.
fn variable(line: &str) -> Option<(&str, &str)> {
    line.split_once('=').map(|(name, value)| (name.trim_start(), value))
}

/// Words go wherever they stand; new ones stand behind those of `name`, where it is set last.
fn changed(case: &Case<'_>, old: &str, name: &str) -> String {
    let is_it = |line: &&str| variable(line).is_some_and(|(found, _)| found == name);
    let last = old.split_inclusive('\n').rfind(is_it);
    let change = |whole: &str| {
        let line = whole.trim_end_matches(['\n', '\r']);
        match variable(line).filter(|(found, _)| VARIABLES.contains(found)) {
            None => whole.to_owned(),
            Some((_, value)) => {
                let is_last = last.is_some_and(|last| std::ptr::eq(last, whole));
                let head = &line[..line.len() - value.len()];
                format!("{head}{}{}", case.edited(value, is_last), &whole[line.len()..])
            }
        }
    };
    old.split_inclusive('\n').map(change).collect()
}

/// What the environment boots, as far as it is ours.
pub(super) fn of_environment(programs: &mut dyn Programs) -> Option<Request> {
    if !programs.has("fw_printenv") || !programs.has("fw_setenv") {
        return None;
    }
    let environment = programs.run("fw_printenv", &[]).ok().filter(|answer| answer.is_ok)?.output;
    let own = environment.lines().find_map(|line| line.strip_prefix(OWN_VARIABLE)?.strip_prefix('='));
    let words: Vec<Requested> = cmdline_txt(OWN_VARIABLE, own.unwrap_or_default());
    Some(Request {
        loader: "u-boot",
        file: String::new(),
        words,
        sources: Vec::new(),
        generator: "",
        is_whole: false,
    })
}

/// Our own variable: bootargs and the boot command are never written.
fn of_variable(case: &mut Case<'_>) -> Result<Draft> {
    let environment = super::setting::run(case.programs, "fw_printenv", &[])?.output;
    let is_named = ["${worstcase_args}", "$worstcase_args"].iter().any(|name| environment.contains(name));
    if !is_named {
        let hint = "put ${worstcase_args} behind bootargs where bootcmd sets them, once, and save that";
        return Err(Error::new(
            "use",
            OWN_VARIABLE.as_ref(),
            "no variable of U-Boot's environment names it",
            hint,
        ));
    }
    let setting = Setting::Variable { name: OWN_VARIABLE.to_owned(), value: line(&case.merged.line) };
    Ok(Draft { setting: Some(setting), next: "reboot", ..Draft::default() })
}
