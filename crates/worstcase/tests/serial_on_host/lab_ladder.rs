//! Ladders of real guests, from the command line: what they show, that equal seeds give equal bytes, and that what is
//! finished is kept.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use crate::support::guests;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_worstcase");

/// Two kernels, two loads, a third of a second each. Under io every seed has the same tail, to a few parts in a hundred, so that
/// one guest says of its kernel. No grinder: its processes alone take five seconds of a guest's time.
const LADDER: &str = r#"
name = "small"
title = "Debian's kernel, plain and PREEMPT_RT"
loads = ["io", "cpu"]
duration = "300ms"
warm-up = "100ms"
seeds = 1

[[rung]]
name = "plain"
title = "No preemption in the kernel"
kernel = "debian-6.1-amd64"
words = ["preempt=none"]

[[rung]]
name = "rt"
title = "PREEMPT_RT"
kernel = "debian-6.1-rt-amd64"
"#;

fn worstcase(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

/// Whether guests cannot run here; says why.
fn hindered() -> bool {
    guests::hindered(&["qemu-system-x86_64"], &[&["--flavour", "plain"], &["--flavour", "rt"]])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn in_directory(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = worstcase(&[&["ladder"], arguments].concat());
    command.current_dir(directory);
    command
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let value = serde_json::from_slice(&output.stdout).unwrap();
    crate::support::schema::check("ladder", &value);
    value
}

/// The tail of a load on a rung, of its only seed.
fn tail(ladder: &Value, rung: &str, load: &str) -> u64 {
    let of = |list: &Value, key: &str, name: &str| {
        list.as_array().unwrap().iter().find(|entry| entry[key] == name).unwrap().clone()
    };
    of(&of(&ladder["rungs"], "name", rung)["loads"], "load", load)["tails"][0].as_u64().unwrap()
}

#[test]
fn preempt_rt_is_far_below_plain_and_equal_seeds_give_equal_bytes() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("small.toml"), LADDER).unwrap();
    let run = |out: &str| {
        json(&in_directory(directory.path(), &["small.toml", "--out", out, "--json"]).output().unwrap())
    };
    let (first, second) = (run("first"), run("second"));
    assert_eq!(first, second);
    let (plain, rt) = (tail(&first, "plain", "io"), tail(&first, "rt", "io"));
    assert!(plain > 2 * rt, "plain {plain}, PREEMPT_RT {rt} instructions");
    for cell in ["plain/seed-1", "rt/seed-1"] {
        for file in ["record.json", "journal.ndjson", "report.html"] {
            let read = |out: &str| fs::read(directory.path().join(out).join(cell).join(file)).unwrap();
            assert!(read("first") == read("second"), "{cell}/{file}");
        }
        let record = record::store::load(&directory.path().join("first").join(cell)).unwrap();
        let idle = |warning: &record::Warning| warning.id == record::WarningId::LoadIdle;
        assert!(!record.warnings.iter().any(idle), "{cell}: every stressor has worked");
    }
}

#[test]
fn a_ladder_that_was_interrupted_keeps_what_is_finished_and_goes_on() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("small.toml"), LADDER).unwrap();
    let out = directory.path().join("out");
    let arguments = ["small.toml", "--out", "out", "--loads", "idle", "--duration", "100ms", "--jobs", "1"];
    let mut tool = in_directory(directory.path(), &arguments).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    while !out.join("plain/seed-1/record.json").exists() {
        assert!(Instant::now() < until, "the first guest ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    Command::new("kill").args(["-s", "INT", &tool.id().to_string()]).status().unwrap();
    assert_eq!(tool.wait().unwrap().code(), Some(3), "something is still to be run");
    refuses_other_guests(directory.path());
    let before = fs::metadata(out.join("plain/seed-1/record.json")).unwrap().modified().unwrap();
    let judged = json(&in_directory(directory.path(), &["--resume", "out", "--json"]).output().unwrap());
    assert!(tail(&judged, "rt", "idle") > 0);
    let after = fs::metadata(out.join("plain/seed-1/record.json")).unwrap().modified().unwrap();
    assert_eq!(before, after, "what was finished is not run again");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("PREEMPT_RT") && !page.contains("was not run"));
}

