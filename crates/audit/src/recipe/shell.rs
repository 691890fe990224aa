//! Commands, writes to kernel files, sysctls, and the wires of a GPIO test.

mod wires;

use machine::grammar::files;
use units::{CpuId, CpuList, Nanos};

use super::known::KNOWN;
use super::statements::{Statement, Write};
use super::writes;
use super::{Remark, RemarkId, Target};
use crate::Severity;

/// What is wrong with what is to be typed.
pub fn remarks(text: &str) -> Vec<Remark> {
    let mut remarks = wires::remarks(text);
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        remarks.extend(affinity(number, line));
        remarks.extend(latency_request(number, line));
        remarks.extend(processor_count(number, line));
        remarks.extend(options(number, line));
        remarks.extend(latency_test(number, line));
        remarks.extend(highest_priority(number, line));
    }
    remarks
}

/// What is wrong with a value for a file of the kernel.
pub fn remark(statement: &Statement, target: Target) -> Option<Remark> {
    match statement {
        Statement::Write(write) => writes::remark(write, target).or_else(|| written_setting(write)),
        Statement::Sysctl { line, name, value } => sysctl(statement, target).or_else(|| {
            let (path, shown) = (files::path_of(name), format!("{name}={value}"));
            // The kernel reads a number up to the first blank.
            let number = value.split_once(" #").map(|(number, _)| number.trim());
            let number = number.filter(|number| number.parse::<i64>().is_ok());
            let value = number.unwrap_or(value).to_owned();
            writes::remark(&Write { line: *line, path, value, shown }, target)
        }),
        Statement::Command { line, words } => newer(*line, words, target),
        _ => None,
    }
}

/// A value that no machine wants, written to the file of a setting.
fn written_setting(write: &super::statements::Write) -> Option<Remark> {
    let name = write.path.strip_prefix("/proc/sys/")?.replace('/', ".");
    let is_it = |known: &&super::known::Sysctl| {
        known.name == name
            && known.severity == Some(Severity::Error)
            && known.value.as_deref() == Some(write.value.trim())
    };
    let known = KNOWN.sysctl.iter().find(is_it)?;
    Some(
        Remark::new(write.line, RemarkId::Dangerous, Severity::Error, write.shown.clone(), &*known.text)
            .perhaps_instead(known.instead.as_deref()),
    )
}

/// A word that the program does not have yet in the tree of that kernel.
fn newer(line: usize, words: &[String], target: Target) -> Option<Remark> {
    let version = target.version?;
    let of_program =
        |program: &str| words.first().is_some_and(|word| word.rsplit('/').next() == Some(program));
    KNOWN.newer.iter().filter(|newer| of_program(&newer.program)).find_map(|newer| {
        let since: units::KernelVersion = newer.since.parse().ok()?;
        let word = words.iter().find(|word| newer.words.contains(word) && version < since)?;
        let message = format!("{} has {word} since {since}", newer.program);
        Some(Remark::new(
            line,
            RemarkId::NoSuchOption,
            Severity::Error,
            format!("{} {word}", newer.program),
            message,
        ))
    })
}

