//! `worstcase cost`: what operations of the kernel take, and how many times as much as in an earlier record.

mod with;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use operation::measure;
use record::cost::{CONTROL, Cost, CostPlan, load};
use record::store::{PAGE, RunDirectory};
use record::time::UtcTime;
use report::Style;
use report::text::count_of;
use statistics::{LEAST_APART, runs_needed};
use sys::signal::Signals;
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos, Seed};

use super::cost_rounds::{begun, measured};
use crate::options;
use crate::output::{self, Stream};
use failure::{Error, Result};

/// Measure how long operations of the kernel take: pipes, sockets, forks, files
///
/// Real time has a price: a set-up that shortens the worst wake-up can make pipes, sockets or forks slower. This measures operations one by one, in rounds of random order; --against compares each with an earlier record; --with measures with a setting and without it in turn, and compares those.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase cost --out before                     before a change\n  \
    worstcase cost --against before --out after     after it: what it costs\n  \
    worstcase cost --with rn-thp                    what a setting costs\n  \
    worstcase report before after                   the same comparison again")]
pub struct CostCommand {
    /// Measure only these operations or families, e.g. pipes,fork; --list names them. The CPU loop is always measured beside
    /// them: it shows how much of the CPU others had
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = options::MEASURED)]
    only: Vec<String>,

    /// The CPU of the operations, and the one of their partners in `two CPUs` [default: the first two that this process may use]
    #[arg(short = 'a', long, value_name = "LIST", help_heading = options::MEASURED)]
    cpus: Option<CpuList>,

    /// Rounds, each with one sample of every operation; --with needs 7 or more to compare all [default: 14]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(CostPlan::MOST_ROUNDS)), help_heading = options::METHOD)]
    rounds: Option<u32>,

    /// Runs that the rounds are divided into, for a comparison with a record made apart: at least 3, the more the narrower its intervals [default: 7, or as many as there are rounds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(CostPlan::MOST_ROUNDS)), help_heading = options::METHOD)]
    runs: Option<u32>,

    /// Length of a sample [default: 60ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = sample, help_heading = options::METHOD)]
    sample: Option<Nanos>,

    /// Where the operations on files make theirs, and remove them [default: beside --out]
    #[arg(long, value_name = "DIR", help_heading = options::METHOD)]
    directory: Option<PathBuf>,

    /// Random seed of the order in each round [default: random, and recorded]
    #[arg(long, value_name = "N", help_heading = options::METHOD)]
    seed: Option<Seed>,

    /// Compare with this record, and measure as it did unless other options are given
    #[arg(long, value_name = "DIR", help_heading = options::OUTPUT)]
    against: Option<PathBuf>,

    /// Compare with this setting on: each round is measured once without and once with it, in random order; may be given again
    #[arg(long, value_name = "SETTING", conflicts_with = "against", help_heading = options::METHOD)]
    with: Vec<String>,

    /// Directory of the journal of --with
    #[arg(long, value_name = "DIR", default_value = crate::commands::applied::STATE, help_heading = options::METHOD)]
    state: PathBuf,

    /// Directory for record and page [default: worstcase-TIME-HOST]
    #[arg(long, value_name = "DIR", help_heading = options::OUTPUT)]
    out: Option<PathBuf>,

    /// A remark to keep with the record
    #[arg(long, value_name = "TEXT", help_heading = options::OUTPUT)]
    note: Option<String>,

    /// Print the record as JSON, with --against or --with the comparison
    #[arg(long, help_heading = options::OUTPUT)]
    json: bool,

    /// List the operations: what one is, which tool measures the same, what it stands for
    #[arg(long, conflicts_with_all = ["cpus", "rounds", "runs", "sample", "directory", "seed", "against", "with", "out", "note", "json"], help_heading = options::OUTPUT)]
    list: bool,
}

/// As many as compare two records with each other, with two rounds each.
const RUNS: u32 = 7;
const ROUNDS: u32 = 2 * RUNS;
/// Several ticks of any kernel.
const SAMPLE: Nanos = Nanos::from_millis(60);

