//! Both sides against bytes that were caught on the wire, against each other, and against peers that mean no good.

use proptest::prelude::*;

use super::*;

fn record(sum: i64, min: i32, max: i32, overruns: u32, samples: u32) -> Sample {
    Sample { sum, min, max, overruns, samples }
}

#[test]
fn requests_are_the_bytes_that_latmus_sends() {
    let start = Request::Start { period: 1000, cells: 200 };
    assert_eq!(start.bytes(), [0, 0, 0x03, 0xe8, 0, 0, 0, 0xc8]);
    assert_eq!(Request::Start { period: 1000, cells: 10 }.bytes(), [0, 0, 0x03, 0xe8, 0, 0, 0, 0x0a]);
    assert_eq!(Request::Stop.bytes(), [0; 8]);
    assert_eq!(
        Request::read([0, 0, 0, 0, 0, 0, 0, 9]),
        Ok(Request::Stop),
        "a period of 0 stops, whatever the cells"
    );
    let most = Request::Start { period: LONGEST_PERIOD, cells: MOST_CELLS };
    assert_eq!(Request::read(most.bytes()), Ok(most));
}

#[test]
fn absurd_requests_are_refused() {
    let read = |period, cells| Request::read(Request::Start { period, cells }.bytes());
    assert_eq!(read(LONGEST_PERIOD + 1, 0), Err(Fault::Period(1_000_001)));
    assert_eq!(read(u32::MAX, u32::MAX), Err(Fault::Period(u32::MAX)));
    assert_eq!(read(1, MOST_CELLS + 1), Err(Fault::Cells(1001)));
    assert!(Replies::new(u32::MAX).is_err());
}

#[test]
fn a_record_is_six_words_and_the_low_half_of_a_sum_has_no_sign() {
    let sample = record(0x1_8000_0000, 1, 2_000_000, 3, 4);
    let bytes = [
        0, 0, 0, 1, 0x80, 0, 0, 0, // sum, high half first
        0, 0, 0, 1, 0, 0x1e, 0x84, 0x80, // least and greatest
        0, 0, 0, 3, 0, 0, 0, 4, // overruns and samples
    ];
    assert_eq!(sample.bytes(), bytes);
    assert_eq!(Sample::read(bytes), sample);
    assert_eq!(Sample::read(record(-5, -3, -2, 0, 2).bytes()), record(-5, -3, -2, 0, 2));
}

#[test]
fn a_terminator_has_the_least_that_firmware_resets_to() {
    let bytes = Sample::terminator(7).bytes();
    assert_eq!(bytes[8..12], [0xff; 4]);
    assert_eq!(bytes[20..], [0; 4]);
    assert!(Sample::read(bytes).check().is_ok());
}

#[test]
fn figures_that_contradict_each_other_are_refused_as_latmus_does() {
    assert!(record(30, 10, 20, 0, 2).check().is_ok());
    for wrong in [record(30, 16, 20, 0, 2), record(30, 10, 14, 0, 2), record(30, 20, 10, 0, 2)] {
        assert!(matches!(wrong.check(), Err(Fault::Contradiction(..))), "{wrong:?}");
        assert!(Replies::new(0).unwrap().take(&wrong.bytes()).is_err());
    }
}

/// What a generation of monitors sends of 3 samples of 5 us and one missed answer, after a warm-up of 2 samples.
fn session(terminator: Sample, histogram: [u32; 8]) -> Vec<u8> {
    let mut bytes = record(10_000, 5_000, 5_000, 0, 2).bytes().to_vec();
    bytes.extend(record(5_000, 5_000, 5_000, 0, 1).bytes());
    bytes.extend(terminator.bytes());
    bytes.extend(histogram.iter().flat_map(|cell| cell.to_be_bytes()));
    bytes
}

#[test]
fn all_generations_of_monitors_are_understood() {
    // What differs: the overruns of the terminator, and whether the warm-up is in the histogram (Zephyr 4.2 and later).
    let of_libevl = session(Sample::terminator(1), [0, 0, 0, 0, 0, 3, 0, 0]);
    let of_2024 = session(Sample::terminator(1), [0, 0, 0, 0, 0, 3, 0, 0]);
    let of_zephyr = session(Sample::terminator(1), [0, 0, 0, 0, 0, 5, 0, 0]);
    for (bytes, surplus) in [(of_libevl, 0), (of_2024, 0), (of_zephyr, 2)] {
        let mut replies = Replies::new(8).unwrap();
        let mut totals = Totals::default();
        replies.take(&bytes).unwrap().into_iter().for_each(|reply| totals.add(reply));
        assert!(replies.is_complete() && replies.end().is_ok());
        assert_eq!((totals.samples, totals.overruns, totals.average()), (3, 1, Some(5_000)));
        assert_eq!((totals.min, totals.max, totals.surplus()), (Some(5_000), Some(5_000), Some(surplus)));
    }
}

