//! What may be remembered of a boot loader's files: the lines that say what is booted, each in its place, so that the
//! numbers of lines stay true. Passwords, licences and comments are left out; names of disks and people are crossed out.

use super::{crosses, is_identity, is_private};

/// The beginnings of lines that count, by the file's name or the directory it is in.
const KEPT: [(&str, &[&str]); 9] = [
    ("/grub.cfg", &["menuentry ", "submenu ", "linux", "set default=", "blscfg", "}", "if ", "else", "fi"]),
    ("/grubenv", &["saved_entry=", "next_entry=", "kernelopts=", "tuned_params="]),
    ("/loader.conf", &["default"]),
    ("/loader/entries/", &["title", "version", "sort-key", "linux", "efi", "options"]),
    ("/extlinux.conf", &LABELS),
    ("/syslinux.cfg", &LABELS),
    ("/config.txt", &["cmdline=", "os_prefix=", "force_turbo=", "include ", "["]),
    ("/armbianEnv.txt", &VARIABLES),
    ("/uEnv.txt", &VARIABLES),
];

/// What decides which label is booted and where it ends.
const LABELS: [&str; 13] = [
    "default",
    "ontimeout",
    "prompt",
    "ui",
    "label",
    "append",
    "include",
    "text",
    "endtext",
    "menu default",
    "menu separator",
    "menu begin",
    "menu end",
];

const VARIABLES: [&str; 5] = ["bootargs=", "optargs=", "extraargs=", "extrabootargs=", "cmdline="];

/// Files of which every line may count.
const WHOLE: [&str; 3] = ["/etc/default/grub", "/etc/kernel/cmdline", "/boot/"];

fn is_whole(path: &str) -> bool {
    WHOLE.iter().any(|start| path.starts_with(start))
}

fn beginnings(path: &str) -> Option<&'static [&'static str]> {
    KEPT.iter().find(|(file, _)| is_at(path, file)).map(|(_, beginnings)| *beginnings)
}

/// Whether `path` ends in the file, or is below the directory.
fn is_at(path: &str, file: &str) -> bool {
    if file.ends_with('/') { path.contains(file) } else { path.ends_with(file) }
}

/// Whether a boot loader reads the file, or what makes its files.
pub(super) fn are_at(path: &str) -> bool {
    beginnings(path).is_some() || is_whole(path)
}

/// What is kept of such a file.
pub(super) fn kept(path: &str, text: &str) -> String {
    let beginnings = beginnings(path);
    let counts = |line: &str| {
        let line = line.trim_start().to_ascii_lowercase();
        let is_asked = |beginnings: &[&str]| {
            beginnings.iter().any(|start| line.starts_with(&start.to_ascii_lowercase()))
        };
        !line.starts_with('#') && !line.contains("passw") && beginnings.is_none_or(is_asked)
    };
    let keep = |line: &str| match counts(line) {
        true if line.trim_start().starts_with('[') => filter(line),
        true => without_machine_ids(&masked(line)),
        false => "\n".to_owned(),
    };
    text.split_inclusive('\n').map(keep).collect()
}

/// A filter of config.txt: a kind of board stays, a board's serial number and the name of a monitor do not.
fn filter(line: &str) -> String {
    let (start, rest) = line.split_at(line.find('[').map_or(0, |at| at + 1));
    let (inside, end) = rest.split_at(rest.find([']', '\n']).unwrap_or(rest.len()));
    let is_of_one = inside.contains('=') || inside.to_ascii_lowercase().starts_with("0x");
    format!("{start}{}{end}", if is_of_one { crosses(inside) } else { inside.to_owned() })
}

const QUOTES: [char; 2] = ['"', '\''];

/// Whether a character stands between words.
fn is_between(c: char) -> bool {
    c.is_ascii_whitespace() || QUOTES.contains(&c) || c == '>'
}

/// A line in which the words are crossed out that a kernel command line loses, wherever quotes stand.
fn masked(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let mut secret_until = None;
    for part in line.split_inclusive(is_between) {
        let word = part.trim_end_matches(is_between);
        let between = &part[word.len()..];
        match secret_until {
            Some(_) => masked.push_str(&crosses(word)),
            None => masked.push_str(&masked_word(word)),
        }
        masked.push_str(between);
        let quote = between.chars().next().filter(|c| QUOTES.contains(c));
        secret_until = match secret_until {
            None => quote.filter(|_| word.ends_with('=') && is_private(name_of(word), "")),
            Some(end) => Some(end).filter(|_| quote != secret_until),
        };
    }
    masked
}

/// The last name before the `=` at the end: of `GRUB_X=root=` it is `root`.
fn name_of(word: &str) -> &str {
    let word = word.trim_end_matches('=');
    word.rsplit('=').next().unwrap_or(word)
}

