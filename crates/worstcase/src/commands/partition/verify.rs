//! `worstcase partition verify`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use audit::isolation::{Allowance, Allowed, Judged, Origin, judge};
use clap::Args;
use machine::activity::{Activity, Kind, Tally};
use machine::partitions;
use serde::Serialize;
use sys::clock::Clock;
use sys::signal::Signals;
use sysroot::SysRoot;
use units::{CpuId, CpuList, Nanos};

use super::tracing::Tracing;
use crate::commands::applied;
use crate::options;
use crate::output::{self, Stream};
use failure::{Error, Result};
use report::Style;

/// How often everything is looked at: threads that come and go in between are counted, and not named.
const LOOK: Duration = Duration::from_secs(1);

/// Count what runs on CPUs for real time, and name its source
///
/// Interrupts, softirqs, threads and page faults are counted for a time. Changes nothing; --trace switches tracing on for
/// that time. Exit code 1 if something came more often than is allowed, 3 if something could not be counted.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase partition verify --rt 1 -D 1m    what disturbs CPU 1, named\n  \
    worstcase partition verify --trace         with the callers of IPIs")]
pub struct Verify {
    /// The CPUs [default: those of all partitions]
    #[arg(long, value_name = "CPUS")]
    rt: Option<CpuList>,

    /// How long to count
    #[arg(short = 'D', long, value_name = "TIME", allow_hyphen_values = true, default_value_t = USUAL, value_parser = options::duration)]
    duration: Nanos,

    /// Events a second allowed on each CPU: of each thing, or NAME=N for one row or thread; may be given several times [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    allow: Vec<Allowed>,

    /// Trace as well: system calls, and the functions behind calls of other CPUs, work and timers; it costs each of
    /// them time on these CPUs
    #[arg(long)]
    trace: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// For how long it is counted unless somebody says otherwise.
const USUAL: Nanos = Nanos::from_secs(10);

/// What was counted, as it is printed in JSON.
#[derive(Serialize)]
struct Proof {
    schema_version: u32,
    cpus: String,
    /// When counting began, on CLOCK_MONOTONIC: what happened before is not in it.
    began: Nanos,
    /// For how long it counted.
    time: Nanos,
    verdict: &'static str,
    missing: Vec<String>,
    /// What is counted and cannot be named here.
    unnamed: Vec<String>,
    /// Rows that another driver has now.
    changes: Vec<String>,
    residues: Vec<Judged>,
}

impl Verify {
    /// Does it.
    pub fn run(self) -> Result<ExitCode> {
        let root = SysRoot::live();
        let facts = machine::machine(&root).cpus;
        let (online, cpus) = (facts.online, self.cpus(&root)?);
        // One that is offline is not counted, and that is said.
        super::check_cpus(&cpus, machine::present(&root).value().unwrap_or(&online))?;
        // Elsewhere if that may be, so that the looking is not seen. Where it may not, it shows as what it is.
        let _ = sys::schedule::set_affinity(0, &online.difference(&cpus));
        let proof = self.count(&root, cpus)?;
        let code = match proof.verdict {
            "fail" => 1,
            "inconclusive" => 3,
            _ => 0,
        };
        let style = output::style(Stream::Output);
        output::final_data(&match self.json {
            true => serde_json::to_string_pretty(&proof).unwrap_or_default() + "\n",
            false => text(&proof, style.width) + &self.next(&proof, &root, &style),
        })?;
        Ok(ExitCode::from(code))
    }

    /// What fits the proof: to set the CPUs apart, to trace who called, to measure.
    fn next(&self, proof: &Proof, root: &SysRoot, style: &Style) -> String {
        let is_root = rustix::process::geteuid().is_root();
        let steps = steps(proof.verdict, asked_for(root).is_empty(), self.trace, is_root);
        let command = |words: &str| match words.strip_suffix("--cpus") {
            Some(words) => format!("worstcase {words}--cpus {}", proof.cpus),
            None if words.contains("verify") => {
                format!("worstcase {words} --rt {}{}", proof.cpus, self.chosen())
            }
            None => format!("worstcase {words} --rt {}", proof.cpus),
        };
        let steps: Vec<(String, String)> =
            steps.into_iter().map(|(words, purpose)| (command(words), purpose)).collect();
        report::next::steps(&steps, style).into_iter().map(|line| line + "\n").collect()
    }