#[test]
fn a_monitor_that_goes_away_is_not_taken_for_one_that_is_done() {
    let bytes = session(Sample::terminator(0), [1; 8]);
    for cut in 0..bytes.len() {
        let mut replies = Replies::new(8).unwrap();
        replies.take(&bytes[..cut]).unwrap();
        let Err(Fault::Cut { got, wanted, .. }) = replies.end() else { panic!("cut at {cut}") };
        assert!(got < wanted);
    }
    let mut replies = Replies::new(8).unwrap();
    replies.take(&bytes).unwrap();
    assert_eq!(replies.take(&[0; 3]), Err(Fault::Surplus(3)));
}

#[test]
fn a_bulk_without_an_answer_sends_no_record_and_forgets_no_miss() {
    let mut bulk = Bulk::new(4);
    bulk.missed(2);
    assert_eq!(bulk.record(), None);
    let trailer = bulk.trailer();
    assert_eq!(trailer.len(), RECORD + 4 * 4);
    assert_eq!(trailer[..RECORD], Sample::terminator(2).bytes());
}

#[test]
fn latencies_beyond_the_frames_are_as_long_as_frames_can_say() {
    let mut bulk = Bulk::new(2);
    bulk.answered(u64::MAX);
    let sample = bulk.record().unwrap();
    assert_eq!((sample.max, sample.check()), (i32::MAX, Ok(sample)));
    assert!(bulk.trailer().ends_with(&[0, 0, 0, 0, 0, 0, 0, 1]));
}

/// Cuts bytes into pieces at these places.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn what_one_side_sends_is_what_the_other_adds_up(
        answers in proptest::collection::vec(proptest::option::of(0..3_000_000_u64), 0..200),
        each in 1..40_usize,
        cells in 0..=MOST_CELLS,
        cuts in proptest::collection::vec(any::<usize>(), 0..30),
    ) {
        let mut bulk = Bulk::new(cells);
        let mut sent = Vec::new();
        for (number, answer) in answers.iter().enumerate() {
            match answer {
                Some(nanos) => bulk.answered(*nanos),
                None => bulk.missed(1),
            }
            if number % each == 0 {
                sent.extend(bulk.record().iter().flat_map(|sample| sample.bytes()));
            }
        }
        sent.extend(bulk.trailer());
        let mut replies = Replies::new(cells).unwrap();
        let mut totals = Totals::default();
        for piece in pieces(&sent, &cuts) {
            replies.take(piece).unwrap().into_iter().for_each(|reply| totals.add(reply));
        }
        prop_assert_eq!(replies.end(), Ok(()));
        let came: Vec<u64> = answers.iter().flatten().copied().collect();
        prop_assert_eq!(totals.samples as usize, came.len());
        prop_assert_eq!(totals.overruns as usize, answers.len() - came.len());
        prop_assert_eq!(totals.sum, came.iter().map(|&nanos| i128::from(nanos)).sum::<i128>());
        prop_assert_eq!(totals.max.map(|max| max as u64), came.iter().max().copied());
        prop_assert_eq!(totals.min.map(|min| min as u64), came.iter().min().copied());
        prop_assert_eq!(totals.surplus(), (cells > 0).then_some(0));
    }

    #[test]
    fn requests_in_pieces_of_any_size_are_those_that_were_sent(
        sent in proptest::collection::vec((0..=LONGEST_PERIOD, 0..=MOST_CELLS), 0..20),
        cuts in proptest::collection::vec(any::<usize>(), 0..30),
    ) {
        let asked: Vec<Request> = sent
            .iter()
            .map(|&(period, cells)| if period == 0 { Request::Stop } else { Request::Start { period, cells } })
            .collect();
        let bytes: Vec<u8> = asked.iter().flat_map(|request| request.bytes()).collect();
        let (mut requests, mut read) = (Requests::default(), Vec::new());
        for mut piece in pieces(&bytes, &cuts) {
            while !piece.is_empty() {
                let (taken, request) = requests.take(piece).unwrap();
                piece = &piece[taken..];
                read.extend(request);
            }
        }
        prop_assert_eq!(read, asked);
        prop_assert_eq!(requests.end(), Ok(()));
    }

    #[test]
    fn no_bytes_are_too_strange_and_none_fill_memory(
        bytes in proptest::collection::vec(any::<u8>(), 0..3_000),
        cells in 0..=MOST_CELLS,
    ) {
        let mut replies = Replies::new(cells).unwrap();
        let mut count = 0;
        if let Ok(read) = replies.take(&bytes) {
            count = read.len();
        }
        prop_assert!(count <= bytes.len() / RECORD + 1);
        let mut requests = Requests::default();
        let _ = requests.take(&bytes);
    }
}
