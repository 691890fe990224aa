//! The ways in which `measure` shows what it measures.

use std::io::ErrorKind;

use formats::{cyclictest, latmus};
use histogram::Summary;
use record::{Block, Machine, Record, RunPlan, Scenario, ScenarioHead, Unit};
use serde::Serialize;
use units::{CpuId, Nanos};

use crate::output::{self, Stream};
use failure::Result;
use runner::{Live, Observer};

use crate::progress::{longest_scenario, rows};

/// Prints; `false` where nobody reads any more.
fn print(text: &str) -> Result<bool> {
    written(output::data(text))
}

fn written(result: std::io::Result<bool>) -> Result<bool> {
    result.or_else(|error| match error.kind() {
        ErrorKind::BrokenPipe => Ok(false),
        _ => Err(output::lost(&error)),
    })
}

/// A table that is drawn anew every second, in place.
pub struct Table {
    unit: Unit,
    /// How long it measures, where that is known.
    length: Option<Nanos>,
    lines_drawn: usize,
}

impl Table {
    /// Nothing drawn yet.
    pub fn new(plan: &RunPlan, unit: Unit) -> Self {
        Self { unit, length: longest_scenario(plan), lines_drawn: 0 }
    }

    /// `12 s, 48 s left`
    fn time(&self, elapsed: Nanos) -> String {
        let left = self.length.map(|length| format!(", {} left", (length - elapsed).rounded()));
        format!("{}{}\n", elapsed.rounded(), left.unwrap_or_default())
    }
}

impl Observer for Table {
    fn begins(&mut self, head: &ScenarioHead, _: usize, _: usize) -> Result<bool> {
        output::words(&format!("{}, warming up; end with Ctrl-C", head.planned.setup));
        Ok(true)
    }

    fn second(&mut self, live: &Live<'_>) -> Result<bool> {
        // The cursor stands below the lines, and the last of them says how long it takes.
        let room = output::height(Stream::Output).saturating_sub(2);
        let style = output::style(Stream::Output);
        let table =
            report::live::table_within(room, &rows(live), self.unit, &style) + &self.time(live.elapsed);
        let back = std::mem::replace(&mut self.lines_drawn, table.lines().count());
        written(output::redraw(back, &table))
    }

    /// Leaves the table where it is and goes on below.
    fn snapshot(&mut self, live: &Live<'_>) -> Result<bool> {
        self.lines_drawn = 0;
        self.second(live)
    }
}

/// One plain line a CPU and second.
pub struct Lines {
    unit: Unit,
}

impl Lines {
    /// For latencies that count `unit`.
    pub fn new(unit: Unit) -> Self {
        Self { unit }
    }
}

impl Observer for Lines {
    fn second(&mut self, live: &Live<'_>) -> Result<bool> {
        let second = (live.elapsed.0 + 500_000_000) / 1_000_000_000;
        let line = |row| report::live::line(second, row, self.unit) + "\n";
        let lines: String = rows(live).iter().map(line).collect();
        print(&lines)
    }

    fn snapshot(&mut self, live: &Live<'_>) -> Result<bool> {
        self.second(live)
    }
}

/// One JSON object a CPU and second.
pub struct Json;

/// A second of a CPU, and its figures so far; times in nanoseconds.
#[derive(Serialize)]
struct JsonLine {
    cpu: Option<CpuId>,
    second: u64,
    block: Block,
    total: JsonTotal,
}

#[derive(Clone, Copy, Serialize)]
struct JsonTotal {
    #[serde(flatten)]
    observed: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u64>,
    #[serde(rename = "p99_9")]
    p999: Option<Nanos>,
}

impl Observer for Json {
    fn second(&mut self, live: &Live<'_>) -> Result<bool> {
        let mut lines = String::new();
        for (index, thread) in live.threads.iter().enumerate() {
            let total = JsonTotal { observed: thread.summary, missed: thread.missed, p999: live.p999(index) };
            for &(second, block) in thread.new {
                let line = JsonLine { cpu: thread.cpu, second, block, total };
                lines += &(serde_json::to_string(&line).unwrap_or_default() + "\n");
            }
        }
        print(&lines)
    }

    fn snapshot(&mut self, live: &Live<'_>) -> Result<bool> {
        self.second(live)
    }
}

/// latmus' lines.
pub struct LatmusLines {
    responder: latmus::Responder,
    requested: Option<Nanos>,
    lines: u64,
}

/// latmus repeats its heads after so many lines.
const LATMUS_PAGE: u64 = 21;

impl LatmusLines {
    /// For a plan with one CPU.
    pub fn new(plan: &RunPlan, machine: &Machine) -> Self {
        let requested = plan.scenarios().first().and_then(|first| plan.scenario_length(&first.setup));
        Self {
            responder: responder(plan, machine, plan.cpus.first().unwrap_or_default(), 0),
            requested,
            lines: 0,
        }
    }
}

/// The period; 0 for an instrument without one, which has no lines in other tools' forms.
fn first_interval(plan: &RunPlan) -> Nanos {
    plan.timer().and_then(|timer| timer.intervals.first().copied()).unwrap_or_default()
}

/// `priority` is the one that the thread has, which need not be the one asked for.
fn responder(plan: &RunPlan, machine: &Machine, cpu: CpuId, priority: u32) -> latmus::Responder {
    latmus::Responder {
        interval: first_interval(plan),
        priority,
        cpu,
        isolated: machine.cpus.isolated.value().is_some_and(|isolated| isolated.contains(cpu)),
    }
}

