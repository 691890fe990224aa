//! The words that a kernel was booted with (Documentation/admin-guide/kernel-parameters.rst; `next_arg` in
//! lib/cmdline.c and `parse_args` in kernel/params.c of Linux 6.12).

use std::collections::BTreeMap;
use std::ops::Range;

/// A kernel's command line, word by word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// In the order given. What follows `--` is for init and stands in [`CommandLine::for_init`].
    pub words: Vec<Word>,
    /// What the kernel hands to init unseen.
    pub for_init: Vec<Word>,
}

/// One word: `quiet`, `isolcpus=2-3`, `dyndbg="file a.c +p"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What stands before the first `=`.
    pub name: String,
    /// What stands after it, without the quotes around it; nothing for a word without `=`.
    pub value: Option<String>,
}

/// Words of which each counts, not only the last: lists that grow and options that are read one by one.
const EACH_COUNTS: [&str; 27] = [
    "acpi_osi",
    "amd_iommu",
    "cgroup_disable",
    "cgroup_no_v1",
    "clearcpuid",
    "console",
    "crashkernel",
    "dyndbg",
    "earlycon",
    "efi",
    "hugepages",
    "hugepagesz",
    "initrd",
    "intel_iommu",
    "iommu",
    "ip",
    "kprobe_event",
    "mce",
    "memmap",
    "modprobe.blacklist",
    "module_blacklist",
    "pci",
    "printk.devkmsg",
    "trace_event",
    "usbcore.quirks",
    "video",
    "virtio_mmio.device",
];

/// What programs that start first read of the line; they have rules of their own.
const OF_OTHERS: [&str; 4] = ["rd.", "systemd.", "luks.", "plymouth."];

/// Whether each word of that name counts, not only the last.
pub fn each_counts(name: &str) -> bool {
    EACH_COUNTS.iter().any(|each| same_name(each, name)) || is_of_others(name)
}

/// Whether a word is for the first programs rather than the kernel.
fn is_of_others(name: &str) -> bool {
    OF_OTHERS.iter().any(|prefix| name.starts_with(prefix))
}

impl CommandLine {
    /// Reads any text. Quotes keep blanks together; an open quote reaches to the end.
    pub fn parse(text: &str) -> Self {
        let mut line = Self::default();
        let mut after_dashes = false;
        for (_, word) in split(text) {
            match Word::parse(word) {
                word if word.name == "--" && word.value.is_none() && !after_dashes => after_dashes = true,
                word if after_dashes => line.for_init.push(word),
                word => line.words.push(word),
            }
        }
        line
    }

    /// All words with that name, in order. As for the kernel, `-` and `_` are the same in a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Word> + 'a {
        self.words.iter().filter(move |word| same_name(&word.name, name))
    }

    /// The word that counts where it is given more than once: the last.
    pub fn get(&self, name: &str) -> Option<&Word> {
        self.words.iter().rev().find(|word| same_name(&word.name, name))
    }

    /// What is set: the last word's value, the empty text for a bare word; for words of which each counts, as
    /// `console=`, all values with commas between them.
    pub fn value(&self, name: &str) -> Option<String> {
        if each_counts(name) {
            let values: Vec<&str> = self.all(name).map(Word::text).collect();
            return (!values.is_empty()).then(|| values.join(","));
        }
        self.get(name).map(|word| word.text().to_owned())
    }

    /// Words that a later word of the same name overrides with another value.
    pub fn overridden(&self) -> Vec<&Word> {
        let plain = |word: &Word| word.name.replace('-', "_");
        let last: BTreeMap<String, &Word> = self.words.iter().map(|word| (plain(word), word)).collect();
        let loses = |word: &&Word| last.get(&plain(word)).is_some_and(|last| last.value != word.value);
        self.words.iter().filter(|word| !each_counts(&word.name)).filter(loses).collect()
    }
}

impl Word {
    /// The value, empty for a bare word.
    pub fn text(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }

