//! Each JSON that a command prints has a schema, and conforms to it. What needs guests, root or measured time is compared where
//! its command is tested.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use record::cost::{self, Cost, CostPlan, Operation, Sample};
use serde_json::Value;

use crate::validator::validate;

const BINARY: &str = env!("CARGO_BIN_EXE_worstcase");

fn printed(arguments: &[&str], directory: &Path) -> String {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(directory).env("COLUMNS", "100").env("LC_ALL", "C.UTF-8");
    command.env("XDG_CACHE_HOME", directory);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(!output.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn check(form: &str, arguments: &[&str], directory: &Path) {
    let schema: Value = serde_json::from_str(&printed(&["schema", form], directory)).unwrap();
    let value = serde_json::from_str(&printed(arguments, directory)).unwrap();
    validate(&schema, &value).unwrap_or_else(|error| panic!("{arguments:?} against {form}: {error}"));
}

/// A record's file: a directory would get a page.
fn record(name: &str) -> String {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    records.join(name).join("record.json").display().to_string()
}

/// All commands, and the help of each.
fn commands(words: &[String], directory: &Path, found: &mut Vec<(String, String)>) {
    let mut asked: Vec<&str> = words.iter().map(String::as_str).collect();
    asked.push("--help");
    let help = printed(&asked, directory);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| {
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        line.split_whitespace().next().filter(|name| is_name && *name != "help")
    });
    for name in names {
        commands(&[words, &[name.to_owned()]].concat(), directory, found);
    }
    found.push((words.join(" "), help));
}

#[test]
fn each_command_that_prints_json_is_named_beside_a_schema() {
    let directory = tempfile::tempdir().unwrap();
    let forms = printed(&["schema"], directory.path());
    let mut all = Vec::new();
    commands(&[], directory.path(), &mut all);
    let printing: Vec<&String> =
        all.iter().filter(|(_, help)| help.contains("--json")).map(|(command, _)| command).collect();
    assert!(printing.len() >= 14, "{printing:?}");
    for command in printing {
        let is_named = |line: &str| line.contains("--json") && line.contains(command.as_str());
        assert!(forms.lines().any(is_named), "worstcase {command} --json has no schema:\n{forms}");
    }
}

#[test]
fn every_form_is_a_schema_that_the_validator_understands() {
    let directory = tempfile::tempdir().unwrap();
    for line in printed(&["schema"], directory.path()).lines() {
        let name = line.split_whitespace().next().unwrap();
        let schema: Value = serde_json::from_str(&printed(&["schema", name], directory.path())).unwrap();
        assert!(schema["$schema"].is_string() && schema["title"].is_string(), "{name}");
        let nonsense = validate(&schema, &Value::from("nonsense"));
        assert!(nonsense.is_err(), "{name}: anything conforms");
    }
}

#[test]
fn what_records_are_printed_as_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let (first, again) = (record("first"), record("again"));
    check("record", &["report", &first, "--json"], place);
    check("extreme", &["report", &first, "--extreme", "1h", "--json"], place);
    check("extreme", &["report", &first, &again, "--extreme", "1h", "--json"], place);
    let both: Value = serde_json::from_str(&printed(&["report", &first, &again, "--json"], place)).unwrap();
    let schema: Value = serde_json::from_str(&printed(&["schema", "record"], place)).unwrap();
    both.as_array().unwrap().iter().for_each(|record| validate(&schema, record).unwrap());
    let one: Value = serde_json::from_str(&printed(&["report", &first, "--json"], place)).unwrap();
    let figures: Value = serde_json::from_str(&printed(&["schema", "figures"], place)).unwrap();
    validate(&figures, &one["figures"]).unwrap();
}

#[test]
fn what_set_ups_are_traded_for_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let costs = [("stock", 1_000), ("rt", 1_300)].map(|(name, time)| {
        let file = place.join(name).join(cost::FILE);
        fs::create_dir(place.join(name)).unwrap();
        fs::write(&file, serde_json::to_vec(&of_operations(time)).unwrap()).unwrap();
        place.join(name).display().to_string()
    });
    let (first, again) = (record("first"), record("again"));
    check("cost", &["report", &costs[0], "--json"], place);
    let arguments = ["report", "--trade", &first, &costs[0], &again, &costs[1], "--json"];
    check("trade-off", &arguments, place);
    let trade: Value = serde_json::from_str(&printed(&arguments, place)).unwrap();
    let ratio = trade["set_ups"][0]["cost"]["worst"]["ratio"].as_f64().unwrap();
    assert!((ratio - 1.3).abs() < 0.01, "{trade}");
}

