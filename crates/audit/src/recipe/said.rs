//! How many CPUs a text says that its machine has: `a quad-core board`, `on our 8-core Xeon without hyper-threading`.

/// Words for small numbers of cores.
const WORDS: [(&str, u32); 12] = [
    ("single", 1),
    ("dual", 2),
    ("two", 2),
    ("quad", 4),
    ("four", 4),
    ("hexa", 6),
    ("six", 6),
    ("octa", 8),
    ("octo", 8),
    ("eight", 8),
    ("twelve", 12),
    ("sixteen", 16),
];

/// Signs of a machine that has more CPUs than cores, or of a text that is about more than one machine.
const DOUBTS: [&str; 7] =
    ["hardware thread", "threads per", "smt", "hyper", " ht ", "socket", "dual-core and"];

/// What a text says that the machine does not have.
const DENIED: [&str; 8] = [
    "no hyper-threading",
    "without hyper-threading",
    "no hyperthreading",
    "without hyperthreading",
    "no smt",
    "without smt",
    "smt off",
    "hyper-threading off",
];

/// `has four cores`, `with 8 CPUs`, of a machine.
fn counted(lower: &str) -> Vec<u32> {
    const NUMBERS: [(&str, u32); 8] = [
        ("two", 2),
        ("four", 4),
        ("six", 6),
        ("eight", 8),
        ("ten", 10),
        ("twelve", 12),
        ("sixteen", 16),
        ("thirty-two", 32),
    ];
    let words: Vec<&str> = lower.split_whitespace().collect();
    let is_unit = |word: &str| ["cores", "cpus"].contains(&word.trim_matches(|c: char| !c.is_alphanumeric()));
    let number = |word: &str| {
        NUMBERS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, number)| *number)
            .or_else(|| word.parse().ok())
    };
    let of = |three: &[&str]| {
        let has = ["has", "have"].contains(&three[0]);
        number(three[1]).filter(|number| has && is_unit(three[2]) && *number > 1)
    };
    words.windows(3).filter_map(of).collect()
}

/// `4 cores and 8 threads`.
fn counts_threads(lower: &str) -> bool {
    let words: Vec<&str> = lower.split_whitespace().collect();
    words.windows(2).any(|pair| pair[0].parse::<u32>().is_ok() && pair[1].starts_with("thread"))
}

/// The number of CPUs, where a text gives one number of cores and has no sign that the kernel counts more.
pub fn processors(text: &str) -> Option<u32> {
    let mut lower = text.to_lowercase();
    for denial in DENIED {
        lower = lower.replace(denial, "");
    }
    if DOUBTS.iter().any(|doubt| lower.contains(doubt)) || counts_threads(&lower) {
        return None;
    }
    let mut found = lower.match_indices("-core").filter_map(|(at, sign)| {
        let ends = lower[at + sign.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '-');
        let before = &lower[..at];
        let word = &before[before.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len()..];
        let named = WORDS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
        named.or_else(|| word.parse().ok()).filter(|number| ends && *number > 1)
    });
    let counted = counted(&lower);
    let mut found = found.by_ref().chain(counted);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::processors;

    #[test]
    fn one_number_of_cores_is_the_machines() {
        assert_eq!(processors("On a 4-core board: isolcpus=3"), Some(4));
        assert_eq!(processors("Our quad-core i.MX8: isolcpus=4"), Some(4));
        assert_eq!(processors("It has four cores and no hyper-threading: isolcpus=4-7"), Some(4));
        for text in [
            "isolcpus=3",
            "\u{e9}-core",
            "An 8-core CPU with hyperthreading",
            "a 4-core and an 8-core machine",
            "multi-core machines",
        ] {
            assert_eq!(processors(text), None, "{text}");
        }
    }
}