/// As a parameter on the kernel command line; what a file's own variable holds begins behind its `=`.
fn masked_word(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_variable(name)) {
        return format!("{name}={}", masked_word(value));
    }
    match word.split_once('=') {
        None if is_identified(word) => crosses(word),
        _ => super::masked_word(word),
    }
}

fn is_variable(name: &str) -> bool {
    let name = name.trim_start_matches("set ");
    let is_own = |known: &&str| name == known.trim_end_matches('=');
    name.starts_with("GRUB_")
        || VARIABLES.iter().any(is_own)
        || ["kernelopts", "tuned_params", "saved_entry", "next_entry", "default"].contains(&name)
}

/// `gnulinux-simple-UUID`.
fn is_identified(word: &str) -> bool {
    const UUID: usize = 36;
    let from_end = word.len().checked_sub(UUID).and_then(|start| word.get(start..));
    is_identity(word) || from_end.is_some_and(is_identity)
}

/// With crosses for each machine id: 32 hexadecimal digits that stand by themselves.
pub fn without_machine_ids(text: &str) -> String {
    const LENGTH: usize = 32;
    let runs = text.split_inclusive(|c: char| !c.is_ascii_hexdigit());
    let of_run = |run: &str| {
        let digits = run.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        if digits.len() == LENGTH { format!("{}{}", crosses(digits), &run[LENGTH..]) } else { run.to_owned() }
    };
    runs.map(of_run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UUID: &str = "01234567-89ab-cdef-0123-456789abcdef";

    #[test]
    fn lines_keep_their_numbers_and_lose_passwords() {
        let text = "password_pbkdf2 root grub.pbkdf2.sha512.10000.AB\nmenuentry 'Linux' --id simple {\n\
                    \tlinux /vmlinuz root=UUID=6a ro quiet isolcpus=2-3\n# a comment\n}\n";
        let expected =
            "\nmenuentry 'Linux' --id simple {\n\tlinux /vmlinuz root=xxxxxxx ro quiet isolcpus=2-3\n\n}\n";
        assert_eq!(kept("/boot/grub/grub.cfg", text), expected);
        let text = "GRUB_CMDLINE_LINUX=\"root=UUID=6a quiet cryptkey='a b' x\"\nGRUB_PASSWORD=me\n";
        let expected = "GRUB_CMDLINE_LINUX=\"root=xxxxxxx quiet cryptkey='x x' x\"\n\n";
        assert_eq!(kept("/etc/default/grub", text), expected);
        assert_eq!(kept("/boot/config.txt", "decode_MPG2=0x1\nos_prefix=a/\n"), "\nos_prefix=a/\n");
        let filters = "[pi4]\nforce_turbo=1\n[0x12345678]\n[EDID=VSC-TD2220]\n[all]\ninclude a.txt\n";
        let expected = "[pi4]\nforce_turbo=1\n[xxxxxxxxxx]\n[xxxxxxxxxxxxxxx]\n[all]\ninclude a.txt\n";
        assert_eq!(
            kept("/boot/firmware/config.txt", filters),
            expected,
            "what is below a filter stays below it"
        );
    }

    #[test]
    fn a_word_is_masked_as_on_the_boot_line() {
        let words = format!("resume=UUID={UUID} x={UUID} a.b=1.2.3.4 nohz_full=1");
        let line = super::super::masked_words(&words);
        assert_eq!(kept("/boot/firmware/cmdline.txt", &words), line);
        assert_eq!(kept("/boot/grub/grubenv", &format!("kernelopts={words}")), format!("kernelopts={line}"));
        let entry = kept("/boot/grub/grub.cfg", &format!("set default=\"gnulinux-advanced-{UUID}>0\""));
        assert!(!entry.contains("0123") && entry.ends_with(">0\""), "{entry}");
    }

    #[test]
    fn machine_ids_are_crossed_out() {
        let id = "0123456789abcdef0123456789abcdef";
        let crosses = "x".repeat(32);
        assert_eq!(without_machine_ids(&format!("/a/{id}-6.1.conf")), format!("/a/{crosses}-6.1.conf"));
        let longer = format!("{id}0 {}", &id[1..]);
        assert_eq!(without_machine_ids(&longer), longer);
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_lines(text in "([a-zA-Z_=\"'> ]{0,9}[ \n]?){0,9}|.{0,60}") {
            for path in ["/etc/default/grub", "/boot/grub/grub.cfg", "/boot/loader/entries/a.conf"] {
                let once = kept(path, &text);
                prop_assert_eq!(once.lines().count(), text.lines().count());
                prop_assert_eq!(kept(path, &once), once);
            }
        }
    }
}
