//! Options of tools that guides use, read as getopt_long reads them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use machine::grammar::{Kind, cpu_list};

use super::nearest::nearest_of;
use super::script::{program, unwrapped};
use super::{Remark, RemarkId};
use crate::Severity;

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/tools.txt.gz"))));
/// Its second line has the stressors, its fourth the other options.
static STRESSORS: LazyLock<String> =
    LazyLock::new(|| machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/stressors.txt.gz"))));

/// A tool with its options.
#[derive(Debug)]
struct Tool {
    name: &'static str,
    /// Options end at the first operand.
    first: bool,
    /// The list of options is not whole.
    near: bool,
    /// What the first operand may be, if that is known.
    words: Vec<&'static str>,
    options: Vec<ToolOption>,
}

#[derive(Debug)]
struct ToolOption {
    spellings: Vec<&'static str>,
    value: Takes,
}

/// What an option takes.
#[derive(Debug, PartialEq)]
enum Takes {
    Nothing,
    Value(Value),
    /// In the same word, or nothing.
    Perhaps(Value),
}

#[derive(Debug, PartialEq)]
enum Value {
    Of(Kind),
    /// A number, perhaps with one of these letters behind it, of which the tool reads the first.
    Time(&'static str),
    /// A number, perhaps with exactly one of these letters behind it.
    Suffix(&'static str),
    /// As numactl reads nodes and CPUs: `all`, `!1`, `+0`.
    Nodes,
    /// `SOFT:HARD` of prlimit.
    Limits,
}

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let mut tools: Vec<Tool> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix("= "), tools.last_mut()) {
            (Some(head), _) => tools.push(tool(head)),
            (None, Some(tool)) => tool.options.extend(option(line)),
            (None, None) => {}
        }
    }
    tools
});

fn tool(head: &'static str) -> Tool {
    let (head, words) = head.split_once(" words ").unwrap_or((head, ""));
    let (words, last) = words.split_once(' ').unwrap_or((words, ""));
    let is = |mark: &str| head.split(' ').any(|word| word == mark) || last == mark;
    let name = head.trim_end_matches(" first").trim_end_matches(" near").trim_end_matches(" first");
    let words = words.split(',').filter(|word| !word.is_empty()).collect();
    Tool { name, first: is("first"), near: is("near"), words, options: Vec::new() }
}

fn option(line: &'static str) -> Option<ToolOption> {
    let (spellings, value) = line.split_once(" | ").unwrap_or((line, ""));
    let value = match value.strip_prefix('?') {
        Some(value) => Takes::Perhaps(kind(value)?),
        None if value.is_empty() => Takes::Nothing,
        None => Takes::Value(kind(value)?),
    };
    Some(ToolOption { spellings: spellings.split(' ').collect(), value })
}

fn kind(text: &'static str) -> Option<Value> {
    Some(match text.split_once(' ') {
        Some(("time", letters)) => Value::Time(letters),
        Some(("suffix", letters)) => Value::Suffix(letters),
        _ if text == "nodes" => Value::Nodes,
        _ if text == "limits" => Value::Limits,
        _ => Value::Of(Kind::parse(text)?),
    })
}

impl Value {
    fn fault(&self, text: &str) -> Option<String> {
        if text.contains(['$', '<', '{', '`', '\u{2026}']) || text.contains("...") || text.is_empty() {
            return None;
        }
        match self {
            Self::Of(kind) => kind.fault(Some(text), None).map(|fault| fault.message),
            Self::Time(letters) => {
                let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let unit = &text[digits.len()..];
                let is_number = digits.parse::<f64>().is_ok();
                let words = ["min", "mins", "minutes", "sec", "secs", "seconds", "hours", "days"];
                let fits = unit.is_empty()
                    || unit.len() == 1 && letters.contains(unit)
                    || words.contains(&unit)
                    || letters.starts_with('u') && matches!(unit, "us" | "ms");
                (!is_number || !fits).then(|| format!("takes a number with one of {letters}, not `{text}`"))
            }
            Self::Suffix(letters) => {
                let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let unit = &text[digits.len()..];
                let fits = unit.is_empty() || unit.len() == 1 && letters.contains(&unit.to_ascii_lowercase());
                (digits.parse::<f64>().is_err() || !fits)
                    .then(|| format!("takes a number and at most one letter of {letters}, not `{text}`"))
            }
            Self::Nodes => {
                let bare = text.trim_start_matches(['+', '!']);
                let is_name = bare == "all"
                    || bare == "same"
                    || ["netdev:", "ip:", "file:", "block:", "pci:"]
                        .iter()
                        .any(|start| bare.starts_with(start));
                let fault = cpu_list(bare, None, None).err().filter(|_| !is_name)?;
                Some(fault.to_string())
            }
            Self::Limits => {
                let one = |text: &str| {
                    matches!(text, "" | "unlimited") || text.bytes().all(|byte| byte.is_ascii_digit())
                };
                (!text.split(':').all(one))
                    .then(|| format!("takes SOFT:HARD, numbers or unlimited, not `{text}`"))
            }
        }
    }
}

