//! The wires of a GPIO latency test: a pulse that the monitor sends and an acknowledge that it gets back.

use super::super::{Remark, RemarkId};
use crate::Severity;

/// One wire: a pin and the signal that the text gives it, at both ends.
struct Wire<'a> {
    line: usize,
    excerpt: &'a str,
    ends: [(u32, &'a str); 2],
}

/// Wires whose ends are given different signals, and commands that name other pins.
pub fn remarks(text: &str) -> Vec<Remark> {
    let wires: Vec<Wire> =
        text.lines().enumerate().filter_map(|(index, line)| wire(index + 1, line)).collect();
    let mut remarks: Vec<Remark> = wires.iter().filter(|wire| wire.ends[0].1 != wire.ends[1].1).map(|wire| {
        let [(near, sent), (far, received)] = wire.ends;
        let message = format!("calls the signal of one wire {sent} at pin {near} and {received} at pin {far}");
        Remark::new(wire.line, RemarkId::Contradiction, Severity::Warning, excerpt(wire), message).instead("one name for both ends: the pulse goes from the monitor to the responder's input (-I), the acknowledge back from its output (-O)")
    }).collect();
    remarks.extend(commands(text, &wires));
    remarks
}

/// `latmus -I chip,PIN`: the pulse must come in at that pin, whatever the wire's far end is called.
fn commands(text: &str, wires: &[Wire]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| line.contains("latmus ")) {
        for (option, signal) in [("-I", "pulse"), ("-O", "ack")] {
            let Some(pin) = pin_of(line, option) else { continue };
            let labelled = wires.iter().find(|wire| wire.ends[1].0 == pin).map(|wire| wire.ends[1].1);
            if let Some(other) = labelled.filter(|labelled| *labelled != signal) {
                let message =
                    format!("uses pin {pin} for the {signal} signal, which the wiring calls {other}");
                remarks.push(Remark::new(
                    index + 1,
                    RemarkId::Contradiction,
                    Severity::Warning,
                    format!("latmus {option} …,{pin}"),
                    message,
                ));
            }
        }
    }
    remarks
}

fn pin_of(line: &str, option: &str) -> Option<u32> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == option)?;
    words.next()?.rsplit(',').next()?.parse().ok()
}

/// `GPIO24 on the A (pulse signal) should be wired to GPIO23 on the B (ack signal, ...)`.
fn wire(line: usize, text: &str) -> Option<Wire<'_>> {
    let at = text.find("wired to").or_else(|| text.find("connected to"))?;
    let end = |text| Some((pin(text)?, signal(text)?));
    Some(Wire { line, excerpt: text, ends: [end(&text[..at])?, end(&text[at..])?] })
}

fn pin(text: &str) -> Option<u32> {
    let digits = &text[text.find("GPIO")? + 4..];
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

fn signal(text: &str) -> Option<&'static str> {
    ["pulse", "ack"].into_iter().find(|name| text.contains(&format!("({name} signal")))
}

fn excerpt(wire: &Wire) -> String {
    wire.excerpt.trim().chars().take(60).collect()
}
