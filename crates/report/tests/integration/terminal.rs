//! The table, its foot and the live view, as a terminal shows them.

use crate::mend as insta;
use crate::sample::{self, Spec, failed, in_lab, plain};
use histogram::Summary;
use proptest::prelude::*;
use record::{Block, CStates, LabTime, LoadEvidence, ScenarioEnd, Unit, Warning, WarningId};
use report::foot::Notes;
use report::live::{self, LiveRow};
use report::{Style, compare, foot, table};
use units::{CpuId, Nanos};

#[test]
fn the_table_of_a_run() {
    insta::assert_snapshot!(table::bench(&failed(), false, Notes::All, &plain()), @r"
    all CPUs, us    idle     cpu      io     full
    min              1.5     1.4     1.5      1.5
    avg              2.6     2.5     2.7      4.6
    p99 *            4.9     4.2     5.4      8.6
    p99.9 *          7.5     7.0     7.9  10027
    p99.99 *        22.4    15.0    33.8  28049
    max             31.2    33.3    47.2  30000
    samples        20000   20000   20000    19969
    missed             0       0       0       31
    late %             0       0       0    0.165
    over 100us *       0       0       0       34

    * of all activations due: a missed one counts with the latency it would have
      had; - means too few samples
    late: share of activations served a period or more late, or missed
    min, avg, max: of the samples alone, without the 31 missed

    Worst: 30000 us on CPU 0 under full, 3.3 s into it. Only CPU 0 was so late:
      under the same load the others stayed at 206.0 us or below.
    Checked: SCHED_FIFO 98 on every thread, memory locked, 0 page faults, 0
      migrations, 4 preemptions, loads ran at least 99.6 % of the time, phases of
      the tick unknown, steal time 40.0 ms, nothing lost in recording.

    not-isolated: measured CPUs are not isolated (makes a pass inconclusive)
      /sys/devices/system/cpu/isolated is empty
      cure: boot with isolcpus=managed_irq,domain,0-1 nohz_full=0-1 rcu_nocbs=0-1,
            or say what else the CPUs do
    note  steal             the hypervisor took time from measured CPUs: /proc/stat:
          the hypervisor took 10 ms from CPU 1 under full [full]
    note  rt-throttling-on  the kernel may take time from real-time threads:
          /proc/sys/kernel/sched_rt_runtime_us is 950000 of 1000000
    note  guest             this is a virtual machine: /sys/hypervisor says kvm
          about one: worstcase why steal

    FAIL  the worst wake-up took 30000 us, the limit is 100us
          this is a virtual machine
    10000 activations per CPU and load, worth about 350 independent ones: rarer
    delays can be missed.
    ");
}

#[test]
fn a_machine_with_many_cpus_has_a_line_for_each_and_its_worst_unasked() {
    let record = Spec { loads: vec!["idle", "full"], cpus: 64, ..Spec::default() }.record();
    let lines = |per_cpu| table::table(&record, per_cpu, &plain());
    let of_cpus = |text: &str| {
        text.lines().filter(|line| line.starts_with("CPU ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of_cpus(&lines(true)).len(), 64);
    let worst = lines(false);
    assert!(worst.contains("the 10 worst CPUs, max, us"), "{worst}");
    let shown = of_cpus(&worst);
    assert_eq!(shown.len(), 10);
    let value = |line: &String| {
        line.split_whitespace().skip(2).filter_map(|cell| cell.parse::<f64>().ok()).fold(0.0, f64::max)
    };
    let values: Vec<f64> = shown.iter().map(value).collect();
    assert!(values.windows(2).all(|pair| pair[0] >= pair[1]), "{shown:?}");
    let greatest = of_cpus(&lines(true)).iter().map(value).fold(0.0, f64::max);
    assert!((values[0] - greatest).abs() < f64::EPSILON, "{shown:?}");
}

#[test]
fn a_guest_in_instruction_time_has_a_table_of_instructions() {
    let record = in_lab(
        Spec {
            loads: vec!["idle", "full"],
            cpus: 1,
            limit: Some(Nanos::from_micros(100)),
            ..Spec::default()
        }
        .record(),
        LabTime::Instructions,
    );
    insta::assert_snapshot!(table::table(&record, false, &plain()), @r"
    instructions      idle       full
    min              1,514      1,509
    avg              2,651      3,126
    p99 *            4,999      8,299
    p99.9 *          7,799     13,599
    p99.99 *        22,399    194,999
    max             29,624  1,194,007
    samples          10000       9999
    missed               0          1
    late %               0      0.020
    over 100,000 *       0          3

    * of all activations due: a missed one counts with the latency it would have
      had; - means too few samples
    late: share of activations served a period or more late, or missed
    min, avg, max: of the samples alone, without the 1 missed
    ");
    assert_eq!(
        table::table(&record, true, &plain()),
        table::table(&record, false, &plain()),
        "one CPU, one table"
    );
    let foot = foot::foot(&record, Notes::All, &plain());
    let (foot, _) = foot.rsplit_once("\n\n").unwrap();
    assert!(foot.contains("Worst: 1,194,007 instructions") && !foot.contains(" us "), "{foot}");
}

#[test]
fn each_cpu_has_the_same_table() {
    let record = Spec { loads: vec!["idle", "full"], ..Spec::default() }.record();
    let text = table::table(&record, true, &plain());
    insta::assert_snapshot!(text, @r"
    all CPUs, us    idle    full
    min              1.5     1.5
    avg              2.6     3.1
    p99 *            4.9     8.3
    p99.9 *          7.5    13.7
    p99.99 *        22.4   195.0
    max             31.2  1194.0
    samples        20000   19999
    missed             0       1
    late %             0   0.010

    CPU 0, us    idle    full
    min           1.5     1.5
    avg           2.7     3.1
    p99 *         5.0     8.3
    p99.9 *       7.8    13.6
    p99.99 *     22.4   195.0
    max          29.6  1194.0
    samples     10000    9999
    missed          0       1
    late %          0   0.020

    CPU 1, us    idle    full
    min           1.5     1.5
    avg           2.6     3.1
    p99 *         4.9     8.2
    p99.9 *       6.7    16.2
    p99.99 *     17.6    99.2
    max          31.2   206.0
    samples     10000   10000
    missed          0       0
    late %          0       0

    * of all activations due: a missed one counts with the latency it would have
      had; - means too few samples
    late: share of activations served a period or more late, or missed
    min, avg, max: of the samples alone, without the 1 missed
    ");
}

#[test]
fn periods_and_c_states_stand_in_the_head_only_where_they_differ() {
    let record = Spec {
        loads: vec!["idle", "hdd"],
        intervals: vec![Nanos::from_micros(100), Nanos::from_millis(1), Nanos::from_millis(10)],
        cstates: vec![CStates::AsIs, CStates::Restrict],
        duration: Nanos::from_secs(2),
        ..Spec::default()
    }
    .record();
    insta::assert_snapshot!(table::table(&record, false, &plain()), @r"
    all CPUs, us    idle      idle     hdd       hdd    idle      idle
                   100us     100us   100us     100us     1ms       1ms
                   as-is  restrict   as-is  restrict   as-is  restrict
    min              1.4       1.4     1.5       1.4     1.5       1.5
    avg              2.6       2.7     2.9       3.0     2.6       2.7
    p99 *            5.0       5.0     7.1       7.3     4.9       5.0
    p99.9 *          7.8       7.6    10.9      14.8     6.7       7.0
    p99.99 *        16.9      17.3    42.6     230.0       -         -
    max             22.3      42.3    94.1     485.8    29.6      21.7
    samples        40000     40000   40000     39992    4000      4000
    missed             0         0       0         8       0         0
    late %             0         0       0     0.028       0         0

    all CPUs, us     hdd       hdd    idle      idle     hdd       hdd
                     1ms       1ms    10ms      10ms    10ms      10ms
                   as-is  restrict   as-is  restrict   as-is  restrict
    min              1.4       1.6     1.5       1.6     1.6       1.5
    avg              2.9       2.9     2.7       2.7     2.9       2.9
    p99 *            7.4       7.2     4.9       5.1     7.0       6.8
    p99.9 *         10.8      11.7       -         -       -         -
    p99.99 *           -         -       -         -       -         -
    max             15.0      28.5     6.7      42.5     9.9       7.8
    samples         4000      4000     400       400     400       400
    missed             0         0       0         0       0         0
    late %             0         0       0         0       0         0

    as-is - restrict    idle     hdd    idle     hdd    idle     hdd
                       100us   100us     1ms     1ms    10ms    10ms
    min                 +0.0    +0.0    -0.0    -0.1    -0.1    +0.1
    avg                 -0.0    -0.1    -0.0    +0.0    -0.1    -0.0
    p99 *               +0.0    -0.2    -0.1    +0.2    -0.2    +0.2
    p99.9 *             +0.2    -3.9    -0.3    -0.9       -       -
    p99.99 *            -0.4  -187.4       -       -       -       -
    max                -20.0  -391.8    +7.9   -13.5   -35.8    +2.1

    * of all activations due: a missed one counts with the latency it would have
      had; - means too few samples
    late: share of activations served a period or more late, or missed
    min, avg, max: of the samples alone, without the 8 missed
    ");
}

#[test]
fn a_run_without_any_load_is_not_called_idle() {
    let heads = |loads: &[&'static str]| {
        let record = Spec { loads: loads.to_vec(), ..Spec::default() }.record();
        table::table(&record, false, &plain()).lines().next().unwrap().to_owned()
    };
    assert!(heads(&["idle"]).ends_with("no load"), "nothing shows what idle would be compared with");
    let beside = heads(&["idle", "full"]);
    assert!(beside.contains("idle") && !beside.contains("no load"), "{beside}");
}

#[test]
fn missed_activations_are_said_to_be_in_no_average() {
    let said = |missed: u64| {
        let mut record = Spec { loads: vec!["idle", "cpu"], ..Spec::default() }.record();
        let timer = record.scenarios[0].series[0].timer_mut().unwrap();
        (0..missed).for_each(|_| timer.missed.record(Nanos::from_millis(2)));
        table::table(&record, false, &plain()).replace("\n  ", " ")
    };
    assert!(said(3).contains("min, avg, max: of the samples alone, without the 3 missed\n"), "{}", said(3));
    assert!(!said(0).contains("without the"), "{}", said(0));
}

/// What a reader sees says `no load` of a run without any, everywhere; what programs read has the load's id.
#[test]
fn a_run_without_any_load_is_called_so_everywhere_and_by_its_id_for_programs() {
    let mut record = Spec { loads: vec!["idle"], ..Spec::default() }.record();
    record.judgement = record::verdict::judge(&record, &[]);
    let page = report::page::page(std::slice::from_ref(&record)).unwrap();
    assert!(page.contains("under no load, CPU"), "the worst latency in large print");
    let is_cell = |word: &str| page.contains(&format!(">{word}</t")) || page.contains(&format!(">{word}</h"));
    assert!(is_cell("no load") && !is_cell("idle"), "a heading or a cell of a table");
    let both = report::compare::compare(&[record.clone(), record.clone()], &[], &plain());
    assert!(both.contains("no load") && !both.contains("idle"), "{both}");
    for text in [report::export::csv(&record), report::export::junit(&record), report::export::tap(&record)] {
        assert!(text.contains("idle") && !text.lines().any(|line| line.contains("no load,")), "{text}");
        let names = text.lines().filter(|line| line.contains("CPU 0") || line.starts_with("idle,"));
        assert!(names.clone().count() > 0 && names.clone().all(|line| line.contains("idle")), "{text}");
    }
    let beside = Spec { loads: vec!["idle", "cpu"], ..Spec::default() }.record();
    let page = report::page::page(&[beside]).unwrap();
    assert!(page.contains(">idle</t") && !page.contains("no load"));
}

#[test]
fn what_stands_between_a_run_and_its_machine_is_said() {
    let mut record = Spec::default().record();
    let said = |record: &record::Record| foot::foot(record, Notes::All, &plain()).replace("\n ", "");
    let place = &mut record.header.machine.place;
    (place.container, place.user_namespace) =
        (record::Fact::Value("none".into()), record::Fact::Value(false));
    record.header.machine.timers.resolution = record::Fact::Value(Nanos(1));
    for word in ["in a container", "user namespace", "CPU quota", "timers of"] {
        assert!(!said(&record).contains(word), "{word}: {}", said(&record));
    }
    let place = &mut record.header.machine.place;
    place.container = record::Fact::Value("docker".into());
    place.user_namespace = record::Fact::Value(true);
    record.header.machine.timers.resolution = record::Fact::Value(Nanos::from_millis(4));
    for words in ["in a container (docker)", "in a user namespace", "timers of 4ms"] {
        assert!(said(&record).contains(words), "{words}: {}", said(&record));
    }
}

#[test]
fn repetitions_are_merged() {
    let once = Spec { loads: vec!["idle"], ..Spec::default() };
    let thrice = Spec { repeat: 3, ..once.clone() }.record();
    let text = table::table(&thrice, false, &plain());
    assert_eq!(text.lines().next().map(|head| head.matches("no load").count()), Some(1));
    let samples = text.lines().find(|line| line.starts_with("samples")).unwrap();
    assert!(samples.ends_with(" 60000"), "{samples}");
}

#[test]
fn a_run_that_was_cut_off_says_up_to_when_percentiles_hold() {
    let record = Spec { loads: vec!["idle", "cpu"], cut_off: true, ..Spec::default() }.record();
    let text = table::table(&record, false, &plain());
    assert!(text.contains("cut off\n"), "{text}");
    assert!(text.contains("cpu: cut off after 7 s; percentiles hold for the first 4 s"), "{text}");
    assert!(!text.contains("idle: cut off"));
}

#[test]
fn a_run_that_was_cut_off_before_any_histogram_was_saved_has_no_percentiles() {
    let mut record = Spec { loads: vec!["idle"], cut_off: true, ..Spec::default() }.record();
    for series in &mut record.scenarios[0].series {
        sample::keep_nothing(series);
    }
    let text = table::table(&record, false, &plain());
    assert!(text.contains("before a histogram was saved: no percentiles"), "{text}");
    let p99 = text.lines().find(|line| line.starts_with("p99 *")).unwrap();
    assert!(p99.ends_with('-'), "{p99}");
    assert!(!text.lines().any(|line| line.starts_with("max") && line.ends_with('-')));
}

#[test]
fn the_head_says_what_must_be_known_before_a_column_is_believed() {
    let mut record = failed();
    record.scenarios[1].end = ScenarioEnd::Interrupted;
    let stressor = &mut record.scenarios[2].load.stressors[0];
    (stressor.work, stressor.exposure) = (0, None);
    let text = table::table(&record, false, &plain());
    let mark = text.lines().nth(1).unwrap();
    assert!(mark.contains("interrupted") && mark.contains("no work"), "{text}");
}

#[test]
fn columns_stand_in_the_order_of_the_plan() {
    let mut record = Spec { loads: vec!["idle", "cpu", "io"], repeat: 2, ..Spec::default() }.record();
    let head =
        |record: &record::Record| table::table(record, false, &plain()).lines().next().unwrap().to_owned();
    let planned = head(&record);
    record.scenarios.reverse();
    assert_eq!(head(&record), planned);
}

#[test]
fn long_names_that_differ_at_an_end_have_different_heads() {
    let names = ["command:/opt/vendor/bin/first-burner", "command:/opt/vendor/bin/second-burner"];
    let mut record = Spec { loads: vec!["idle", "full"], ..Spec::default() }.record();
    for (scenario, name) in record.scenarios.iter_mut().zip(names) {
        scenario.head.planned.load = name.into();
    }
    let text = table::table(&record, false, &plain());
    let heads: Vec<&str> = text.lines().next().unwrap().split_whitespace().rev().take(2).collect();
    assert!(heads[0] != heads[1] && heads.iter().all(|head| head.starts_with("command:")), "{text}");
}

#[test]
fn a_load_whose_evidence_is_not_known_is_not_said_to_have_been_idle() {
    let mut record = failed();
    record.scenarios[1].load = LoadEvidence::default();
    assert!(!table::table(&record, false, &plain()).contains("no work"));
}

#[test]
fn too_few_samples_give_no_percentile() {
    let record =
        Spec { loads: vec!["idle"], cpus: 1, duration: Nanos::from_secs(1), ..Spec::default() }.record();
    let text = table::table(&record, false, &plain());
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(!row("p99.9 *").ends_with('-'));
    assert!(row("p99.99 *").ends_with('-'));
}

#[test]
fn nothing_over_the_limit_is_none_even_within_its_cell() {
    let mut record = failed();
    let worst = record.worst().unwrap().0;
    record.header.plan.limit = Some(worst);
    let text = table::table(&record, false, &plain());
    let over = text.lines().find(|line| line.starts_with("over ")).unwrap();
    assert_eq!(over.split_whitespace().filter(|word| *word == "0").count(), 4, "{over}");
}

#[test]
fn threads_that_are_not_pinned_are_not_called_a_cpu() {
    let record = Spec { loads: vec!["idle"], pinned: false, ..Spec::default() }.record();
    let text = table::table(&record, true, &plain());
    assert!(text.contains("not pinned, us") && !text.contains("CPU 0"), "{text}");
    assert!(foot::foot(&record, Notes::All, &plain()).replace("\n ", "").contains("24 migrations"));
}

#[test]
fn doubts_are_reported_once_and_weighty_ones_first() {
    let mut record = failed();
    let cure = "echo -1 > /proc/sys/kernel/sched_rt_runtime_us";
    for scenario in &mut record.scenarios {
        scenario.warnings = vec![Warning::inconclusive(WarningId::Throttled, "stopped for 50 ms", cure)];
    }
    record.scenarios[0].warnings.push(Warning::note(WarningId::Smi, "3 SMIs on CPU 1", ""));
    let text = foot::foot(&record, Notes::All, &plain());
    assert_eq!(text.matches(cure).count(), 1, "{text}");
    assert_eq!(text.matches("stopped for 50 ms").count(), 1);
    assert!(text.contains("3 SMIs on CPU 1 [idle]"));
    assert!(text.find("rt-throttled").unwrap() < text.find("note  smi ").unwrap());
}

#[test]
fn an_empty_record_is_said_to_be_empty() {
    let mut record = failed();
    record.scenarios.clear();
    let text = table::bench(&record, true, Notes::All, &plain());
    assert!(text.starts_with("nothing was measured\n"), "{text}");
}

#[test]
fn hostile_text_cannot_command_the_terminal() {
    let mut record = failed();
    record.header.machine.host = "a\x1b]0;owned\x07".into();
    record.header.note = Some("\x1b[2J".into());
    record.scenarios[0].head.planned.load = "\x1b[31mred\r\n".into();
    record.scenarios[0].warnings.push(Warning::note(WarningId::KernelMessage, "\x1b[5m", "\x1b[6m"));
    record.judgement.reasons.push("\x1b[7m".into());
    let text = table::bench(&record, true, Notes::All, &plain())
        + &compare::compare(&[record.clone(), record], &[], &plain());
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
}

#[test]
fn colours_add_nothing_but_colour() {
    let painted = table::bench(&failed(), true, Notes::All, &Style { colour: true, ..plain() });
    assert!(painted.contains("\x1b["));
    assert_eq!(without_colours(&painted), table::bench(&failed(), true, Notes::All, &plain()));
}

/// Without ANSI sequences.
fn without_colours(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, rest)| rest))
}

fn blocks(maxima: &[u64]) -> Vec<Block> {
    let block = |maximum: &u64| {
        let mut block = Block::default();
        block.observed.add(*maximum, 1);
        block
    };
    maxima.iter().map(block).collect()
}

fn row(cpu: u32, recent: &[Block]) -> LiveRow<'_> {
    LiveRow {
        cpu: Some(CpuId(cpu)),
        now: Some(Nanos(4_100)),
        summary: Summary { count: 1_000, sum: 3_000_000, min: 1_200, max: 33_100 },
        p999: None,
        missed: Some(7),
        values: "gaps",
        recent,
    }
}

#[test]
fn the_live_table() {
    let (calm, wild) = (blocks(&[2_000; 12]), blocks(&[2_000, 4_000, 8_000, 16_000, 64_000, 256_000, 2_000]));
    let rows = [row(0, &calm), row(1, &wild)];
    insta::assert_snapshot!(live::table(&rows, Unit::Microseconds, &plain()), @r#"
    us        now     min     avg   p99.9     max  missed
    CPU 0     4.1     1.2     3.0       -    33.1       7  ____________
    CPU 1     4.1     1.2     3.0       -    33.1       7  _.,-+#_
    "#);
    insta::assert_snapshot!(live::table(&rows, Unit::Microseconds, &Style { unicode: true, ..plain() }), @r#"
    us        now     min     avg   p99.9     max  missed
    CPU 0     4.1     1.2     3.0       -    33.1       7  ▁▁▁▁▁▁▁▁▁▁▁▁
    CPU 1     4.1     1.2     3.0       -    33.1       7  ▁▂▃▄▆█▁
    "#);
    insta::assert_snapshot!(live::table(&rows, Unit::Instructions, &plain()), @r"
    instructions     now     min     avg   p99.9     max  missed
    CPU 0          4,100   1,200   3,000       -  33,100       7  ____________
    CPU 1          4,100   1,200   3,000       -  33,100       7  _.,-+#_
    ");
    insta::assert_snapshot!(
        live::line(12, &rows[0], Unit::Instructions),
        @"12 s  CPU 0  now 4,100  min 1,200  avg 3,000  p99.9 -  max 33,100 instructions  missed 7"
    );
    insta::assert_snapshot!(live::line(12, &rows[0], Unit::Microseconds), @r#"12 s  CPU 0  now 4.1  min 1.2  avg 3.0  p99.9 -  max 33.1 us  missed 7"#);
}

#[test]
fn the_live_table_fits_on_the_screen_and_keeps_the_worst() {
    let maxima = [5_000, 90_000, 4_000, 70_000, 6_000, 80_000, 3_000, 2_000];
    let all: Vec<Vec<Block>> = maxima.iter().map(|&maximum| blocks(&[2_000, maximum])).collect();
    let rows: Vec<LiveRow<'_>> = (0..).zip(&all).map(|(cpu, blocks)| row(cpu, blocks)).collect();
    let rows: Vec<LiveRow<'_>> = rows
        .into_iter()
        .zip(maxima)
        .map(|(row, max)| LiveRow { summary: Summary { max, ..row.summary }, ..row })
        .collect();
    let narrow = Style { width: 30, ..plain() };
    for style in [plain(), narrow] {
        let whole = live::table(&rows, Unit::Microseconds, &style);
        let needed = whole.lines().count();
        assert_eq!(live::table_within(needed, &rows, Unit::Microseconds, &style), whole);
        for lines in needed - 4..needed {
            let shown = live::table_within(lines, &rows, Unit::Microseconds, &style);
            assert!(shown.lines().count() <= lines, "{lines}: {shown}");
            assert!(shown.contains("more, none of them with a higher maximum"), "{shown}");
        }
    }
    let shown = live::table_within(5, &rows, Unit::Microseconds, &plain());
    let cpus: Vec<&str> =
        shown.lines().filter_map(|line| line.get(..5)).filter(|cpu| cpu.starts_with("CPU")).collect();
    assert_eq!(cpus, ["CPU 1", "CPU 3", "CPU 5"], "{shown}");
    assert!(live::table_within(0, &rows, Unit::Microseconds, &plain()).contains("CPU 1"), "never nothing");
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_wider_than_the_terminal(width in 1_usize..200, colour: bool, unicode: bool, cpus in 1_u32..4, name in "\\PC{0,60}") {
        let style = Style { colour, width, unicode };
        let mut record = Spec {
            cpus,
            duration: Nanos::from_millis(1_500),
            cstates: vec![CStates::AsIs, CStates::Restrict],
            limit: Some(Nanos(1_234_567)),
            ..Spec::default()
        }
        .record();
        record.header.note = Some(name.clone());
        record.scenarios[2].head.planned.load = name.clone();
        record.scenarios[1].warnings.push(Warning::note(WarningId::Rival, name.clone(), name));
        let recent = blocks(&[1_000; 90]);
        let rows: Vec<_> = (0..cpus).map(|cpu| row(cpu * 1_000, &recent)).collect();
        let texts = [
            table::bench(&record, true, Notes::All, &style),
            compare::compare(&[record.clone(), record], &[], &style),
            live::table(&rows, Unit::Microseconds, &style),
        ];
        for text in texts {
            let text = without_colours(&text);
            prop_assert!(widest(&text) <= width, "{width}:\n{text}");
        }
    }
}