    /// The options that decide what is counted and allowed, as they were given, each after a blank.
    fn chosen(&self) -> String {
        let duration =
            if self.duration == USUAL { String::new() } else { format!(" --duration {}", self.duration) };
        let allow = self.allow.iter().map(|one| format!(" --allow {}", printable::shell(&one.to_string())));
        std::iter::once(duration).chain(allow).collect()
    }

    fn cpus(&self, root: &SysRoot) -> Result<CpuList> {
        let cpus = self.rt.clone().unwrap_or_else(|| asked_for(root));
        match cpus.is_empty() {
            true => Err(Error::new("there is no partition to verify", "name the CPUs with --rt")),
            false => Ok(cpus),
        }
    }

    fn count(&self, root: &SysRoot, cpus: CpuList) -> Result<Proof> {
        let signals = Signals::take()?;
        Tracing::clear();
        let mut tracing = if self.trace { Tracing::begin(&cpus) } else { Tracing::default() };
        let mut tally = Tally::new(cpus.clone());
        tracing.forget();
        let mut before = Activity::take(root, &cpus);
        // A busy machine takes its time for the first look, in which nothing counts.
        let (begin, began) = (Instant::now(), Nanos(Clock::Monotonic.now()));
        output::news(&format!("counting what runs on {} for {}", cpus.named(), self.duration));
        let end = begin + self.duration.duration();
        let mut lost = Lost::default();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let is_over = tracing.follow(&signals, left.min(LOOK), &mut tally)?;
            let after = Activity::take(root, &cpus);
            tally.add(&before, &after);
            before = after;
            lost.look(root, &cpus);
            if is_over || signals.next().is_some() || Instant::now() >= end {
                break;
            }
        }
        // Nor while the trace is read to its end.
        let time = Nanos(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        tracing.end(&mut tally);
        let mut residues = judge(tally.named(), time, &allowance(&self.allow));
        forget_what_was_tried(&mut residues, &applied::unmoved());
        let rest = cut_short(time, self.duration).into_iter().collect();
        let missing = [tally.missing(), lost.missing(), before.missing(), tracing.missing(), rest].concat();
        let (verdict, unnamed) = (verdict(&residues, &missing), tracing.unnamed());
        let changes = tally.changes();
        Ok(Proof {
            schema_version: 2,
            cpus: cpus.to_string(),
            began,
            time,
            verdict,
            missing,
            unnamed,
            changes,
            residues,
        })
    }
}

/// A command without its CPUs, and what it is for. Each once: for who is not root with the word that root must type it.
fn steps(
    verdict: &str,
    has_no_partition: bool,
    is_traced: bool,
    is_root: bool,
) -> Option<(&'static str, String)> {
    let for_root = |purpose: &str| if is_root { purpose.to_owned() } else { format!("as root: {purpose}") };
    Some(match (verdict, has_no_partition, is_traced) {
        ("fail", true, _) => ("partition create", for_root("keep everything else off these CPUs")),
        ("fail", false, false) => ("partition verify --trace", for_root("name the callers as well")),
        ("pass", ..) => ("bench --cpus", for_root("measure the latency there")),
        _ => return None,
    })
}

/// The CPUs of all partitions: those that were asked for, whether the kernel gives them or not.
fn asked_for(root: &SysRoot) -> CpuList {
    let of = |one: &record::Partition| {
        let asked = root.cpu_list(&format!("{}/cpuset.cpus", one.group));
        asked.value().map_or(one.cpus.clone(), |asked| asked.union(&one.cpus))
    };
    partitions(root).iter().map(of).fold(CpuList::new(), |all, own| all.union(&own))
}

/// CPUs that partitions should have and did not have at some look.
#[derive(Default)]
struct Lost(BTreeSet<String>);

impl Lost {
    fn look(&mut self, root: &SysRoot, cpus: &CpuList) {
        for one in partitions(root) {
            let asked = root.cpu_list(&format!("{}/cpuset.cpus", one.group));
            let lacking = asked.value().map(|asked| asked.difference(&one.cpus).intersection(cpus));
            if let Some(lacking) = lacking.filter(|lacking| !lacking.is_empty()) {
                self.0.insert(format!("CPU {lacking}: {} was without it at a look", one.group));
            }
            if !one.is_valid() && !one.cpus.intersection(cpus).is_empty() {
                self.0.insert(format!("{}: no valid partition at a look: {}", one.group, one.state));
            }
        }
    }