/// Two operations, nine times each, that take so many nanoseconds a piece.
fn of_operations(time: u64) -> Cost {
    let sample = |round| {
        // No two samples are equal: what does not vary at all cannot be compared.
        let time = units::Nanos(1_000 * time + u64::from(round));
        Sample { round, count: 1_000, time, cpu_time: time, switches: 0 }
    };
    let operation = |name: &str| Operation {
        name: name.into(),
        title: name.into(),
        family: "calls".into(),
        unit: "1".into(),
        bytes: 0,
        place: cost::Place::OneCpu,
        samples: (1..=9).map(sample).collect(),
        failures: Vec::new(),
    };
    Cost {
        cost_version: cost::COST_VERSION,
        tool: record::Tool { version: "1".into(), build: "test".into() },
        command_line: Vec::new(),
        note: None,
        started: record::time::UtcTime(0),
        machine: record::Machine::default(),
        plan: CostPlan {
            cpu: units::CpuId(0),
            second: None,
            rounds: 9,
            runs: 9,
            sample: units::Nanos::from_millis(100),
            seed: units::Seed(1),
        },
        turn: Some(cost::Turn { settings: vec!["rn-thp".into()], on: true }),
        rounds: 9,
        runs: 0,
        interrupted: None,
        evidence: Some(record::Evidence::default()),
        operations: ["one", "two"].map(operation).into(),
    }
}

#[test]
fn what_is_read_without_measuring_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let write = |name: &str, text: &str| fs::write(place.join(name), text).unwrap();
    write("recipe.txt", "isolcpus=1 nohz_ful=1\nsysctl -w kernel.sched_rt_runtime_us=-1\n");
    write("one.config", "CONFIG_PREEMPT=y\n# CONFIG_PREEMPT_RT is not set\nCONFIG_HZ=250\n");
    write("other.config", "CONFIG_PREEMPT_RT=y\nCONFIG_HZ=250\n");
    check("loads", &["load", "--list", "--json"], place);
    check("findings", &["check", "--all", "--json"], place);
    check("findings", &["check", "--kconfig", "one.config", "--json"], place);
    check("recipe", &["check", "--recipe", "recipe.txt", "--json"], place);
    check("differences", &["check", "--kconfig", "one.config", "--against", "other.config", "--json"], place);
    check("kernels", &["lab", "kernels", "list", "--json"], place);
    check("plan", &["tune", "plan", "--json"], place);
    let board = board(place);
    check("plan", &["tune", "plan", "--root", &board, "--isolate", "2-3", "--json"], place);
    check("differences", &["check", "--against", &board, "--json"], place);
}

/// A machine of four CPUs in a file: the one that the tests of the commands have.
fn board(place: &Path) -> String {
    let from: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd/tune.in/board.txt");
    let to = place.join("board.txt");
    fs::copy(from, &to).unwrap();
    to.display().to_string()
}

/// Names of fields anywhere in a schema.
fn fields<'a>(schema: &'a Value, names: &mut Vec<&'a str>) {
    match schema {
        Value::Object(members) => {
            let own = members.get("properties").and_then(Value::as_object);
            names.extend(own.into_iter().flat_map(|own| own.keys().map(String::as_str)));
            members.values().for_each(|member| fields(member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, names)),
        _ => {}
    }
}

/// One command said `schema_version`, another `schema-version`.
#[test]
fn fields_of_all_forms_are_named_alike() {
    let mut read = 0;
    for place in ["schema", "../record/schema", "../audit/schema"] {
        for file in fs::read_dir(place).unwrap() {
            let schema: Value = serde_json::from_slice(&fs::read(file.unwrap().path()).unwrap()).unwrap();
            let mut names = Vec::new();
            fields(&schema, &mut names);
            // A sort of setting, which is named as in files of choice, and no field.
            names.retain(|&name| name != "cpuset-below");
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let other: Vec<_> = names.iter().filter(|name| !name.chars().all(is_plain)).collect();
            assert!(other.is_empty(), "{place}: {other:?}");
            read += names.len();
        }
    }
    assert!(read > 500, "{read}");
}