fn sample(text: &str) -> std::result::Result<Nanos, String> {
    options::between(text, CostPlan::SHORTEST, CostPlan::LONGEST, "1ms to 60s")
}

impl CostCommand {
    pub fn run(self) -> Result<ExitCode> {
        self.check_names()?;
        if self.list {
            output::final_data(&list(&self.only))?;
            return Ok(ExitCode::SUCCESS);
        }
        let earlier = self.against.as_deref().map(earlier).transpose()?;
        if let Some((path, earlier)) = self.against.as_deref().zip(earlier.as_ref()) {
            refuse_short(earlier, path)?;
        }
        // First: a signal that comes once there is a directory ends the run, not the process.
        let signals = Signals::take()?;
        let machine = runner::guest::machine(&SysRoot::live())?;
        let plan = self.plan(&machine.cpus.online, earlier.as_ref())?;
        let only = self.operations(earlier.as_ref());
        self.refuse_too_few(&plan, &only)?;
        let settings = (!self.with.is_empty()).then(|| with::Settings::ready(&self.with, &self.state));
        let settings = settings.transpose()?;
        let started = UtcTime(sys::clock::unix_seconds());
        let directory = match &self.out {
            Some(path) => RunDirectory::create(path)?,
            None => RunDirectory::create_somewhere(&machine.host, started)?,
        };
        let mut cost = begun(machine, plan, started, &only);
        output::news(&expected(&cost, settings.is_some()));
        if let Some(doubt) = in_vain(&cost.plan).filter(|_| self.with.is_empty()) {
            output::warning(&doubt);
        }
        cost.note.clone_from(&self.note);
        // Not in the record's own, which is another one each time: where a file system puts a directory is its choice.
        let above = directory.path().parent().filter(|above| !above.as_os_str().is_empty());
        let files = self.directory.as_deref().or(above).unwrap_or(Path::new("."));
        if let Some(settings) = &settings {
            let (without, with) = with::in_turn(settings, &cost, files, &directory, &signals)?;
            return self.conclude(&with, Some(&without), &directory);
        }
        // So that a run that is killed in its first round leaves what it was about to do.
        directory.write_cost(&cost)?;
        measured(&mut cost, files, &directory, &signals)?;
        self.conclude(&cost, earlier.as_ref(), &directory)
    }

    /// What too few rounds or runs would measure in vain, before anything is changed or waited for.
    fn refuse_too_few(&self, plan: &CostPlan, only: &[String]) -> Result<()> {
        let missing = plan.second.is_none().then_some("no second CPU");
        let measured = measure::planned(only, missing).iter().filter(|one| one.failures.is_empty()).count();
        let (option, count, needed) = match (self.with.is_empty(), &self.against) {
            (false, _) => ("--rounds", plan.rounds, runs_needed(1 + measured)),
            (true, Some(_)) => ("--runs", plan.runs, LEAST_APART),
            (true, None) => return Ok(()),
        };
        if count as usize >= needed {
            return Ok(());
        }
        let message =
            format!("{option} {count}: a comparison of {measured} operations needs {needed} or more");
        Err(Error::new(
            message,
            format!("{option} {needed} or more; nothing was measured, and nothing changed"),
        ))
    }

    fn check_names(&self) -> Result<()> {
        use operation::family::{families, operations};
        let names = || operations().map(|operation| operation.name).chain(families());
        match self.only.iter().find(|asked| names().all(|name| name != **asked)) {
            Some(name) => {
                let hint = failure::did_you_mean(name, names(), "worstcase cost --list names them");
                Err(Error::new(format!("--only {name}: there is no such operation or family"), hint))
            }
            None => Ok(()),
        }
    }

    /// What is asked for, else what the earlier record had, else the defaults.
    fn plan(&self, online: &CpuList, earlier: Option<&Cost>) -> Result<CostPlan> {
        let known = earlier.map(|cost| &cost.plan);
        let (cpu, second) = self.places(online, known)?;
        let rounds = self.rounds.or(known.map(|plan| plan.rounds)).unwrap_or(ROUNDS);
        Ok(CostPlan {
            cpu,
            second,
            rounds,
            runs: self.runs(rounds, known)?,
            sample: self.sample.or(known.map(|plan| plan.sample)).unwrap_or(SAMPLE),
            seed: self.seed.unwrap_or_else(runner::plan::drawn_seed),
        })
    }

