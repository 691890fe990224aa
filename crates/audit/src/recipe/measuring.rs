//! Arguments of tools that measure and trace: cyclictest, rtla, trace-cmd, stress-ng.

use super::script::value_of;

/// cyclictest's -S is -a and -t for all CPUs.
pub fn affinity_of_smp(arguments: &[&str]) -> Option<String> {
    let letters = |argument: &&str| {
        let rest = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        rest.chars().take_while(char::is_ascii_alphabetic).collect::<String>()
    };
    let is_smp = arguments.iter().any(|argument| *argument == "--smp" || letters(argument).contains('S'));
    let given = value_of(arguments, &["-a", "--affinity"])
        .or_else(|| arguments.iter().find_map(|argument| argument.strip_prefix("-a")));
    if given.is_some_and(|value| value.starts_with("0x")) {
        return Some("-a takes numbers of CPUs, never a mask".to_owned());
    }
    let is_list = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let apart = value_of(arguments, &["-a", "--affinity"]).is_some_and(is_list);
    let joined = arguments.iter().any(|argument| argument.strip_prefix("-a").is_some_and(is_list));
    (is_smp && (apart || joined)).then(|| {
        "-S measures on all CPUs and passes over the list of -a: -t and -a without -S take it".to_owned()
    })
}

/// `-f` filters the event before it (trace-cmd-record(1)).
pub fn filter_before_event(arguments: &[&str]) -> Option<String> {
    let filter = arguments.iter().position(|word| *word == "-f")?;
    let event = arguments.iter().position(|word| word.starts_with("-e"));
    let is_recording =
        matches!(arguments.first(), Some(&("record" | "start" | "stream" | "profile" | "set")));
    (is_recording && event.is_none_or(|event| event > filter))
        .then(|| "-f filters the event before it: it stands behind an -e".to_owned())
}

/// rtla(1): `-P f:95`, `-P d:1ms:10ms`.
pub fn tracer_policy(arguments: &[&str]) -> Option<String> {
    let text = value_of(arguments, &["-P", "--priority"])?;
    let parts: Vec<&str> = text.split(':').collect();
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let fine = match parts.as_slice() {
        ["o" | "O" | "f" | "F" | "r" | "R", priority] => is_number(priority),
        ["d" | "D", runtime, period] => {
            [runtime, period].iter().all(|time| time.starts_with(|c: char| c.is_ascii_digit()))
        }
        _ => text.contains(['$', '<', '{']),
    };
    (!fine).then(|| format!("-P takes o:PRIORITY, r:PRIORITY, f:PRIORITY or d:RUNTIME:PERIOD, not `{text}`"))
}

/// Options that only one of the two views of rtla's tracers has (rtla-timerlat-top(1), rtla-timerlat-hist(1)).
pub fn of_other_view(arguments: &[&str]) -> Option<String> {
    const HIST: [&str; 9] = [
        "-b",
        "--bucket-size",
        "-E",
        "--entries",
        "--no-header",
        "--with-zeros",
        "--no-index",
        "--no-summary",
        "--no-irq",
    ];
    const TOP: [&str; 2] = ["-q", "--quiet"];
    let (_, rest) = arguments.split_first()?;
    let (view, options) = match rest.first() {
        Some(&"hist") => ("hist", TOP.as_slice()),
        Some(&"top") => ("top", HIST.as_slice()),
        Some(word) if word.starts_with('-') => ("top", HIST.as_slice()),
        _ => return None,
    };
    let name = |argument: &&&str| options.contains(&argument.split('=').next().unwrap_or(argument));
    let found = rest.iter().find(name)?.split('=').next()?;
    let other = if view == "top" { "hist" } else { "top" };
    Some(format!("{view} has no {found}, which is {other}'s"))
}

/// `10 minutes`: the tool reads 10, and takes the next word for an operand.
pub fn unit_apart(arguments: &[&str]) -> Option<String> {
    const UNITS: [&str; 11] =
        ["s", "m", "h", "sec", "seconds", "min", "minutes", "hour", "hours", "ms", "us"];
    let pair = arguments.windows(2).find(|pair| {
        pair[0].bytes().all(|byte| byte.is_ascii_digit()) && !pair[0].is_empty() && UNITS.contains(&pair[1])
    })?;
    Some(format!("{} {} are two words: the unit is not read", pair[0], pair[1]))
}
