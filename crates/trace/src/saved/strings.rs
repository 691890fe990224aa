//! Version 6: one part after the other, with texts as marks, then options and pages.

use crate::error::Result;

use super::input::Input;
use super::{Buffer, Content, Part, events};
use units::CpuId;

/// Options that are read here; the rest says nothing of events.
const DONE: u16 = 0;
const BUFFER: u16 = 3;
const CLOCK: u16 = 4;

/// Marks of ten bytes, the last of which is NUL.
const OPTIONS: &str = "options  ";
const PAGES: &str = "flyrecord";

pub(super) fn read(input: &mut Input<'_>) -> Result<Content> {
    let mut content = Content::default();
    events::headers(input, &mut content)?;
    events::internal(input, &mut content)?;
    events::systems(input, &mut content)?;
    let size = input.u32()?;
    content.symbols = Some(input.part(size.into())?);
    let size = input.u32()?;
    input.part(size.into())?;
    events::tasks(input, &mut content)?;
    let cpus = input.u32()?;
    let mut others = Vec::new();
    let mut mark = input.text()?;
    if mark == OPTIONS {
        others = options(input, &mut content)?;
        mark = input.text()?;
    }
    if mark != PAGES {
        return Err(input.wrong(format!("`{}` in place of binary pages", mark.escape_default())));
    }
    let top = Buffer { name: String::new(), clock: content.clock.clone(), cpus: parts(input, cpus)? };
    content.add(top, input)?;
    for (offset, name) in others {
        input.at = offset;
        input.mark(PAGES)?;
        let clock = content.clock.clone();
        content.add(Buffer { name, clock, cpus: parts(input, cpus)? }, input)?;
    }
    Ok(content)
}

/// The other buffers: where they are, and their names.
fn options(input: &mut Input<'_>, content: &mut Content) -> Result<Vec<(u64, String)>> {
    let mut buffers = Vec::new();
    loop {
        let kind = input.u16()?;
        if kind == DONE {
            return Ok(buffers);
        }
        let size = input.u32()?;
        let after = input.part(size.into())?;
        let end = input.at;
        input.at = after.offset;
        match kind {
            BUFFER => buffers.push((input.u64()?, input.text()?)),
            CLOCK => content.clock = events::clock(&input.text_of(size.into())?),
            _ => {}
        }
        input.at = end;
    }
}

fn parts(input: &mut Input<'_>, cpus: u32) -> Result<Vec<(CpuId, Part)>> {
    if cpus > units::MAX_CPUS {
        return Err(input.wrong(format!("{cpus} CPUs")));
    }
    (0..cpus).map(|cpu| Ok((CpuId(cpu), Part { offset: input.u64()?, size: input.u64()? }))).collect()
}
