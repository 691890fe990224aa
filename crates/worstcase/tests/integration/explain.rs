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

const SWITCH: &str = "the -> hog [7] priority 0 state D -> probe/1 [9] priority 1";

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
            event(699_000_000, 1, 7, "switch", SWITCH),
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
fn a_switch_has_the_state_that_the_record_has_and_none_where_it_has_none() {
    for (state, expected) in [(" state D", Some(2)), (" state R+", Some(256)), ("", None)] {
        let directory = tempfile::tempdir().unwrap();
        let mut record = record(directory.path());
        let switches = record.explanations[0].hits.iter_mut().flat_map(|hit| &mut hit.events);
        switches.for_each(|event| event.text = event.text.replace(" state D", state));
        std::fs::write(directory.path().join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
        let saved = Saved::open(&export("trace.dat", directory.path())).unwrap();
        let mut events = saved.events(&saved.buffers()[0]).unwrap();
        let mut seen = Vec::new();
        while let Some(item) = events.next_item().unwrap() {
            let Item::Event(event) = item else { panic!("{item:?}") };
            if event.name() == "sched_switch" {
                seen.push(event.unsigned("prev_state"));
            }
        }
        assert_eq!(seen, [expected], "{state}");
    }
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
    let late =
        "worstcase: woke up 700000000 ns late: a thread of the same or a higher priority, the -> hog [7]";
    assert!(text.contains(late) && text.contains("sched_waking:"), "{text}");
    assert!(line.contains("[0] D ==> "), "{line}");
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

fn stderr_of(words: &[&str]) -> String {
    let ended = Command::new(env!("CARGO_BIN_EXE_worstcase")).args(words).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{words:?}");
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

#[test]
fn a_run_that_could_not_be_traced_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let mut record = record(directory.path());
    record.explanations.clear();
    let warning = record::validity::not_explained("idle was not explained: no tracefs", "mount tracefs");
    record.warnings.push(warning);
    std::fs::write(directory.path().join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    let text = stderr_of(&["explain", directory.path().to_str().unwrap()]);
    assert!(text.contains("idle was not explained: no tracefs\n  hint: mount tracefs"), "{text}");
    assert!(!text.contains("this run was not traced"), "{text}");
}

#[test]
fn an_export_of_no_wake_up_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut record = record(directory.path());
    record.explanations[0].hits.clear();
    std::fs::write(directory.path().join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    let (place, file) = (directory.path().to_str().unwrap(), directory.path().join("file"));
    for form in ["perfetto", "trace.dat"] {
        let text = stderr_of(&["explain", place, "--export", form, "-o", file.to_str().unwrap()]);
        assert!(text.contains("nothing to export") && !file.exists(), "{text}");
    }
    assert!(export("json", directory.path()).exists(), "it has the tables all the same");
}

#[test]
fn an_output_that_is_the_record_which_is_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let kept = directory.path().join("record.json");
    let before = std::fs::read(&kept).unwrap();
    let (soft, hard) = (directory.path().join("soft"), directory.path().join("hard"));
    std::os::unix::fs::symlink(&kept, &soft).unwrap();
    std::fs::hard_link(&kept, &hard).unwrap();
    let refused = |words: &[&str], output: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worstcase"));
        let ended = command.args(words).arg(output).output().unwrap();
        let text = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{words:?} {output:?}: {text}");
        assert!(text.contains("would be lost") && text.contains("hint: name another file"), "{text}");
        assert_eq!(std::fs::read(&kept).unwrap(), before, "{words:?} {output:?}");
    };
    let (place, file) = (directory.path().to_str().unwrap(), kept.to_str().unwrap());
    for read in [place, file] {
        for output in [&kept, &soft, &hard] {
            for form in ["json", "perfetto", "trace.dat"] {
                refused(&["explain", read, "--export", form, "-o"], output);
            }
            refused(&["report", read, "--html"], output);
        }
    }
    // What an experiment is made of lies below it.
    let above = directory.path().join("above");
    std::fs::create_dir_all(above.join("off-1")).unwrap();
    std::fs::copy(&kept, above.join("record.json")).unwrap();
    std::fs::copy(&kept, above.join("off-1/record.json")).unwrap();
    refused(&["report", above.to_str().unwrap(), "--html"], &above.join("off-1/record.json"));
    refused(&["report", place, above.to_str().unwrap(), "--html"], &above.join("record.json"));
}

#[test]
fn an_output_that_cannot_be_written_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    record(directory.path());
    let place = directory.path().to_str().unwrap();
    let missing = directory.path().join("none/file");
    let words = ["explain", place, "--export", "json", "-o"];
    for (output, hint) in
        [(missing.as_path(), "make its directory first"), (directory.path(), "not a directory")]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worstcase"));
        let ended = command.args(words).arg(output).output().unwrap();
        let text = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{text}");
        assert!(text.contains("hint: ") && text.contains(hint), "{text}");
    }
}

#[test]
fn a_record_whose_pieces_do_not_sum_to_its_latency_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut record = record(directory.path());
    record.explanations[0].hits[1].pieces[0].length = Nanos(2_001);
    std::fs::write(directory.path().join("record.json"), serde_json::to_vec(&record).unwrap()).unwrap();
    for command in ["explain", "report"] {
        let text = stderr_of(&[command, directory.path().to_str().unwrap()]);
        assert!(text.contains("700000000 ns late, and its pieces sum to 700000001 ns"), "{text}");
        assert!(text.contains("hint: was it edited?"), "{text}");
    }
}
