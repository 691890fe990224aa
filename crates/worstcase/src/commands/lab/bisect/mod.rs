//! `worstcase lab bisect`: which single change moved the tail.

mod subject;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lab::bisect::{Answer, Arm, Course, Means, Needed, Outcome, Question, Step, Told};
use lab::kept::Resumable;
use lab::kernels::Cache;
use lab::several::Qemu;
use record::LabTime;
use record::time::UtcTime;
use statistics::Tail;
use sys::signal::{Signal, Signals};
use units::{Bytes, Nanos, Seed};

use super::kept;
use super::several::Several;
use crate::error::{CommandError, Result};
use crate::options;
use crate::output::{self, Stream};
use subject::Asked;

/// Find the single change that moved the tail: a kernel parameter, a kernel of a list, a symbol of a configuration
///
/// Guests in instruction time measure the good set-up, the bad one, and what lies between, half of it at a time: several
/// guests an arm, each with another seed, compared by their tails against the spread within the arms. What is found is
/// confirmed both ways by fresh guests: good with it is bad, bad without it is good. A control arm with a parameter that
/// nobody reads must not move. A change that does nothing is called guilty in at most 2.5 % of bisections.
/// Exit code 1: found; 0: nothing moves the tail by the ratio; 3: no answer. Ctrl-C keeps what is measured.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    worstcase lab bisect --kernel debian-6.1-amd64 --good 'preempt=full quiet' --bad 'preempt=none nosmt'\n  \
    worstcase lab bisect --kernel debian-6.1-amd64 --words words.txt --load scary-grinder --ratio 3\n  \
    worstcase lab bisect --kernels debian-6.1-rt-amd64,debian-6.1-amd64,debian-6.12-amd64\n  \
    worstcase lab bisect --source debian-6.12 --fragment base.cfg --good release.cfg --bad debug.cfg")]
pub struct Bisect {
    #[command(flatten)]
    asked: Asked,

    /// The load that is measured under
    #[arg(long, value_name = "LOAD", default_value = "cpu")]
    load: String,

    /// How long each guest measures, in its own time; once a millisecond
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = options::duration)]
    duration: Nanos,

    /// How long the load runs before that
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = options::duration)]
    warm_up: Nanos,

    /// How many guests each arm has, with the seeds 1, 2, 3, ...: at least 5; those that confirm have the seeds after them
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,

    /// How many times the tail a culprit makes of it at least
    #[arg(long, value_name = "RATIO", default_value = "2")]
    ratio: f64,

    /// What stands for the tail: p99.9, p99, p90 [default: the finest that --duration carries]
    #[arg(long, value_name = "TAIL")]
    tail: Option<Tail>,

    /// The guests' memory
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    memory: Bytes,

    /// An ext4 disk of this size for loads that write
    #[arg(long, value_name = "SIZE")]
    disk: Option<Bytes>,

    #[command(flatten)]
    several: Several,

    /// Directory for the records [default: worstcase-bisect-<UTC time>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Go on with the bisection in this directory, as it was asked
    #[arg(long, value_name = "DIR", conflicts_with_all = subject::NAMES)]
    #[arg(conflicts_with_all = ["out", "load", "duration", "warm_up", "seeds", "ratio", "tail", "memory", "disk"])]
    resume: Option<PathBuf>,

    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

impl Bisect {
    pub fn run(self) -> Result<ExitCode> {
        let (mut course, directory) = match &self.resume {
            Some(directory) => (Course::resume(directory)?, directory.clone()),
            None => self.begun()?,
        };
        let question = course.question.clone();
        output::words(&text::plan(&question));
        let signals = Signals::take()?;
        let mut ear = Ear { signals };
        let Some(answer) = self.search(&mut course, &mut ear)? else {
            output::words(&format!("go on with: worstcase lab bisect --resume {}", directory.display()));
            return Ok(ExitCode::from(if course.has_records() { 3 } else { 130 }));
        };
        output::final_data(&match self.json {
            true => text::json(&question, &answer)?,
            false => text::answer(&question, &answer),
        })?;
        output::words(&format!("records: {}", directory.display()));
        Ok(ExitCode::from(code(&answer)))
    }

    fn begun(&self) -> Result<(Course, PathBuf)> {
        load::Catalogue::shipped()?.get(&self.load)?;
        let started = UtcTime(sys::clock::unix_seconds());
        let question = Question {
            load: self.load.clone(),
            duration: self.duration,
            warm_up: self.warm_up,
            seeds: self.seeds,
            ratio: self.ratio,
            tail: self.tail.map_or_else(|| Question::finest(self.duration), Ok)?,
            memory: self.memory,
            disk: self.disk,
            ..Question::about(self.asked.subject()?, env!("CARGO_PKG_VERSION"), started)
        };
        let name = || format!("worstcase-bisect-{}", started.compact()).into();
        let directory: PathBuf = self.out.clone().unwrap_or_else(name);
        kept::check(&directory)?;
        question.check()?;
        look_for_kernels(&question)?;
        Ok((Course::begin(question, &directory)?, directory))
    }

    fn search(&self, course: &mut Course, ear: &mut Ear) -> Result<Option<Answer>> {
        let cache = Cache::of_user()?;
        let binary = |kernel: &lab::kernels::Kernel| {
            let binary = self.several.binary(kernel.architecture);
            binary.map_err(|CommandError { message, hint, .. }| lab::Error::new(message).hint(hint))
        };
        Ok(course.run(Means {
            booter: &Qemu,
            kernels: &mut |needed| needed.get(&cache, &mut output::words),
            binary: &binary,
            jobs: self.several.jobs(LabTime::Instructions),
            told: ear,
        })?)
    }
}

/// A kernel of the good or the bad set-up that is not there is told before a directory is made.
fn look_for_kernels(question: &Question) -> Result<()> {
    let cache = Cache::of_user()?;
    for arm in [Arm::good(), question.subject.bad()] {
        let needed = question.subject.kernel(&arm)?;
        if matches!(needed, Needed::Named(_)) {
            needed.get(&cache, &mut output::words)?;
        }
    }
    Ok(())
}

/// Found is what `fail` is elsewhere: something moved the tail.
fn code(answer: &Answer) -> u8 {
    match answer.outcome {
        Outcome::NoneGuilty => 0,
        Outcome::Guilty => 1,
        Outcome::Inconclusive(_) => 3,
    }
}

/// Says what happens, and listens for Ctrl-C.
struct Ear {
    signals: Signals,
}

impl Told for Ear {
    fn begun(&mut self, arm: &Arm, seed: Seed) {
        if output::is_terminal(Stream::Error) {
            output::progress(&format!("{arm}: guest with seed {seed}"));
        }
    }

    fn answered(&mut self, step: &Step) {
        if output::is_terminal(Stream::Error) {
            output::end_progress();
        }
        output::words(&text::step(step));
    }

    fn stop(&mut self) -> bool {
        self.signals.next().is_some_and(|signal| signal != Signal::User1)
    }
}
