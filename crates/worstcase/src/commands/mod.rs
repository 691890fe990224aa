//! The commands: one file each.

pub mod agent;
mod applied;
mod bench;
mod check;
mod contexts;
mod cost;
mod cost_rounds;
mod echo;
mod experiments;
mod explain;
mod found_experiment;
#[cfg(target_has_atomic = "64")]
mod guard;
mod lab;
mod load;
mod measure;
mod measure_display;
mod monitor;
mod partition;
mod report;
mod samples;
mod schema;
mod snapshot;
mod tune;
mod ways;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use ::report::Style;
use clap::{CommandFactory, Parser, Subcommand};
use record::{Record, Request};
use runner::{Means, Run};

use crate::output;
use crate::progress;
use failure::{Error, Result};

/// Finds, explains and cuts the worst-case latency of a Linux system.
#[derive(Parser)]
#[command(
    name = "worstcase",
    version = env!("WORSTCASE_VERSION"),
    about,
    after_help = "Exit codes: 0 pass, 1 fail, 2 error, 3 inconclusive, 130 interrupted before anything was measured.\n\
                  Start with: worstcase bench"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Where a process or thread that was named is not there.
fn no_such_thread(id: i32) -> Error {
    Error::new(format!("there is no process or thread {id}"), "ps -eLo pid,tid,comm shows those there are")
}

/// Refuses to watch threads by ids that are not those of the kernel's trace.
fn check_ids(root: &sysroot::SysRoot) -> Result<()> {
    if machine::tasks::ids_are_the_traces(root) != Some(false) {
        return Ok(());
    }
    Err(Error::new(
        "this is another PID namespace than the kernel's first one, as in a container: the trace has other ids of the same threads",
        "run it outside of the container",
    ))
}

/// What `worstcase` does with its arguments.
pub fn main() -> ExitCode {
    match Arguments::try_parse_from(words_of(std::env::args_os())) {
        Ok(Arguments { command }) => {
            if ::sys::privilege::comes_from_file() && !command.measures_or_reads() {
                return output::ended(Err(Error::new(
                    "this program has its privileges from its file, for everyone: it measures and reads, and changes nothing",
                    "run it as root, or a copy without file capabilities: setcap -r",
                )));
            }
            tune::warn_of_leftovers(&command);
            output::ended(command.run())
        }
        Err(error) => output::usage(error),
    }
}

/// The words of a command line. `help` takes no option: `help --help` asks for the same as `help` does.
pub(crate) fn words_of(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = all.collect();
    if words.get(1).is_some_and(|first| first == "help") {
        words.retain(|word| word != "--help" && word != "-h");
    }
    words
}

pub use tune::CHOICE;

/// All commands with their arguments, for what is made of them: manual pages, completions.
pub fn all() -> clap::Command {
    Arguments::command()
}

/// What `worstcase` does in place of a command where another process of it sent a message: a request, or a block of a
/// trial. None where the first argument says neither.
pub fn answer(argument: &str, message: &str) -> Option<ExitCode> {
    match argument {
        Request::ARGUMENT => Some(measure(message)),
        tune::trial::BLOCK => Some(tune::trial::block(message)),
        _ => None,
    }
}

fn measure(request: &str) -> ExitCode {
    let request = record::json::read(request.as_bytes());
    let request = request.map_err(|error| Error::new(format!("read a request: {error}"), ""));
    output::ended(request.and_then(measured))
}

/// Measures in silence, but for what goes wrong and how far it is.
fn measured(request: Request) -> Result<ExitCode> {
    let outcome = Run::prepare(request, &means()).and_then(progress::measure)?;
    Ok(output::conclude(&outcome, || Ok(())))
}

/// Whether there is a command of that name.
pub(crate) fn is_command(word: &str) -> bool {
    Arguments::command().find_subcommand(word).is_some()
}

/// What the user asks for.
#[derive(Subcommand)]
enum Command {
    Bench(Box<bench::Bench>),
    Check(Box<check::Check>),
    Cost(cost::CostCommand),
    Echo(echo::Echo),
    Explain(explain::Explain),
    #[cfg(target_has_atomic = "64")]
    Guard(guard::GuardCommand),
    Measure(Box<measure::Measure>),
    Monitor(monitor::Monitor),
    Lab(lab::Lab),
    Load(load::Load),
    Partition(Box<partition::Partition>),
    Report(report::Report),
    Samples(samples::Samples),
    Schema(schema::Schema),
    Snapshot(snapshot::Snapshot),
    Tune(Box<tune::Tune>),
    Ways(Box<ways::WaysCommand>),
    Why(why::Why),
}

