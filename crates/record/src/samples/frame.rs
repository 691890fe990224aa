//! A block as bytes that stand alone: mark, checksum, head, payload. The table is in [`super`].

use units::Nanos;

use super::{Block, checksum, payload};

/// Begins a frame. Its first two bytes together are in no payload.
pub const MARK: [u8; 4] = [0xd7, 0x00, b'W', b'C'];
/// Length of a frame without its payload.
pub const HEAD: usize = 36;
/// The longest payload.
pub const MOST_PAYLOAD: usize = 1 << 16;

/// Appends a frame with as many of `samples` as fit and says how many.
pub fn encode(
    scenario: u16,
    series: u16,
    interval: Nanos,
    samples: &[(u64, Nanos)],
    to: &mut Vec<u8>,
) -> usize {
    let start = to.len();
    to.extend_from_slice(&[0; HEAD]);
    let count = payload::encode(samples, interval, MOST_PAYLOAD, to);
    let first = samples.first().map_or(0, |sample| sample.0);
    seal(&mut to[start..], [scenario, series], interval, count, first);
    count
}

/// Appends a frame without samples, which says how many of the series were lost so far.
pub fn encode_lost(scenario: u16, series: u16, interval: Nanos, lost: u64, to: &mut Vec<u8>) {
    let start = to.len();
    to.extend_from_slice(&[0; HEAD]);
    seal(&mut to[start..], [scenario, series], interval, 0, lost);
}

/// Fills in the head of a frame whose payload is complete.
fn seal(frame: &mut [u8], [scenario, series]: [u16; 2], interval: Nanos, count: usize, first: u64) {
    let length = frame.len() - HEAD;
    frame[0..4].copy_from_slice(&MARK);
    frame[8..12].copy_from_slice(&(length as u32).to_le_bytes());
    frame[12..14].copy_from_slice(&scenario.to_le_bytes());
    frame[14..16].copy_from_slice(&series.to_le_bytes());
    frame[16..20].copy_from_slice(&(count as u32).to_le_bytes());
    frame[20..28].copy_from_slice(&first.to_le_bytes());
    frame[28..36].copy_from_slice(&interval.0.to_le_bytes());
    let sum = checksum(&frame[8..]);
    frame[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// The length of the frame that `bytes` begin with, if they begin with a possible head.
pub fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.get(..HEAD)?;
    let length = usize::try_from(u32::from_le_bytes(field(head, 8)?)).ok()?;
    (head.starts_with(&MARK) && length <= MOST_PAYLOAD).then_some(HEAD + length)
}

/// The block in a whole frame; none if the frame is damaged.
pub fn decode(frame: &[u8]) -> Option<Block> {
    let sum = u32::from_le_bytes(field(frame, 4)?);
    if checksum(frame.get(8..)?) != sum {
        return None;
    }
    let count = usize::try_from(u32::from_le_bytes(field(frame, 16)?)).ok()?;
    let first = u64::from_le_bytes(field(frame, 20)?);
    let interval = Nanos(u64::from_le_bytes(field(frame, 28)?));
    Some(Block {
        scenario: u16::from_le_bytes(field(frame, 12)?),
        series: u16::from_le_bytes(field(frame, 14)?),
        interval,
        lost: if count == 0 { first } else { 0 },
        samples: payload::decode(frame.get(HEAD..)?, first, interval, count)?,
    })
}

fn field<const SIZE: usize>(frame: &[u8], at: usize) -> Option<[u8; SIZE]> {
    frame.get(at..at + SIZE)?.try_into().ok()
}
