//! Values of a line that carry a quantity, by the table `quantities.toml`.

use std::sync::LazyLock;

use machine::grammar;
use serde::Deserialize;
use units::CpuList;

/// See its head.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    value: Vec<Entry>,
}

/// Where such a value stands, and what it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
    /// How many words stand between the option and its value.
    #[serde(default)]
    skip: usize,
    operand: Option<usize>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    items: Vec<String>,
    #[serde(default)]
    ends: Vec<String>,
    kind: Kind,
    unit: Option<Unit>,
    #[serde(default)]
    sense: Sense,
    #[serde(default)]
    period: bool,
    noun: Option<String>,
    #[serde(default)]
    prefix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Time,
    Bytes,
    Cpus,
    Share,
    Priority,
    Nice,
    Frames,
    Rate,
    Limit,
    Percent,
    Pages,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "B")]
    Bytes,
    #[serde(rename = "KiB")]
    Kibibytes,
    #[serde(rename = "MiB")]
    Mebibytes,
    #[serde(rename = "list")]
    List,
    #[serde(rename = "mask")]
    Mask,
    #[serde(rename = "frames")]
    Frames,
    #[serde(rename = "frames/rate")]
    FramesAndRate,
}

/// What becomes of the CPUs that a value names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sense {
    /// Something runs on them.
    #[default]
    On,
    /// Something stays off them.
    Off,
    /// People say both.
    Either,
}

/// A quantity as its reader takes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// Nanoseconds.
    Time(u64),
    Bytes(u64),
    Cpus(CpuList, Sense),
    /// An amount of CPU time.
    Share,
    Priority(i64),
    Nice(i64),
    /// The highest priority that is allowed.
    Limit(i64),
    /// Of each second.
    Percent(f64),
    /// Bytes in huge pages of 2 MiB.
    Pages(u64),
    /// Seconds between two messages of that name, as a power of two.
    Rate(i32, String),
    /// Frames, and the rate behind them.
    Frames(u64, Option<u64>),
}

/// A value of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Meant {
    /// As the line has it.
    pub shown: String,
    pub quantity: Quantity,
    /// Whether it is the time from one cycle to the next.
    pub period: bool,
}

/// The table; empty if the file that stands in the program were wrong, which a test excludes.
static TABLE: LazyLock<Vec<Entry>> =
    LazyLock::new(|| read().map_or_else(|_| Vec::new(), |table| table.value));

fn read() -> serde_json::Result<Table> {
    let json = machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/quantities.json.gz")));
    record::json::read(json.as_bytes())
}

/// The quantities of one statement.
pub fn of(statement: &str) -> Vec<Meant> {
    let line = Line::new(statement);
    let mut found = Vec::new();
    for entry in TABLE.iter() {
        for value in line.values(entry) {
            let value = value.trim_end_matches(['/', '>']).trim_matches(['"', '\'', '`', ';']);
            let Some(value) = value.strip_prefix(entry.prefix.as_str()) else { continue };
            let known = found.iter().any(|meant: &Meant| {
                meant.shown == value && entry.is_general() && matches!(meant.quantity, Quantity::Time(_))
            });
            found.extend(entry.quantity(value).filter(|_| !known).map(|quantity| Meant {
                shown: value.to_owned(),
                quantity,
                period: entry.period,
            }));
        }
    }
    found
}

impl Entry {
    /// Whether only the end of a name tells the unit.
    fn is_general(&self) -> bool {
        !self.ends.is_empty()
    }