/// An option as it was met, or what is wrong with it.
enum Met<'a> {
    Fine { after: usize },
    Unknown(String),
    Wrong(String, String),
    Operand(&'a str),
}

impl Tool {
    fn long(&self, name: &str) -> Option<&ToolOption> {
        let whole = self.options.iter().find(|option| option.spellings.contains(&name));
        let begins = || {
            let begins = |option: &&ToolOption| option.spellings.iter().any(|known| known.starts_with(name));
            let mut all = self.options.iter().filter(begins);
            all.next().filter(|_| all.next().is_none() && name.len() > 2)
        };
        whole.or_else(begins)
    }

    fn short(&self, letter: char) -> Option<&ToolOption> {
        let is = |known: &str| known.strip_prefix('-').is_some_and(|rest| rest.chars().eq([letter]));
        self.options.iter().find(|option| option.spellings.iter().any(|known| is(known)))
    }

    /// What the argument at a place is; how many arguments behind it belong to it.
    fn met<'a>(&self, arguments: &'a [String], at: usize) -> Met<'a> {
        let Some(argument) = arguments.get(at) else { return Met::Fine { after: 0 } };
        let is_open = argument.contains(['$', '<', '{', '`', '[', '(']) || argument.contains("...");
        if is_open || !argument.starts_with('-') || argument.len() < 2 {
            return Met::Operand(argument);
        }
        let next = arguments.get(at + 1).map(String::as_str);
        match argument.starts_with("--") {
            true => self.met_long(argument, next),
            false => self.met_short(argument, next),
        }
    }

    fn met_long<'a>(&self, argument: &str, next: Option<&str>) -> Met<'a> {
        let (name, value) =
            argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
        let Some(option) = self.long(name) else { return Met::Unknown(name.to_owned()) };
        match (&option.value, value) {
            (Takes::Nothing, Some(_)) if self.near => Met::Fine { after: 0 },
            (Takes::Nothing, Some(_)) => Met::Wrong(name.to_owned(), "takes no value".to_owned()),
            (Takes::Nothing | Takes::Perhaps(_), None) => Met::Fine { after: 0 },
            (Takes::Value(kind) | Takes::Perhaps(kind), Some(value)) => judged(name, kind, value, 0),
            (Takes::Value(kind), None) => next.map_or_else(
                || Met::Wrong(name.to_owned(), "takes a value".to_owned()),
                |next| judged(name, kind, next, 1),
            ),
        }
    }

    fn met_short<'a>(&self, argument: &str, next: Option<&str>) -> Met<'a> {
        for (at, letter) in argument.char_indices().skip(1) {
            let name = format!("-{letter}");
            let Some(option) = self.short(letter) else { return Met::Unknown(name) };
            let rest = &argument[at + letter.len_utf8()..];
            match &option.value {
                Takes::Nothing => {}
                Takes::Perhaps(kind) => return judged(&name, kind, rest, 0),
                Takes::Value(kind) if !rest.is_empty() => {
                    return judged(&name, kind, rest.strip_prefix('=').unwrap_or(rest), 0);
                }
                Takes::Value(kind) => {
                    return next.map_or_else(
                        || Met::Wrong(name.clone(), "takes a value".to_owned()),
                        |next| judged(&name, kind, next, 1),
                    );
                }
            }
        }
        Met::Fine { after: 0 }
    }

    /// Whether an argument asks for help and nothing else.
    fn is_help(&self, argument: &str) -> bool {
        let is_known = self
            .options
            .iter()
            .any(|option| option.spellings.contains(&"--help") && option.spellings.contains(&argument));
        is_known && argument != "-H"
    }

    fn has_short(&self) -> bool {
        let is_short = |known: &str| !known.starts_with("--");
        self.options.iter().any(|option| option.spellings.iter().any(|known| is_short(known)))
    }
}

fn judged<'a>(name: &str, kind: &Value, value: &str, after: usize) -> Met<'a> {
    kind.fault(value).map_or(Met::Fine { after }, |message| Met::Wrong(name.to_owned(), message))
}

/// What is wrong with the options of a command, if its tool is in the table.
pub fn remarks(line: usize, words: &[String]) -> Vec<Remark> {
    let words = unwrapped(words);
    let name = program(words);
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else { return Vec::new() };
    if matches!(name, "nice" | "renice" | "hackbench") && is_old_style(words) {
        return Vec::new();
    }
    Walk { line, tool, shown: tool.name.to_owned(), has_options: false, remarks: Vec::new() }
        .run(words.get(1..).unwrap_or_default())
}