impl Command {
    /// Whether it needs no more than what file capabilities are given for.
    fn measures_or_reads(&self) -> bool {
        match self {
            Self::Bench(_) | Self::Check(_) | Self::Echo(_) | Self::Load(_) => true,
            Self::Measure(_) | Self::Monitor(_) | Self::Ways(_) => true,
            Self::Report(_) | Self::Samples(_) | Self::Schema(_) | Self::Snapshot(_) | Self::Why(_) => true,
            #[cfg(target_has_atomic = "64")]
            Self::Guard(_) => false,
            Self::Cost(_) | Self::Explain(_) | Self::Lab(_) | Self::Partition(_) | Self::Tune(_) => false,
        }
    }

    /// The exit code carries the verdict.
    fn run(self) -> Result<ExitCode> {
        match self {
            Self::Bench(bench) => {
                bench.run(&means(), Some(bench::Around { read: record::store::load, below }))
            }
            Self::Check(check) => check.run(),
            Self::Cost(cost) => cost.run(),
            Self::Echo(echo) => echo.run(),
            Self::Explain(explain) => explain.run(),
            #[cfg(target_has_atomic = "64")]
            Self::Guard(guard) => guard.run(),
            Self::Measure(measure) => measure.run(&means(), Some(below)),
            Self::Monitor(monitor) => monitor.run(),
            Self::Lab(lab) => lab.run(),
            Self::Load(load) => load.run(),
            Self::Partition(partition) => partition.run(),
            Self::Report(report) => report.run(),
            Self::Samples(samples) => samples.run(),
            Self::Schema(schema) => schema.run(),
            Self::Snapshot(snapshot) => snapshot.run(),
            Self::Tune(tune) => tune.run(),
            Self::Ways(ways) => ways.run(),
            Self::Why(why) => why.run(),
        }
    }
}