    fn quantity(&self, value: &str) -> Option<Quantity> {
        Some(match self.kind {
            Kind::Time => Quantity::Time(self.time(value)?),
            Kind::Bytes => Quantity::Bytes(self.bytes(value)?),
            Kind::Cpus => {
                let cpus = match self.unit {
                    Some(Unit::Mask) => CpuList::from_mask(value.trim_start_matches("0x"))?,
                    _ => {
                        let first = value.find(|c: char| c.is_ascii_digit())?;
                        grammar::cpu_list(&value[first..], None, None).ok()?
                    }
                };
                Quantity::Cpus(cpus, self.sense)
            }
            Kind::Share => Quantity::Share,
            Kind::Priority => Quantity::Priority(value.parse().ok()?),
            Kind::Nice => Quantity::Nice(value.parse().ok()?),
            Kind::Limit => Quantity::Limit(value.split(':').next()?.parse().ok()?),
            Kind::Percent => {
                Quantity::Percent(value.parse::<u32>().ok().map(|time| f64::from(time) / 10_000.0)?)
            }
            Kind::Pages => Quantity::Pages(value.parse::<u64>().ok()?.checked_mul(2 << 20)?),
            Kind::Rate => Quantity::Rate(value.parse().ok()?, self.noun.clone()?),
            Kind::Frames => {
                let (frames, rate) = value.split_once('/').map_or((value, None), |(a, b)| (a, Some(b)));
                Quantity::Frames(frames.parse().ok()?, rate.and_then(|rate| rate.parse().ok()))
            }
        })
    }

    /// Nanoseconds; a letter behind the number counts before the unit.
    fn time(&self, value: &str) -> Option<u64> {
        let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let own: u64 = match self.unit? {
            Unit::Nanoseconds => 1,
            Unit::Microseconds => 1_000,
            Unit::Milliseconds => 1_000_000,
            _ => 1_000_000_000,
        };
        let unit = match &value[digits.len()..] {
            "" => own,
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" | "sec" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(unit)
    }

    fn bytes(&self, value: &str) -> Option<u64> {
        let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let own: u64 = match self.unit? {
            Unit::Kibibytes => 1 << 10,
            Unit::Mebibytes => 1 << 20,
            _ => 1,
        };
        let unit = match value[digits.len()..].to_ascii_uppercase().as_str() {
            "" => own,
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            "T" => 1 << 40,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(unit)
    }
}

/// A statement, taken apart for the table.
struct Line<'a> {
    words: Vec<&'a str>,
    /// `NAME = VALUE`, `name: VALUE`.
    assigned: Option<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    fn new(statement: &'a str) -> Self {
        let statement = statement.trim().trim_start_matches("- ").trim_end_matches('\\');
        let assigned = statement.find(['=', ':']).and_then(|at| {
            let (name, value) = (statement[..at].trim(), statement[at + 1..].trim());
            let is_name =
                !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "\"'`|><$".contains(c));
            // An assignment before a command is one word.
            let is_word = statement[at + 1..].starts_with(|c: char| c.is_ascii_digit());
            let value = if is_word { value.split_whitespace().next()? } else { value };
            (is_name && !value.is_empty()).then_some((name, value))
        });
        // `name value`, as directives have it.
        let directive =
            || statement.split_once(char::is_whitespace).filter(|(_, value)| !value.contains(' '));
        Self { words: statement.split_whitespace().collect(), assigned: assigned.or_else(directive) }
    }

