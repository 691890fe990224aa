//! The page: well formed, escaped, self-contained, within its budget.

use std::io::Write;
use std::time::Instant;

use crate::sample::{Spec, in_lab};
use histogram::{Histogram, Summary, layout};
use record::{Fact, LabTime, Record, Series, Warning, WarningId};
use report::page::page;
use units::Nanos;

fn small() -> Spec {
    Spec { limit: Some(Nanos::from_micros(100)), stall: Some(Nanos::from_millis(30)), ..Spec::default() }
}

/// Every kind of record that a page is made from.
fn kinds() -> Vec<(&'static str, Vec<Record>)> {
    let mut empty = small().record();
    empty.scenarios.clear();
    let mut failed = small().record();
    failed.scenarios[2].end = record::ScenarioEnd::Failed("out of memory".into());
    vec![
        ("small", vec![small().record()]),
        ("without a limit", vec![Spec { limit: None, ..small() }.record()]),
        ("not pinned", vec![Spec { pinned: false, ..small() }.record()]),
        ("one CPU", vec![Spec { cpus: 1, ..small() }.record()]),
        ("many CPUs", vec![Spec { cpus: 12, ..small() }.record()]),
        ("cut off", vec![Spec { cut_off: true, ..small() }.record()]),
        ("empty", vec![empty]),
        ("failed", vec![failed.clone()]),
        ("two", vec![failed, small().record()]),
        ("guest", vec![guest()]),
        ("guest and machine", vec![guest(), small().record()]),
        ("none", Vec::new()),
    ]
}

fn guest() -> Record {
    in_lab(Spec { cpus: 1, ..small() }.record(), LabTime::Instructions)
}

#[test]
fn a_guest_in_instruction_time_has_no_latency_in_microseconds() {
    let html = page(&[guest()]).unwrap();
    let (head, facts) = html.split_once("id=\"a-facts\"").unwrap();
    let body = head.split("</style>").nth(1).unwrap();
    assert!(!body.contains("µs") && !body.contains(" us "), "{} {}", near(body, "µs"), near(body, " us "));
    for word in
        ["all CPUs, in instructions", "max, instructions", "data-unit=\"instructions\"", "k instructions"]
    {
        assert!(body.replace('\u{a0}', " ").contains(word), "{word}");
    }
    assert!(facts.contains("max,-rdrand,-rdseed,-erms,-fsrm") && facts.contains("caches, TLBs"));
}

#[test]
fn names_of_others_put_no_command_on_the_page() {
    let mut record = small().record();
    record.header.machine.host = "host\x1b]0;title\x07\u{9b}2J\u{202e}".into();
    record.header.note = Some("note\x1b[2J".into());
    let html = page(&[record]).unwrap();
    assert!(html.contains("host]0;title2J") && html.contains("note[2J"), "the words are there");
    assert!(
        html.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()),
        "and nothing that a terminal obeys"
    );
    assert!(!html.contains('\u{202e}'));
}

#[test]
fn time_at_each_frequency_is_a_share_and_nothing_is_made_up_where_there_is_no_table() {
    let mut record = small().record();
    let html = page(&[record.clone()]).unwrap();
    assert!(html.contains("3600 MHz 75 %, 800 MHz 25 %; 4 changes"), "{}", near(&html, "MHz"));
    assert!(html.contains("not measured here"));
    record.scenarios.iter_mut().flat_map(|one| &mut one.evidence.cpus).for_each(|cpu| {
        cpu.frequencies = Fact::Unsupported;
    });
    let html = page(&[record]).unwrap();
    assert!(!html.contains(" MHz ") && !html.contains("not measured here"), "{}", near(&html, " MHz "));
}

/// What stands around `word`, for a failure's message.
fn near<'a>(text: &'a str, word: &str) -> &'a str {
    text.find(word).and_then(|at| text.get(at.saturating_sub(200)..at)).unwrap_or_default()
}

/// Elements that have no end tag in HTML; those of SVG are written with a slash.
const VOID: [&str; 3] = ["meta", "input", "br"];

/// Tags of a page without its script and style, or what is wrong with them.
fn check_balance(html: &str) -> Result<usize, String> {
    let mut open: Vec<&str> = Vec::new();
    let mut count = 0;
    let mut rest = html.strip_prefix("<!DOCTYPE html>").ok_or("no document type")?;
    while let Some(start) = rest.find('<') {
        if let Some(stray) =
            rest[..start].find('>').filter(|_| !matches!(open.last(), Some(&"script" | &"style")))
        {
            return Err(format!("a stray > near {:?}", &rest[..start][stray..]));
        }
        let end = start + rest[start..].find('>').ok_or("a tag without end")?;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        count += 1;
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("odd quotes in <{tag}>"));
        }
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        let name = tag.split([' ', '\n', '/']).next().unwrap_or_default();
        if tag.ends_with('/') || VOID.contains(&name) {
            continue;
        }
        open.push(name);
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            rest = &rest[rest.find(&close).ok_or("no end")?..];
        }
    }
    if open.is_empty() { Ok(count) } else { Err(format!("left open: {open:?}")) }
}