    fn runs(&self, rounds: u32, known: Option<&CostPlan>) -> Result<u32> {
        let known = known.map(|plan| plan.runs).filter(|runs| *runs > 0);
        match self.runs {
            Some(runs) if runs > rounds => {
                let message = format!("--runs {runs}: there are {rounds} rounds to divide into runs");
                Err(Error::new(message, format!("--rounds {runs} or more")))
            }
            asked => Ok(asked.or(known).unwrap_or(RUNS).min(rounds)),
        }
    }

    fn places(&self, online: &CpuList, known: Option<&CostPlan>) -> Result<(CpuId, Option<CpuId>)> {
        let reachable = sys::schedule::reachable(online)?;
        if let (None, Some(plan)) = (&self.cpus, known) {
            let is_there = |cpu: CpuId| reachable.contains(cpu);
            if is_there(plan.cpu) && plan.second.is_none_or(is_there) {
                return Ok((plan.cpu, plan.second));
            }
        }
        let cpus = self.cpus.as_ref().unwrap_or(&reachable);
        let missing = cpus.difference(&reachable);
        if !missing.is_empty() {
            let message = format!("--cpus {cpus}: this process may use {reachable}");
            return Err(Error::new(message, "choose among those"));
        }
        let mut places = cpus.iter();
        let first = places.next().ok_or_else(|| Error::new("there is no CPU to measure on", ""))?;
        Ok((first, places.next()))
    }

    fn operations(&self, earlier: Option<&Cost>) -> Vec<String> {
        match earlier {
            Some(cost) if self.only.is_empty() => {
                cost.operations.iter().map(|operation| operation.name.clone()).collect()
            }
            _ => self.only.clone(),
        }
    }

    fn conclude(&self, cost: &Cost, earlier: Option<&Cost>, directory: &RunDirectory) -> Result<ExitCode> {
        let style = output::style(Stream::Output);
        output::final_data(&shown(cost, earlier, self.json, &style))?;
        let page = report::cost::page(cost, earlier).map_err(|error| Error::new(error, ""))?;
        if cost.interrupted.is_some() {
            output::paragraph(&kept(cost, directory.path()));
        }
        output::page(&directory.path().join(PAGE), &page, true, &[])?;
        let is_open = earlier.is_some_and(|earlier| !shows_cost(earlier, cost));
        let next = match earlier {
            _ if self.json => None,
            None if cost.interrupted.is_some() => {
                let purpose = "measure all rounds: those of an interrupted run are not gone on with";
                Some((format!("worstcase cost{}", self.chosen()), purpose.to_owned()))
            }
            None => after(cost, directory.path()),
            Some(earlier) => is_open.then(|| self.again(earlier)),
        };
        if let Some(next) = next {
            output::final_data(&::report::next::text(&[next], &style))?;
        }
        Ok(code(cost, is_open))
    }

    /// What would compare where these two records do not: a command, and what it is for.
    fn again(&self, earlier: &Cost) -> (String, String) {
        let chosen = self.chosen();
        let (options, purpose) = match &self.against {
            None => (chosen, "measure both set-ups in turn once more"),
            Some(_) if !shows_cost(earlier, earlier) => (
                same_operations(earlier),
                "measure the first set-up again, in more rounds and with nothing beside",
            ),
            Some(before) => (against(before) + &chosen, "measure this set-up once more"),
        };
        (format!("worstcase cost{options}"), purpose.to_owned())
    }

