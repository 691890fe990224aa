//! Explanations of a record for other tools.

use std::path::Path;
use std::process::Command;

use record::{
    Activity, Cause, Certainty, Class, Explanation, Hit, Piece, Record, Stage, TraceEvent, Tracing, store,
};
use trace::saved::Saved;
use trace::{Item, Value};
use units::{CpuId, Nanos};

const DUE: u64 = 5_000_000_000;
const LATENCY: u64 = 700_000_000;

fn event(at: i64, cpu: u32, task: i32, name: &str, text: &str) -> TraceEvent {
    TraceEvent { at, cpu: CpuId(cpu), task, name: name.into(), text: text.into() }
}

/// A hog held CPU 1 for so long that a time between events has more bits than an event has room for.
fn hit() -> Hit {
    let hog = || Activity::Thread { tid: 7, name: "the -> hog".into(), priority: Some(0), work: None };
    let piece = |length, stage, activity| Piece { length: Nanos(length), stage, activity };
    let cause = |class, culprit: &str, length| Cause {
        class,
        culprit: culprit.into(),
        length: Nanos(length),
        certainty: Certainty::Sure,
        witness: String::new(),
    };
    Hit {
        cpu: CpuId(1),
        tid: 9,
        activation: 33,
        due: Nanos(DUE),
        latency: Nanos(LATENCY),
        pieces: vec![
            piece(2_000, Stage::BeforeInterrupt, hog()),
            piece(LATENCY - 2_000, Stage::Runnable, hog()),
        ],
        causes: vec![cause(Class::Rival, "the -> hog [7]", LATENCY - 2_000), cause(Class::Usual, "", 2_000)],
        waking_stack: Vec::new(),
        switch_stack: Vec::new(),
        events: vec![
            event(-1_000, 0, 4, "ipi", &format!("to 1 from f for {}", "g".repeat(300))),
            event(2_000, 1, 7, "waking", "probe/1 [9] priority 1"),
            event(2_500, 1, 7, "stack", "a < b"),
            event(699_000_000, 1, 7, "switch", "the -> hog [7] priority 0 -> probe/1 [9] priority 1"),
        ],
        left_out: 0,
    }
}

/// A record with an explanation in a directory.
fn record(directory: &Path) -> Record {
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/first");
    let mut record = store::load(&first).unwrap();
    let scenario = record.scenarios[0].clone();
    let hits = vec![hit(), Hit { latency: Nanos(LATENCY), ..hit() }];
    record.explanations = vec![Explanation {
        of: 0,
        scenario,
        tracing: Tracing::default(),
        hits,
        overview: record::Overview::default(),
    }];
    std::fs::write(directory.join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    record
}

fn export(form: &str, directory: &Path) -> std::path::PathBuf {
    let file = directory.join(form);
    let mut command = Command::new(env!("CARGO_BIN_EXE_worstcase"));
    command.arg("explain").arg(directory).args(["--export", form, "--output"]).arg(&file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

#[test]
fn a_trace_dat_has_each_event_once_at_its_time() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let saved = Saved::open(&export("trace.dat", directory.path())).unwrap();
    let mut events = saved.events(&saved.buffers()[0]).unwrap();
    let mut read = Vec::new();
    while let Some(item) = events.next_item().unwrap() {
        let Item::Event(event) = item else { panic!("{item:?}") };
        let next = match event.value("next_comm") {
            Some(Value::Text(name)) => name.into_owned(),
            _ => String::new(),
        };
        read.push((event.time.0 - (DUE - 1_000), event.cpu.0, event.task, event.name().to_owned(), next));
    }
    let known = |at, cpu, task, name: &str, next: &str| (at, cpu, task, name.to_owned(), next.to_owned());
    assert_eq!(
        read,
        [
            known(0, 0, 4, "print", ""),
            known(1_000, 1, 9, "print", ""),
            known(3_000, 1, 7, "sched_waking", ""),
            known(3_500, 1, 7, "print", ""),
            known(699_001_000, 1, 7, "sched_switch", "probe/1"),
            known(700_001_000, 1, 9, "print", ""),
        ]
    );
}

#[test]
fn trace_cmd_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let file = export("trace.dat", directory.path());
    let output = match Command::new("trace-cmd").arg("report").arg("-i").arg(&file).output() {
        Ok(output) => output,
        Err(error) => return println!("skipped: trace-cmd: {error}"),
    };
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    let line = text.lines().find(|line| line.contains("sched_switch:")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("[001]") && line.contains("5.699000") && line.contains("probe/1:9"), "{line}");
    let late = "worstcase: woke up 700000000 ns late: Rival, the -> hog [7]";
    assert!(text.contains(late) && text.contains("sched_waking:"), "{text}");
}

#[test]
fn perfetto_and_json_have_switches_and_accounts() {
    let directory = tempfile::tempdir().unwrap();
    let record = record(directory.path());
    let json = std::fs::read(export("json", directory.path())).unwrap();
    let read: Vec<Explanation> = serde_json::from_slice(&json).unwrap();
    assert_eq!(read, record.explanations);
    let trace = std::fs::read(export("perfetto", directory.path())).unwrap();
    let (mut bundles, mut slices, mut left) = (0, 0, trace.as_slice());
    while !left.is_empty() {
        let (field, packet, rest) = message(left);
        assert_eq!(field, 1, "a packet");
        let mut inside = packet;
        while !inside.is_empty() {
            let (field, _, rest) = message(inside);
            bundles += u32::from(field == 1);
            slices += u32::from(field == 11);
            inside = rest;
        }
        left = rest;
    }
    // Two hits: the whole of each and two pieces, their begins and ends.
    assert_eq!((bundles, slices), (2, 2 * 3 * 2));
    let switch = b"the -> hog";
    assert!(trace.windows(switch.len()).any(|bytes| bytes == switch));
}

/// The first field of a message: its number, its bytes (none of a number), what is behind it.
fn message(bytes: &[u8]) -> (u64, &[u8], &[u8]) {
    let (tag, rest) = varint(bytes);
    let (value, rest) = varint(rest);
    match tag & 7 {
        0 => (tag >> 3, &[], rest),
        2 => {
            let (inside, rest) = rest.split_at(usize::try_from(value).unwrap());
            (tag >> 3, inside, rest)
        }
        other => panic!("a field of type {other}"),
    }
}

fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let length = 1 + bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let parts = bytes[..length].iter().enumerate();
    (parts.fold(0, |sum, (place, byte)| sum | u64::from(byte & 0x7f) << (7 * place)), &bytes[length..])
}

#[test]
fn an_export_needs_a_file_and_a_record_that_was_traced() {
    let run = |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_worstcase")).args(words).output().unwrap();
    assert_eq!(run(&["explain", "x", "--export", "perfetto"]).status.code(), Some(2));
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/first");
    let untraced = run(&["explain", first.to_str().unwrap(), "--export", "json", "--output", "/dev/null"]);
    assert!(String::from_utf8_lossy(&untraced.stderr).contains("this run was not traced"));
}