/// `nice -10 command`, `renice -5 PID`, `hackbench -pipe 20`.
fn is_old_style(words: &[String]) -> bool {
    let is_old = |word: &String| {
        word.strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) || rest == "pipe")
    };
    words.iter().any(is_old)
}

struct Walk {
    line: usize,
    tool: &'static Tool,
    shown: String,
    has_options: bool,
    remarks: Vec<Remark>,
}

impl Walk {
    fn run(mut self, arguments: &[String]) -> Vec<Remark> {
        let mut at = 0;
        let mut operands = 0;
        while at < arguments.len() && arguments[at] != "--" {
            match self.tool.met(arguments, at) {
                Met::Fine { after } => {
                    if arguments.len() > 1 && self.tool.is_help(&arguments[at]) {
                        let message = "prints its help, and does nothing else".to_owned();
                        self.add(RemarkId::NoEffect, &arguments[at], message, None);
                    }
                    at += after;
                }
                Met::Unknown(option) => {
                    self.has_options = true;
                    self.unknown(&option);
                }
                Met::Wrong(option, message) => {
                    self.add(RemarkId::Malformed, &option, format!("{option} {message}"), None)
                }
                Met::Operand(_) if self.tool.first && self.tool.words.is_empty() => break,
                Met::Operand(operand) => {
                    let is_open = operand.contains(['$', '<', '{', '[']);
                    if operands == 0 && !self.tool.words.is_empty() && !is_open {
                        self.subcommand(operand);
                    }
                    operands += 1;
                }
            }
            at += 1;
        }
        self.remarks
    }

    /// The first operand of a tool that has commands: its options follow.
    fn subcommand(&mut self, operand: &str) {
        let is_number = operand.bytes().all(|byte| byte.is_ascii_digit());
        if !self.tool.words.contains(&operand) && !is_number {
            let meant = nearest_of(operand, self.tool.words.iter().copied());
            // Values of options that the list does not have may stand there.
            if self.tool.near && (meant.is_none() || self.has_options) {
                return;
            }
            let message = match meant {
                Some(meant) => format!("{} has no command {operand}: {meant} is meant", self.tool.name),
                None => format!("{} has no command {operand}", self.tool.name),
            };
            self.add(RemarkId::NoSuchOption, operand, message, meant);
        }
        let name = format!("{} {operand}", self.tool.name);
        if let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) {
            self.tool = tool;
            self.shown = name;
        }
    }

    fn unknown(&mut self, option: &str) {
        let is_long = option.starts_with("--");
        let is_unjudged = !is_long && (self.tool.near || !self.tool.has_short());
        if is_unjudged || self.tool.name == "stress-ng" && is_stressor(option) {
            return;
        }
        let known: BTreeSet<&str> =
            self.tool.options.iter().flat_map(|option| option.spellings.clone()).collect();
        let meant = nearest_of(option, known.into_iter()).filter(|_| is_long);
        let is_whole = !self.tool.near || self.tool.name == "stress-ng";
        // A word that begins as several options is ambiguous for near lists only.
        if is_whole || meant.is_some() {
            let message = format!("{} has no {option}", self.shown);
            self.add(RemarkId::NoSuchOption, option, message, meant);
        }
    }

    fn add(&mut self, id: RemarkId, option: &str, message: String, meant: Option<&str>) {
        let shown = format!("{} {option}", self.shown);
        self.remarks.push(Remark::new(self.line, id, Severity::Error, shown, message).perhaps_instead(meant));
    }
}

