//! As much of instructions as distinguishes returns, halts and what turns interrupts off from others.

use crate::machine::Kind;
use crate::stream::Block;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::AMD64;

    fn of(instructions: &[&[u8]]) -> Shape {
        let sizes = instructions.iter().map(|bytes| bytes.len() as u8).collect();
        shape(&Block { address: 0, sizes, bytes: instructions.concat() }, AMD64.kind)
    }

    #[test]
    fn returns_halts_and_disabled_interrupts_are_distinguished() {
        assert_eq!(of(&[&[0x41, 0xff, 0xe2]]).last, Kind::Other, "jmp *%r10");
        assert_eq!(of(&[&[0xfb], &[0xf4]]).last, Kind::Halt);
        assert_eq!(of(&[&[0xc3]]).last, Kind::Return);
        assert_eq!(of(&[&[0xf3, 0xc3]]).last, Kind::Return, "rep ret");
        assert_eq!(of(&[&[0x90], &[0xfa], &[0x90]]).until_off, Some(2));
        assert_eq!(of(&[&[0x90, 0xfa]]).until_off, None, "a byte of another instruction");
    }
}
