//! Where what disturbs a CPU comes from, and what keeps it away, as `origins.toml` has it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use machine::activity::{Kind, Residue};
use serde::{Deserialize, Serialize};

/// Where something comes from, and what keeps it away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Who makes it.
    pub source: String,
    /// What could be done.
    pub remedy: String,
}

/// One table of the file.
#[derive(Deserialize)]
struct Row {
    /// Names of rows, threads or functions; `*` at the end, or around a part.
    names: Vec<String>,
    #[serde(flatten)]
    origin: Origin,
}

type Origins = BTreeMap<Kind, Vec<Row>>;

/// Empty if the file that stands in the program were wrong, which a test excludes.
static ORIGINS: LazyLock<Origins> = LazyLock::new(|| read().unwrap_or_default());

static UNKNOWN: Origin = Origin { source: String::new(), remedy: String::new() };

fn read() -> serde_json::Result<Origins> {
    let json = machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/origins.json.gz")));
    record::json::read(json.as_bytes())
}

/// Where a residue comes from: the first row that fits.
pub fn origin(residue: &Residue) -> &'static Origin {
    // Rows with a number are known by their handler, calls by their sender too: the last of the words.
    let handler = residue.words.rsplit(' ').next();
    let is_named = |name: &String| fits(name, &residue.name) || handler == Some(name);
    let mut rows = ORIGINS.get(&residue.kind).into_iter().flatten();
    rows.find(|row| row.names.iter().any(is_named)).map_or(&UNKNOWN, |row| &row.origin)
}

/// Every row: a sort of thing, the names of its members, where they come from.
pub fn origins() -> impl Iterator<Item = (Kind, &'static [String], &'static Origin)> {
    let rows = |(kind, rows): (&Kind, &'static Vec<Row>)| {
        let kind = *kind;
        rows.iter().map(move |row| (kind, row.names.as_slice(), &row.origin))
    };
    ORIGINS.iter().flat_map(rows)
}

/// Where something called `name` comes from: a row of each sort that knows it. Several names of one row are names of it too, as
/// is a pattern. None where no row but those for everything else of its sort knows it.
pub fn known_as(name: &str) -> Vec<(Kind, &'static Origin)> {
    let words = || name.split([' ', ',']).filter(|word| !word.is_empty());
    let knows = |names: &[String], word: &str| {
        names.iter().any(|pattern| pattern == word || (pattern != "*" && fits(pattern, word)))
    };
    let rows = origins().filter(|(_, names, _)| names.iter().any(|name| name != "*"));
    let mut known: Vec<(Kind, &'static Origin)> = Vec::new();
    for (kind, _, origin) in rows.filter(|(_, names, _)| words().all(|word| knows(names, word))) {
        if words().next().is_some() && known.iter().all(|(of, _)| *of != kind) {
            known.push((kind, origin));
        }
    }
    known
}

fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(middle), Some(_)) if !middle.is_empty() => name.contains(&middle[1..]),
        (Some(start), _) => name.starts_with(start),
        (None, _) => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use units::{CpuId, Nanos};

    use super::*;

    fn of(kind: Kind, name: &str) -> &'static Origin {
        let (name, words) = (name.to_owned(), String::new());
        origin(&Residue { cpu: CpuId(1), kind, name, words, events: 1, time: Nanos::ZERO })
    }

    #[test]
    fn the_file_in_the_program_is_read() {
        assert!(read().is_ok_and(|origins| origins.len() == 14), "{:?}", read().err());
    }

    #[test]
    fn every_sort_of_thing_has_a_source_and_a_remedy() {
        use Kind::*;
        let counted =
            [Interrupt, Softirq, KernelThread, UnpinnedThread, PinnedThread, PageFault, Unseen, Steal];
        let traced = [Passing, Call, Work, Timer, Tick, SystemCall];
        for kind in counted.into_iter().chain(traced) {
            let origin = of(kind, "nobody knows it");
            assert!(!origin.source.is_empty() && !origin.remedy.is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn the_particular_goes_before_the_general() {
        assert!(of(Kind::KernelThread, "kworker/u4:1").remedy.contains("rn-wq-cpumask"));
        assert!(of(Kind::KernelThread, "kworker/1:2").source.contains("the queue"));
        assert!(of(Kind::Interrupt, "LOC").remedy.contains("nohz_full"));
        assert!(of(Kind::Softirq, "RCU").remedy.contains("rcu_nocbs"));
    }

    /// A thread of kblockd was taken for the statistics of memory, as any worker of a CPU was.
    #[test]
    fn workers_are_known_by_the_queue_that_they_serve() {
        assert!(of(Kind::KernelThread, "kworker/1:1H-kblockd").source.contains("block devices"));
        assert!(of(Kind::KernelThread, "kworker/1:2-mm_percpu_wq").remedy.contains("stat_interval"));
        for other in ["kworker/1:2", "kworker/1:0-events", "kworker/1:3-ata_sff"] {
            assert!(!of(Kind::KernelThread, other).source.contains("memory"), "{other}");
        }
    }

    #[test]
    fn a_row_with_a_number_is_known_by_its_handler() {
        let words = "GICv3 27 Level arch_timer".to_owned();
        let (cpu, name) = (CpuId(1), "11".to_owned());
        let row = Residue { cpu, kind: Kind::Interrupt, name, words, events: 1, time: Nanos::ZERO };
        assert!(origin(&row).remedy.contains("nohz_full"));
    }

    #[test]
    fn no_row_is_hidden_by_an_earlier_one() {
        for (kind, rows) in ORIGINS.iter() {
            let patterns: Vec<&String> = rows.iter().flat_map(|row| &row.names).collect();
            for (place, pattern) in patterns.iter().enumerate() {
                let hidden = patterns[..place].iter().any(|earlier| fits(earlier, pattern));
                assert!(!hidden, "{kind:?} {pattern}");
            }
        }
    }
}