    fn values(&self, entry: &Entry) -> Vec<&'a str> {
        let is = |names: &[String], name: &str| names.iter().any(|known| known == name);
        let mut found = self.of_program(entry);
        if let Some((name, value)) = self.assigned {
            let ends = |end: &String| name.ends_with(end.as_str());
            let is_file = entry.files.iter().any(|file| name.replace('.', "/").ends_with(file.as_str()));
            if is(&entry.keys, name) || entry.ends.iter().any(ends) || is_file {
                found.push(value);
            }
        }
        for word in &self.words {
            let word = word.trim_matches(['"', '\'', '`']);
            if let Some((name, value)) = word.split_once('=') {
                let ends = |end: &String| name.ends_with(end.as_str());
                let is_key = is(&entry.keys, name) || entry.ends.iter().any(ends) && !name.starts_with('-');
                if (is_key && self.assigned.is_none_or(|(other, _)| other != name)) || is(&entry.words, name)
                {
                    found.push(value.trim_end_matches([',', '.']));
                }
            }
        }
        found.extend(self.written(entry));
        if let [_, kind, item, value] = self.words.as_slice() {
            if ["-", "soft", "hard"].contains(kind) && is(&entry.items, item) {
                found.push(value);
            }
        }
        found
    }

    /// `echo VALUE > FILE`, by a redirection or tee.
    fn written(&self, entry: &Entry) -> Option<&'a str> {
        let echo = self.words.iter().position(|word| *word == "echo")?;
        let value = self.words[echo + 1..].iter().find(|word| !["-n", "-e"].contains(*word))?;
        let is_named = |word: &&str| {
            let path = word.trim_matches(['"', '\'', '`', '>', ';']);
            let ends = |end: &String| path.ends_with(end.as_str());
            path.contains('/') && (entry.files.iter().any(ends) || entry.ends.iter().any(ends))
        };
        self.words[echo..].iter().any(is_named).then_some(*value)
    }

    /// Values of a program's options, or its operand.
    fn of_program(&self, entry: &Entry) -> Vec<&'a str> {
        let name = |word: &&str| word.rsplit('/').next().unwrap_or(word).to_owned();
        let at = self.words.iter().position(|word| entry.programs.contains(&name(word)));
        let Some(at) = at else { return Vec::new() };
        let arguments = &self.words[at + 1..];
        let mut found = Vec::new();
        for (index, word) in arguments.iter().enumerate() {
            let joined =
                word.split_once('=').filter(|(option, _)| entry.options.iter().any(|known| known == option));
            found.extend(joined.map(|(_, value)| value));
            if entry.options.iter().any(|known| known == word) {
                found.extend(arguments.get(index + 1 + entry.skip));
            } else {
                found.extend(glued(word, &entry.options));
            }
        }
        if let Some(operand) = entry.operand.and_then(|number| number.checked_sub(1)) {
            let is_other = arguments.iter().any(|word| entry.without.iter().any(|known| known == word));
            let operands = arguments.iter().skip_while(|word| word.starts_with('-'));
            found.extend(operands.filter(|_| !is_other).nth(operand));
        }
        found
    }
}

/// `-D24`, `-Sp95`: the value in the word of the option, behind letters that take none.
fn glued<'a>(word: &'a str, options: &[String]) -> Option<&'a str> {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let value = letters.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let letter = letters[..letters.len() - value.len()].chars().next_back()?;
    let is_option =
        options.iter().any(|known| known.strip_prefix('-').is_some_and(|rest| rest.chars().eq([letter])));
    (is_option && !value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        for entry in read().unwrap().value {
            let has_place = !(entry.programs.is_empty()
                && entry.keys.is_empty()
                && entry.words.is_empty()
                && entry.files.is_empty()
                && entry.items.is_empty()
                && entry.ends.is_empty());
            let needs_unit = matches!(entry.kind, Kind::Time | Kind::Bytes | Kind::Cpus);
            assert!(has_place && (entry.unit.is_some() || !needs_unit), "{entry:?}");
        }
    }

    #[test]
    fn values_are_read_in_the_unit_of_their_reader() {
        for (line, expected) in [
            (
                "sudo cyclictest -m -Sp95 -i 1000 -D 24",
                vec![Quantity::Time(24_000_000_000), Quantity::Time(1_000_000), Quantity::Priority(95)],
            ),
            ("LimitMEMLOCK=65536", vec![Quantity::Bytes(65536)]),
            ("@audio - memlock 64", vec![Quantity::Bytes(65536)]),
            ("taskset 3 ./servo", vec![Quantity::Cpus("0-1".parse().unwrap(), Sense::On)]),
            ("SERVO_PERIOD = 1000", vec![Quantity::Time(1000)]),
            ("docker run --cpus=2 x", vec![Quantity::Share]),
            (
                "echo 4 | sudo tee /proc/irq/9/smp_affinity",
                vec![Quantity::Cpus("2".parse().unwrap(), Sense::On)],
            ),
            ("PIPEWIRE_LATENCY=48000/64 pw-jack ardour8", vec![Quantity::Frames(48000, Some(64))]),
        ] {
            let found: Vec<Quantity> = of(line).into_iter().map(|meant| meant.quantity).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read(line in "(\\PC|taskset |cyclictest |-[a-zD]|[0-9]{1,12}|=|echo |/smp_affinity| ){0,20}") {
            let _ = of(&line);
        }
    }
}
