//! `bench lab`: how long a guest takes until its command begins, and whether two guests side by side slow each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::spread::Spread;
use crate::arguments::Arguments;
use crate::workspace;

/// Kinds of time with the seconds that issue and page promise until the command begins.
const BUDGETS: [(&str, f64); 2] = [("wall", 10.0), ("instructions", 20.0)];
const KERNEL: &str = "debian-6.1-amd64";
/// Enough work that the boot is not all of it.
const WORK: [&str; 7] = ["bench", "--loads", "cpu", "--duration", "1s", "--seed", "1"];

/// `bench lab [--rounds N] [--binary FILE]`: FILE instead of an optimised build made now.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let rounds: Option<usize> = arguments.value("--rounds")?;
    let binary: Option<PathBuf> = arguments.value("--binary")?;
    arguments.finish()?;
    let binary = binary.map_or_else(built, Ok)?;
    let place = std::env::temp_dir().join(format!("worstcase-bench-lab-{}", std::process::id()));
    let lab = Lab { binary, place };
    let rounds = 0..rounds.unwrap_or(5);
    for (time, budget) in BUDGETS {
        let boots: Vec<f64> = rounds.clone().map(|_| lab.boot(time)).collect::<Result<_>>()?;
        let boots = Spread::of(boots).context("no round")?;
        println!("until the command begins, {time:12}  {boots} s    budget: at most {budget} s");
    }
    let pairs: Vec<(f64, f64)> =
        rounds.map(|_| Ok((lab.side_by_side(1)?, lab.side_by_side(2)?))).collect::<Result<_>>()?;
    let ratio = Spread::of(pairs.iter().map(|(one, two)| two / one)).context("no round")?;
    println!("two guests side by side against one   {ratio} times as long    wanted: 1, on two free cores");
    Ok(())
}

fn built() -> Result<PathBuf> {
    let build = ["build", "--quiet", "--release", "--package", "worstcase"];
    ensure!(workspace::cargo().args(build).status()?.success(), "the optimised build failed");
    Ok(workspace::root().join("target/release/worstcase"))
}

/// Guests of one program, and where they leave what comes back.
struct Lab {
    binary: PathBuf,
    place: PathBuf,
}

impl Lab {
    fn guest(&self, number: usize, time: &str, command: &[&str]) -> Result<Child> {
        let mut lab = Command::new(&self.binary);
        lab.args(["lab", "run", "--kernel", KERNEL, "--time", time, "--out"]).arg(self.out(number));
        lab.arg("--").args(command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        lab.spawn().with_context(|| format!("starting {}", self.binary.display()))
    }

    fn out(&self, number: usize) -> PathBuf {
        self.place.join(number.to_string())
    }

    /// Seconds until the command began.
    fn boot(&self, time: &str) -> Result<f64> {
        ended(self.guest(0, time, &["measure", "--samples", "10", "--warm-up", "10ms"])?)?;
        let path = self.out(0).join("lab.json");
        let metadata: Value = serde_json::from_slice(&read(&path)?)?;
        self.clear()?;
        let milliseconds =
            metadata["boot_milliseconds"].as_f64().context("lab.json tells no boot_milliseconds")?;
        Ok(milliseconds / 1e3)
    }

    /// Seconds that so many guests take from the first start to the last end.
    fn side_by_side(&self, count: usize) -> Result<f64> {
        let start = Instant::now();
        let guests: Vec<Child> =
            (0..count).map(|number| self.guest(number, "instructions", &WORK)).collect::<Result<_>>()?;
        guests.into_iter().try_for_each(ended)?;
        self.clear()?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn clear(&self) -> Result<()> {
        fs::remove_dir_all(&self.place).with_context(|| format!("removing {}", self.place.display()))
    }
}

/// What is measured is judged by nobody here: any verdict will do.
fn ended(mut guest: Child) -> Result<()> {
    let status = guest.wait()?;
    ensure!(matches!(status.code(), Some(0 | 1 | 3)), "a guest ended with {status}: try it by hand");
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}
