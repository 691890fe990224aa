//! The lines of a journal: a check sum, a blank, JSON. A line that was cut off is known by its check sum.

use flate2::Crc;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::setting::Target;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "line")]
pub enum Line {
    /// The first one.
    Begin(Begin),
    /// Something is as wanted already, and is relied on.
    Relied {
        /// The rules that ask for it.
        rules: Vec<String>,
        /// The setting.
        target: Target,
        /// What it is wanted to be.
        value: String,
    },
    /// Something is about to be written.
    Intend {
        /// Counts from 0.
        step: usize,
        /// The rules that ask for it.
        rules: Vec<String>,
        /// The setting.
        target: Target,
        /// What it said before.
        old: String,
        /// What it is to say.
        new: String,
    },
    /// It was written, or not.
    Done {
        /// The step of the `Intend` line.
        step: usize,
        /// What came of it.
        outcome: Outcome,
    },
    /// Everything that was planned was done.
    Applied,
    /// What was written from that step on was put back, because the kernel refused something: what came before holds.
    Withdrawn {
        /// The number of that step.
        from: usize,
    },
    /// It holds until it is undone, whatever time was given before.
    Kept,
}

/// What a journal begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Begin {
    /// What tells it from others.
    pub id: String,
    /// The version of the program.
    pub tool_version: String,
    /// When, in UTC.
    pub started: String,
    /// The boot in which it was applied: what is volatile is gone in another one.
    pub boot_id: String,
    /// After how many seconds it is undone unless it is kept.
    pub seconds: Option<u64>,
    /// The file that says what was chosen, where it was not typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// The CPUs that were online: what cannot be bound to them while they are away waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<String>,
    /// The profiles that were named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<String>,
    /// The CPUs that were named to be isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolate: Option<String>,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It reads as written.
    Exact,
    /// It reads as the same value in another form: `00000003` for `3`.
    Equal(String),
    /// The kernel took something else.
    Clamped(String),
    /// The kernel said yes and changed nothing.
    Ignored,
    /// The kernel said no: its errno.
    Refused(i32),
}

impl Outcome {
    /// Whether the value that was asked for holds.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Exact | Self::Equal(_))
    }
}

/// The line as it stands in the file.
pub(crate) fn written<T: Serialize>(line: &T) -> String {
    let json = serde_json::to_string(line).unwrap_or_default();
    format!("{:08x} {json}\n", sum(json.as_bytes()))
}

/// CRC-32: finds what a power cut or a disk does, not what somebody does on purpose.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// What a journal's text holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The lines that are whole.
    pub lines: Vec<Line>,
    /// Whether the last line was cut off.
    pub torn: bool,
    /// Bytes before a line that was cut off.
    pub whole: u64,
    /// Numbers, from 1 on, of lines before it that are damaged.
    pub damaged: Vec<usize>,
}

/// Reads a journal's text, whatever it holds.
pub fn read(text: &[u8]) -> Read {
    let mut found = Read::default();
    let pieces: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    for (index, piece) in pieces.iter().enumerate() {
        match whole(piece) {
            Some(line) => found.lines.push(line),
            None if index + 1 == pieces.len() => {
                found.torn = true;
                break;
            }
            None => found.damaged.push(index + 1),
        }
        found.whole += piece.len() as u64;
    }
    found
}

/// What a whole line says, its end included.
pub(crate) fn whole<T: DeserializeOwned>(piece: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(piece).ok()?.strip_suffix('\n')?;
    let (own, json) = text.split_once(' ')?;
    let own = u32::from_str_radix(own, 16).ok()?;
    (own == sum(json.as_bytes())).then(|| record::json::read(json.as_bytes()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines() -> Vec<Line> {
        let target = Target::File("/proc/sys/vm/swappiness".into());
        let (old, new) = ("60".to_owned(), "10".to_owned());
        vec![
            Line::Begin(Begin::default()),
            Line::Relied {
                rules: vec!["rn-thp".into()],
                target: Target::File("/proc/sys/vm/stat_interval".into()),
                value: "10".into(),
            },
            Line::Intend { step: 0, rules: vec!["rn-swappiness".into()], target, old, new },
            Line::Done { step: 0, outcome: Outcome::Exact },
            Line::Done { step: 1, outcome: Outcome::Refused(16) },
            Line::Applied,
            Line::Withdrawn { from: 1 },
            Line::Kept,
        ]
    }

    fn text() -> String {
        lines().iter().map(written).collect()
    }

    #[test]
    fn what_is_written_reads_as_it_was() {
        assert_eq!(
            read(text().as_bytes()),
            Read { lines: lines(), whole: text().len() as u64, ..Read::default() }
        );
    }

    /// As version 0.1 wrote them: what an older program changed must be undone.
    #[test]
    fn settings_of_older_journals_are_read() {
        let thread = r#"{"name":"rcu_preempt","pid":15,"tid":15,"start":40}"#;
        let kinds = [
            r#"{"file":"/proc/sys/vm/swappiness"}"#.to_owned(),
            r#"{"interrupt":{"number":24,"identity":"PCI-MSI eth0"}}"#.to_owned(),
            format!(r#"{{"affinity":{thread}}}"#),
            format!(r#"{{"freed":{thread}}}"#),
            format!(r#"{{"scheduling":{thread}}}"#),
            r#"{"cpuset-below":"/sys/fs/cgroup"}"#.to_owned(),
            r#"{"group":"/sys/fs/cgroup/worstcase"}"#.to_owned(),
            r#"{"programs":{"from":"/sys/fs/cgroup/cpuset","to":"/sys/fs/cgroup/cpuset/worstcase-rest"}}"#
                .to_owned(),
            r#"{"slice":{"group":"/sys/fs/cgroup/worstcase.slice","property":"allowed-cpus"}}"#.to_owned(),
            r#"{"swap":"/dev/sda2"}"#.to_owned(),
            r#"{"service":{"program":"irqbalance","manager":"irqbalance.service"}}"#.to_owned(),
            r#""latency-limit""#.to_owned(),
        ];
        for kind in kinds {
            let json =
                format!(r#"{{"line":"intend","step":0,"rules":[],"target":{kind},"old":"a","new":"b"}}"#);
            let line: Line = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&line).unwrap(), json);
        }
    }

    #[test]
    fn a_journal_cut_off_anywhere_is_read_up_to_there() {
        let text = text();
        for cut in 0..text.len() {
            let read = read(&text.as_bytes()[..cut]);
            let whole = text[..cut].matches('\n').count();
            assert_eq!(read.lines, lines()[..whole], "at {cut}");
            assert_eq!(read.torn, !text[..cut].is_empty() && !text[..cut].ends_with('\n'), "at {cut}");
            assert_eq!(
                (read.damaged.len(), read.whole),
                (0, text[..cut].rfind('\n').map_or(0, |end| end as u64 + 1))
            );
        }
    }

    #[test]
    fn a_damaged_line_is_named_and_the_others_are_read() {
        let text = text().replacen("60", "61", 1);
        let read = read(text.as_bytes());
        assert_eq!((read.damaged.as_slice(), read.lines.len()), (&[3][..], lines().len() - 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
