//! Records that somebody else wrote: whatever number stands in them, they are shown, and nothing stops at a sum.

use record::Record;
use record::cost::Cost;
use report::foot::Notes;
use units::Nanos;

use crate::numbers::each;
use crate::sample::plain;

#[test]
fn any_number_in_a_record_of_costs_is_shown_and_compared() {
    let good =
        crate::cost::record(9, &mut units::Seed(1).stream("costs"), |number, _| f64::from(number + 1) * 1e4);
    let document = serde_json::to_value(&good).unwrap();
    let count = each(&document, |what, absurd| {
        let Ok(cost) = serde_json::from_value::<Cost>(absurd) else { return };
        if cost.plan.refusal().is_some() {
            return;
        }
        let shown = std::panic::catch_unwind(|| {
            let texts = [
                report::cost::text(&cost, &plain()),
                report::cost::compared(&good, &cost, &plain()),
                report::cost::page(&cost, Some(&good)).unwrap(),
                report::cost::json(&report::cost::against(&cost, &good)),
            ];
            texts.map(|text| text.len())
        });
        assert!(shown.is_ok(), "{what}");
    });
    assert!(count > 10, "{count}");
}

/// All that a command makes of a record.
fn shown(record: &Record, good: &Record) -> usize {
    let exposure = Nanos::from_secs(3_600);
    let both = [good.clone(), record.clone()];
    let texts = [
        report::table::bench(record, true, Notes::All, &plain()),
        report::explanation::text(record, &plain()),
        report::next::run::text(record, &|_| true, &plain()),
        report::extreme::text(record, exposure, &plain()),
        report::compare::compare(&both, &[], &plain()),
        report::compare::compare(&both.into_iter().rev().collect::<Vec<_>>(), &[], &plain()),
        report::export::csv(record),
        report::export::json(record),
        report::export::junit(record),
        report::export::lava(record),
        report::export::line(record),
        report::export::markdown(record),
        report::export::tap(record),
        report::page::page_with(std::slice::from_ref(record), Some(exposure)).unwrap(),
    ];
    texts.iter().map(String::len).sum()
}

/// Of a record of a few kilobytes. A page of such a record is a tenth of that.
const MOST: usize = 20_000_000;

/// Of each scenario, CPU and explanation one: what stands in lists is alike.
fn small(mut record: Record) -> Record {
    record.scenarios.truncate(1);
    record.scenarios.iter_mut().for_each(|scenario| scenario.series.truncate(1));
    record
}

fn of_a_record(good: &Record) -> usize {
    let document = serde_json::to_value(good).unwrap();
    let failures = std::cell::RefCell::new(Vec::new());
    let count = each(&document, |what, absurd| {
        let Ok(mut record) = record::store::parse(&serde_json::to_vec(&absurd).unwrap()) else { return };
        let length = std::panic::catch_unwind(move || {
            // As a run that was cut off is judged when it is read, and by `report --limit`.
            record.judgement = record::verdict::judge(&record, &[]);
            shown(&record, good)
        });
        if !matches!(length, Ok(1..=MOST)) {
            failures.borrow_mut().push(format!("{what}: {length:?}"));
        }
    });
    let failures = failures.into_inner();
    assert!(failures.is_empty(), "{failures:#?}");
    count
}

#[test]
fn any_number_in_a_record_of_a_run_is_shown_judged_and_compared() {
    let count = of_a_record(&small(crate::explanation::explained()));
    assert!(count > 150, "{count}");
}

#[test]
fn any_number_in_a_record_of_answers_is_shown_judged_and_compared() {
    let count = of_a_record(&small(crate::response::record()));
    assert!(count > 100, "{count}");
}
