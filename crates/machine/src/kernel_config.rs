//! A kernel's configuration, or a fragment of one: a pure function of its text.
//!
//! The grammar is that of `scripts/kconfig/confdata.c` in Linux 6.12: `CONFIG_X=value`, and `# CONFIG_X is not set`
//! with nothing after it. Any other line is no setting there, so it is none here; what looks like a setting and is
//! none is kept as a [`Complaint`].

use std::collections::BTreeMap;
use std::fmt;
use units::{InOrder, KernelVersion};

/// What every symbol is called in the file, and nowhere else here.
const PREFIX: &str = "CONFIG_";

/// What editors of other systems put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// More of a line that is complained of is not kept.
const LONGEST_QUOTE: usize = 120;

/// What a symbol is set to. A symbol that the text does not name at all has none: its dependencies may be missing, or
/// the kernel never heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `y`: built in.
    Yes,
    /// `m`: a module.
    Module,
    /// `n`, or the line that says that it is not set.
    No,
    /// A decimal number.
    Number(i64),
    /// A number that is written with `0x`.
    Hex(u64),
    /// A text, without its quotes.
    Text(String),
}

/// A line that looks like a setting, or should be one, and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Which line, from 1 on.
    pub line: usize,
    /// The line, at most its first 120 characters.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A setting that a later line of the same text overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overridden {
    /// The symbol, without `CONFIG_`.
    pub symbol: String,
    /// Which line, from 1 on, has no effect.
    pub line: usize,
    /// What that line says.
    pub setting: Setting,
}

/// Whose configuration it is, by the line that kconfig writes above it: `# Linux/x86 6.1.176 Kernel Configuration`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kernel's own word for the architecture: `x86`, `arm64`, `powerpc`.
    pub architecture: String,
    /// `6.1.176`.
    pub version: String,
}

/// The settings of a text, with all that is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelConfig {
    settings: BTreeMap<String, Placed>,
    /// What later lines override, in the order of the text.
    pub overridden: Vec<Overridden>,
    /// What is no setting although it looks like one, in the order of the text.
    pub complaints: Vec<Complaint>,
    /// Whose configuration it is, if it says so. A fragment does not.
    pub header: Option<Header>,
    /// Whether a part of a whole configuration is missing, by what kconfig writes at its end.
    pub is_cut: bool,
}

/// A fragment is written as a whole configuration is; it asks for what it names.
pub type Fragment = KernelConfig;

/// Something that a fragment asked for and that the configuration does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The symbol, without `CONFIG_`.
    pub symbol: String,
    /// What the fragment says.
    pub wanted: Setting,
    /// What the configuration says; nothing where it does not name the symbol.
    pub got: Option<Setting>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Placed {
    line: usize,
    setting: Setting,
}

