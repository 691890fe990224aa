//! What an experiment came to: its page, and its tables or JSON. Both are made from its directory, so that `report` shows
//! an experiment, however old, as the command that measured it does.

use std::path::Path;

use lab::kept;
use lab::replay::Replay;
use lab::state::{Plan, State};
use record::store;
use report::experiment::{Arm, Experiment, Measured};
use units::{Bytes, InOrder};

use crate::output::{self, Stream};
use failure::{Error, Result};

/// An experiment as it is shown.
pub struct Shown {
    /// As tables and as a page.
    pub experiment: Experiment,
    /// For programs.
    pub json: String,
}

impl Shown {
    /// At the end of what is measured in `directory`: prints it, and writes its page beside its file.
    pub fn conclude(&self, directory: &Path, json: bool) -> Result<()> {
        self.print(json)?;
        self.write_page(&directory.join(store::PAGE), false, &[])
    }

    /// Tables, or the answer for programs.
    pub fn print(&self, json: bool) -> Result<()> {
        let style = output::style(Stream::Output);
        output::final_data(&if json {
            self.json.clone()
        } else {
            report::experiment::text(&self.experiment, &style)
        })
    }

    /// Writes the page. Where nobody asked for it (`is_named`), one that cannot be written is no error: what was measured is
    /// kept in the records.
    pub fn write_page(&self, path: &Path, is_named: bool, read: &[&Path]) -> Result<()> {
        let page = report::experiment::page(&self.experiment).map_err(|error| Error::new(error, ""))?;
        output::page(path, &page, is_named, read)
    }
}

/// What a plan says of an arm: what differs, and what has to be known.
pub type AboutArm<'a> = &'a dyn Fn(&experiment::Arm) -> Result<(String, Vec<String>)>;

/// What is alike in all experiments: the blocks that were measured, those that are missing, and their arms, off and control
/// first.
pub fn begin<P: Plan>(
    state: &State<P>,
    replay: Replay<'_, P>,
    directory: &Path,
    about: AboutArm<'_>,
) -> Result<Experiment> {
    let mut arms: Vec<experiment::Arm> = Vec::new();
    for block in
        replay.measured.iter().map(|one| &one.block).chain(replay.missing.iter().map(|one| &one.block))
    {
        if !arms.contains(&block.arm) {
            arms.push(block.arm.clone());
        }
    }
    arms.order_by_key(|arm| (*arm != experiment::Arm::off(), *arm != experiment::Arm::Control, arm.clone()));
    let arm = |arm: experiment::Arm| {
        let (what, notes) = about(&arm)?;
        Ok(Arm { name: state.plan.name(&arm), arm, what, notes, published: None, base: None })
    };
    let kind = state.plan.kind();
    let missing = replay.missing.iter().map(|one| match &one.failure {
        Some(why) => format!("{} failed: {why}", one.place),
        None => format!("{} was not measured", one.place),
    });
    Ok(Experiment {
        kind: kind.name(),
        title: String::new(),
        begun: state.started.to_string(),
        question: String::new(),
        answer: None,
        changes: Vec::new(),
        smallest_effect: None,
        arms: arms.into_iter().map(arm).collect::<Result<_>>()?,
        costs: Vec::new(),
        missing: missing.collect(),
        loads: state.plan.loads().to_vec(),
        unit: Default::default(),
        tail: None,
        conditions: vec![
            ("By".to_owned(), format!("worstcase {}", state.tool)),
            ("Records".to_owned(), kept::records(directory).to_string()),
        ],
        source: None,
        command: kind.command().split(' ').map(str::to_owned).collect(),
        resume: format!("{} --resume {}", kind.command(), from_here(directory).display()),
        blocks: replay
            .measured
            .into_iter()
            .map(|lab::replay::Measured { block, place, record }| Measured { block, place, record })
            .collect(),
    })
}

/// As the directory is called from the working directory, if it is below that.
fn from_here(directory: &Path) -> &Path {
    let below = std::env::current_dir().ok();
    let below = below.and_then(|here| directory.strip_prefix(here).ok());
    below.filter(|below| *below != Path::new("")).unwrap_or(directory)
}

/// Appends an option with its value, where it is not the one that holds anyway.
pub fn option(command: &mut Vec<String>, name: &str, value: Option<impl ToString>, usual: &str) {
    if let Some(value) = value.map(|value| value.to_string()).filter(|value| value != usual) {
        command.extend([name.to_owned(), value]);
    }
}

/// A size as options take it: `512M`.
pub fn size(bytes: Bytes) -> String {
    bytes.to_string().replace([' ', 'B', 'i'], "")
}
