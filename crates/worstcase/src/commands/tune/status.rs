//! `worstcase tune status`.

use std::process::ExitCode;

use clap::Args;
use sysroot::SysRoot;
use tune::holder::{self, Kind};
use tune::journal::History;
use tune::status::{faults, now};
use tune::{State, boot_id};

use super::leftover::left_alone;
use super::{StateOption, shown};
use crate::output;
use failure::Result;

/// Say which applied settings still hold, and which somebody else has changed
///
/// Exit code 1 if something does not hold.
#[derive(Args)]
pub struct Status {
    #[command(flatten)]
    state: StateOption,
}

impl Status {
    pub fn run(self) -> Result<ExitCode> {
        let state = self.state.state();
        let Some(history) = state.history()? else {
            output::final_data(&nothing(&state))?;
            return Ok(ExitCode::SUCCESS);
        };
        if history.is_of_another_boot(&boot_id()) {
            output::final_data(
                "nothing holds: the machine was booted since; worstcase tune undo puts the journal aside\n",
            )?;
            return Ok(ExitCode::from(1));
        }
        let (text, holds) = of(&state, &history);
        output::final_data(&text)?;
        Ok(ExitCode::from(u8::from(!holds)))
    }
}

/// Each thing that was written and how it is now, and whether all of it holds and somebody answers for it.
pub fn of(state: &State, history: &History) -> (String, bool) {
    let root = SysRoot::live();
    let (all, faults) = (now(&root, history), faults(&root, history));
    let off = all.iter().filter(|(_, now)| now.is_off()).count() + faults.len();
    let mut text = head(state, history);
    text += &shown::all_now(&all);
    text += &faults.iter().map(|fault| shown::marked("broken", fault)).collect::<String>();
    text += &match off {
        0 => format!("{}, all as written\n", shown::settings(all.len())),
        _ => format!(
            "{}, {off} not as written; worstcase tune keep --reconcile repairs what can be repaired\n",
            shown::settings(all.len())
        ),
    };
    let left = left_alone(state, history);
    if let Some(why) = left {
        output::words(&format!("warning: settings are left: {why}; worstcase tune undo takes them back"));
    }
    (text, off == 0 && left.is_none())
}

/// Where nothing is applied: how the last ones ended, if they ended by themselves.
fn nothing(state: &State) -> String {
    match state.last_words() {
        Some(words) => format!("nothing is applied; {words}\n"),
        None => "nothing is applied\n".to_owned(),
    }
}

fn head(state: &State, history: &History) -> String {
    let Some(begin) = &history.begin else { return String::new() };
    let waits = holder::is_alive(state.directory(), Kind::Deadline) == Some(true);
    let end = match begin.seconds {
        Some(seconds) if waits && !history.kept => format!(", undone {seconds} s after that unless kept"),
        Some(_) if history.kept => ", kept until undone".to_owned(),
        _ => String::new(),
    };
    let source = begin.choice.as_ref().map(|file| format!(" as {file} says")).unwrap_or_default();
    format!("applied {}{source}{end}\n", begin.started)
}
