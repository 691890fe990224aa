//! What only a program of the boot loader can set: which entry is booted once, a variable of U-Boot's.

use std::io;

use serde::{Deserialize, Serialize};

use super::program::{Answer, Programs};
use crate::error::{Error, Result};

/// One of them, with the value that is ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// What GRUB boots next and forgets then.
    NextEntry {
        /// `grub-editenv`.
        program: String,
        /// Its environment block.
        block: String,
        /// The id of the entry.
        entry: String,
    },
    /// What systemd-boot boots next and forgets then: the id of an entry.
    OneShot(String),
    /// A variable of U-Boot's environment.
    Variable {
        /// As `printenv` shows it: `bootargs`.
        name: String,
        /// What is in it.
        value: String,
    },
}

fn failed(program: &str, answer: io::Result<Answer>) -> Error {
    let reason = match answer {
        Ok(answer) => answer.complaints.lines().next_back().unwrap_or("it failed without a word").to_owned(),
        Err(error) => error.to_string(),
    };
    Error::new("run", program.as_ref(), reason, "run it by hand to see all that it says")
}

/// Runs a program that must end well.
pub(super) fn run(programs: &mut dyn Programs, program: &str, arguments: &[&str]) -> Result<Answer> {
    match programs.run(program, arguments) {
        Ok(answer) if answer.is_ok => Ok(answer),
        other => Err(failed(program, other)),
    }
}

impl Setting {
    /// What is to be there.
    pub fn value(&self) -> &str {
        match self {
            Self::NextEntry { entry, .. } => entry,
            Self::OneShot(entry) => entry,
            Self::Variable { value, .. } => value,
        }
    }

    /// What is there; none where nothing is set, or where the loader alone can tell.
    ///
    /// # Errors
    /// [`Error`] where the program fails.
    pub fn now(&self, programs: &mut dyn Programs) -> Result<Option<String>> {
        match self {
            Self::NextEntry { program, block, .. } => {
                let answer = run(programs, program, &[block, "list"])?;
                let value = answer.output.lines().find_map(|line| line.strip_prefix("next_entry="));
                Ok(value.filter(|value| !value.is_empty()).map(str::to_owned))
            }
            Self::OneShot(_) => Ok(None),
            // For a variable that is not there U-Boot's fw_printenv fails, and libubootenv's prints nothing.
            Self::Variable { name, .. } => match programs.run("fw_printenv", &["-n", name]) {
                Ok(answer) if answer.is_ok => {
                    let value = answer.output.trim_end_matches('\n');
                    Ok(Some(value.to_owned()).filter(|value| !value.is_empty()))
                }
                Ok(_) => Ok(None),
                other => Err(failed("fw_printenv", other)),
            },
        }
    }

    /// Makes it `value`, or nothing.
    ///
    /// # Errors
    /// [`Error`] where the program fails.
    pub fn set(&self, programs: &mut dyn Programs, value: Option<&str>) -> Result<()> {
        match (self, value) {
            (Self::NextEntry { program, block, .. }, Some(entry)) => {
                run(programs, program, &[block, "set", &format!("next_entry={entry}")])
            }
            (Self::NextEntry { program, block, .. }, None) => {
                run(programs, program, &[block, "unset", "next_entry"])
            }
            (Self::OneShot(_), value) => {
                run(programs, "bootctl", &["set-oneshot", value.unwrap_or_default()])
            }
            (Self::Variable { name, .. }, Some(value)) => run(programs, "fw_setenv", &[name, value]),
            (Self::Variable { name, .. }, None) => run(programs, "fw_setenv", &[name]),
        }
        .map(drop)
    }

    /// Whether what is there can be read back.
    pub fn is_readable(&self) -> bool {
        !matches!(self, Self::OneShot(_))
    }
}
