//! Kinds of values, and what the kernel's readers take for one.

use units::KernelVersion;

use super::Fault;
use super::cpus::cpu_list;

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Switches on whatever its value is; these values mean something of their own.
    Switch(Vec<Word>),
    /// As kstrtobool reads it: only the beginning counts.
    Bool,
    /// A whole number in this range, decimal, 0x or 0 before it.
    Integer {
        /// The least that is taken.
        least: i64,
        /// The most.
        most: i64,
    },
    /// One of these words.
    Words(Vec<Word>),
    /// Some of these words with commas between them; one that ends in `*` stands for all that begin so.
    List(Vec<Word>),
    /// Begins with one of these words.
    Start(Vec<Word>),
    /// CPUs as bitmap_parselist reads them; whether there may be none.
    Cpus {
        /// Whether a word without a value is taken.
        optional: bool,
    },
    /// Flags, and CPUs behind them.
    FlaggedCpus(Vec<Word>),
    /// CPUs as bitmap_parse reads them: hexadecimal.
    Mask,
    /// A number with K, M, G, T, P or E.
    Size,
    /// Anything.
    Text,
}

/// A word that some versions know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub text: &'static str,
    since: Option<KernelVersion>,
    until: Option<KernelVersion>,
}

impl Word {
    /// `lazy@6.13` since that version, `nobounce@-6.0` up to it; in a word `+` stands for a comma and `&` for a plus.
    fn parse(text: &'static str) -> Self {
        let (word, versions) = text.split_once('@').unwrap_or((text, ""));
        let (since, until) = match versions.strip_prefix('-') {
            Some(until) => (None, until.parse().ok()),
            None => (versions.parse().ok(), None),
        };
        Self { text: word, since, until }
    }

    fn is_known_to(&self, version: Option<KernelVersion>) -> bool {
        version.is_none_or(|version| {
            self.since.is_none_or(|since| version >= since) && self.until.is_none_or(|until| version < until)
        })
    }

    fn shown(&self) -> String {
        self.text.replace('+', ",").replace('&', "+")
    }
}

/// The first version whose sources the tables were not made from.
const FIRST_UNREAD: KernelVersion = KernelVersion::new(6, 13);

/// Values of switches with which one means to switch off.
const OFF: [&str; 8] = ["0", "off", "no", "n", "false", "disable", "disabled", "N"];

impl Kind {
    /// Reads the second column of the tables.
    pub fn parse(text: &'static str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words = || rest.split(',').filter(|word| !word.is_empty()).map(Word::parse).collect();
        Some(match kind {
            "switch" => Self::Switch(words()),
            "bool" => Self::Bool,
            "int" => integer(rest)?,
            "int*" | "text" => Self::Text,
            "words" => Self::Words(words()),
            "list" => Self::List(words()),
            "start" => Self::Start(words()),
            "cpus" => Self::Cpus { optional: false },
            "cpus?" => Self::Cpus { optional: true },
            "flags" => Self::FlaggedCpus(words()),
            "mask" => Self::Mask,
            "size" => Self::Size,
            _ => return None,
        })
    }

    /// What is wrong with a value; nothing where it is taken, or where a reader has to fill it in.
    pub fn fault(&self, value: Option<&str>, version: Option<KernelVersion>) -> Option<Fault> {
        let text = value.unwrap_or_default();
        if is_placeholder(text) || self.is_numeric() && is_capitals(text) {
            return None;
        }
        if self.may_have_grown(text, version) {
            return None;
        }
        match self {
            Self::Switch(_) => self.switch_fault(text),
            Self::Bool => bool_fault(value),
            Self::Integer { least, most } => integer_fault(text, *least, *most),
            Self::Words(words) => {
                let is_one = words.iter().any(|word| word.is_known_to(version) && word.shown() == text);
                (!is_one).then(|| among("takes", words, text, version))
            }
            Self::List(words) => text.split(',').find_map(|part| {
                let fits = |word: &Word| {
                    word.is_known_to(version)
                        && word
                            .text
                            .strip_suffix('*')
                            .map_or(word.text == part, |start| part.starts_with(start))
                };
                (!words.iter().any(fits)).then(|| among("takes", words, part, version))
            }),
            Self::Start(words) => {
                let fits = words.iter().any(|word| word.is_known_to(version) && text.starts_with(word.text));
                (!fits).then(|| among("begins with", words, text, version))
            }
            Self::Cpus { optional } if text.is_empty() => {
                (!optional).then(|| fault("names no CPU".to_owned()))
            }
            Self::Cpus { .. } => list_fault(text, version),
            Self::FlaggedCpus(flags) => flagged_fault(text, flags, version),
            Self::Mask => mask_fault(text),
            Self::Size => size_fault(text),
            Self::Text => None,
        }
    }

