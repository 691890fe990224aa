//! Quantities that a sentence states: `64 MiB`, `a whole day`, `cores 2 and 3`, `nice -19`, `a 64-frame buffer`.

use units::{CpuId, CpuList};

/// Words and numbers in small letters, without the signs around them; `300us` and `64-frame` are two.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut words = Vec::new();
    for word in lower.split_whitespace() {
        let word = word.trim_matches(|c: char| "(),.:;\"`'!?".contains(c)).trim_end_matches("'s");
        let digits = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let (number, rest) = word.split_at(word.len() - digits.len());
        let unit = rest.trim_start_matches('-');
        match number.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || ",/x".contains(c)) {
            false if !rest.is_empty() && unit.starts_with(|c: char| c.is_alphabetic() || c == '%') => {
                words.extend([number.to_owned(), unit.to_owned()]);
            }
            _ if word.is_empty() => {}
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Nanoseconds in a unit as people write it.
fn unit_of_time(word: &str) -> Option<u64> {
    Some(match word {
        "ns" | "nanosecond" | "nanoseconds" | "nsec" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" | "microsecond" | "microseconds" | "usec" | "usecs" => 1_000,
        "ms" | "millisecond" | "milliseconds" | "msec" | "msecs" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "min" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hour" | "hours" => 3_600_000_000_000,
        "day" | "days" => 86_400_000_000_000,
        _ => return None,
    })
}

/// Words with which one of a unit is meant.
const ONE: [&str; 8] = ["every", "each", "a", "an", "one", "per", "whole", "full"];

/// The times that a text states, in nanoseconds: `300 us`, `300, 300 and 400 microseconds`, `every millisecond`, `1 kHz`.
pub fn times(text: &str) -> Vec<u64> {
    let words = words(text);
    let mut found = Vec::new();
    let mut numbers: Vec<f64> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| words[before].as_str());
        match (word.parse::<f64>().ok(), unit_of_time(word), word.as_str()) {
            (Some(number), ..) => numbers.push(number),
            (None, Some(length), _) => {
                let single = ONE.contains(&before).then_some(1.0);
                let all = numbers.drain(..).chain(single);
                found.extend(all.map(|number| (number * length as f64).round() as u64));
            }
            (None, None, "hz" | "khz") => {
                let scale = if word == "khz" { 1e6 } else { 1e9 };
                let positive = numbers.drain(..).filter(|number| *number > 0.0);
                found.extend(positive.map(|number| (scale / number).round() as u64));
            }
            (None, None, "and" | "or" | "to") => {}
            _ => numbers.clear(),
        }
    }
    found
}

/// The times that a text states for a period: `every 500 us`, `a cycle of 2 ms`.
pub fn periods(text: &str) -> Vec<u64> {
    const BEFORE: [&str; 6] =
        ["every ", "each ", "period of ", "interval of ", "cycle of ", "cycle time of "];
    let lower = text.to_lowercase();
    let of = |sign: &&str| {
        let (_, rest) = lower.split_once(*sign)?;
        let upto = rest.split([',', ';', '.', ':', '(']).next()?;
        let words: Vec<&str> = upto.split_whitespace().take(2).collect();
        times(&format!("every {}", words.join(" "))).first().copied()
    };
    BEFORE.iter().filter_map(of).take(1).collect()
}

/// The sizes that a text states, in bytes: `64 MiB`, `4 gigabytes`; those of powers of 10 are read as powers of 2, as their writers
/// mean them.
pub fn bytes(text: &str) -> Vec<u64> {
    let words = words(text);
    let unit = |word: &str| {
        Some(match word {
            "b" | "byte" | "bytes" => 1,
            "k" | "kb" | "kib" | "kilobyte" | "kilobytes" | "kbytes" => 1 << 10,
            "mb" | "mib" | "megabyte" | "megabytes" | "mbytes" => 1 << 20,
            "gb" | "gib" | "gigabyte" | "gigabytes" | "gbytes" => 1_u64 << 30,
            _ => return None,
        })
    };
    let of = |pair: &[String]| Some((pair[0].parse::<f64>().ok()? * unit(&pair[1])? as f64).round() as u64);
    words.windows(2).filter_map(of).collect()
}