#[test]
fn tags_are_balanced_and_no_figure_is_not_a_number() {
    for (kind, records) in kinds() {
        let html = page(&records).unwrap();
        let count = check_balance(&html).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(count > 20, "{kind}: {count}");
        for wrong in ["NaN", "inf ", "inf\"", "-9223372036854775808"] {
            assert!(!html.contains(wrong), "{kind}: {wrong}");
        }
    }
}

#[test]
fn the_balance_check_itself_finds_what_is_wrong() {
    for wrong in ["<p>", "<p></b>", "<p>a > b</p>", "<p class=\"x></p>", "</p>"] {
        assert!(check_balance(&format!("<!DOCTYPE html>{wrong}")).is_err(), "{wrong}");
    }
    assert_eq!(check_balance("<!DOCTYPE html><p><meta x><svg><path/></svg></p>"), Ok(6));
}

#[test]
fn ids_are_unique_and_links_lead_to_them() {
    for (kind, records) in kinds() {
        let html = page(&records).unwrap();
        let mut ids: Vec<_> = attributes(&html, " id=\"");
        let links = attributes(&html, "href=\"#");
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{kind}: {ids:?}");
        assert!(links.iter().all(|link| ids.contains(link)), "{kind}: {links:?}");
    }
}

fn attributes<'a>(html: &'a str, start: &str) -> Vec<&'a str> {
    html.split(start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn hostile_text_stays_text() {
    const HOSTILE: &str = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&\u{7}";
    let mut record = small().record();
    let header = &mut record.header;
    header.note = Some(HOSTILE.into());
    header.command_line.push(HOSTILE.into());
    header.machine.host = HOSTILE.into();
    header.machine.kernel.release = HOSTILE.into();
    header.machine.kernel.command_line = record::Fact::Value(HOSTILE.into());
    header.held[0].what = HOSTILE.into();
    record.warnings.push(Warning::note(WarningId::KernelMessage, HOSTILE, HOSTILE));
    record.judgement.reasons.push(HOSTILE.into());
    record.judgement.speaks_for = HOSTILE.into();
    for scenario in &mut record.scenarios {
        scenario.head.planned.load = HOSTILE.into();
        scenario.load.outside_other.push(HOSTILE.into());
        scenario.evidence.rivals[0].name = HOSTILE.into();
        scenario.evidence.kernel_messages = record::Fact::Value(vec![HOSTILE.into()]);
        for stressor in &mut scenario.load.stressors {
            stressor.name = HOSTILE.into();
            stressor.unit = HOSTILE.into();
            stressor.failures.push(HOSTILE.into());
        }
    }
    let html = page(&[record.clone(), record]).unwrap();
    check_balance(&html).unwrap();
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains("<img"));
    assert!(html.matches("onerror").count() > 20, "the text itself is shown");
}

#[test]
fn absurd_figures_are_drawn_without_a_panic() {
    let mut record = small().record();
    let absurd = Summary { count: u64::MAX >> 8, sum: u64::MAX, min: 0, max: u64::MAX };
    record.scenarios[0].length = Nanos(0);
    record.scenarios[1].head.offset = Nanos(u64::MAX);
    record.scenarios[1].head.planned.setup = record::Setup::every(Nanos(0));
    record.scenarios[2].series[0].observed =
        Histogram::from_parts(absurd, [(0, 1), (layout::CELLS - 1, absurd.count)]);
    record.scenarios[2].series[1].timeline.step = Nanos(0);
    record.scenarios[3].series[0].timer_mut().unwrap().expected = u64::MAX >> 4;
    record.scenarios[3].series[0].worst[0].due = Nanos(u64::MAX);
    record.scenarios[4].series.clear();
    record.scenarios[5].series[0] = Series::default();
    record.header.plan.limit = Some(Nanos(0));
    let html = page(&[record.clone(), record]).unwrap();
    check_balance(&html).unwrap();
    assert!(!html.contains("NaN"));
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    let html = page(&[small().record()]).unwrap();
    for word in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        let count = html.matches(word).count();
        let allowed = if word == "http:" { html.matches("http://www.w3.org/2000/svg").count() } else { 0 };
        assert_eq!(count, allowed, "{word}");
    }
}

