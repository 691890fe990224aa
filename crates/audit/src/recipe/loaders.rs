//! Lines of boot loaders' files whose form keeps their words from the kernel.

use super::nearest::nearest_of;
use super::{Remark, RemarkId};

/// Variables of /etc/default/grub (GRUB's manual).
const GRUB: [&str; 14] = [
    "GRUB_CMDLINE_LINUX",
    "GRUB_CMDLINE_LINUX_DEFAULT",
    "GRUB_CMDLINE_LINUX_RECOVERY",
    "GRUB_CMDLINE_XEN",
    "GRUB_CMDLINE_XEN_DEFAULT",
    "GRUB_CMDLINE_LINUX_XEN_REPLACE",
    "GRUB_CMDLINE_LINUX_XEN_REPLACE_DEFAULT",
    "GRUB_DEFAULT",
    "GRUB_TIMEOUT",
    "GRUB_TIMEOUT_STYLE",
    "GRUB_DISTRIBUTOR",
    "GRUB_DISABLE_SUBMENU",
    "GRUB_TERMINAL",
    "GRUB_DISABLE_RECOVERY",
];

/// What U-Boot prints before what one types.
const U_BOOT_PROMPTS: [&str; 5] = ["u-boot=> ", "U-Boot=> ", "U-Boot> ", "u-boot> ", "=> "];

/// A line as it is typed at U-Boot's prompt, or as it is.
pub fn without_prompt(line: &str) -> &str {
    let line = line.trim();
    U_BOOT_PROMPTS.iter().find_map(|prompt| line.strip_prefix(prompt)).unwrap_or(line)
}

/// What is wrong with the lines.
pub fn remarks(text: &str) -> Vec<Remark> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let single = lines.filter_map(|(number, line)| grub(number, line).or_else(|| u_boot(number, line)));
    single.chain(appended_twice(text)).chain(set_twice(text)).chain(outside_append(text)).collect()
}

/// bootargs is set by hand, and bootcmd runs a variable that sets it anew at each start.
pub fn set_again(text: &str) -> Option<Remark> {
    let lines: Vec<&str> = text.lines().map(without_prompt).collect();
    let setters: Vec<&str> =
        lines.iter().filter_map(|line| Some(line.split_once("=setenv bootargs ")?.0)).collect();
    let runs = |name: &&&str| {
        lines.iter().any(|line| line.starts_with("bootcmd=") && line.contains(&format!("run {name}")))
    };
    let name = setters.iter().find(runs)?;
    let at = lines.iter().position(|line| line.starts_with("setenv bootargs "))?;
    let message = format!("is set anew at each start: bootcmd runs {name}, which sets bootargs");
    Some(
        Remark::error(at + 1, RemarkId::NoEffect, lines[at], message)
            .instead(format!("setenv {name} 'setenv bootargs ...'")),
    )
}

/// Of several APPEND lines below one LABEL of extlinux.conf the last counts (syslinux, U-Boot's pxe_utils.c).
fn appended_twice(text: &str) -> Option<Remark> {
    let mut before = None;
    for (index, line) in text.lines().enumerate() {
        match line.split_whitespace().next().map(str::to_ascii_lowercase).as_deref() {
            Some("label") => before = Some(false),
            Some("append") if before == Some(true) => {
                let message = "replaces the line above: a label has one APPEND, the last counts";
                return Some(Remark::error(index + 1, RemarkId::Duplicate, line, message));
            }
            Some("append") => before = before.map(|_| true),
            _ => {}
        }
    }
    None
}

/// A word for the kernel on a line of its own below a LABEL of extlinux.conf, whose lines begin with keywords.
fn outside_append(text: &str) -> Option<Remark> {
    let mut labelled = false;
    for (index, line) in text.lines().enumerate() {
        let first = line.split_whitespace().next().unwrap_or_default();
        labelled |= first.eq_ignore_ascii_case("label");
        let name = first.split('=').next().unwrap_or_default();
        if labelled && first.contains('=') && machine::grammar::parameter(name).is_some() {
            let message = "is no keyword of extlinux.conf: words for the kernel stand behind APPEND";
            return Some(
                Remark::error(index + 1, RemarkId::NoEffect, line, message).instead("at the end of APPEND"),
            );
        }
    }
    None
}