/// How many messages a second a text states, with their names: `16 Sync and 8 Announce messages per second`.
pub fn rates(text: &str) -> Vec<(String, f64)> {
    let words = words(text);
    let is_rate =
        ["per second", "a second", "/s", "each second"].iter().any(|sign| text.to_lowercase().contains(sign));
    let of = |pair: &[String]| Some((pair[1].split('_').next()?.to_owned(), pair[0].parse::<f64>().ok()?));
    words.windows(2).filter(|_| is_rate).filter_map(of).collect()
}

/// Frames or samples that a text states.
pub fn frames(text: &str) -> Vec<u64> {
    let words = words(text);
    let is_unit = |word: &str| ["frame", "frames", "sample", "samples"].contains(&word);
    words.windows(2).filter(|pair| is_unit(&pair[1])).filter_map(|pair| pair[0].parse().ok()).collect()
}

/// Nice values that a text states.
pub fn nice(text: &str) -> Vec<i64> {
    let words = words(text);
    let is_name = |word: &str| ["nice", "niceness", "renice"].contains(&word);
    let is_filler =
        |word: &str| ["level", "value", "of", "to", "values", "levels", "at", "is", "down"].contains(&word);
    let mut found = Vec::new();
    for at in (0..words.len()).filter(|at| is_name(&words[*at])) {
        let number = words[at + 1..].iter().take(4).find(|word| !is_filler(word));
        found.extend(number.and_then(|number| number.replace('\u{2212}', "-").parse::<i64>().ok()));
    }
    found
}

/// Percentages that a text states.
pub fn percents(text: &str) -> Vec<f64> {
    let words = words(text);
    let is_unit = |word: &str| ["%", "percent"].contains(&word);
    words.windows(2).filter(|pair| is_unit(&pair[1])).filter_map(|pair| pair[0].parse().ok()).collect()
}

/// Priorities up to which a text allows: `priorities up to 95`, `rtprio 95`.
pub fn limits(text: &str) -> Vec<i64> {
    let lower = text.to_lowercase();
    let spaced: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let names = ["priority", "priorities", "rtprio", "fifo"];
    let fillers = ["up", "to", "of", "at", "most", "until"];
    let mut found = Vec::new();
    for at in (0..spaced.len()).filter(|at| names.contains(&spaced[*at])) {
        let number = spaced[at + 1..].iter().take(4).find(|word| !fillers.contains(word));
        found.extend(number.and_then(|number| number.parse::<i64>().ok()));
    }
    found
}

/// Numbers behind words for real-time priorities.
pub fn priorities(text: &str) -> Vec<i64> {
    behind(text, &["priority", "prio", "fifo", "rr", "rtprio"])
}

fn behind(text: &str, names: &[&str]) -> Vec<i64> {
    let lower = text.to_lowercase();
    let parts: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    parts.windows(2).filter(|pair| names.contains(&pair[0])).filter_map(|pair| pair[1].parse().ok()).collect()
}