/// What stands below the table of a record: the causes of late wake-ups where they were asked for, the comparison with an
/// earlier record if there is one, and what to do next.
fn below(record: &Record, earlier: Option<&bench::Earlier>, style: &Style) -> Vec<String> {
    let beside = |earlier: &bench::Earlier| {
        let names = [earlier.place.display().to_string(), "this run".to_owned()];
        ::report::compare::compare(&[earlier.record.clone(), record.clone()], &names, style)
    };
    let parts = [
        ::report::explanation::text(record, style),
        earlier.map_or_else(String::new, beside),
        ::report::next::run::text(record, &tune::trial::changes_something, style),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// What runs of this program have beside their requests.
fn means() -> Means {
    Means {
        page: Some(page),
        tracer: Some(explain::tracer::make),
        contexts: Some(contexts::make),
        tuned: Some(applied::tuned),
        ..Means::default()
    }
}

/// The page beside a record.
fn page(record: &Record) -> std::result::Result<String, String> {
    ::report::page::page(std::slice::from_ref(record)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of a command's help, without what each is for.
    fn examples(command: &clap::Command) -> Vec<Vec<String>> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = text.lines().skip_while(|line| *line != "Examples:").skip(1);
        let lines = lines.take_while(|line| line.starts_with("  "));
        // A line further in says what the one above is for.
        let lines = lines.filter(|line| line.starts_with("  worstcase "));
        let is_long = |line: &str| line.trim().split("   ").next().is_some_and(|command| command.len() > 60);
        let lines =
            lines.inspect(|line| assert!(line.chars().count() <= 80 || is_long(line), "wraps: {line}"));
        lines.map(|line| words(line.trim().split("   ").next().unwrap_or_default())).collect()
    }

    /// As a shell divides them, comments left out.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let (mut word, mut quote) = (String::new(), None);
        for c in line.split(" #").next().unwrap_or_default().chars() {
            match (c, quote) {
                ('\'' | '"', None) => quote = Some(c),
                (_, Some(open)) if open == c => quote = None,
                (' ', None) => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
                _ => word.push(c),
            }
        }
        words.extend((!word.is_empty()).then_some(word));
        words
    }

    fn with_subcommands(command: &clap::Command) -> Vec<&clap::Command> {
        std::iter::once(command).chain(command.get_subcommands().flat_map(with_subcommands)).collect()
    }

    #[test]
    fn every_example_of_the_help_is_a_command() {
        let all = all();
        let examples: Vec<Vec<String>> = with_subcommands(&all).into_iter().flat_map(examples).collect();
        assert!(examples.len() > 30, "{examples:?}");
        for words in examples {
            let understood = Arguments::command().try_get_matches_from(&words);
            assert!(understood.is_ok(), "{}: {}", words.join(" "), understood.unwrap_err());
        }
    }

    #[test]
    fn help_about_help_is_help() {
        let asked = |line: &str| words_of(line.split(' ').map(OsString::from));
        for line in
            ["worstcase help", "worstcase help --help", "worstcase help -h", "worstcase help bench --help"]
        {
            let shown = Arguments::command().try_get_matches_from(asked(line)).unwrap_err();
            assert_eq!(shown.kind(), clap::error::ErrorKind::DisplayHelp, "{line}: {shown}");
        }
        assert_eq!(asked("worstcase bench --help").len(), 3, "others have one of their own");
    }

    #[test]
    fn no_default_is_said_twice() {
        let all = all();
        let mut defaults = 0;
        for command in with_subcommands(&all) {
            for option in command.get_arguments().filter(|option| !option.get_default_values().is_empty()) {
                let help = option.get_long_help().or(option.get_help()).map(ToString::to_string);
                let help = help.unwrap_or_default();
                assert!(!help.contains("[default"), "{} {}: {help}", command.get_name(), option.get_id());
                defaults += 1;
            }
        }
        assert!(defaults > 20, "{defaults}");
    }

    #[test]
    fn every_command_has_examples_of_its_own_or_its_parents() {
        fn bare(command: &clap::Command, path: &str, shown: bool) -> Vec<String> {
            let shown = shown || !examples(command).is_empty();
            let path = format!("{path} {}", command.get_name());
            let below: Vec<&clap::Command> = command.get_subcommands().collect();
            match below.is_empty() {
                true if !shown => vec![path],
                _ => below.into_iter().flat_map(|one| bare(one, &path, shown)).collect(),
            }
        }
        assert_eq!(bare(&all(), "", false), Vec::<String>::new());
    }

    /// The commands in the code blocks of a document; a backslash at a line's end joins it to the next.
    fn commands(document: &str) -> Vec<Vec<String>> {
        let blocks = document.split("\n```").skip(1).step_by(2);
        let process = "$(pgrep -f timerlat/1)";
        let joined = blocks.map(|block| block.replace("\\\n", " ").replace(process, "4711"));
        let joined: Vec<String> = joined.collect();
        let lines = joined.iter().flat_map(|block| block.lines().skip(1));
        let typed = lines.map(|line| line.strip_prefix("$ ").unwrap_or(line));
        typed.filter(|line| line.starts_with("worstcase ")).map(words).collect()
    }

    /// Those that `--loads`, `--load` and `-l` name, as far as they are names.
    fn loads(words: &[String]) -> impl Iterator<Item = &str> {
        let options = words.windows(2).filter(|pair| ["--loads", "--load"].contains(&pair[0].as_str()));
        options.flat_map(|pair| pair[1].split(','))
    }

    #[test]
    fn every_command_of_the_documents_is_one_and_names_loads_that_exist() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap();
        let documents = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let documents = documents.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        let texts: Vec<String> = documents.chain([root.join("README.md")]).map(read).collect();
        let commands: Vec<Vec<String>> = texts.iter().flat_map(|text| commands(text)).collect();
        assert!(commands.len() > 60, "{}", commands.len());
        let catalogue = ::load::Catalogue::shipped().unwrap();
        // What a guest of the lab runs is a command of its own.
        let in_guests = commands.iter().filter_map(|words| words.split(|word| word == "--").nth(1));
        let in_guests = in_guests.filter(|words| words.first().is_some_and(|word| is_command(word)));
        let in_guests: Vec<Vec<String>> =
            in_guests.map(|words| [&["worstcase".to_owned()], words].concat()).collect();
        assert!(!in_guests.is_empty());
        for words in commands.iter().chain(&in_guests) {
            let understood = Arguments::command().try_get_matches_from(words);
            assert!(understood.is_ok(), "{}: {}", words.join(" "), understood.unwrap_err());
            for load in loads(words) {
                assert!(catalogue.get(load).is_ok(), "{}: no load {load}", words.join(" "));
            }
        }
    }
}
