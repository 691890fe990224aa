//! A guest run again under the microscope: what each instruction of its worst wake-ups was for.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use flate2::read::DeflateDecoder;
use microscope::{Account, Comparison, Section, Stream, Symbols, SymbolsError};
use record::{Hit, Record, Scenario, Series, store};
use units::InOrder;

use crate::Error;
use crate::boot::{self, Failure, Guest, Left, Target, Watched};
use crate::guest::symbols::{FILE, SYMBOLS};
use crate::kernels::Architecture;

/// No list of symbols is longer, in bytes.
const LONGEST_SYMBOLS: u64 = 64 << 20;

/// A wake-up of a record.
#[derive(Clone, Copy, Debug)]
pub struct WakeUp<'a> {
    /// Of which scenario.
    pub scenario: &'a Scenario,
    /// When it came, in nanoseconds of the guest's `CLOCK_MONOTONIC`.
    pub at: u64,
    /// How late, in nanoseconds.
    pub latency: u64,
}

/// The `most` worst wake-ups of each scenario of a record, in the order of the scenarios, the worst first.
pub fn worst(record: &Record, most: usize) -> Vec<WakeUp<'_>> {
    let of_series = |scenario, series: &Series| {
        let first = series.timer().map_or(0, |timer| timer.first_due.0);
        let is_known = move |_: &&record::Sample| first > 0;
        let wake_up = |sample: &record::Sample| {
            let (due, latency) = (first.saturating_add(sample.due.0), sample.latency.0);
            WakeUp { scenario, at: due.saturating_add(latency), latency }
        };
        series.worst.iter().filter(is_known).map(wake_up).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for scenario in &record.scenarios {
        let mut worst: Vec<_> =
            scenario.series.iter().flat_map(|series| of_series(scenario, series)).collect();
        worst.order_by_key(|wake_up| std::cmp::Reverse(wake_up.latency));
        all.extend(worst.into_iter().take(most));
    }
    all
}