/// What a line is.
enum Line<'a> {
    Setting(&'a str, Setting),
    Header(Header),
    Wrong(&'static str),
    Other,
}

impl KernelConfig {
    /// Reads any text. Of lines for the same symbol the last one wins, as in the kernel.
    pub fn parse(text: &str) -> Self {
        let mut config = Self::default();
        for (index, line) in text.lines().enumerate() {
            config.take(index + 1, line);
        }
        config.overridden.order_by_key(|overridden| overridden.line);
        let lacks_its_end = |header: &Header| !text.ends_with('\n') || lacks_its_end(text, header);
        config.is_cut = config.header.as_ref().is_some_and(lacks_its_end);
        config
    }

    fn take(&mut self, number: usize, line: &str) {
        match read(line.trim_end_matches('\r')) {
            Line::Setting(symbol, setting) => {
                let placed = Placed { line: number, setting };
                if let Some(earlier) = self.settings.insert(symbol.to_owned(), placed) {
                    let Placed { line, setting } = earlier;
                    self.overridden.push(Overridden { symbol: symbol.to_owned(), line, setting });
                }
            }
            Line::Header(header) => self.header = self.header.take().or(Some(header)),
            Line::Wrong(why) => self.complain(number, line, why),
            Line::Other => {}
        }
    }

    fn complain(&mut self, number: usize, line: &str, why: &'static str) {
        let text = line.chars().take(LONGEST_QUOTE).collect();
        self.complaints.push(Complaint { line: number, text, why });
    }

    /// What the symbol is set to, named with or without `CONFIG_`. `None` is not [`Setting::No`]: the text says nothing
    /// about such a symbol.
    pub fn get(&self, symbol: &str) -> Option<&Setting> {
        self.placed(symbol).map(|placed| &placed.setting)
    }

    /// The value as expressions and check-lists compare it: `n` for what is not set or not named, a text without quotes.
    pub fn value_of(&self, symbol: &str) -> String {
        match self.get(symbol) {
            None => "n".to_owned(),
            Some(Setting::Text(text)) => text.clone(),
            Some(setting) => setting.to_string(),
        }
    }

    /// The line that sets the symbol, from 1 on.
    pub fn line(&self, symbol: &str) -> Option<usize> {
        self.placed(symbol).map(|placed| placed.line)
    }

    fn placed(&self, symbol: &str) -> Option<&Placed> {
        self.settings.get(symbol.strip_prefix(PREFIX).unwrap_or(symbol))
    }

    /// All symbols with their settings, in the order of the text. Of alternatives that exclude each other, kconfig takes
    /// the one that it reads last: the order has a meaning.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &Setting)> {
        let mut settings: Vec<_> = self.settings.iter().collect();
        settings.order_by_key(|(_, placed)| placed.line);
        settings.into_iter().map(|(symbol, placed)| (symbol.as_str(), &placed.setting))
    }

    /// How many symbols are named.
    pub fn len(&self) -> usize {
        self.settings.len()
    }

    /// Whether no symbol is named.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }
}

/// Since this version kconfig says where each menu ends.
const SAYS_ENDS: KernelVersion = KernelVersion::new(5, 6);

/// "Kernel hacking" is the last menu of the top Kconfig file since 4.20, "Library routines" was before. Both are in every
/// configuration, so that one in which a heading or the last end is missing was cut off.
fn lacks_its_end(text: &str, header: &Header) -> bool {
    let has = |line: &str| text.contains(&format!("\n{line}"));
    let says_ends =
        has("# end of ") || header.version.parse().is_ok_and(|version: KernelVersion| version >= SAYS_ENDS);
    match says_ends {
        true => !has("# end of Kernel hacking"),
        false => !(has("# Kernel hacking") && has("# Library routines")),
    }
}

/// What `fragment` asks for and `result` does not have, in the fragment's order. A symbol that is to be off is off where
/// it is not named: kconfig leaves out what cannot be chosen.
pub fn dropped(fragment: &Fragment, result: &KernelConfig) -> Vec<Dropped> {
    let missing = |(symbol, wanted): (&str, &Setting)| {
        let got = result.settings.get(symbol).map(|placed| &placed.setting);
        let arrived = got == Some(wanted) || (got.is_none() && *wanted == Setting::No);
        (!arrived).then(|| Dropped { symbol: symbol.to_owned(), wanted: wanted.clone(), got: got.cloned() })
    };
    fragment.settings().filter_map(missing).collect()
}

/// The line that sets `symbol`, as kconfig writes it.
pub fn line_of(symbol: &str, setting: &Setting) -> String {
    match setting {
        Setting::No => format!("# {PREFIX}{symbol} is not set"),
        setting => format!("{PREFIX}{symbol}={setting}"),
    }
}

fn read(line: &str) -> Line<'_> {
    if line.trim().is_empty() {
        return Line::Other;
    }
    match line.strip_prefix('#') {
        Some(comment) => read_comment(comment),
        None => read_setting(line),
    }
}