    /// Quotes may stand around the whole word or around its value.
    pub(crate) fn parse(word: &str) -> Self {
        let (word, was_quoted) = match word.strip_prefix('"') {
            Some(inner) => (inner, true),
            None => (word, false),
        };
        let without_end = |text: &str| text.strip_suffix('"').unwrap_or(text).to_owned();
        match word.split_once('=') {
            None if was_quoted => Self { name: without_end(word), value: None },
            None => Self { name: word.to_owned(), value: None },
            Some((name, value)) => {
                let value = match value.strip_prefix('"') {
                    Some(inner) => without_end(inner),
                    None if was_quoted => without_end(value),
                    None => value.to_owned(),
                };
                Self { name: name.to_owned(), value: Some(value) }
            }
        }
    }
}

/// The words, each with the bytes where it stands; those for init too, and the `--` before them.
pub fn words(text: &str) -> impl Iterator<Item = (Range<usize>, Word)> {
    split(text).map(|(at, word)| (at..at + word.len(), Word::parse(word)))
}

/// The words as they stand there, each with the byte at which it begins.
pub(crate) fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(is_blank);
        let at = text.len() - rest.len();
        let (word, after) = split_word(rest);
        rest = after;
        (!word.is_empty()).then_some((at, word))
    })
}

/// Up to the first blank outside quotes, and what follows.
fn split_word(text: &str) -> (&str, &str) {
    let mut is_quoted = false;
    for (index, character) in text.char_indices() {
        match character {
            '"' => is_quoted = !is_quoted,
            _ if is_blank(character) && !is_quoted => return text.split_at(index),
            _ => {}
        }
    }
    (text, "")
}

/// What the kernel takes for a blank.
fn is_blank(character: char) -> bool {
    character.is_ascii_whitespace() || character == '\u{b}' || character == '\0'
}

/// Whether the kernel takes two names for the same.
pub fn same_name(one: &str, other: &str) -> bool {
    let plain = |byte: u8| if byte == b'-' { b'_' } else { byte };
    one.len() == other.len() && one.bytes().map(plain).eq(other.bytes().map(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(name: &str, value: Option<&str>) -> Word {
        Word { name: name.into(), value: value.map(str::to_owned) }
    }

    #[test]
    fn words_quotes_and_what_is_for_init() {
        let line = CommandLine::parse(
            "quiet isolcpus=2-3  dyndbg=\"file a.c +p\" \"acpi_osi=!Windows 2020\" root=UUID=1 -- single a=b\n",
        );
        let expected = [
            word("quiet", None),
            word("isolcpus", Some("2-3")),
            word("dyndbg", Some("file a.c +p")),
            word("acpi_osi", Some("!Windows 2020")),
            word("root", Some("UUID=1")),
        ];
        assert_eq!(line.words, expected);
        assert_eq!(line.for_init, [word("single", None), word("a", Some("b"))]);
        assert_eq!(line.value("single"), None);
        assert_eq!(line.value("quiet"), Some(String::new()));
    }

    #[test]
    fn the_last_counts_except_where_each_does() {
        let line =
            CommandLine::parse("console=tty0 nohz_full=1 console=ttyS0,115200 nohz-full=2 quiet quiet");
        assert_eq!(line.value("console").as_deref(), Some("tty0,ttyS0,115200"));
        assert_eq!(line.value("nohz_full").as_deref(), Some("2"));
        assert_eq!(line.all("nohz_full").count(), 2);
        assert_eq!(line.overridden(), [&word("nohz_full", Some("1"))]);
    }

    /// A quote that does not end at all takes the rest; curly quotes are none.
    #[test]
    fn broken_quotes_are_read_as_the_kernel_reads_them() {
        let line = CommandLine::parse("a=\"b c d=e");
        assert_eq!(line.words, [word("a", Some("b c d=e"))]);
        let line = CommandLine::parse("\u{201c}quiet splash\u{201d}");
        assert_eq!(line.words, [word("\u{201c}quiet", None), word("splash\u{201d}", None)]);
        assert_eq!(CommandLine::parse(" \0\n"), CommandLine::default());
        assert_eq!(CommandLine::parse("\"").words, [word("", None)]);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in "([a-z_-]{0,3}=?\"? ?){0,9}|.{0,60}") {
            let line = CommandLine::parse(&text);
            let _ = line.overridden();
            prop_assert!(line.words.iter().all(|word| line.value(&word.name).is_some()));
        }
    }
}