/// The names of the addresses of `guest`'s kernel and of the modules in it, from one more boot with the same words.
///
/// # Errors
/// Where it does not boot, or its kernel has no such list.
pub fn symbols(guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Symbols, Error> {
    let command = ["worstcase", SYMBOLS].map(OsString::from).to_vec();
    let guest = Guest { command, ..guest.clone() };
    let outcome = boot::run(&guest, stop).map_err(|failure| failure.error)?;
    let said = || String::from_utf8_lossy(&outcome.left.errors).trim().to_owned();
    let file = outcome.left.files.iter().find(|(path, _)| path == Path::new(FILE));
    let (_, deflated) =
        file.ok_or_else(|| Error::new(format!("the guest left no list of symbols: {}", said())))?;
    let mut text = Vec::new();
    let inflated = DeflateDecoder::new(deflated.as_slice()).take(LONGEST_SYMBOLS).read_to_end(&mut text);
    inflated.map_err(|error| Error::new(format!("read the guest's list of symbols: {error}")))?;
    Symbols::parse(&String::from_utf8_lossy(&text)).map_err(|error| Error::new(error.to_string()))
}

/// What came of a run under the microscope.
#[derive(Debug)]
pub struct Seen {
    /// The accounts, of those wake-ups that were found, in the order in which they were asked for; none for others.
    pub accounts: Vec<Option<Account>>,
    /// Instructions of the whole run.
    pub instructions: u64,
    /// What the guest left.
    pub left: Left,
}

/// Runs `guest` again and looks at `wake_ups` of the record that it has left, whose bytes are `record`.
///
/// # Errors
/// Where the emulator takes no plugin, the guest fails, or its record is another one this time: nothing is known then.
pub fn look(
    guest: &Guest,
    record: &[u8],
    wake_ups: &[WakeUp<'_>],
    symbols: &Symbols,
    stop: &dyn Fn() -> bool,
) -> Result<Seen, Failure> {
    let times = wake_ups.iter().map(|wake_up| (wake_up.at, wake_up.latency)).collect();
    let (stream, left) = watch(guest, record, Target::WakeUps(times), symbols, stop)?;
    let account = |wake_up: &WakeUp<'_>| {
        let window = stream.windows.iter().find(|window| window.at.0 == wake_up.at)?;
        Some(microscope::account(&stream, window, symbols))
    };
    let accounts = wake_ups.iter().map(account).collect();
    Ok(Seen { accounts, instructions: stream.instructions, left })
}

/// Runs `guest` again and lays what its instructions were beside what its trace said of `hits`, wake-ups of the record that it has
/// left, whose bytes are `record`: in their order; none for those that were not found.
///
/// # Errors
/// As of [`look`].
pub fn compare(
    guest: &Guest,
    record: &[u8],
    hits: &[&Hit],
    symbols: &Symbols,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Option<Comparison>>, Failure> {
    let times = hits.iter().map(|hit| (hit.woke().0, hit.latency.0)).collect();
    let (stream, _) = watch(guest, record, Target::WakeUps(times), symbols, stop)?;
    let one = |hit: &&Hit| {
        let window = stream.windows.iter().find(|window| window.at == hit.woke())?;
        Some(microscope::compare(&stream, window, symbols, hit))
    };
    Ok(hits.iter().map(one).collect())
}

/// When the scenarios of a record measured, in nanoseconds of the guest's `CLOCK_MONOTONIC`, with each scenario: from the first activation that
/// was due to the last. What comes after it is the end of the probe, and no wake-up's business.
pub fn measured(record: &Record) -> Vec<(&Scenario, (u64, u64))> {
    let of_scenario = |scenario: &Scenario| {
        let of_series = |(index, series): (usize, &Series)| {
            let timer = series.timer().filter(|timer| timer.first_due.0 > 0 && timer.expected > 0)?;
            let first = timer.first_due.0;
            Some((first, scenario.head.grid(index, 0).moved(0, first).due(timer.expected - 1)))
        };
        let all: Vec<(u64, u64)> = scenario.series.iter().enumerate().filter_map(of_series).collect();
        let (first, last) =
            (all.iter().map(|(first, _)| *first).min()?, all.iter().map(|(_, last)| *last).max()?);
        (first < last).then_some((first, last))
    };
    record.scenarios.iter().filter_map(|scenario| Some((scenario, of_scenario(scenario)?))).collect()
}

/// The sections of one scenario.
#[derive(Debug)]
pub struct OfRange {
    /// The longest by function, interrupts before preemption, the longest first.
    pub sections: Vec<Section>,
    /// How many more there are, of either kind.
    pub left_out: usize,
}

/// Which sections with interrupts or preemption off there were while `ranges` lasted, over the whole of the run, and what the
/// `most` longest of each did. Runs `guest` twice more.
///
/// # Errors
/// As of [`look`], and where the second run differs from the first.
pub fn sections(
    guest: &Guest,
    record: &[u8],
    ranges: &[(u64, u64)],
    most: usize,
    symbols: &Symbols,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<OfRange>, Failure> {
    let (stream, _) = watch(guest, record, Target::Sections(ranges.to_vec()), symbols, stop)?;
    if stream.lost_sections > 0 {
        let message = format!("there was no room for {} sections", stream.lost_sections);
        return Err(Error::new(message).hint("measure fewer loads in one guest").into());
    }
    let all = microscope::places(&stream, symbols);
    let of_range = |range: usize| {
        let kinds = all.chunk_by(|a, b| (a.range, a.off) == (b.range, b.off));
        kinds.filter(move |places| places.iter().all(|place| place.range as usize == range))
    };
    let longest = |range: usize| of_range(range).flat_map(|places| places.iter().take(most));
    let stretches: Vec<_> =
        (0..ranges.len()).flat_map(longest).map(|place| (place.end, place.span)).collect();
    if stretches.is_empty() {
        return Err(Error::new("no section with interrupts or preemption off was seen").into());
    }
    let (stream, _) = watch(guest, record, Target::Stretches(stretches), symbols, stop)?;
    (0..ranges.len())
        .map(|range| {
            let section = |place| {
                let gone = || Error::new("run again, the guest did not come by the same sections");
                microscope::section(&stream, place, symbols).ok_or_else(gone)
            };
            let mut sections: Vec<Section> = longest(range).map(section).collect::<Result<_, _>>()?;
            let left_out = of_range(range).map(|places| places.len().saturating_sub(most)).sum();
            microscope::merge(&mut sections);
            Ok(OfRange { sections, left_out })
        })
        .collect()
}

/// Runs `guest` with the plugin, and checks that it leaves the same record.
fn watch(
    guest: &Guest,
    record: &[u8],
    target: Target,
    symbols: &Symbols,
    stop: &dyn Fn() -> bool,
) -> Result<(Stream, Left), Failure> {
    let addresses =
        addresses(guest.kernel.architecture, symbols).map_err(|error| Error::new(error.to_string()))?;
    let entries = match guest.kernel.architecture {
        Architecture::Amd64 => Vec::new(),
        Architecture::Arm64 => microscope::entries_on_arm64(symbols),
    };
    let (outcome, stream) = boot::run_watched(guest, &Watched { target, addresses, entries }, stop)?;
    let left = outcome.left;
    if let Err(error) = check_record(record, &left) {
        return Err(Failure { error, left: Some(Box::new(left)) });
    }
    let stream = Stream::parse(&stream).map_err(|error| Error::new(error.to_string()))?;
    Ok((stream, left))
}

/// A guest under the microscope measures the same, to the byte.
fn check_record(then: &[u8], left: &Left) -> Result<(), Error> {
    let now = left.files.iter().find(|(path, _)| path == Path::new(store::RECORD)).map(|(_, bytes)| bytes);
    match now {
        Some(now) if now == then => Ok(()),
        Some(now) => {
            let (place, before, after) = first_difference(then, now);
            Err(Error::new(format!(
                "run again, the guest left another record: from byte {place} on it has {after}, where record.json \
                 has {before}"
            ))
            // What it is made of was compared before it ran.
            .hint(
                "the guest is made of the same files: was record.json or lab.json edited? take an unedited copy, \
                 or measure anew: worstcase lab run",
            ))
        }
        None => Err(Error::new("run again, the guest left no record")
            .hint("was the command in lab.json edited? measure anew: worstcase lab run")),
    }
}

/// Where two texts differ first, and what stands there in each, from the name of the value that differs on.
fn first_difference(then: &[u8], now: &[u8]) -> (usize, String, String) {
    const LONGEST: usize = 60;
    let equal = then.iter().zip(now).take_while(|(then, now)| then == now).count();
    let is_mark = |byte: &u8| b",{}[]\n".contains(byte);
    let start = then[..equal].iter().rposition(is_mark).map_or(0, |place| place + 1);
    let start = start.max(equal.saturating_sub(LONGEST));
    let words = |text: &[u8]| {
        let rest = &text[start..];
        let end = rest.iter().skip(equal - start).position(is_mark).map(|end| equal - start + end);
        // Where a mark differs itself, what stands behind it.
        let end = end.filter(|end| *end > 0).unwrap_or(rest.len()).min(2 * LONGEST);
        match String::from_utf8_lossy(&rest[..end]).trim() {
            "" => "nothing more".to_owned(),
            words => format!("`{words}`"),
        }
    };
    (equal, words(then), words(now))
}

/// What the plugin needs to know of a kernel.
fn addresses(
    architecture: Architecture,
    symbols: &Symbols,
) -> Result<Vec<(&'static str, u64)>, SymbolsError> {
    match architecture {
        Architecture::Amd64 => of_amd64(symbols),
        Architecture::Arm64 => of_arm64(symbols),
    }
}

/// Debian's kernels for arm64 have no names of data (CONFIG_KALLSYMS_ALL=n): the thread is in a register, and the clock where
/// `ktime_get` reads it.
fn of_arm64(symbols: &Symbols) -> Result<Vec<(&'static str, u64)>, SymbolsError> {
    Ok(vec![
        ("image", symbols.needed("_stext")?),
        ("ktime", symbols.needed("ktime_get")?),
        ("wake", symbols.needed("try_to_wake_up")?),
    ])
}

fn of_amd64(symbols: &Symbols) -> Result<Vec<(&'static str, u64)>, SymbolsError> {
    // Linux 6.2 to 6.14 have one structure for both: `current_task`, and behind it `preempt_count`.
    let (task, preempt) = match symbols.address("pcpu_hot") {
        Some(hot) => (hot, hot.saturating_add(8)),
        None => (symbols.needed("current_task")?, symbols.needed("__preempt_count")?),
    };
    Ok(vec![
        ("clock", symbols.needed("tk_core")?),
        ("areas", symbols.needed("__per_cpu_offset")?),
        ("preempt", preempt),
        ("task", task),
        ("init", symbols.needed("init_task")?),
        ("wake", symbols.needed("try_to_wake_up")?),
        ("fault", symbols.needed("asm_exc_page_fault")?),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_in_which_two_records_differ_is_named() {
        let differ = |then: &str, now: &str| first_difference(then.as_bytes(), now.as_bytes());
        let record = r#"{"head":{"seed":7},"latency":4711,"rest":[1,2]}"#;
        let edited = record.replace("4711", "47");
        let (place, then, now) = differ(&edited, record);
        assert_eq!((&edited[place..][..1], &*then, &*now), (",", r#"`"latency":47`"#, r#"`"latency":4711`"#));
        let (_, then, now) = differ(&record.replace("seed", "sead"), record);
        assert_eq!((&*then, &*now), (r#"`"sead":7`"#, r#"`"seed":7`"#));
        assert_eq!(differ(&format!("{record}\n"), record).2, "nothing more");
        assert_eq!(differ("", record).1, "nothing more");
        let (place, then, _) = differ(&record.replacen('{', "{\n  ", 1), record);
        assert!(place == 1 && then.starts_with(r#"`"head""#), "{then}");
    }
}