/// With a QEMU that says another version, and with a worstcase that has a byte more, the ladder does not go on.
fn refuses_other_guests(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let programs = directory.join("programs");
    fs::create_dir(&programs).unwrap();
    let emulator = programs.join("qemu-system-x86_64");
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo QEMU emulator version 99.1 && exit\nexec /usr/bin/qemu-system-x86_64 \"$@\"\n";
    fs::write(&emulator, script).unwrap();
    fs::set_permissions(&emulator, fs::Permissions::from_mode(0o755)).unwrap();
    let altered = programs.join("worstcase");
    fs::write(&altered, [fs::read(PROGRAM).unwrap(), vec![0]].concat()).unwrap();
    let state = fs::read(directory.join("out/experiment.json")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut other_emulator = in_directory(directory, &["--resume", "out"]);
    other_emulator.env("PATH", path);
    let other_binary = in_directory(directory, &["--resume", "out", "--guest-binary", "programs/worstcase"]);
    for (mut command, words) in
        [(other_emulator, "and is QEMU 99.1"), (other_binary, "the guest's worstcase had SHA-256")]
    {
        let refused = command.output().unwrap();
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.contains("hint: ") && said.contains("begin anew"), "{said}");
    }
    assert!(fs::read(directory.join("out/experiment.json")).unwrap() == state, "nothing was written");
}

#[test]
fn a_ladder_that_cannot_be_run_is_one_clear_error_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    file("small.toml", LADDER);
    file("load.toml", &LADDER.replace("\"cpu\"", "\"no-such-load\""));
    file("kernel.toml", &LADDER.replace("debian-6.1-rt-amd64", "no-such-kernel"));
    file("garbage.toml", "\u{1}\u{2}[[");
    fs::create_dir(directory.path().join("stock")).unwrap();
    for (arguments, words) in [
        (vec!["nowhere"], "nowhere"),
        (vec!["garbage.toml"], "garbage.toml"),
        (vec!["load.toml"], "no-such-load"),
        (vec!["kernel.toml", "--rungs", "rt"], "no-such-kernel"),
        (vec!["small.toml", "--rungs", "third"], "no rung third"),
        // A directory of that name is no ladder: the built-in one is meant.
        (vec!["stock", "--rungs", "third"], "stock has no rung third"),
        (vec!["small.toml", "--seeds", "0"], "seeds"),
        (vec!["--resume", "."], "experiment.json"),
    ] {
        let ran = in_directory(directory.path(), &arguments).output().unwrap();
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("error: ") && said.contains(words) && said.contains("hint: "),
            "{arguments:?}: {said}"
        );
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 5, "no directory was made");
}

/// The verdict on the step from one rung to another under a load.
fn verdict(ladder: &Value, (from, to): (&str, &str), load: &str) -> String {
    let steps = ladder["steps"].as_array().unwrap().iter();
    let is_it = |step: &&Value| step["from"] == from && step["to"] == to && step["load"] == load;
    steps.clone().find(is_it).unwrap()["verdict"].as_str().unwrap().to_owned()
}

/// The ladders that are built in, whole: minutes each, and an hour of CPU time where Enea's kernels are not built yet.
#[test]
#[ignore = "long"]
fn the_ladders_that_are_built_in_end_below_where_they_began() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, ends) in [("stock", ("none", "rt")), ("p2041", ("debug", "rt"))] {
        let out = format!("of-{name}");
        let output = in_directory(directory.path(), &[name, "--out", &out, "--json"]).output().unwrap();
        let judged = json(&output);
        for load in ["cpu", "hdd", "full", "scary-grinder"] {
            assert_eq!(verdict(&judged, ends, load), "lower", "{name}, {load}");
        }
    }
}