/// `echo VALUE > .../smp_affinity`, which takes a mask, and `..._list`, which takes numbers.
fn affinity(number: usize, line: &str) -> Option<Remark> {
    let (before, target) = line.split_once('>')?;
    // A placeholder in angle brackets before the redirection.
    let (before, target) = target
        .split_once("> ")
        .filter(|_| before.ends_with('<') || before.contains("<"))
        .map_or((before.to_owned(), target), |(inside, target)| (format!("{before}>{inside}>"), target));
    let value =
        before.split("echo").nth(1)?.trim().trim_end_matches('>').trim().trim_matches(['"', '\'']).to_owned();
    let path = target.trim_start_matches(['>', ' ']).split_whitespace().next()?;
    let wrong = |message: String, instead: String| {
        Some(
            Remark::new(
                number,
                RemarkId::MaskNotNumber,
                Severity::Error,
                format!("echo {value} > {path}"),
                message,
            )
            .instead(instead),
        )
    };
    if value.contains(['$', '`']) {
        return None;
    }
    if path.ends_with("smp_affinity") {
        let list = format!("echo {value} > {path}_list");
        let is_number = value.chars().all(|c| c.is_ascii_hexdigit() || c == ',');
        if !is_number || value.is_empty() {
            return wrong("the file takes a hexadecimal mask, not a CPU's number or a list".to_owned(), list);
        }
        if value.split(',').skip(1).any(|group| group.len() < 8) {
            return wrong(
                "the file takes a mask: behind a comma stand the eight digits of the next 32 CPUs".to_owned(),
                list,
            );
        }
        if value.split(',').any(|group| group.len() > 8) {
            let message = "a group of a mask has at most eight digits, for 32 CPUs: the kernel refuses it";
            return wrong(message.to_owned(), list);
        }
        if value.chars().all(|c| matches!(c, '0' | ',')) {
            return wrong("the mask names no CPU: the kernel refuses it".to_owned(), list);
        }
        let cpus = mask(&value);
        let message = format!(
            "is a mask: {}",
            cpus.map_or_else(|| "no CPU at all".to_owned(), |cpus| format!("CPU {cpus}"))
        );
        return Some(
            Remark::new(
                number,
                RemarkId::MaskNotNumber,
                Severity::Note,
                format!("echo {value} > {path}"),
                message,
            )
            .instead(format!("{list}, if CPU {value} is meant")),
        );
    }
    let is_mask = value.starts_with("0x");
    if path.ends_with("smp_affinity_list") && is_mask {
        return wrong(
            "the file takes a list of CPUs, not a mask".to_owned(),
            format!("echo {value} > {}", path.trim_end_matches("_list")),
        );
    }
    None
}

/// The CPUs of a hexadecimal mask of at most 64 bits.
fn mask(text: &str) -> Option<CpuList> {
    let bits = u64::from_str_radix(&text.replace(',', ""), 16).ok().filter(|bits| *bits != 0)?;
    Some((0..64).filter(|cpu| bits >> cpu & 1 == 1).map(CpuId).map(|cpu| cpu.0).collect())
}

/// `echo N > /dev/cpu_dma_latency`: the request ends with the file. A shell, or a group of commands, keeps it open.
fn latency_request(number: usize, line: &str) -> Option<Remark> {
    let writes =
        |part: &str| ["echo", "printf"].iter().any(|writer| part.contains(writer)) && latency_file(part);
    let written = line.split([';', '&', '{', '(', '|']).any(writes);
    written.then(|| {
        Remark::new(number, RemarkId::NoEffect, Severity::Error, line.trim(), "the request lasts as long as the file is open: the writer closes it at once (and a text of 3 digits with its newline is read as a binary number)")
            .instead("a process that opens the file, writes and stays, or cpu*/power/pm_qos_resume_latency_us")
    })
}

/// Whether a command's output goes to the file of the request.
fn latency_file(command: &str) -> bool {
    command.split('>').skip(1).any(|target| target.trim_start().starts_with("/dev/cpu_dma_latency"))
}

/// nproc counts: the last CPU's number is one less, and it counts only the CPUs that this process may use.
fn processor_count(number: usize, line: &str) -> Option<Remark> {
    if line.contains("-$(nproc)") || line.contains("-`nproc`") {
        let message = "CPUs are numbered from 0, so that nproc is one too many; it comes out right only where nproc leaves isolated CPUs out of its count";
        let instead = "$(cat /sys/devices/system/cpu/online), less the isolated CPUs";
        return Some(
            Remark::new(number, RemarkId::Assumption, Severity::Warning, "-$(nproc)", message)
                .instead(instead),
        );
    }
    let loops = line.contains("in $(nproc)");
    loops.then(|| {
        Remark::new(
            number,
            RemarkId::Malformed,
            Severity::Error,
            "in $(nproc)",
            "nproc prints one number: this loop sees only that one",
        )
        .instead("in $(seq 0 $(($(nproc) - 1)))")
    })
}