    /// The options that decide what is measured, as they were given, each after a blank.
    fn chosen(&self) -> String {
        let value = |name: &str, value: Option<String>| value.map(|value| format!(" --{name} {value}"));
        let given = [
            value("cpus", self.cpus.as_ref().map(ToString::to_string)),
            value("rounds", self.rounds.map(|rounds| rounds.to_string())),
            value("runs", self.runs.map(|runs| runs.to_string())),
            value("sample", self.sample.map(|sample| sample.to_string())),
            value("only", (!self.only.is_empty()).then(|| self.only.join(","))),
        ];
        let with = self.with.iter().map(|setting| format!(" --with {}", printable::shell(setting)));
        given.into_iter().flatten().chain(with).collect()
    }
}

/// What an interrupted run leaves, and where.
fn kept(cost: &Cost, path: &Path) -> String {
    let (done, of, path) = (cost.rounds, cost.plan.rounds, path.display());
    let has_more =
        cost.operations.iter().flat_map(|operation| &operation.samples).any(|sample| sample.round > done);
    match (done, has_more) {
        (0, false) => {
            format!("Interrupted before anything was measured: the record in {path} has no figures.")
        }
        (done, true) => format!(
            "Interrupted: {done} of {of} rounds are complete; they and what was measured of the next one are kept in {path}."
        ),
        (done, false) => format!("Interrupted: {done} of {of} rounds are complete, and kept in {path}."),
    }
}

/// What a record is for: none where it has too few rounds to be compared with itself, which would be in vain.
fn after(cost: &Cost, path: &Path) -> Option<(String, String)> {
    let can_be_compared = !report::cost::against(cost, cost).rows.is_empty();
    // Its options are in the record.
    let command = can_be_compared.then(|| format!("worstcase cost{}", against(path)))?;
    Some((command, "after a change: what it costs".to_owned()))
}

/// The options that measure the operations of a record as it did, in as many rounds as are usual: it had too few.
fn same_operations(cost: &Cost) -> String {
    let plan = &cost.plan;
    let second = plan.second.map_or_else(String::new, |cpu| format!(",{cpu}"));
    let sample = if plan.sample == SAMPLE { String::new() } else { format!(" --sample {}", plan.sample) };
    let all = || operation::operations().filter(|one| one.name != CONTROL).map(|one| one.name);
    let measured: Vec<&str> =
        all().filter(|name| cost.operations.iter().any(|one| one.name == *name)).collect();
    let only = if all().eq(measured.iter().copied()) {
        String::new()
    } else {
        format!(" --only {}", measured.join(","))
    };
    format!(" --cpus {}{second}{sample}{only}", plan.cpu)
}

fn against(path: &Path) -> String {
    format!(" --against {}", printable::shell(&path.to_string_lossy()))
}

/// A record with too few runs is compared in vain, whatever is measured now: it is refused before that.
fn refuse_short(earlier: &Cost, path: &Path) -> Result<()> {
    let runs = earlier.operations.iter().map(|one| one.by_run(&earlier.plan).len()).max().unwrap_or_default();
    if runs >= LEAST_APART {
        return Ok(());
    }
    let has = count_of(runs as u64, "run");
    let message =
        format!("--against {}: it has {has}, and a comparison needs {LEAST_APART} or more", path.display());
    let again = format!("worstcase cost{} --rounds {ROUNDS}", same_operations(earlier));
    Err(Error::new(message, format!("nothing was measured; record the set-up before once more: {again}")))
}

/// What is said of a plan whose record can never be compared with another.
fn in_vain(plan: &CostPlan) -> Option<String> {
    ((plan.runs as usize) < LEAST_APART).then(|| {
        let has = count_of(plan.runs.into(), "run");
        format!(
            "{has} of rounds: such a record can be read, and never compared with another, which needs {LEAST_APART} or more: \
             --rounds {LEAST_APART} at least, {ROUNDS} unless you choose"
        )
    })
}

/// What is to be measured, and how long that takes.
fn expected(cost: &Cost, in_turn: bool) -> String {
    let operations = cost.operations.iter().filter(|one| one.failures.is_empty()).count() as u64;
    let CostPlan { rounds, sample, .. } = &cost.plan;
    let (set_ups, twice) = if in_turn { (2, ", without the setting and with it") } else { (1, "") };
    let time = sample.saturating_mul(operations * u64::from(*rounds) * set_ups).rounded();
    format!(
        "{} in {}{twice}: takes {time} or more",
        count_of(operations, "operation"),
        count_of((*rounds).into(), "round")
    )
}