/// The CPUs that each mention in a text names: `CPU 3`, `cores 2 and 3`, `CPUs 4-7`, `core number 2`.
pub fn cpus(text: &str) -> Vec<CpuList> {
    const NAMES: [&str; 9] =
        ["cpu", "cpus", "core", "cores", "processor", "processors", "cpu#", "hyperthread", "hyperthreads"];
    let lower = text.to_lowercase();
    let spaced = lower.replace(',', " , ").replace('#', " ");
    let words: Vec<&str> = spaced
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| "().:;\"`'!?".contains(c)))
        .filter(|word| !word.is_empty())
        .collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        // `cpu3` is a name of its own.
        let glued = ["cpu", "core"].iter().find_map(|name| words[at].strip_prefix(name)?.parse::<u32>().ok());
        at += 1;
        if let Some(cpu) = glued {
            found.push([CpuId(cpu)].into_iter().collect());
            continue;
        }
        if !NAMES.contains(&words[at - 1]) {
            continue;
        }
        at += usize::from(words.get(at).is_some_and(|word| ["number", "no", "nr", "numbers"].contains(word)));
        let (list, after) = list(&words, at);
        // `CPU 3 threads`, `each core (16 CPUs)`: a count.
        let is_count =
            words.get(after).is_some_and(|next| ["cpus", "cores", "threads", "hyperthreads"].contains(next));
        if !list.is_empty() && !is_count {
            found.push(list);
        }
        at = after.max(at);
    }
    found
}

/// `2 and 3`, `4-7`, `0 to 3`, `1 , 2 and 3`: CPUs, and where the words go on.
fn list(words: &[&str], first: usize) -> (CpuList, usize) {
    let mut cpus: Vec<CpuId> = Vec::new();
    let mut at = first;
    let mut open = true;
    while let Some(word) = words.get(at) {
        let range = word.split_once(['-', '\u{2013}']).unwrap_or((word, word));
        match (range.0.parse::<u32>(), range.1.parse::<u32>(), *word) {
            (Ok(from), Ok(to), _) if open && from <= to && to - from < 1024 => {
                cpus.extend((from..=to).map(CpuId));
                open = false;
            }
            (.., "," | "and" | "or" | "&" | "+") if !open => open = true,
            (.., "to" | "through" | "until") if !open => {
                let end = words.get(at + 1).and_then(|word| word.parse::<u32>().ok());
                let (Some(end), Some(last)) = (end, cpus.last().map(|cpu| cpu.0)) else { break };
                if end < last || end - last > 1024 {
                    break;
                }
                cpus.extend((last..=end).map(CpuId));
                at += 1;
            }
            _ => break,
        }
        at += 1;
    }
    (cpus.into_iter().collect(), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_sentences_are_read() {
        for (text, expected) in [
            ("three slots of 300, 300 and 400 microseconds", vec![300_000, 300_000, 400_000]),
            ("servo thread every millisecond", vec![1_000_000]),
            ("2ms cycle (500 Hz)", vec![2_000_000, 2_000_000]),
            ("base thread 25 us, servo thread 1 ms", vec![25_000, 1_000_000]),
            ("run it a whole day", vec![86_400_000_000_000]),
            ("once per millisecond", vec![1_000_000]),
            ("CPU 3 and priority 80", vec![]),
        ] {
            assert_eq!(times(text), expected, "{text}");
        }
    }

    #[test]
    fn cpus_of_sentences_are_read() {
        let of = |text: &str| cpus(text).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(of("pin it to core 3 like this"), ["3"]);
        assert_eq!(of("cores 2 and 3, then CPUs 4-7 or cpu9."), ["2-3", "4-7", "9"]);
        assert_eq!(of("CPUs 0 to 3 and core number 5"), ["0-3", "5"]);
        assert_eq!(of("a core of 16, each core (16 CPUs), four cores"), Vec::<String>::new());
    }

    #[test]
    fn sizes_frames_and_nice_values_are_read() {
        assert_eq!(bytes("lock 64 MiB, not 1GB"), [64 << 20, 1 << 30]);
        assert_eq!(frames("a 64-frame buffer at 48 kHz"), [64]);
        assert_eq!(nice("raise themselves to nice -19, a nice value of 5"), [-19, 5]);
        assert_eq!(priorities("FIFO 80, priority 70"), [80, 70]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC|cores? |[0-9]{1,10}|-| to | and |,| MiB| ms){0,20}") {
            let _ = (times(&text), bytes(&text), frames(&text), nice(&text), cpus(&text), priorities(&text));
        }
    }
}