    fn missing(self) -> Vec<String> {
        self.0.into_iter().collect()
    }
}

/// What is allowed of anything unless somebody says otherwise: a kernel without a tick still looks once a second.
const ANY: Allowed = Allowed { name: None, events: 1 };

fn allowance(asked: &[Allowed]) -> Allowance {
    std::iter::once(&ANY).chain(asked).cloned().collect()
}

/// Where an interrupt comes from that the kernel would not move, and what is left.
static REFUSED: LazyLock<Origin> = LazyLock::new(|| {
    Origin {
    source: "a device whose interrupt the kernel refuses to move (worstcase tune status)".into(),
    remedy: "set other CPUs apart for real time, boot with threadirqs so that only its short part runs here (worstcase tune irq-thread: \
             the rest below your threads), or accept it with --allow NAME=N; a managed one needs fewer queues or \
             isolcpus=managed_irq,domain,CPUS"
        .into(),
}
});

/// An interrupt that the kernel refused to move when the partition was made is not cured by the same again.
fn forget_what_was_tried(residues: &mut [Judged], unmoved: &BTreeSet<u32>) {
    let is_unmoved = |judged: &Judged| {
        let number = judged.residue.name.parse().ok();
        judged.residue.kind == Kind::Interrupt && number.is_some_and(|number| unmoved.contains(&number))
    };
    residues.iter_mut().filter(|judged| is_unmoved(judged)).for_each(|judged| judged.origin = &REFUSED);
}

/// What a signal left uncounted: a second without a residue says nothing of an hour.
fn cut_short(time: Nanos, asked: Nanos) -> Option<String> {
    (time < asked).then(|| format!("the rest of {asked}: a signal ended it after {}", time.rounded()))
}

fn verdict(residues: &[Judged], missing: &[String]) -> &'static str {
    match (residues.iter().any(|judged| judged.over), missing.is_empty()) {
        (true, _) => "fail",
        (false, false) => "inconclusive",
        (false, true) => "pass",
    }
}

/// The proof in words: what is over the allowance with its source and remedy, the rest in a line each.
fn text(proof: &Proof, width: usize) -> String {
    let cpus: CpuList = proof.cpus.parse().unwrap_or_default();
    let mut text = format!("{} for {}\n", cpus.named(), proof.time.rounded());
    for cpu in cpus.iter() {
        cpu_text(&mut text, proof, cpu, width);
    }
    for missing in &proof.missing {
        text += &report::paragraph(&format!("not counted: {missing}"), 2, width);
    }
    for change in &proof.changes {
        text += &report::paragraph(&format!("changed meanwhile: {change}"), 2, width);
    }
    for unnamed in &proof.unnamed {
        text += &report::paragraph(&format!("not named: {unnamed}"), 2, width);
    }
    let over = proof.residues.iter().filter(|judged| judged.over).count();
    let _ = match proof.verdict {
        "fail" => writeln!(text, "fail: {over} above the allowance"),
        "inconclusive" => writeln!(text, "inconclusive: not everything could be counted"),
        _ => writeln!(text, "pass: nothing above the allowance"),
    };
    text
}