/// Whether two records show what the second set-up costs.
fn shows_cost(before: &Cost, after: &Cost) -> bool {
    report::cost::against(before, after).inconclusive.is_none()
}

/// Complete, ended early or compared in vain, or ended before anything was measured.
fn code(cost: &Cost, is_open: bool) -> ExitCode {
    let has_figures = cost.operations.iter().any(|operation| !operation.samples.is_empty());
    ExitCode::from(match (&cost.interrupted, has_figures) {
        (None, true) if !is_open => 0,
        (Some(_), false) => 130,
        _ => 3,
    })
}

fn shown(cost: &Cost, earlier: Option<&Cost>, json: bool, style: &Style) -> String {
    match (json, earlier) {
        (true, None) => serde_json::to_string(cost).unwrap_or_default() + "\n",
        (true, Some(earlier)) => report::cost::json(&report::cost::against(earlier, cost)),
        (false, None) => report::cost::text(cost, style),
        (false, Some(earlier)) => report::cost::compared(earlier, cost, style),
    }
}

fn earlier(path: &Path) -> Result<Cost> {
    let none = || {
        let message = format!("--against {}: there is no cost.json", path.display());
        Error::new(message, "give a directory that `worstcase cost` left")
    };
    Ok(load(path).ok_or_else(none)??)
}

/// The records in `paths`, if any of them is one of costs. Then all must be.
pub fn records(paths: &[PathBuf]) -> Option<Result<Vec<Cost>>> {
    let of_costs = paths.iter().find(|path| load(path).is_some())?;
    let none = |path: &PathBuf| {
        if let Err(error) = path.metadata() {
            let hint = "give a directory that `worstcase cost` left";
            return Error::new(format!("read {}: {error}", path.display()), hint);
        }
        let message = format!("{} is a record of costs, and {} is none", of_costs.display(), path.display());
        Error::new(message, "name records of one kind, or for each set-up one of both: --trade")
    };
    Some(paths.iter().map(|path| Ok(load(path).ok_or_else(|| none(path))??)).collect())
}

/// What `worstcase report` shows of them: the first, or each other against it.
pub fn report(costs: &[Cost], json: bool) -> (String, Option<std::result::Result<String, std::fmt::Error>>) {
    let style = output::style(Stream::Output);
    match costs {
        [] => (String::new(), None),
        [only] => (shown(only, None, json, &style), Some(report::cost::page(only, None))),
        [first, rest @ ..] => {
            let texts: Vec<String> = rest.iter().map(|one| shown(one, Some(first), json, &style)).collect();
            (texts.join("\n"), rest.last().map(|last| report::cost::page(last, Some(first))))
        }
    }
}

/// Records of latencies and of costs in turn, as `report --trade` takes them: a record of costs ends a set-up, which is named
/// after its directory.
pub fn trade(paths: &[PathBuf]) -> Result<report::cost::Trade> {
    let mut set_ups: Vec<report::cost::Measured> = Vec::new();
    let mut records = Vec::new();
    for path in paths {
        match load(path) {
            None => records.push(record::store::load(path)?),
            Some(cost) => {
                let name = path.display().to_string();
                set_ups.push(report::cost::Measured {
                    name,
                    records: std::mem::take(&mut records),
                    cost: cost?,
                });
            }
        }
    }
    let hint =
        "worstcase report --trade BENCH COST BENCH COST: of each set-up what bench left, then what cost left";
    if !records.is_empty() {
        return Err(Error::new("the last record of latencies has no record of costs behind it", hint));
    }
    report::cost::trade_of(&set_ups).ok_or_else(|| {
        Error::new("there are no two set-ups with latencies under one load, and with costs", hint)
    })
}

/// Columns of the list, which is read on small terminals and in pipes alike.
const LIST_WIDTH: usize = 80;