/// Three set-ups, of which one differs by a word that no kernel reads, and one by a tracer.
const FEATURES: &str = r#"
name = "features"
title = "A tracer, and nothing"
loads = ["idle"]
duration = "200ms"
warm-up = "50ms"
seeds = 5
cost = true
draw-parameter = true

[[rung]]
name = "stock"
title = "As Debian boots it"
kernel = "debian-6.1-amd64"

[[rung]]
name = "inert"
title = "A word that nobody reads"
kernel = "debian-6.1-amd64"
against = "stock"
words = ["inert.feature=1"]

[[rung]]
name = "tracer"
title = "The function tracer"
kernel = "debian-6.1-amd64"
against = "stock"
words = ["ftrace=function"]
"#;

/// The comparison of a rung's operations.
fn costs<'a>(ladder: &'a Value, rung: &str) -> &'a Value {
    let all = ladder["costs"].as_array().unwrap();
    all.iter().find(|costs| costs["to"] == rung).unwrap_or_else(|| panic!("{rung}: {all:?}"))
}

fn operations(costs: &Value) -> Vec<(&str, f64, [f64; 2], Option<f64>)> {
    let of = |one: &'_ Value| {
        let range = [0, 1].map(|end| one["interval"][end].as_f64().unwrap());
        (one["ratio"].as_f64().unwrap(), range, one["published"].as_f64())
    };
    let all = costs["operations"].as_array().unwrap().iter();
    all.map(|one| {
        let (ratio, range, published) = of(one);
        (one["operation"].as_str().unwrap(), ratio, range, published)
    })
    .collect()
}

#[test]
#[ignore = "long: 72 guests"]
fn a_price_list_made_twice_is_equal_and_what_does_nothing_costs_nothing() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("features.toml"), FEATURES).unwrap();
    let made = |out: &str| {
        let run =
            in_directory(directory.path(), &["features.toml", "--out", out, "--markdown"]).output().unwrap();
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        text(&run.stdout)
    };
    let (first, second) = (made("first"), made("second"));
    assert!(first.contains("| inert | stock |") && first.contains("pipe ping-pong RTT"), "{first}");
    assert_eq!(first, second);
    let ladder = json(&in_directory(directory.path(), &["--resume", "first", "--json"]).output().unwrap());
    // All intervals together hold in 95 of 100 lists, and each program makes its own list.
    let mut without_one = operations(costs(&ladder, "inert"));
    without_one.retain(|(_, _, [low, high], _)| *low > 1.0 || *high < 1.0);
    assert!(without_one.len() <= 1, "{without_one:?}");
    for (operation, ratio, [low, high], _) in without_one {
        assert!(low <= 1.01 && high >= 0.99, "{operation}: {ratio}, {low} to {high}");
    }
    let mean = &costs(&ladder, "inert")["mean"]["interval"];
    assert!(mean[0].as_f64() <= Some(1.01) && mean[1].as_f64() >= Some(0.99), "{mean}");
    let tracer = costs(&ladder, "tracer");
    assert!(tracer["mean"]["interval"][0].as_f64() > Some(1.5), "{}", tracer["mean"]);
}

/// Figures that were measured by other programs, between processes, on the same kernels.
#[test]
#[ignore = "long: 14 guests"]
fn what_preempt_rt_costs_is_what_others_have_found() {
    if hindered() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["throughput", "--rungs", "6.1,6.1-rt", "--out", "out", "--json"];
    let ladder = json(&in_directory(directory.path(), &arguments).output().unwrap());
    let known = operations(costs(&ladder, "6.1-rt"));
    let known: Vec<_> =
        known.into_iter().filter_map(|(name, _, range, published)| Some((name, range, published?))).collect();
    assert!(known.len() >= 25, "{known:?}");
    // Within a tenth, as far as guests agree among each other.
    let differs = |([low, high], published): ([f64; 2], f64)| high / published < 0.9 || low / published > 1.1;
    let differing: Vec<_> =
        known.iter().filter(|(_, range, published)| differs((*range, *published))).collect();
    assert!(differing.is_empty(), "{differing:?}");
}
