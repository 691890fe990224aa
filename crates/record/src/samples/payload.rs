//! Samples as bytes.

use units::Nanos;

/// Comes before a sample whose activation is not the expected one: zero in a form that is not the shortest.
const UNEXPECTED: [u8; 2] = [0x80, 0x00];
/// The most bytes of one sample: the mark above and two numbers.
const LONGEST_SAMPLE: usize = 2 + 10 + 10;

/// Appends as many of `samples` as fit into `limit` bytes and says how many: at least one, if there is one.
pub fn encode(samples: &[(u64, Nanos)], interval: Nanos, limit: usize, to: &mut Vec<u8>) -> usize {
    let start = to.len();
    let mut expected = samples.first().map_or(0, |&(activation, _)| activation);
    for (place, &(activation, latency)) in samples.iter().enumerate() {
        if place > 0 && to.len() - start + LONGEST_SAMPLE > limit {
            return place;
        }
        if activation != expected {
            to.extend_from_slice(&UNEXPECTED);
            put(fold(activation.wrapping_sub(expected)), to);
        }
        put(latency.0, to);
        expected = next(activation, latency, interval);
    }
    samples.len()
}

/// The `count` samples in `payload`; none if it is not exactly that.
pub fn decode(mut payload: &[u8], first: u64, interval: Nanos, count: usize) -> Option<Vec<(u64, Nanos)>> {
    if count > payload.len() {
        return None;
    }
    let (mut samples, mut expected) = (Vec::with_capacity(count), first);
    for _ in 0..count {
        if let Some(rest) = payload.strip_prefix(&UNEXPECTED) {
            payload = rest;
            expected = expected.wrapping_add(unfold(take(&mut payload)?));
        }
        let latency = Nanos(take(&mut payload)?);
        samples.push((expected, latency));
        expected = next(expected, latency, interval);
    }
    payload.is_empty().then_some(samples)
}

/// The activation that a thread which goes on in phase wakes up for next.
fn next(activation: u64, latency: Nanos, interval: Nanos) -> u64 {
    activation.wrapping_add(1).wrapping_add(latency.0.checked_div(interval.0).unwrap_or(0))
}

/// A difference as a small number whatever its sign: 0, -1, 1, -2 as 0, 1, 2, 3.
fn fold(difference: u64) -> u64 {
    let sign = if difference >> 63 == 1 { u64::MAX } else { 0 };
    (difference << 1) ^ sign
}

fn unfold(folded: u64) -> u64 {
    let sign = if folded & 1 == 1 { u64::MAX } else { 0 };
    (folded >> 1) ^ sign
}

fn put(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Takes a number in its shortest form from the front.
fn take(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let too_large = place == 9 && byte > 1;
        let not_shortest = place > 0 && byte == 0;
        if too_large || not_shortest {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(samples: &[(u64, Nanos)], interval: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert_eq!(encode(samples, Nanos(interval), usize::MAX, &mut bytes), samples.len());
        bytes
    }

    #[test]
    fn a_sample_in_phase_costs_its_latency_alone() {
        let size = |latency| encoded(&[(7, Nanos(latency))], 1_000_000).len();
        assert_eq!([127, 16_383, 16_384, 2_097_151, 2_097_152].map(size), [1, 2, 3, 3, 4]);
        let stalled = [(7, Nanos(3_500_000)), (11, Nanos(5_000)), (12, Nanos(5_000))];
        assert_eq!(encoded(&stalled, 1_000_000).len(), 4 + 2 + 2);
        let lost = [(7, Nanos(5_000)), (9, Nanos(5_000))];
        assert_eq!(encoded(&lost, 1_000_000), [0x88, 0x27, 0x80, 0x00, 0x02, 0x88, 0x27]);
    }

    #[test]
    fn forms_that_are_not_the_shortest_are_refused() {
        for bytes in
            [&[0x81, 0x00][..], &[0xff; 9], &[0xff; 10], &[0x80, 0x00, 0x00], &[0x80, 0x80, 0x00], &[]]
        {
            assert_eq!(decode(bytes, 0, Nanos(1), 1), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_samples_come_back(samples: Vec<(u64, u64)>, interval: u64) {
            let samples: Vec<_> = samples.into_iter().map(|(activation, latency)| (activation, Nanos(latency))).collect();
            let first = samples.first().map_or(0, |sample| sample.0);
            let bytes = encoded(&samples, interval);
            prop_assert_eq!(decode(&bytes, first, Nanos(interval), samples.len()), Some(samples));
        }

        #[test]
        fn the_frame_mark_is_in_no_payload(samples: Vec<(u64, u64)>) {
            let samples: Vec<_> = samples.into_iter().map(|(activation, latency)| (activation, Nanos(latency))).collect();
            prop_assert!(!encoded(&samples, 1).windows(2).any(|pair| pair == &super::super::frame::MARK[..2]));
        }

        #[test]
        fn any_bytes_are_answered_without_a_panic(bytes: Vec<u8>, first: u64, interval: u64, count in 0..300_usize) {
            let _ = decode(&bytes, first, Nanos(interval), count);
        }
    }
}