    /// Whether a word that the table lacks may be one of a kernel later than the tables: what is not known of it is no fault.
    fn may_have_grown(&self, text: &str, version: Option<KernelVersion>) -> bool {
        let (Self::Words(words) | Self::List(words) | Self::Start(words)) = self else { return false };
        let is_of_table = |part: &str| {
            words.iter().any(|word| word.shown().eq_ignore_ascii_case(part) || word.text == part)
        };
        let parts: Vec<&str> =
            if matches!(self, Self::List(_)) { text.split(',').collect() } else { vec![text] };
        let is_later = version.is_some_and(|version| version >= FIRST_UNREAD);
        is_later && !text.is_empty() && !parts.into_iter().all(is_of_table)
    }

    /// Whether its values are numbers, so that a name in capitals stands for one.
    fn is_numeric(&self) -> bool {
        matches!(
            self,
            Self::Cpus { .. } | Self::FlaggedCpus(_) | Self::Mask | Self::Integer { .. } | Self::Size
        )
    }

    fn switch_fault(&self, text: &str) -> Option<Fault> {
        let Self::Switch(words) = self else { return None };
        let is_own = words.iter().any(|word| word.text == text);
        (!is_own && OFF.contains(&text)).then(|| Fault {
            message: format!("switches it on: the kernel does not look at the value `{text}`"),
            instead: None,
        })
    }
}

fn fault(message: String) -> Fault {
    Fault { message, instead: None }
}

/// `<list>`, `$CPUS`, `${cpus}`, `{{ cpus }}`, `%CPUS%`, `...`: a reader or a program fills it in.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let is_percent = text.starts_with('%') || text.matches('%').count() > 1;
    is_percent || text.contains(['<', '$', '{', '\u{2026}', '`']) || text.contains("...")
}

/// `CPUS`, `YOUR_LIST`, where numbers are wanted.
fn is_capitals(text: &str) -> bool {
    text.len() > 1 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

fn among(verb: &str, words: &[Word], text: &str, version: Option<KernelVersion>) -> Fault {
    let known: Vec<String> = words.iter().filter(|word| word.is_known_to(version)).map(Word::shown).collect();
    let newer = words.iter().find(|word| word.shown() == text).and_then(|word| word.since);
    let message = match newer {
        Some(since) => format!("takes `{text}` only since {since}"),
        None if text.is_empty() => format!("{verb} {}", known.join(", ")),
        None => format!("{verb} {}, not `{text}`", known.join(", ")),
    };
    let meant = known.iter().find(|word| word.eq_ignore_ascii_case(text)).cloned();
    Fault { message, instead: meant }
}

/// kstrtobool: y, n, t, f, 0, 1, on, off by their beginnings (lib/kstrtox.c, the same in 6.1 and 6.12).
fn bool_fault(value: Option<&str>) -> Option<Fault> {
    let text = value?;
    let mut letters = text.chars().map(|c| c.to_ascii_lowercase());
    let taken = match letters.next() {
        Some('y' | 'n' | 't' | 'f' | '0' | '1') => true,
        Some('o') => matches!(letters.next(), Some('n' | 'f')),
        _ => false,
    };
    if !taken {
        return Some(fault(format!("takes y, n, 0, 1, on, off, not `{text}`")));
    }
    let lower = text.to_ascii_lowercase();
    let is_another_word = match lower.as_bytes() {
        [b'f', _, ..] => lower != "false",
        [b't', _, ..] => lower != "true",
        [b'n', _, ..] => !matches!(lower.as_str(), "no" | "none" | "never"),
        _ => false,
    };
    let meaning = if lower.starts_with('t') { "on" } else { "off" };
    is_another_word.then(|| {
        fault(format!("is read by its first letter: `{text}` means {meaning}, as y, n, 0, 1, on, off do"))
    })
}

fn integer(range: &str) -> Option<Kind> {
    let (least, most) = range.split_once("..").unwrap_or(("", ""));
    let bound = |text: &str, open: i64| if text.is_empty() { Some(open) } else { text.parse().ok() };
    Some(Kind::Integer { least: bound(least, i64::MIN)?, most: bound(most, i64::MAX)? })
}

/// As kstrtoint reads it with radix 0: a sign, then 0x, 0 or a decimal number.
pub(super) fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok()?,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    Some(if negative { -value } else { value })
}