/// What is over the allowance, whatever has the same source together; then the rest.
fn cpu_text(text: &mut String, proof: &Proof, cpu: CpuId, width: usize) {
    let here = proof.residues.iter().filter(|judged| judged.residue.cpu == cpu);
    let (mut over, rest): (Vec<&Judged>, Vec<&Judged>) = here.partition(|judged| judged.over);
    let _ = writeln!(text, "CPU {cpu}{}", if over.len() + rest.len() == 0 { ": nothing" } else { "" });
    while let Some(first) = over.first().copied() {
        let (alike, others) = over.into_iter().partition::<Vec<_>, _>(|one| one.origin == first.origin);
        over = others;
        for judged in alike {
            *text += &report::paragraph(&line(judged), 2, width);
        }
        *text += &report::paragraph(&format!("from: {}", first.origin.source), 8, width);
        let cure = first.origin.remedy.replace("CPUS", &proof.cpus);
        *text += &report::paragraph(&format!("cure: {cure}"), 8, width);
    }
    for judged in rest {
        *text += &report::paragraph(&line(judged), 2, width);
    }
}

fn line(judged: &Judged) -> String {
    let residue = &judged.residue;
    let (what, units) = match residue.kind {
        Kind::Interrupt => ("interrupt", "times"),
        Kind::Softirq => ("softirq", "times"),
        Kind::KernelThread => ("kernel thread", "slices"),
        Kind::UnpinnedThread => ("program", "slices"),
        Kind::PinnedThread => ("bound here", "slices"),
        Kind::PageFault => ("page faults of", "faults"),
        Kind::Unseen => ("threads that ended or passed by", "slices at least"),
        Kind::Passing => ("passed by", "slices"),
        Kind::Call => ("call", "times"),
        Kind::Work => ("work", "times"),
        Kind::Timer => ("timer", "times"),
        Kind::Tick => ("tick kept for", "times"),
        Kind::SystemCall => ("system calls of", "times"),
        Kind::Steal => ("steal: the hypervisor ran something else", "clock ticks"),
    };
    let mark = if judged.over { "over " } else { "" };
    let time = match residue.time {
        Nanos::ZERO => String::new(),
        time => format!(", ran {} us", time.0.div_ceil(1000)),
    };
    let words = [what, &residue.name, &residue.words].into_iter().filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let unit = if residue.events == 1 { singular(units) } else { units.to_owned() };
    format!("{mark}{}: {} {unit}{time}", words.join(" "), residue.events)
}