fn read_setting(line: &str) -> Line<'_> {
    if line.starts_with(BYTE_ORDER_MARK) {
        return Line::Wrong("begins with a byte order mark (U+FEFF), with which kconfig knows no setting");
    }
    let Some(assignment) = line.strip_prefix(PREFIX) else {
        return Line::Wrong("is neither a comment nor begins with CONFIG_");
    };
    let Some((symbol, value)) = assignment.split_once('=') else {
        return Line::Wrong("has no = after the symbol");
    };
    if !is_symbol(symbol) {
        return Line::Wrong("has a symbol of other characters than A-Z, a-z, 0-9 and _");
    }
    match read_value(value) {
        Some(setting) => Line::Setting(symbol, setting),
        None => {
            Line::Wrong("has a value that is neither y, m, n, a number nor a \"text\" in straight quotes")
        }
    }
}

fn read_comment(comment: &str) -> Line<'_> {
    if let Some(header) = read_header(comment) {
        return Line::Header(header);
    }
    if let Some((symbol, "is not set")) = comment
        .strip_prefix(" CONFIG_")
        .and_then(|rest| rest.split_once(' '))
        .filter(|(symbol, _)| is_symbol(symbol))
    {
        return Line::Setting(symbol, Setting::No);
    }
    let meant = comment.trim_start().starts_with(PREFIX) && comment.contains("is not set");
    if meant {
        Line::Wrong("is a comment: only \"# CONFIG_X is not set\" alone on its line unsets")
    } else {
        Line::Other
    }
}

fn read_header(comment: &str) -> Option<Header> {
    let rest = comment.strip_prefix(" Linux/")?.strip_suffix(" Kernel Configuration")?;
    let (architecture, version) = rest.split_once(' ')?;
    Some(Header { architecture: architecture.to_owned(), version: version.to_owned() })
}

fn is_symbol(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn read_value(value: &str) -> Option<Setting> {
    match value {
        "y" => Some(Setting::Yes),
        "m" => Some(Setting::Module),
        "n" => Some(Setting::No),
        _ => read_text(value).or_else(|| read_number(value)),
    }
}

/// Between the quotes a backslash takes the next character as it is.
fn read_text(value: &str) -> Option<Setting> {
    let mut characters = value.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match characters.next()? {
            '"' => return characters.as_str().is_empty().then_some(Setting::Text(text)),
            '\\' => text.push(characters.next()?),
            character => text.push(character),
        }
    }
}