fn integer_fault(text: &str, least: i64, most: i64) -> Option<Fault> {
    let range = match (least, most) {
        (i64::MIN, i64::MAX) => String::new(),
        (least, i64::MAX) => format!(" of at least {least}"),
        (i64::MIN, most) => format!(" of at most {most}"),
        (least, most) => format!(" from {least} to {most}"),
    };
    match number(text) {
        Some(number) if (least..=most).contains(&number) => None,
        _ if text.is_empty() => Some(fault(format!("takes a number{range}"))),
        _ => Some(fault(format!("takes a number{range}, not `{text}`"))),
    }
}

fn list_fault(text: &str, version: Option<KernelVersion>) -> Option<Fault> {
    cpu_list(text, None, version).err().map(|error| fault(error.to_string()))
}

/// isolcpus: flags of letters and `_`, each with a comma, and CPUs behind them. One unknown flag of such characters is skipped.
fn flagged_fault(text: &str, flags: &[Word], version: Option<KernelVersion>) -> Option<Fault> {
    let mut rest = text;
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) && rest != "N" && !rest.starts_with("N-") {
        let (flag, after) = rest.split_once(',').unwrap_or((rest, ""));
        if flag.eq_ignore_ascii_case("all") && after.is_empty() {
            return Some(fault("is taken for a flag, which the kernel skips, and no CPU is left".to_owned()));
        }
        if !flags.iter().any(|known| known.text == flag) {
            let names: Vec<&str> = flags.iter().map(|flag| flag.text).collect();
            let names = names.join(", ");
            return Some(fault(format!("has the flags {names} before its CPUs, not `{flag}`")));
        }
        rest = after;
    }
    if rest.is_empty() {
        return Some(fault("names no CPU".to_owned()));
    }
    let behind = rest.split(',').find(|item| flags.iter().any(|flag| flag.text == *item));
    if let Some(flag) = behind {
        let cpus: Vec<&str> = rest.split(',').filter(|item| *item != flag).collect();
        return Some(Fault {
            message: format!("has its flags before the CPUs: behind them `{flag}` is no CPU"),
            instead: Some(format!("{flag},{}", cpus.join(","))),
        });
    }
    list_fault(rest, version)
}

/// bitmap_parse: groups of up to eight hexadecimal digits; a mask without any CPU is refused by those who set one.
fn mask_fault(text: &str) -> Option<Fault> {
    let groups: Vec<&str> = text.split(',').map(str::trim).filter(|group| !group.is_empty()).collect();
    let is_hexadecimal =
        |group: &&str| group.len() <= 8 && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    if groups.is_empty() || !groups.iter().all(is_hexadecimal) {
        return Some(fault(format!("takes a hexadecimal mask, as 3 for CPUs 0 and 1, not `{text}`")));
    }
    let is_empty = groups.iter().all(|group| group.bytes().all(|byte| byte == b'0'));
    is_empty.then(|| fault("names no CPU".to_owned()))
}

fn size_fault(text: &str) -> Option<Fault> {
    let digits = text.trim_end_matches(|c: char| "kKmMgGtTpPeEbB".contains(c));
    number(digits).is_none().then(|| fault(format!("takes a size, as 16M, not `{text}`")))
}