/// `--vm`, `--vm-bytes`, and an abbreviation of what belongs to one stressor or to none.
fn is_stressor(option: &str) -> bool {
    let Some(name) = option.strip_prefix("--") else { return false };
    let mut lines = STRESSORS.lines().filter(|line| !line.starts_with('#'));
    let stressors = lines.next().unwrap_or_default();
    let others = lines.next().unwrap_or_default();
    let is_own = |stressor: &str| {
        name.strip_prefix(stressor).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let is_slip = || {
        let known = ["cpu-load", "cpu-method", "vm-bytes", "vm-method", "hdd-bytes"];
        !known.contains(&name)
            && nearest_of(name, known.into_iter()).is_some_and(|meant| meant.len().abs_diff(name.len()) == 1)
    };
    others.split(' ').any(|other| other == name) || stressors.split(' ').any(is_own) && !is_slip()
}

/// Tools that run the command behind their options and so many operands.
const RUNNERS: [(&str, usize); 8] = [
    ("chrt", 1),
    ("taskset", 1),
    ("numactl", 0),
    ("nice", 0),
    ("ionice", 0),
    ("prlimit", 0),
    ("systemd-run", 0),
    ("uclampset", 0),
];

/// The command that a tool runs.
pub fn wrapped(words: &[String]) -> Option<&[String]> {
    let words = unwrapped(words);
    let (name, operands) = RUNNERS.iter().find(|(name, _)| *name == program(words))?;
    let tool = TOOLS.iter().find(|tool| tool.name == *name)?;
    let arguments = &words[1..];
    let reads = arguments.iter().take_while(|word| word.starts_with('-'));
    if reads.clone().any(|word| word == "--pid" || !word.starts_with("--") && word.contains('p'))
        && *name != "systemd-run"
    {
        return None;
    }
    let mut at = 0;
    while at < arguments.len() {
        match tool.met(arguments, at) {
            Met::Fine { after } => at += 1 + after,
            Met::Operand(_) => break,
            Met::Unknown(_) | Met::Wrong(..) if arguments[at] == "--" => {
                at += 1;
                break;
            }
            Met::Unknown(_) | Met::Wrong(..) => return None,
        }
    }
    arguments.get(at + operands..).filter(|rest| !rest.is_empty())
}

/// Whether the table has the tool, so that a command of its that was read counts as understood.
pub fn is_known(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Vec<String> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        remarks(1, &words).into_iter().map(|remark| remark.message).collect()
    }

    #[test]
    fn options_that_a_tool_has_are_taken() {
        for command in [
            "cyclictest -m -Sp99 -i200 -h400 -q -D1h --json=x",
            "cyclictest --affinity=2-3 -t2 -a 2-3 -p 80 -l 100000",
            "hwlatdetect --duration=30M",
            "perf stat -C 2-3 -e cycles sleep --foo",
            "dpdk-testpmd -l 2,3 -n 4 -- -i",
            "chrt -f 99 ls -z",
            "chrt --fifo --pid 50 77",
            "taskset -cp 3 12",
            "numactl --cpunodebind=0 -m 0 ls --foo",
            "stress-ng --cpu 4 --vm 2 --vm-bytes 1G --timeout 60s --matrix-size 64 --sched fifo",
            "rtla timerlat hist -c 2-3 -d 1m -P f:95 --no-aa -u",
            "rtla osnoise -c 1 -T 5 top",
            "cpupower -c 2-3 frequency-set -g performance",
            "tuned-adm profile realtime",
            "systemd-run --scope -p AllowedCPUs=2 ./plc -z",
            "hwlatdetect --duration=60 --threshold=10us",
            "a-tool-of-somebody --foo -z",
            "prlimit --rtprio=99:99 --pid $$",
            "ptp4l -i eth0 -m --summary_interval=1 --tx_timestamp_timeout=50",
            "phc2sys -s eth0 -w --step_threshold=1 --transportSpecific=1",
        ] {
            assert_eq!(of(command), Vec::<String>::new(), "{command}");
        }
    }

    #[test]
    fn options_that_a_tool_lacks_are_wrong() {
        for (command, part) in [
            ("chrt -z 50 ls", "no -z"),
            ("cyclictest --foo", "no --foo"),
            ("cyclictest -Spz95", "-p takes"),
            ("cyclictest -m -k", "no -k"),
            ("taskset --cpus 2 ls", "no --cpus"),
            ("stress-ng --cpus 4", "no --cpus"),
            ("stress-ng --timeout 1min30", "--timeout takes"),
            ("rtla latency top", "no command latency"),
            ("rtla timerlat top --cpuset 2", "no --cpuset"),
            ("cpupower frequency-set --governer performance", "no --governer"),
            ("cpupower frequency-set -g realtime", "-g takes"),
            ("tuned-adm set realtime", "no command set"),
            ("ionice -c realtime -n 9 ls", "-n takes"),
            ("oslat --cpus 2-3", "no --cpus"),
            ("chrt --fifo=50 ls", "takes no value"),
            ("systemctl disabled irqbalance", "disable is meant"),
            ("cyclictest -t1 -n -p 80", "no -n"),
            ("hwlatdetect --duration=30min", "at most one letter"),
            ("perf stat --cpus 2-3 sleep 1", "no --cpus"),
            ("ptp4l -i eth0 -h -m", "its help"),
            ("ptp4l -i eth0 --step_treshold=1", "no --step_treshold"),
            ("dpdk-testpmd -c 2-3 -n 4", "-c takes"),
        ] {
            assert!(of(command).iter().any(|message| message.contains(part)), "{command}: {:?}", of(command));
        }
    }

    #[test]
    fn each_line_of_the_table_is_read() {
        let lines = TABLE.lines().filter(|line| !line.starts_with(['#', '=']));
        assert_eq!(TOOLS.iter().map(|tool| tool.options.len()).sum::<usize>(), lines.count());
        assert!(is_known("rtla timerlat") && !is_known("latmus"));
    }
}
