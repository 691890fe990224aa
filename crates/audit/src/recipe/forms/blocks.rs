//! Settings in blocks: CPU tuning of libvirt's domains, modules of PipeWire's configuration.

use super::super::nearest::nearest_of;
use super::super::reading::Reading;
use super::super::{Remark, RemarkId, Target};

/// Elements of libvirt's domain format that touch latency.
const ELEMENTS: [&str; 9] = [
    "<cputune",
    "<vcpupin",
    "<emulatorpin",
    "<iothreadpin",
    "<vcpusched",
    "<iothreadsched",
    "<memoryBacking",
    "<vcpu ",
    "<numatune",
];

/// Arguments of PipeWire's module-rt (libpipewire-module-rt(7)).
const MODULE_RT: [&str; 8] = [
    "nice.level",
    "rt.prio",
    "rt.time.soft",
    "rt.time.hard",
    "rlimits.enabled",
    "rtportal.enabled",
    "rtkit.enabled",
    "uclamp.min",
];

pub fn read(text: &str, _: Target) -> Option<Reading> {
    libvirt(text).or_else(|| pipewire(text)).or_else(|| properties(text))
}

/// `default.clock.quantum = 64` in a block of PipeWire's properties.
fn properties(text: &str) -> Option<Reading> {
    let is_one = text.contains("context.properties") || text.contains("stream.properties");
    let settings = text.lines().filter(|line| line.trim_start().starts_with("default.clock.")).count();
    (is_one && settings > 0).then(|| Reading { settings, ..Reading::default() })
}

fn libvirt(text: &str) -> Option<Reading> {
    let first = text.lines().find(|line| !line.trim().is_empty())?;
    let count = ELEMENTS.iter().map(|element| text.matches(element).count()).sum();
    if !first.trim_start().starts_with('<') || count == 0 {
        return None;
    }
    let mut reading = Reading { settings: count, ..Reading::default() };
    for (index, line) in text.lines().enumerate() {
        let Some(scheduler) = attribute(line, "scheduler").filter(|_| line.contains("sched ")) else {
            continue;
        };
        if !matches!(scheduler, "batch" | "idle" | "fifo" | "rr") {
            let message = format!("the scheduler is batch, idle, fifo or rr, not `{scheduler}`");
            reading.remarks.push(Remark::error(index + 1, RemarkId::Malformed, line, message));
        }
        let is_real_time = matches!(scheduler, "fifo" | "rr");
        let priority = attribute(line, "priority").and_then(|priority| priority.parse::<i64>().ok());
        if is_real_time && priority.is_some_and(|priority| !(1..=99).contains(&priority)) {
            let message = "priorities of fifo and rr are 1 to 99: libvirt refuses the domain";
            reading.remarks.push(Remark::error(index + 1, RemarkId::Malformed, line, message));
        }
        if is_real_time && attribute(line, "priority").is_none() {
            reading.remarks.push(Remark::error(
                index + 1,
                RemarkId::Malformed,
                line,
                format!("{scheduler} needs a priority, 1 to 99"),
            ));
        }
    }
    reading.remarks.extend(beyond(text));
    Some(reading)
}

/// CPU tuning of a virtual CPU that the domain does not have.
fn beyond(text: &str) -> Vec<Remark> {
    let count = text.lines().find_map(|line| {
        let (_, rest) = line.split_once("<vcpu ").or_else(|| line.split_once("<vcpu>"))?;
        let inner = if line.contains("<vcpu>") { rest } else { rest.split_once('>')?.1 };
        inner.split('<').next()?.trim().parse::<u32>().ok()
    });
    let of = |(index, line): (usize, &str)| {
        let cpu: u32 = attribute(line, "vcpu").filter(|_| line.contains("<vcpupin"))?.parse().ok()?;
        let message = format!("the domain has no virtual CPU {cpu}: they count from 0");
        (cpu >= count?).then(|| Remark::error(index + 1, RemarkId::Malformed, line, message))
    };
    text.lines().enumerate().filter_map(of).collect()
}

/// The value of an attribute of the element on a line.
fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let at = line.find(&format!("{name}="))?;
    let rest = &line[at + name.len() + 1..];
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(rest[1..].split_once(quote)?.0)
}

fn pipewire(text: &str) -> Option<Reading> {
    let at = text.lines().position(|line| line.contains("libpipewire-module-rt") && line.contains("name"))?;
    let mut reading = Reading::default();
    let inside = text.lines().enumerate().skip(at + 1).skip_while(|(_, line)| !line.contains("args"));
    for (index, line) in inside.skip(1).take_while(|(_, line)| !line.trim_start().starts_with('}')) {
        let Some((key, _)) = line.split_once('=') else { continue };
        let key = key.trim().trim_start_matches('#').trim();
        reading.settings += 1;
        if !MODULE_RT.contains(&key) && !line.trim_start().starts_with('#') {
            let meant =
                if key == "rt.priority" { Some("rt.prio") } else { nearest_of(key, MODULE_RT.into_iter()) };
            let message = match meant {
                Some(meant) => format!("the module has no {key}: {meant} is meant"),
                None => format!("the module has no {key}"),
            };
            reading
                .remarks
                .push(Remark::error(index + 1, RemarkId::Malformed, line, message).perhaps_instead(meant));
        }
    }
    (reading.settings > 0).then_some(reading)
}
