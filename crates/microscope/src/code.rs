//! As much of instructions as distinguishes returns, halts and what turns interrupts off from others.

use crate::stream::Block;

/// An instruction, as far as an account asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A return.
    Return,
    /// A call, where the architecture's calls are followed by their instructions.
    Call,
    /// The end of an exception or an interrupt, where they are.
    Exit,
    /// The CPU halts.
    Halt,
    /// Interrupts are off behind it.
    Off,
    /// Any other.
    Other,
}

/// What a block does beside computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its last instruction.
    pub last: Kind,
    /// Instructions up to the first that turns interrupts off, with it.
    pub until_off: Option<usize>,
    /// Instructions.
    pub count: usize,
}

/// Looks at a block, by what `kind` says of an instruction.
pub fn shape(block: &Block, kind: fn(&[u8]) -> Kind) -> Shape {
    let mut shape = Shape { last: Kind::Other, until_off: None, count: block.sizes.len() };
    let mut rest = block.bytes.as_slice();
    for (number, &size) in block.sizes.iter().enumerate() {
        let Some((bytes, after)) = rest.split_at_checked(usize::from(size)) else { break };
        rest = after;
        shape.last = kind(bytes);
        if shape.last == Kind::Off && shape.until_off.is_none() {
            shape.until_off = Some(number + 1);
        }
    }
    shape
}
