//! Any bytes are answered as what a monitor of latmus, its responder, or a peer of the response probe says, in pieces of any
//! size; what was read is what is sent again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::frame::{Frame, SHORTEST};
use wire::latmon::{MOST_CELLS, Replies, Reply, Request, Requests};

fuzz_target!(|bytes: &[u8]| {
    if let Some(frame) = Frame::read(bytes) {
        let mut written = [0; SHORTEST];
        frame.write(&mut written);
        assert_eq!(Frame::read(&written), Some(frame));
    }
    let Some((&size, rest)) = bytes.split_first() else { return };
    let Some((&[high, low], rest)) = rest.split_first_chunk::<2>() else { return };
    let cells = u32::from(u16::from_be_bytes([high, low])) % (MOST_CELLS + 1);
    let size = usize::from(size).max(1);
    let mut replies = Replies::new(cells).expect("as many as there may be");
    let mut sent = Vec::new();
    let read = rest.chunks(size).try_for_each(|piece| {
        for reply in replies.take(piece)? {
            match reply {
                Reply::Sample(sample) => sent.extend(sample.bytes()),
                Reply::Stopped(overruns) => {
                    // The other figures of a terminator say nothing, and are not kept.
                    let begin = sent.len();
                    sent.extend(&rest[begin..begin + 24]);
                    assert_eq!(rest[begin + 16..begin + 20], overruns.to_be_bytes());
                }
                Reply::Histogram(cells) => sent.extend(cells.iter().flat_map(|cell| cell.to_be_bytes())),
            }
        }
        Ok::<(), wire::latmon::Fault>(())
    });
    assert!(rest.starts_with(&sent));
    assert!(read.is_err() || replies.end().is_err() || sent.len() == rest.len());

    let (mut requests, mut asked) = (Requests::default(), Vec::new());
    let mut left = rest;
    while !left.is_empty() {
        let Ok((taken, request)) = requests.take(&left[..left.len().min(size)]) else { return };
        assert!(taken > 0);
        left = &left[taken..];
        asked.extend(request);
    }
    for (place, request) in asked.iter().enumerate() {
        let bytes: [u8; 8] = rest[8 * place..8 * place + 8].try_into().expect("eight of them");
        assert!(*request == Request::Stop || request.bytes() == bytes);
    }
});