/// Options that a program does not have.
fn options(number: usize, line: &str) -> Vec<Remark> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let has = |program: &str, option: &str| {
        words.windows(2).any(|pair| pair[0].rsplit('/').next() == Some(program) && pair[1] == option)
    };
    let wrong = KNOWN.option.iter().filter(|known| has(&known.program, &known.option));
    wrong
        .map(|known| {
            Remark::new(
                number,
                RemarkId::NoSuchOption,
                Severity::Error,
                format!("{} {}", known.program, known.option),
                &*known.text,
            )
            .instead(&*known.instead)
        })
        .collect()
}

/// How long a run must be to be a worst case's witness at all: what happens every hour must have its chance.
const SHORT: Nanos = Nanos(3600 * 1_000_000_000);

/// Latency tests that are short, or that measure an ordinary thread.
fn latency_test(number: usize, line: &str) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some(at) = words.iter().position(|word| {
        word.rsplit('/').next().is_some_and(|program| program == "cyclictest" || program == "hwlatdetect")
    }) else {
        return remarks;
    };
    let arguments = &words[at + 1..];
    if !arguments.iter().any(|word| word.starts_with('-')) {
        return remarks;
    }
    let duration = arguments
        .iter()
        .find_map(|word| word.strip_prefix("-D").or_else(|| word.strip_prefix("--duration=")));
    if let Some(duration) =
        duration.and_then(|text| text.parse::<Nanos>().ok()).filter(|duration| *duration < SHORT)
    {
        let message = format!(
            "{duration} cannot show what happens every hour (timers of cron, of the network, of RCU stalls, heat): a worst case takes hours to days, under load"
        );
        remarks.push(
            Remark::new(
                number,
                RemarkId::TooShort,
                Severity::Note,
                words[at..].join(" ").chars().take(60).collect::<String>(),
                message,
            )
            .instead("-D 24h under load"),
        );
    }
    let is_cyclictest = words[at].ends_with("cyclictest");
    let real_time = |word: &&str| {
        word.starts_with("--priority")
            || word.starts_with("--policy")
            || (word.starts_with('-') && !word.starts_with("--") && word.contains('p'))
            || word.starts_with(['\u{2013}', '\u{2014}'])
    };
    if is_cyclictest && !arguments.iter().any(real_time) {
        remarks.push(
            Remark::new(
                number,
                RemarkId::NoEffect,
                Severity::Warning,
                words[at..].join(" ").chars().take(60).collect::<String>(),
                "without -p it measures an ordinary thread (SCHED_OTHER)",
            )
            .instead("-p 98"),
        );
    }
    remarks
}

/// `chrt -f -p 99`: the kernel's own stopper threads are there.
fn highest_priority(number: usize, line: &str) -> Option<Remark> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "chrt")?;
    words[at..].contains(&"99").then(|| {
        Remark::new(
            number,
            RemarkId::Assumption,
            Severity::Note,
            words[at..].join(" ").chars().take(60).collect::<String>(),
            "99 is where the kernel's migration and stopper threads are shown; nothing is gained over 98",
        )
        .instead("98")
    })
}

/// A setting that is gone, or a value that harms.
fn sysctl(statement: &Statement, target: Target) -> Option<Remark> {
    let Statement::Sysctl { line, name, value } = statement else { return None };
    let known = KNOWN
        .sysctl
        .iter()
        .find(|known| known.name == *name && known.value.as_ref().is_none_or(|wanted| wanted == value))?;
    let until = known.until.as_ref().and_then(|until| until.parse().ok());
    if until.is_some_and(|until| target.version.is_some_and(|version| version < until)) {
        return None;
    }
    let (id, severity) = if until.is_some() {
        (RemarkId::Gone, Severity::Error)
    } else {
        (RemarkId::Dangerous, known.severity.unwrap_or(Severity::Warning))
    };
    Some(
        Remark::new(*line, id, severity, format!("{name}={value}"), &*known.text)
            .perhaps_instead(known.instead.as_deref()),
    )
}
