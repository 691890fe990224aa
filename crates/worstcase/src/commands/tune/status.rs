//! `worstcase tune status`.

use std::process::ExitCode;

use clap::Args;
use record::time::UtcTime;
use sysroot::SysRoot;
use tune::holder::{self, Kind};
use tune::journal::{History, Taken};
use tune::status::{Now, faults, now};
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
            let words =
                "nothing holds: the machine was booted since; worstcase tune undo puts the journal aside";
            output::final_data(&shown::lines(words, 0))?;
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
    let latest = history.latest().into_iter();
    let refused: Vec<Taken> = latest.filter(|taken| taken.ours().is_none()).cloned().collect();
    text += &shown::all_taken(&refused);
    let pending = all.iter().filter(|(_, now)| matches!(now, Now::Pending(_))).count();
    let beside = if refused.is_empty() { String::new() } else { format!("; {} refused", refused.len()) };
    let counted = format!("{}, {}{beside}", shown::settings(all.len()), summary(off - pending, pending));
    text += &shown::lines(&counted, 0);
    let left = left_alone(state, history);
    if let Some(why) = left {
        output::warning(&format!("settings are left: {why}; worstcase tune undo takes them back"));
    }
    (text, off == 0 && left.is_none())
}

/// How many of all are off, and how many wait for an interrupt: these need no repair.
fn summary(off: usize, pending: usize) -> String {
    const REPAIR: &str = "worstcase tune keep --reconcile repairs what can be repaired";
    match (off, pending) {
        (0, 0) => "all as written".into(),
        (0, _) => format!("{pending} pending: they do not hold before their devices interrupt again"),
        (_, 0) => format!("{off} not as written; {REPAIR}"),
        (_, _) => format!("{off} not as written, {pending} pending; {REPAIR}"),
    }
}

/// Where nothing is applied: how the last ones ended, if they ended by themselves.
fn nothing(state: &State) -> String {
    match state.last_words() {
        Some(words) => shown::lines(&format!("nothing is applied; {words}"), 0),
        None => "nothing is applied\n".to_owned(),
    }
}

fn head(state: &State, history: &History) -> String {
    let Some(begin) = &history.begin else { return String::new() };
    let waits = holder::is_alive(state.directory(), Kind::Deadline) == Some(true);
    let end = match begin.seconds {
        Some(seconds) if waits && !history.kept => {
            let now = sys::clock::unix_seconds();
            let gone = UtcTime::parse(&begin.started).map(|started| now.saturating_sub(started.0));
            let left = gone.map(|gone| format!(": {} s left", seconds.saturating_sub(gone)));
            format!(", undone {seconds} s after that unless kept{}", left.unwrap_or_default())
        }
        Some(_) if history.kept => ", kept until undone".to_owned(),
        _ => String::new(),
    };
    let source = begin.choice.as_ref().map(|file| format!(" as {file} says")).unwrap_or_default();
    shown::lines(&format!("applied {}{source}{end}", begin.started), 0)
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn what_waits_for_an_interrupt_is_not_offered_for_repair() {
        assert_eq!(summary(0, 0), "all as written");
        assert_eq!(summary(0, 9), "9 pending: they do not hold before their devices interrupt again");
        assert!(summary(2, 0).starts_with("2 not as written; worstcase tune keep --reconcile"));
        assert!(summary(2, 9).starts_with("2 not as written, 9 pending; worstcase tune keep"));
    }
}
