//! The page: one HTML file, no network, made from records alone.
//!
//! `view` holds what a template can show (tables, figures, facts); the other files turn a record into it, section by
//! section; `templates/` lays it out. Everything that comes from a record is escaped there or in `crate::svg`.

mod claims;
mod comparison;
pub(crate) mod conditions;
pub(crate) mod distribution;
mod explanations;
mod extreme;
pub(crate) mod facts;
mod loads;
mod outstanding;
mod prepared;
pub(crate) mod summary;
mod timeline;
pub(crate) mod view;

use askama::Template;
use record::{Record, Unit};
use units::Nanos;

use crate::compare::{letter, record_name};
use prepared::Prepared;
use view::{Block, Section};

#[derive(Template)]
#[template(path = "page.html")]
struct Page {
    title: String,
    /// Of what it is a report: `worstcase report`, `worstcase trial`.
    kind: &'static str,
    /// Where and when, where it is no record's page.
    place: Vec<String>,
    /// What latencies count outside the records, for the pointer's read-out.
    unit: &'static str,
    comparison: Vec<Section>,
    records: Vec<RecordView>,
}

/// One record's part of the page.
struct RecordView {
    /// Set before the ids of its sections, which must be unique in the page.
    id: String,
    name: String,
    /// What latencies count, for the pointer's read-out.
    unit: &'static str,
    summary: summary::Summary,
    sections: Vec<Section>,
}

/// The page of one record, or of several with their comparison first.
///
/// # Errors
/// Only if the template cannot be written into memory.
pub fn page(records: &[Record]) -> Result<String, std::fmt::Error> {
    page_with(records, None)
}

/// The same, with an estimate of the latency that is exceeded once in `exposure`, where one is asked for.
///
/// # Errors
/// Only if the template cannot be written into memory.
pub fn page_with(records: &[Record], exposure: Option<Nanos>) -> Result<String, std::fmt::Error> {
    let comparison = if records.len() > 1 { comparison::sections(records) } else { Vec::new() };
    let several = records.len() > 1;
    let views =
        records.iter().enumerate().map(|(place, record)| view_of(record, place, several, exposure)).collect();
    let title = match records {
        [only] => {
            let title = crate::instrument::of(&only.header.plan).page.title;
            format!("{title} of {}", only.header.machine.host)
        }
        _ => format!("Wake-up latency: {} records compared", records.len()),
    };
    let unit = records.first().map(|record| record.header.machine.unit()).unwrap_or_default().name();
    let (kind, place) = ("report", Vec::new());
    rendered(&Page { title, kind, place, unit, comparison, records: views })
}

/// The page's text. A browser takes control characters for nothing, but a terminal that shows the file obeys them.
fn rendered(page: &Page) -> Result<String, std::fmt::Error> {
    let text = page.render().map_err(|_| std::fmt::Error)?;
    Ok(match printable::lines(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(clean) => clean,
    })
}

/// A page of sections alone, with records nowhere in full.
pub(crate) fn of_sections(
    title: &str,
    kind: &'static str,
    place: Vec<String>,
    unit: Unit,
    sections: Vec<Section>,
) -> Result<String, std::fmt::Error> {
    let title = title.to_owned();
    let page = Page { title, kind, place, unit: unit.name(), comparison: sections, records: Vec::new() };
    rendered(&page)
}

fn view_of(record: &Record, place: usize, several: bool, exposure: Option<Nanos>) -> RecordView {
    let named = record.for_readers();
    let record = &*named;
    let prepared = Prepared::of(record);
    let mut sections = vec![summary::figures(&prepared)];
    sections.extend(outstanding::section(record));
    sections.extend(explanations::section(record));
    sections.extend(distribution::sections(&prepared, place));
    sections.extend(claims::section(record));
    sections.extend(exposure.map(|exposure| extreme::section(record, exposure)));
    sections.extend(timeline::sections(record, &prepared));
    sections.push(loads::section(record));
    sections.push(conditions::doubts_section(record));
    sections.push(conditions::section(record));
    sections.push(facts::section(record));
    let id = format!("{}-", letter(place).to_lowercase());
    sections.iter_mut().for_each(|section| section.id = format!("{id}{}", section.id));
    let name = if several { format!("{}: {}", letter(place), record_name(record)) } else { String::new() };
    let unit = prepared.terms.unit.name();
    RecordView { id, name, unit, summary: summary::summary(&prepared), sections }
}