/// `setenv bootargs A` and then `setenv bootargs B`, without `${bootargs}` in B, and nothing between that uses A.
fn set_twice(text: &str) -> Option<Remark> {
    let mut set = false;
    for (index, line) in text.lines().enumerate() {
        let bare = without_prompt(line).trim_start_matches("sudo ");
        let mut words = bare.split_whitespace();
        let is_setter = matches!(words.next(), Some("setenv" | "fw_setenv"));
        if is_setter && words.next() == Some("bootargs") {
            let keeps = bare.contains("{bootargs}") || bare.contains("$bootargs");
            if set && !keeps && words.next().is_some() {
                let message = "replaces what was set above: only these words reach the kernel";
                return Some(
                    Remark::error(index + 1, RemarkId::Duplicate, line, message)
                        .instead("setenv bootargs \"${bootargs} ...\""),
                );
            }
            set = true;
        } else if !bare.is_empty() && !bare.starts_with('#') {
            set = false;
        }
    }
    None
}

/// The file is a shell script.
fn grub(number: usize, line: &str) -> Option<Remark> {
    let rest = line.strip_prefix("export ").unwrap_or(line);
    let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_')?;
    let (name, after) = rest.split_at(end);
    if !name.starts_with("GRUB_") || !after.trim_start().starts_with(['=', '+']) {
        return None;
    }
    if !GRUB.contains(&name) {
        let meant = nearest_of(name, GRUB.into_iter())?;
        return Some(
            Remark::error(
                number,
                RemarkId::Misspelt,
                line,
                format!("GRUB reads no {name}: {meant} is meant"),
            )
            .instead(meant),
        );
    }
    if after.starts_with([' ', '\t']) || after.starts_with("= ") {
        let message = "the file is a shell script, which has no blanks around =";
        return Some(Remark::error(number, RemarkId::Malformed, line, message));
    }
    let value = after.trim_start_matches('+').strip_prefix('=')?;
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    match quote {
        Some(quote) if line.ends_with('\\') || closes(value, quote) => None,
        Some(_) => Some(Remark::error(number, RemarkId::Malformed, line, "the quote is never closed")),
        None if value.split('#').next()?.trim().contains(' ') && value.is_ascii() => {
            let message = "without quotes the shell ends the value at the first blank";
            Some(
                Remark::error(number, RemarkId::Malformed, line, message)
                    .instead(format!("{name}=\"{value}\"")),
            )
        }
        None => None,
    }
}

/// Whether a quoted value ends on its line.
fn closes(value: &str, quote: char) -> bool {
    let mut escaped = false;
    let mut quotes = 0;
    for c in value.chars() {
        quotes += usize::from(c == quote && !escaped);
        escaped = c == '\\' && !escaped;
    }
    quotes % 2 == 0
}

/// `setenv NAME VALUE`, and the kernel gets bootargs.
fn u_boot(number: usize, line: &str) -> Option<Remark> {
    let line = without_prompt(line).trim_start_matches("sudo ");
    let rest = line.strip_prefix("setenv ").or_else(|| line.strip_prefix("fw_setenv "))?;
    let name = rest.split_whitespace().next()?;
    if let Some((name, _)) = name.split_once('=') {
        let message = format!("setenv has no =: this sets a variable called `{name}=...`");
        return Some(
            Remark::error(number, RemarkId::Malformed, line, message).instead(format!("setenv {name} ...")),
        );
    }
    let is_near = name != "bootargs" && nearest_of(name, ["bootargs"].into_iter()).is_some();
    is_near.then(|| {
        Remark::error(number, RemarkId::Misspelt, line, format!("the kernel gets bootargs, not {name}"))
            .instead("bootargs")
    })
}

#[cfg(test)]
mod tests {
    use super::set_again;

    #[test]
    fn bootargs_that_a_variable_sets_anew_are_lost() {
        let shown = "bootcmd=run args; booti ${a}\nargs=setenv bootargs root=/dev/x\n";
        assert!(set_again(&format!("{shown}=> setenv bootargs root=/dev/x isolcpus=3\n")).is_some());
        assert!(set_again(&format!("{shown}=> setenv args 'setenv bootargs isolcpus=3'\n")).is_none());
        assert!(set_again("=> setenv bootargs root=/dev/x isolcpus=3\n").is_none());
    }
}