fn read_number(value: &str) -> Option<Setting> {
    if let Some(digits) = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        return u64::from_str_radix(digits, 16).ok().map(Setting::Hex);
    }
    let unsigned = value.strip_prefix('-').unwrap_or(value);
    let digits = unsigned.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| value.parse().ok().map(Setting::Number)).flatten()
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes => f.write_str("y"),
            Self::Module => f.write_str("m"),
            Self::No => f.write_str("n"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Hex(number) => write!(f, "{number:#x}"),
            Self::Text(text) => write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} {}: {}", self.line, self.why, self.text)
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}: asked for {}, ", self.symbol, self.wanted)?;
        match &self.got {
            Some(got) => write!(f, "is {got}"),
            None => f.write_str("is not in the configuration"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEBIAN: &str = "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.1.176 Kernel Configuration\n#\n\
        CONFIG_CC_VERSION_TEXT=\"gcc-12 (Debian 12.2.0-14) \\\"12\\\"\"\nCONFIG_HZ=250\n\
        CONFIG_PHYSICAL_START=0x1000000\nCONFIG_EXT4_FS=m\n# CONFIG_PREEMPT_RT is not set\nCONFIG_NET=y\n";

    #[test]
    fn every_kind_of_setting_is_read() {
        let config = KernelConfig::parse(DEBIAN);
        assert_eq!(
            config.get("CC_VERSION_TEXT"),
            Some(&Setting::Text("gcc-12 (Debian 12.2.0-14) \"12\"".into()))
        );
        assert_eq!(config.get("HZ"), Some(&Setting::Number(250)));
        assert_eq!(config.get("CONFIG_PHYSICAL_START"), Some(&Setting::Hex(0x100_0000)));
        assert_eq!(config.get("EXT4_FS"), Some(&Setting::Module));
        assert_eq!(config.get("PREEMPT_RT"), Some(&Setting::No));
        assert_eq!(config.get("NET"), Some(&Setting::Yes));
        assert_eq!(config.get("NO_SUCH_SYMBOL"), None);
        assert_eq!(config.len(), 6);
        assert_eq!(config.complaints, []);
        let header = config.header.unwrap();
        assert_eq!((header.architecture.as_str(), header.version.as_str()), ("x86", "6.1.176"));
    }

    #[test]
    fn of_two_lines_the_last_wins_and_the_first_is_remembered() {
        let config = KernelConfig::parse("CONFIG_HZ=250\nCONFIG_SMP=y\nCONFIG_HZ=1000\r\n");
        assert_eq!(config.get("HZ"), Some(&Setting::Number(1000)));
        assert_eq!(config.line("HZ"), Some(3));
        let overridden = Overridden { symbol: "HZ".into(), line: 1, setting: Setting::Number(250) };
        assert_eq!(config.overridden, [overridden]);
        let order: Vec<_> = config.settings().map(|(symbol, _)| symbol).collect();
        assert_eq!(order, ["SMP", "HZ"]);
    }

    /// Each is ignored by the kernel's own reader too.
    #[test]
    fn what_only_looks_like_a_setting_is_complained_of() {
        for line in [
            "# CONFIG_HIGHMEM is not set, but you can set CONFIG_HIGHMEM=y",
            "#CONFIG_HIGHMEM is not set",
            " CONFIG_HZ=1000",
            "HZ=1000",
            "CONFIG_HZ",
            "CONFIG_HZ 1000",
            "CONFIG_=y",
            "CONFIG_HZ=",
            "CONFIG_HZ=1000 # fast",
            "CONFIG_HZ=99999999999999999999",
            "CONFIG_CMDLINE=\u{201c}quiet\u{201d}",
            "CONFIG_CMDLINE=\"quiet",
            "CONFIG_CMDLINE=\"quiet\\\"",
            "CONFIG_CMDLINE=\"quiet\" \"splash\"",
            "\0\u{fffd}\u{7f}",
        ] {
            let config = KernelConfig::parse(line);
            assert!(config.is_empty(), "{line}");
            assert_eq!(config.complaints.len(), 1, "{line}");
        }
    }

    #[test]
    fn words_about_symbols_are_comments() {
        let config =
            KernelConfig::parse("# CONFIG_HZ=100 is too slow\n# end of Timers\n#\n   \n# is not set\n");
        assert_eq!(config, KernelConfig::default());
    }

    #[test]
    fn what_did_not_arrive_is_found() {
        let fragment = Fragment::parse(
            "CONFIG_HZ=1000\n# CONFIG_HIGHMEM is not set\n# CONFIG_DEBUG_FS is not set\nCONFIG_RCU_BOOST_PRIO=1\n\
             CONFIG_EXT4_FS=y\nCONFIG_NET=y\n",
        );
        let result =
            KernelConfig::parse("CONFIG_HZ=250\nCONFIG_EXT4_FS=m\nCONFIG_NET=y\nCONFIG_DEBUG_FS=y\n");
        let words: Vec<_> = dropped(&fragment, &result).iter().map(Dropped::to_string).collect();
        assert_eq!(
            words,
            [
                "CONFIG_HZ: asked for 1000, is 250",
                "CONFIG_DEBUG_FS: asked for n, is y",
                "CONFIG_RCU_BOOST_PRIO: asked for 1, is not in the configuration",
                "CONFIG_EXT4_FS: asked for y, is m",
            ]
        );
    }

    /// A prefix too many is another symbol, which no kernel has.
    #[test]
    fn a_doubled_prefix_is_not_taken_for_the_symbol() {
        let fragment = Fragment::parse("CONFIG_CONFIG_HZ=1000\n");
        assert_eq!(dropped(&fragment, &KernelConfig::parse("CONFIG_HZ=1000\n")).len(), 1);
        assert_eq!(dropped(&fragment, &fragment), []);
    }

    fn setting() -> impl Strategy<Value = Setting> {
        prop_oneof![
            Just(Setting::Yes),
            Just(Setting::Module),
            Just(Setting::No),
            any::<i64>().prop_map(Setting::Number),
            any::<u64>().prop_map(Setting::Hex),
            "[^\r\n]*".prop_map(Setting::Text),
        ]
    }

    #[test]
    fn a_written_configuration_that_was_cut_off_is_known() {
        let old = "# Linux/x86 5.4.0 Kernel Configuration\nCONFIG_HZ=250\n# Library routines\n# Kernel hacking\nCONFIG_X=y\n";
        let new = "# Linux/x86 6.1.0 Kernel Configuration\n# end of General setup\nCONFIG_HZ=250\n# end of Kernel hacking\n";
        let is_cut = |text: &str| KernelConfig::parse(text).is_cut;
        assert!(!is_cut(old) && is_cut(&old[..old.len() - 2]));
        assert!(!is_cut(new) && !is_cut(&(new.to_owned() + "CONFIG_IO_URING_ZCRX=y\n")));
        assert!(is_cut(new.trim_end_matches("# end of Kernel hacking\n")), "between two lines");
        assert!(
            is_cut("# Linux/x86 6.1.0 Kernel Configuration\nCONFIG_HZ=250\n"),
            "before the first menu's end"
        );
        assert!(
            is_cut("# Linux/x86 5.4.0 Kernel Configuration\nCONFIG_HZ=250\n"),
            "before the last headings"
        );
        assert!(!is_cut("CONFIG_HZ=250"), "a fragment ends as it was written");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(settings in proptest::collection::btree_map("[A-Z0-9_]{1,9}", setting(), 0..20)) {
            let text: String = settings.iter().map(|(symbol, setting)| line_of(symbol, setting) + "\n").collect();
            let config = KernelConfig::parse(&text);
            prop_assert_eq!(&config.complaints, &[]);
            let read: Vec<_> = config.settings().collect();
            let written: Vec<_> = settings.iter().map(|(symbol, setting)| (symbol.as_str(), setting)).collect();
            prop_assert_eq!(read, written);
            prop_assert_eq!(dropped(&config, &config), []);
        }

        #[test]
        fn what_is_read_from_any_text_is_written_as_the_same(
            text in "((?s:.)|\n|\r|CONFIG_|# |=|[ymn\"\\\\]|0x|-|[A-Z0-9]| is not set)*"
        ) {
            let config = KernelConfig::parse(&text);
            prop_assert!(config.complaints.len() <= text.lines().count());
            let written: String =
                config.settings().map(|(symbol, setting)| line_of(symbol, setting) + "\n").collect();
            let read = KernelConfig::parse(&written);
            prop_assert!(read.complaints.is_empty() && read.settings().eq(config.settings()), "{}", written);
            prop_assert_eq!(dropped(&config, &read), []);
        }

        #[test]
        fn a_cut_text_says_nothing_that_the_whole_did_not(cut in 0..DEBIAN.len()) {
            let whole = KernelConfig::parse(DEBIAN);
            let part = KernelConfig::parse(&DEBIAN[..cut]);
            let last = DEBIAN[..cut].lines().count();
            for (symbol, setting) in part.settings().filter(|(symbol, _)| part.line(symbol) != Some(last)) {
                prop_assert_eq!(Some(setting), whole.get(symbol));
            }
        }
    }
}
