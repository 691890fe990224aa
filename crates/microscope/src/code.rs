//! As much of x86 instructions as distinguishes returns, halts and `cli` from others.

use crate::stream::Block;

/// The last instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// A return.
    Return,
    /// The CPU halts.
    Halt,
    /// Any other.
    Other,
}

/// What a block does beside computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub last: Last,
    /// Instructions up to the first `cli`, with it.
    pub until_off: Option<usize>,
}

/// Looks at a block.
pub fn shape(block: &Block) -> Shape {
    let mut shape = Shape { last: Last::Other, until_off: None };
    let mut rest = block.bytes.as_slice();
    for (number, &size) in block.sizes.iter().enumerate() {
        let Some((bytes, after)) = rest.split_at_checked(usize::from(size)) else { break };
        rest = after;
        let bytes = without_prefixes(bytes);
        if bytes == [0xfa] && shape.until_off.is_none() {
            shape.until_off = Some(number + 1);
        }
        shape.last = last(bytes);
    }
    shape
}

fn last(bytes: &[u8]) -> Last {
    match bytes {
        [0xc3] | [0xc2, ..] => Last::Return,
        [0xf4] => Last::Halt,
        // mwait
        [0x0f, 0x01, 0xc9] => Last::Halt,
        _ => Last::Other,
    }
}

/// Legacy prefixes, and REX behind them.
fn without_prefixes(bytes: &[u8]) -> &[u8] {
    let is_prefix = |byte: &u8| {
        matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3)
    };
    let start = bytes.iter().position(|byte| !is_prefix(byte)).unwrap_or(bytes.len());
    match &bytes[start..] {
        [0x40..=0x4f, rest @ ..] => rest,
        rest => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(instructions: &[&[u8]]) -> Shape {
        let sizes = instructions.iter().map(|bytes| bytes.len() as u8).collect();
        shape(&Block { address: 0, sizes, bytes: instructions.concat() })
    }

    #[test]
    fn returns_halts_and_disabled_interrupts_are_distinguished() {
        assert_eq!(of(&[&[0x41, 0xff, 0xe2]]).last, Last::Other, "jmp *%r10");
        assert_eq!(of(&[&[0xfb], &[0xf4]]).last, Last::Halt);
        assert_eq!(of(&[&[0xc3]]).last, Last::Return);
        assert_eq!(of(&[&[0xf3, 0xc3]]).last, Last::Return, "rep ret");
        assert_eq!(of(&[&[0x90], &[0xfa], &[0x90]]).until_off, Some(2));
        assert_eq!(of(&[&[0x90, 0xfa]]).until_off, None, "a byte of another instruction");
    }
}