fn list(only: &[String]) -> String {
    let mut text = String::new();
    let mut family = "";
    for operation in operation::operations().filter(|one| measure::is_wanted(one, only)) {
        if operation.family() != family {
            family = operation.family();
            text += &format!("{family}:\n");
        }
        text += &format!("  {:18} {}\n", operation.name, operation.title);
        let lines = [("one", operation.unit), ("as", operation.source), ("stands for", operation.stands_for)];
        for (what, words) in lines {
            text += &report::text::paragraph(&format!("{what}: {words}"), 21, LIST_WIDTH);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::cost::Sample;

    #[test]
    fn an_interrupted_run_says_what_is_kept_and_where() {
        let plan = CostPlan { rounds: 9, ..serde_json::from_str(PLAN).unwrap() };
        let mut cost = begun(record::Machine::default(), plan, UtcTime(0), &[]);
        let said = |cost: &Cost| kept(cost, Path::new("there"));
        assert_eq!(
            said(&cost),
            "Interrupted before anything was measured: the record in there has no figures."
        );
        let sample = |round| Sample { round, count: 1, time: Nanos(1), cpu_time: Nanos(1), switches: 0 };
        cost.operations[0].samples = [1, 2, 3].map(sample).to_vec();
        cost.rounds = 3;
        assert_eq!(said(&cost), "Interrupted: 3 of 9 rounds are complete, and kept in there.");
        cost.rounds = 2;
        assert!(
            said(&cost).starts_with("Interrupted: 2 of 9 rounds are complete; they and what"),
            "{}",
            said(&cost)
        );
    }

    #[test]
    fn a_record_of_too_few_rounds_is_warned_of_and_refused_with_the_command_that_makes_another() {
        let plan = |rounds| CostPlan { rounds, runs: rounds, ..serde_json::from_str(PLAN).unwrap() };
        assert!(
            in_vain(&plan(2)).is_some_and(|doubt| doubt.contains("--rounds 3 at least")),
            "{:?}",
            in_vain(&plan(2))
        );
        assert_eq!(in_vain(&plan(3)), None);
        let recorded = |rounds: u32| {
            let mut cost =
                begun(record::Machine::default(), plan(rounds), UtcTime(0), &["getppid".to_owned()]);
            let sample = |round| Sample {
                round,
                count: 1_000,
                time: Nanos(60_000_000 + u64::from(round)),
                cpu_time: Nanos(60_000_000),
                switches: 0,
            };
            cost.operations.iter_mut().for_each(|one| one.samples = (1..=rounds).map(sample).collect());
            cost.rounds = rounds;
            refuse_short(&cost, Path::new("before"))
        };
        let refused = recorded(2).unwrap_err();
        assert_eq!(refused.message, "--against before: it has 2 runs, and a comparison needs 3 or more");
        assert!(
            refused.hint.contains("worstcase cost --cpus 0") && refused.hint.ends_with("--rounds 14"),
            "{}",
            refused.hint
        );
        assert!(recorded(7).is_ok(), "{:?}", recorded(7));
    }

    #[test]
    fn a_record_that_is_not_there_is_not_called_one_of_another_kind() {
        let place = tempfile::tempdir().unwrap();
        let [costs, other, missing] = ["costs", "other", "missing"].map(|name| place.path().join(name));
        [&costs, &other].iter().for_each(|directory| std::fs::create_dir(directory).unwrap());
        let cost = begun(record::Machine::default(), serde_json::from_str(PLAN).unwrap(), UtcTime(0), &[]);
        std::fs::write(costs.join(record::cost::FILE), serde_json::to_string(&cost).unwrap()).unwrap();
        let refused =
            |second: &PathBuf| records(&[costs.clone(), second.clone()]).unwrap().unwrap_err().message;
        assert!(refused(&missing).contains("No such file or directory"), "{}", refused(&missing));
        assert!(refused(&other).contains("is none"), "{}", refused(&other));
    }

    const PLAN: &str = r#"{"cpu":0,"second":null,"rounds":1,"runs":1,"sample":60000000,"seed":1}"#;
}
