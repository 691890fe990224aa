//! What both versions say of events, in the same words.

use crate::error::Result;

use super::Content;
use super::input::Input;

pub(super) fn headers(input: &mut Input<'_>, content: &mut Content) -> Result<()> {
    input.mark("header_page")?;
    let size = input.u64()?;
    content.header_page = Some(input.text_of(size)?);
    input.mark("header_event")?;
    let size = input.u64()?;
    input.part(size).map(drop)
}

/// Events that the tracers themselves write, such as `print` and `kernel_stack`.
pub(super) fn internal(input: &mut Input<'_>, content: &mut Content) -> Result<()> {
    let count = input.u32()?;
    formats(input, count, content)
}

pub(super) fn systems(input: &mut Input<'_>, content: &mut Content) -> Result<()> {
    for _ in 0..input.u32()? {
        input.text()?;
        let count = input.u32()?;
        formats(input, count, content)?;
    }
    Ok(())
}

/// The number of an event has 16 bits.
const MOST_EVENTS: usize = 1 << 16;

fn formats(input: &mut Input<'_>, count: u32, content: &mut Content) -> Result<()> {
    for _ in 0..count {
        let size = input.u64()?;
        if content.formats.len() == MOST_EVENTS {
            return Err(input.wrong("more events than any kernel has"));
        }
        content.formats.push(input.text_of(size)?);
    }
    Ok(())
}

pub(super) fn tasks(input: &mut Input<'_>, content: &mut Content) -> Result<()> {
    let size = input.u64()?;
    content.tasks.add(&input.text_of(size)?);
    Ok(())
}

/// The clock in use stands in brackets where all are listed: `local global [mono]`.
pub(super) fn clock(text: &str) -> Option<String> {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    let name = chosen.unwrap_or(text).trim();
    (!name.is_empty()).then(|| name.to_owned())
}