impl Observer for LatmusLines {
    fn begins(&mut self, _: &ScenarioHead, _: usize, _: usize) -> Result<bool> {
        print(&(latmus::warming_up(&self.responder) + "\n"))
    }

    fn second(&mut self, live: &Live<'_>) -> Result<bool> {
        let Some(thread) = live.threads.first() else { return Ok(true) };
        self.responder.priority = thread.priority;
        let mut text = String::new();
        for (_, block) in thread.new {
            // As latmus has it, best and worst take in the second that the line is about.
            if let Some(line) =
                latmus::data(&block.observed, &thread.summary, thread.missed.unwrap_or_default())
            {
                if self.lines % LATMUS_PAGE == 0 {
                    text +=
                        &format!("{}\n{}\n", latmus::heading(&self.responder, live.elapsed), latmus::TITLES);
                }
                self.lines += 1;
                text += &(line + "\n");
            }
        }
        print(&text)
    }

    fn snapshot(&mut self, _: &Live<'_>) -> Result<bool> {
        Ok(true)
    }

    fn ended(&mut self, scenario: &Scenario) -> Result<bool> {
        let Some(series) = scenario.series.first() else { return Ok(true) };
        let missed = series.missed().summary().count;
        let summary = latmus::summary(series.observed.summary(), missed, scenario.length, self.requested);
        print(&summary.map_or(String::new(), |summary| format!("{}\n{summary}\n", latmus::RULER)))
    }
}

/// The histogram file that latmus -g writes.
pub fn latmus_dump(record: &Record, scenario: &Scenario) -> String {
    let (Some(series), header) = (scenario.series.first(), &record.header) else { return String::new() };
    let cpu = series.cpu.unwrap_or_default();
    let priority = scenario.evidence.threads.first().map_or(0, |thread| thread.priority);
    let kernel = &header.machine.kernel;
    let version = format!("Linux version {} {}", kernel.release, kernel.version);
    latmus::dump(&latmus::Dump {
        started: header.started,
        program: &format!("worstcase {}", header.tool.version),
        kernel: Some(&version),
        command_line: kernel.command_line.value().map(String::as_str),
        clock_source: header.machine.clock_source.value().map(String::as_str),
        clock_is_system_call: scenario.evidence.threads.iter().any(|thread| thread.clock_is_system_call),
        responder: responder(&header.plan, &header.machine, cpu, priority),
        restricted: header.held.iter().any(|held| held.effective == held.value),
        duration: scenario.length,
        peak: series.worst.first().map(|sample| sample.due),
        missed: series.missed().summary().count,
        observed: &series.observed,
        cells: None,
    })
}

/// cyclictest's lines: drawn anew in place on a terminal, once at the end elsewhere.
pub struct CyclictestLines {
    interval: Nanos,
    drawn: usize,
    /// Id and priority of each thread, as read last.
    threads: Vec<(i32, u32)>,
    last: Vec<Nanos>,
}

impl CyclictestLines {
    /// For a plan.
    pub fn new(plan: &RunPlan) -> Self {
        Self { interval: first_interval(plan), drawn: 0, threads: Vec::new(), last: Vec::new() }
    }

    fn lines(&self, summaries: impl Iterator<Item = Summary>) -> String {
        summaries
            .enumerate()
            .map(|(index, summary)| {
                let (tid, priority) = self.threads.get(index).copied().unwrap_or_default();
                let thread = cyclictest::Thread {
                    thread: index as u32,
                    tid,
                    priority,
                    interval: self.interval,
                    count: summary.count,
                    min: Nanos(summary.min),
                    act: self.last.get(index).copied().unwrap_or_default(),
                    avg: summary.average().unwrap_or_default(),
                    max: Nanos(summary.max),
                };
                cyclictest::line(&thread) + "\n"
            })
            .collect()
    }

    fn look(&mut self, live: &Live<'_>) {
        self.threads = live.threads.iter().map(|thread| (thread.tid, thread.priority)).collect();
        self.last = live.threads.iter().map(|thread| thread.now.unwrap_or_default()).collect();
    }
}

impl Observer for CyclictestLines {
    fn second(&mut self, live: &Live<'_>) -> Result<bool> {
        self.look(live);
        if !output::is_terminal(Stream::Output) {
            return Ok(true);
        }
        // Lines that have left the screen cannot be drawn over: the others come with the end.
        let shown = live.threads.len().min(output::height(Stream::Output).saturating_sub(1));
        let back = std::mem::replace(&mut self.drawn, shown);
        let lines = self.lines(live.threads.iter().take(shown).map(|thread| thread.summary));
        written(output::redraw(back, &lines))
    }

    fn snapshot(&mut self, live: &Live<'_>) -> Result<bool> {
        self.look(live);
        output::words(self.lines(live.threads.iter().map(|thread| thread.summary)).trim_end());
        Ok(true)
    }

    fn ended(&mut self, scenario: &Scenario) -> Result<bool> {
        let threads = scenario.evidence.threads.iter();
        self.threads = threads.map(|thread| (thread.tid, thread.priority)).collect();
        let lines = self.lines(scenario.series.iter().map(|series| *series.observed.summary()));
        if self.drawn > 0 { written(output::redraw(self.drawn, &lines)) } else { print(&lines) }
    }
}
