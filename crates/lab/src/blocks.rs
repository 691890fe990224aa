//! A disk's image without its zeros: what a file system that was just made is for the greatest part.

/// Bytes of content in a block.
pub(crate) const CONTENT: usize = 4096;
/// Bytes of a block: where it stands on the disk, and its content.
pub(crate) const SIZE: usize = 8 + CONTENT;

/// One piece of a disk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    /// Where it stands, in bytes.
    pub place: u64,
    /// What stands there.
    pub content: &'a [u8],
}

/// Appends the blocks of `piece` that are not zero, one after the other. The piece begins at `start` of the disk, where
/// a block begins.
pub(crate) fn append(blocks: &mut Vec<u8>, start: u64, piece: &[u8]) {
    for (number, content) in (0_u64..).zip(piece.chunks(CONTENT)) {
        if content.iter().any(|&byte| byte != 0) {
            blocks.extend_from_slice(&(start + number * CONTENT as u64).to_le_bytes());
            blocks.extend_from_slice(content);
            blocks.resize(blocks.len().next_multiple_of(SIZE), 0);
        }
    }
}

/// One block as [`append`] wrote it.
pub(crate) fn read(block: &[u8; SIZE]) -> Block<'_> {
    let [p0, p1, p2, p3, p4, p5, p6, p7, content @ ..] = block;
    Block { place: u64::from_le_bytes([*p0, *p1, *p2, *p3, *p4, *p5, *p6, *p7]), content }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_image_is_made_again_from_its_blocks(bytes in proptest::collection::vec((0..10_usize, any::<u8>()), 0..9)) {
            let mut image = vec![0; 10 * CONTENT];
            for (number, byte) in bytes {
                image[number * CONTENT + usize::from(byte)] = byte;
            }
            let (mut again, mut blocks) = (vec![0; image.len()], Vec::new());
            for (start, piece) in (0..).step_by(3 * CONTENT).zip(image.chunks(3 * CONTENT)) {
                append(&mut blocks, start, piece);
            }
            for block in blocks.chunks_exact(SIZE) {
                let Block { place, content } = read(block.try_into().unwrap());
                again[place as usize..][..CONTENT].copy_from_slice(content);
            }
            prop_assert_eq!(image, again);
        }
    }
}
