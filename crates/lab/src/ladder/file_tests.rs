use super::*;
use proptest::prelude::*;

const SMALL: &str = r#"
name = "small"
title = "Two kernels"
loads = ["idle", "cpu"]
duration = "1s"
seeds = 2

[[rung]]
name = "one"
title = "The first"
kernel = "debian-6.1-amd64"
words = ["preempt=none", "a=b"]
settings = { "kernel.sched_rt_runtime_us" = "-1" }

[[rung]]
name = "two"
title = "The second"
kernel = "debian-6.1-rt-amd64"
"#;

fn refused(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    LadderFile::parse(&SMALL.replacen(from, to, 1)).unwrap_err().message
}

#[test]
fn a_ladder_says_what_it_means_and_leaves_out_the_usual() {
    let ladder = LadderFile::parse(SMALL).unwrap();
    assert_eq!((ladder.duration, ladder.warm_up), (Nanos::from_secs(1), Nanos::from_millis(200)));
    assert_eq!((ladder.time, ladder.processors), (LabTime::Instructions, 1));
    assert_eq!(ladder.rungs[0].all_words(), ["preempt=none", "a=b", "sysctl.kernel.sched_rt_runtime_us=-1"]);
    assert_eq!(ladder.rungs[1].all_words(), [""; 0]);
}

#[test]
fn a_ladder_that_is_saved_reads_back() {
    for (_, text) in SHIPPED {
        let ladder = LadderFile::parse(text).unwrap();
        let saved = serde_json::to_string(&ladder).unwrap();
        assert_eq!(serde_json::from_str::<LadderFile>(&saved).unwrap(), ladder);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_reason() {
    for (from, to, reason) in [
        ("\"two\"", "\"one\"", "two rungs have one name"),
        ("\"cpu\"", "\"idle\"", "stands there twice"),
        ("seeds = 2", "seeds = 0", "seeds: 1 to"),
        ("seeds = 2", "seeds = 2\nsedes = 3", "sedes"),
        ("\"1s\"", "\"1\"", "has no unit"),
        ("\"1s\"", "\"1ms\"", "at least 10ms"),
        ("\"1s\"", "\"400d\"", "at most 1d"),
        ("seeds = 2", "seeds = 2\nmemory = 9223372036854775807", "a memory of"),
        ("seeds = 2", "seeds = 2\ntime = \"wall\"\nprocessors = 4294967295", "CPUs"),
        ("name = \"two\"", "name = \"../two\"", "no name for a ladder"),
        ("name = \"small\"", "name = \"\"", "no name for a ladder"),
        ("\"a=b\"", "\"a b\"", "not one kernel parameter"),
        ("\"a=b\"", "\"--\"", "ends the kernel's own parameters"),
        ("\"a=b\"", "'a=\"b'", "does not end"),
        ("\"-1\"", "\" \"", "has no value"),
        ("[\"idle\", \"cpu\"]", "[]", "no load"),
        ("seeds = 2", "seeds = 2\ncpu-model = \"qemu64 -drive x\"", "is no CPU model"),
        ("title = \"The second\"", "title = \"\"\nagainst = \"three\"", "no rung three stands above"),
        ("title = \"The first\"", "title = \"\"\nagainst = \"two\"", "no rung two stands above"),
        ("seeds = 2", "seeds = 2\nprocessors = 2", "one CPU"),
    ] {
        let message = refused(from, to);
        assert!(message.contains(reason), "{to}: {message}");
    }
    assert!(LadderFile::parse("name = ").unwrap_err().hint.is_some());
}

#[test]
fn shipped_ladders_find_their_fragments() {
    let (ladder, home) = LadderFile::named(Path::new("p2041")).unwrap();
    assert_eq!(home, Home::Shipped);
    for rung in &ladder.rungs {
        let build = rung.to_build(&home).unwrap().unwrap();
        assert_eq!(build.name, rung.kernel);
        assert!(build.fragments.iter().all(|fragment| fragment.text.contains("CONFIG_")));
    }
    let missing = LadderFile::named(Path::new("no-such-ladder")).unwrap_err();
    assert!(missing.hint.unwrap().contains("stock, p2041"));
}

#[test]
fn published_figures_are_of_loads_that_are_measured() {
    for (_, text) in SHIPPED {
        let ladder = LadderFile::parse(text).unwrap();
        let published = ladder.rungs.iter().filter_map(|rung| rung.published.as_ref());
        for (load, [minimum, average, maximum]) in published.flat_map(|published| &published.latencies) {
            assert!(ladder.loads.contains(load), "{load}");
            assert!(minimum <= average && average <= maximum, "{load}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_answered_without_a_panic(text in ".{0,200}") {
        let _ = LadderFile::parse(&text);
    }

    #[test]
    fn a_ladder_with_a_changed_character_is_answered_without_a_panic(place in 0..SMALL.len(), to in "[ -~]") {
        let _ = LadderFile::parse(&format!("{}{to}{}", &SMALL[..place], &SMALL[place + 1..]));
    }
}