#[test]
fn every_plot_is_described_and_has_its_table() {
    let html = page(&[small().record()]).unwrap();
    for figure in html.split("<figure>").skip(1) {
        let figure = figure.split("</figure>").next().unwrap();
        assert!(figure.contains("role=\"img\" aria-label=\""), "{figure}");
        assert!(figure.contains("<details><summary>") && figure.contains("<table>"), "{figure}");
    }
}

/// From where to where a text reaches, about; and the width of its plot.
fn reach(text: &str, width: f64) -> (f64, f64) {
    let attribute = |name: &str| attributes(text, name).first().map(|value| (*value).to_owned());
    let x: f64 = attribute(" x=\"").unwrap().parse().unwrap();
    let label = text.split('>').nth(1).unwrap().split('<').next().unwrap();
    // Of a font of 11.5 pixels without serifs.
    let long: f64 = label.chars().map(|c| if " \u{a0}.,il".contains(c) { 3.2 } else { 6.4 }).sum();
    let before = match attribute("text-anchor=\"").as_deref() {
        Some("end") => long,
        Some("middle") => long / 2.0,
        _ => 0.0,
    };
    (x - before, width - (x - before + long))
}

#[test]
fn no_text_of_a_plot_is_cut_off_at_its_edges() {
    // That the test can find either.
    for (at, anchor, is_left) in
        [("3", "middle", true), ("9", "end", true), ("597", "middle", false), ("590", "start", false)]
    {
        let text = format!(" class=\"tick\" x=\"{at}\" y=\"1\" text-anchor=\"{anchor}\">24 hours</text>");
        let (left, right) = reach(&text, 600.0);
        assert_eq!((left < 0.0, right < 0.0), (is_left, !is_left), "{text}: {left} {right}");
    }
    let mut labels = 0;
    // Axes end at a label where the length is round, and labels of minutes and hours are the longest.
    for seconds in [9, 10, 60, 90, 600, 5_400, 7_200, 86_400] {
        let mut record = small().record();
        // One load from the run's beginning to its end: a label stands at the very end of the axis.
        record.scenarios.truncate(1);
        for scenario in &mut record.scenarios {
            scenario.head.offset = Nanos(0);
            scenario.length = Nanos::from_secs(seconds);
        }
        let html = page(&[record]).unwrap();
        for plot in html.split("<svg").skip(1).map(|rest| rest.split("</svg>").next().unwrap()) {
            let width: f64 =
                attributes(plot, "viewBox=\"0 0 ")[0].split(' ').next().unwrap().parse().unwrap();
            for text in plot.split("<text").skip(1) {
                let (left, right) = reach(text, width);
                assert!(left >= 0.0 && right >= 0.0, "{seconds} s, {width}: {left} {right} <text{text}");
                labels += 1;
            }
        }
    }
    assert!(labels > 100, "{labels}");
}

/// At 400 pixels the last column, the maximum, was out of sight. A table outside such a box makes the whole page scroll.
#[test]
fn every_table_scrolls_in_a_box_of_its_own() {
    let html = page(&[small().record(), Spec::default().record()]).unwrap();
    let mut tables = 0;
    for before in html.split("<table>").collect::<Vec<_>>().split_last().unwrap().1 {
        let opening = before.rsplit('<').next().unwrap();
        assert!(opening.starts_with("div class=\"scroll\" "), "<{opening}");
        tables += 1;
    }
    assert!(tables > 5, "{tables}");
}

#[test]
fn a_run_that_was_cut_off_says_so() {
    let html = page(&[Spec { cut_off: true, ..small() }.record()]).unwrap();
    assert!(html.contains("full: cut off after 7 s; percentiles hold for the first 4 s"));
    assert!(html.contains("full (cut off)"));
}

#[test]
fn records_that_may_not_be_compared_say_so() {
    let mut other = small().record();
    other.header.plan.priority = units::Priority::try_from(80).ok();
    let html = page(&[small().record(), other]).unwrap();
    assert!(html.contains("Not comparable") && html.contains("forbids a comparison"));
    let same = page(&[small().record(), small().record()]).unwrap();
    assert!(same.contains("Comparable: ") && !same.contains("Not comparable"));
}

#[test]
fn a_day_on_64_cpus_fits_into_2_mb() {
    let record = Spec::long_and_wide().record();
    let cells: usize =
        record.scenarios.iter().flat_map(|s| &s.series).map(|s| s.observed.cells().count()).sum();
    assert!(cells > 150_000, "the record itself is large: {cells} cells");
    let begun = Instant::now();
    let html = page(&[record]).unwrap();
    let shown = format!("{} bytes from {cells} cells in {:?}\n", html.len(), begun.elapsed());
    std::io::stdout().write_all(shown.as_bytes()).unwrap();
    assert!(html.len() <= 2_000_000, "{}", html.len());
}