/// `slice at least` of `slices at least`.
fn singular(units: &str) -> String {
    let (first, rest) = units.split_once(' ').unwrap_or((units, ""));
    match (units, rest) {
        ("clock ticks", _) => "clock tick".to_owned(),
        (_, "") => first.trim_end_matches('s').to_owned(),
        _ => format!("{} {rest}", first.trim_end_matches('s')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::activity::Residue;

    fn residues(kind: Kind, name: &str, events: u64) -> Vec<Judged> {
        let (name, words) = (name.to_owned(), String::new());
        let residue = Residue { cpu: CpuId(1), kind, name, words, events, time: Nanos::ZERO };
        judge(vec![residue], Nanos::from_secs(1), &Allowance { any: 1, ..Allowance::default() })
    }

    fn failed(cpus: &str, residues: Vec<Judged>) -> Proof {
        Proof {
            schema_version: 2,
            cpus: cpus.to_owned(),
            began: Nanos(1),
            time: Nanos::from_secs(1),
            verdict: "fail",
            missing: vec![],
            unnamed: vec![],
            changes: vec![],
            residues,
        }
    }

    #[test]
    fn an_interrupt_that_the_kernel_refused_to_move_is_not_cured_by_trying_again() {
        let cure = |unmoved: &[u32]| {
            let mut residues = residues(Kind::Interrupt, "24", 1_000);
            forget_what_was_tried(&mut residues, &unmoved.iter().copied().collect());
            text(&failed("1", residues), 2_000)
        };
        let free = cure(&[25]);
        assert!(free.contains("worstcase tune apply --only rn-irq-affinity --isolate 1"), "{free}");
        let refused = cure(&[24]);
        assert!(!refused.contains("tune apply") && refused.contains("refuses to move"), "{refused}");
        assert!(refused.contains("threadirqs") && refused.contains("--allow"), "{refused}");
    }

    #[test]
    fn a_next_step_is_named_once_and_for_root_where_this_is_not() {
        let words = |verdict, is_root| {
            let steps = [true, false].map(|none| steps(verdict, none, false, is_root));
            steps.map(|step| step.map(|(command, purpose)| format!("{command}: {purpose}")))
        };
        let own = [
            "partition create: keep everything else off these CPUs",
            "partition verify --trace: name the callers as well",
        ];
        assert_eq!(words("fail", true), own.map(|words| Some(words.to_owned())));
        assert_eq!(words("fail", false), own.map(|words| Some(words.replacen(": ", ": as root: ", 1))));
        assert_eq!(words("inconclusive", false), [None, None]);
        assert_eq!(steps("fail", false, true, false), None, "it was traced already");
    }

    #[test]
    fn counting_that_a_signal_ended_is_no_pass() {
        let (second, hour) = (Nanos::from_secs(1), Nanos::from_secs(3_600));
        let missing: Vec<String> = cut_short(second, hour).into_iter().collect();
        assert_eq!(verdict(&[], &missing), "inconclusive");
        assert_eq!(missing, ["the rest of 1h: a signal ended it after 1 s"]);
        assert_eq!(cut_short(hour, hour), None);
    }

    #[test]
    fn an_allowance_for_a_name_leaves_the_others_theirs() {
        let allowance = allowance(&["LOC=250".parse().unwrap()]);
        assert_eq!((allowance.any, allowance.named["LOC"]), (1, 250));
        assert_eq!(super::allowance(&["0".parse().unwrap()]).any, 0);
    }

    #[test]
    fn what_is_over_goes_before_what_could_not_be_counted() {
        let (loud, quiet) = (residues(Kind::Interrupt, "LOC", 250), residues(Kind::Interrupt, "LOC", 1));
        let missing = ["interrupts: no file".to_owned()];
        assert_eq!(verdict(&loud, &missing), "fail");
        assert_eq!(verdict(&quiet, &missing), "inconclusive");
        assert_eq!(verdict(&quiet, &[]), "pass");
    }

    #[test]
    fn what_is_over_is_reported_with_source_and_cure_and_a_quiet_cpu_is_called_so() {
        let residues = residues(Kind::Interrupt, "LOC", 250);
        let (unnamed, changes) = (vec!["functions of calls".to_owned()], vec!["row 1 was i8042".to_owned()]);
        let proof = Proof { unnamed, changes, ..failed("1-2", residues) };
        let text = text(&proof, 100);
        assert!(text.contains("over interrupt LOC: 250 times\n"), "{text}");
        assert!(
            text.contains("from: the timer tick") && text.contains("cure: boot with nohz_full="),
            "{text}"
        );
        assert!(
            text.contains(
                "CPU 2: nothing\n  changed meanwhile: row 1 was i8042\n  not named: functions of calls\n"
            ) && text.ends_with("fail: 1 above the allowance\n"),
            "{text}"
        );
    }

    #[test]
    fn what_has_one_source_has_its_cure_once_and_for_these_cpus() {
        let program = |name: &str| Residue {
            cpu: CpuId(1),
            kind: Kind::UnpinnedThread,
            name: name.to_owned(),
            words: String::new(),
            events: 9,
            time: Nanos::ZERO,
        };
        let all = vec![program("first"), program("second")];
        let residues = judge(all, Nanos::from_secs(1), &Allowance { any: 1, ..Allowance::default() });
        let proof = failed("1", residues);
        let text = text(&proof, 100);
        assert!(text.contains("over program first: 9 slices\n  over program second: 9 slices\n"), "{text}");
        assert!(text.matches("cure: worstcase partition create --rt 1,").count() == 1, "{text}");
    }
}
