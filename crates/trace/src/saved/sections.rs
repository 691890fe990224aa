//! Version 7: options say where which section is.

use units::CpuId;

use crate::error::{Error, Result};

use super::input::Input;
use super::{Buffer, Content, Part, events};

/// Options that are read here.
const DONE: u16 = 0;
const BUFFER: u16 = 3;
const CLOCK: u16 = 4;
const HEADERS: u16 = 16;
const INTERNAL: u16 = 17;
const SYSTEMS: u16 = 18;
const SYMBOLS: u16 = 19;
const TASKS: u16 = 21;

/// The section that has options.
const OPTIONS: u16 = 0;

/// Flag of a section.
const COMPRESSED: u16 = 1;

/// A file has a handful of sections with options; a ring of them would never end.
const MOST: u32 = 1000;

/// What a file is compressed with where it is not.
const NOTHING: &str = "none";

pub(super) fn read(input: &mut Input<'_>) -> Result<Content> {
    let (algorithm, _version) = (input.text()?, input.text()?);
    let mut content = Content::default();
    let mut next = input.u64()?;
    for _ in 0..MOST {
        if next == 0 {
            return Ok(content);
        }
        begin(input, next, OPTIONS, &algorithm)?;
        next = options(input, &mut content, &algorithm)?;
    }
    Err(input.wrong("options without an end"))
}

/// The header of a section, which must be of this sort.
fn begin(input: &mut Input<'_>, offset: u64, kind: u16, algorithm: &str) -> Result<()> {
    input.at = offset;
    let (found, flags, _description, _size) = (input.u16()?, input.u16()?, input.u32()?, input.u64()?);
    if found != kind {
        return Err(input.wrong(format!("section {found} in place of {kind}")));
    }
    if flags & COMPRESSED != 0 { Err(compressed(input, algorithm)) } else { Ok(()) }
}

fn compressed(input: &Input<'_>, algorithm: &str) -> Error {
    let what = if algorithm == NOTHING { "an unnamed algorithm" } else { algorithm };
    let error = input.wrong(format!("compressed with {what}, which is not read here"));
    error.hint("trace-cmd convert --compression none -i FILE -o OTHER writes a file that is")
}

/// One section of options; where the next one is.
fn options(input: &mut Input<'_>, content: &mut Content, algorithm: &str) -> Result<u64> {
    loop {
        let (kind, size) = (input.u16()?, input.u32()?);
        let part = input.part(size.into())?;
        let end = input.at;
        input.at = part.offset;
        if kind == DONE {
            return input.u64();
        }
        option(input, kind, size, content, algorithm)?;
        input.at = end;
    }
}

fn option(input: &mut Input<'_>, kind: u16, size: u32, content: &mut Content, algorithm: &str) -> Result<()> {
    match kind {
        BUFFER => content.add(buffer(input, size, algorithm)?, input)?,
        CLOCK => content.clock = events::clock(&input.text_of(size.into())?),
        HEADERS | INTERNAL | SYSTEMS | SYMBOLS | TASKS => {
            let offset = input.u64()?;
            begin(input, offset, kind, algorithm)?;
            section(input, kind, content)?;
        }
        _ => {}
    }
    Ok(())
}

fn section(input: &mut Input<'_>, kind: u16, content: &mut Content) -> Result<()> {
    match kind {
        HEADERS => events::headers(input, content),
        INTERNAL => events::internal(input, content),
        SYSTEMS => events::systems(input, content),
        TASKS => events::tasks(input, content),
        _ => {
            let size = input.u32()?;
            content.symbols = Some(input.part(size.into())?);
            Ok(())
        }
    }
}

/// A buffer: its section, name, clock and, of each CPU, the number and where its pages are.
fn buffer(input: &mut Input<'_>, size: u32, algorithm: &str) -> Result<Buffer> {
    const CPU: u64 = 4 + 8 + 8;
    let end = input.at + u64::from(size);
    let (offset, name, clock) = (input.u64()?, input.text()?, input.text()?);
    let left = end.saturating_sub(input.at);
    // Some versions have the size of a page before the number of CPUs.
    if left % CPU == 8 {
        input.u32()?;
    }
    let count = input.u32()?;
    if count > units::MAX_CPUS {
        return Err(input.wrong(format!("{count} CPUs")));
    }
    let mut cpu = || Ok((CpuId(input.u32()?), Part { offset: input.u64()?, size: input.u64()? }));
    let cpus = (0..count).map(|_| cpu()).collect::<Result<_>>()?;
    begin(input, offset, BUFFER, algorithm)?;
    Ok(Buffer { name, clock: events::clock(&clock), cpus })
}
