//! `worstcase schema`: the forms of the JSON that this program writes, for programs that read it.

use std::process::ExitCode;

use clap::Args;
use machine::packed;

use crate::output;
use failure::{Error, Result};

/// All schemas, compressed, as build.rs lays them out: definitions are shared, because most forms have parts of a record.
const SCHEMAS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.gz"));

/// Each form: its name, and what has it.
const FORMS: [(&str, &str); 29] = [
    ("record", "record.json; bench and report print it with --json, measure in its last line as `record`"),
    ("figures", "the field `figures` of a record that is printed"),
    ("journal", "a line of journal.ndjson"),
    ("second", "a line of measure --json"),
    ("extreme", "report --extreme --json"),
    ("explanations", "explain --json"),
    ("hit", "a line of explain --live --json"),
    ("guard", "guard --json"),
    ("load", "load NAME --json"),
    ("loads", "load --list --json"),
    ("findings", "check --json"),
    ("recipe", "check --recipe --json"),
    ("differences", "check --against --json"),
    ("wake-paths", "check --wake --json"),
    ("plan", "tune plan --json"),
    ("trial", "tune trial --json"),
    ("search", "tune search --json"),
    ("partition", "partition verify --json"),
    ("cost", "cost.json; cost prints it with --json"),
    ("cost-comparison", "cost --against --json"),
    ("ways", "ways.json; ways prints it with --json"),
    ("monitor", "monitor --json, and the file of its --out"),
    ("kernels", "lab kernels list --json"),
    ("bisection", "lab bisect --json"),
    ("ladder", "lab ladder --json"),
    ("trade-off", "report --trade --json"),
    ("microscope", "lab explain --json"),
    ("microscope-traced", "lab explain --traced --json"),
    ("sections", "lab sections --json"),
];

/// Print the schema of the JSON that a command prints
///
/// Without a name: which forms there are, and which command prints each.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase schema           which forms there are\n  \
    worstcase schema record    that of record.json")]
pub struct Schema {
    /// The form; without it all forms are listed
    name: Option<String>,
}

impl Schema {
    /// Prints it.
    pub fn run(self) -> Result<ExitCode> {
        let text = match &self.name {
            None => FORMS.map(|(name, of)| format!("{name:<18}{of}\n")).concat(),
            Some(name) => named(name)?,
        };
        output::final_data(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn named(name: &str) -> Result<String> {
    let text = packed::text(SCHEMAS);
    let schema = FORMS.iter().any(|(known, _)| *known == name).then(|| schema(&text, name)).flatten();
    schema.ok_or_else(|| {
        let names = FORMS.map(|(name, _)| name).join(", ");
        Error::new(format!("there is no form `{name}`"), format!("there are {names}"))
    })
}

/// Puts a schema together.
fn schema(text: &str, name: &str) -> Option<String> {
    let (shared, forms) = text.split_once("\n\n")?;
    let line = forms.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))?;
    let [same, own, rest]: [&str; 3] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let mut definitions: Vec<String> = shared
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| same.split(' ').any(|one| one == *name))
        .map(|(name, definition)| format!("\"{name}\":{definition}"))
        .collect();
    definitions.extend((!own.is_empty()).then(|| own.to_owned()));
    Some(format!("{{\"$defs\":{{{}}},{rest}\n", definitions.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_a_schema_with_a_title_and_none_is_left_out() {
        for (name, _) in FORMS {
            let schema: serde_json::Value = serde_json::from_str(&named(name).unwrap()).unwrap();
            assert!(schema["$schema"].is_string() && schema["title"].is_string(), "{name}");
        }
        let lines = packed::text(SCHEMAS);
        assert_eq!(lines.split_once("\n\n").unwrap().1.lines().count(), FORMS.len(), "one is not listed");
        assert!(named("records").is_err());
    }
}
