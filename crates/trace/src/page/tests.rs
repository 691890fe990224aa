use proptest::prelude::*;

use super::*;
use crate::made_up::{MACHINES, Machine, PageMaker};

fn read(machine: Machine, page: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let layout = machine.layout();
    let entries = layout.entries(page).map(|entry| entry.unwrap());
    entries.map(|entry| (entry.time.0, page[entry.data].to_vec())).collect()
}

#[test]
fn events_have_times_and_data_in_both_orders_and_widths() {
    for machine in MACHINES {
        let long = vec![7; 200];
        let page = PageMaker::new(machine, 1_000)
            .event(1_010, &[1; 8])
            .discarded(1_015, 16)
            .event(1_020, &long)
            .event(1 << 40, &[2; 4])
            .stamped((1 << 40) + 5, &[3; 112])
            .padded()
            .page();
        let expected =
            [(1_010, vec![1; 8]), (1_020, long), (1 << 40, vec![2; 4]), ((1 << 40) + 5, vec![3; 112])];
        assert_eq!(read(machine, &page), expected, "{machine:?}");
    }
}

#[test]
fn an_absolute_stamp_takes_its_highest_bits_from_the_time_before() {
    let high = 5 << 59;
    assert_eq!(absolute(20, high | 10), high | 20);
    assert_eq!(absolute(5, high | 10), (6 << 59) | 5, "it wrapped");
    assert_eq!(absolute(5, 10), 5, "clocks that have no such bits may go back");
}

#[test]
fn lost_events_are_counted_or_unknown() {
    for machine in MACHINES {
        let missed = |page: &[u8]| machine.layout().header(page).unwrap().missed;
        let page = || PageMaker::new(machine, 9).event(10, &[1; 8]);
        assert_eq!(missed(&page().page()), Missed::Nothing);
        assert_eq!(missed(&page().lost(Some(45))), Missed::Events(45));
        assert_eq!(missed(&page().lost(None)), Missed::Unknown);
        assert_eq!(read(machine, &page().lost(Some(45))).len(), 1);
    }
}

#[test]
fn a_full_page_has_no_room_for_the_number_of_lost_events() {
    let machine = MACHINES[0];
    let layout = machine.layout();
    let mut page = PageMaker::new(machine, 9).lost(Some(45));
    page[8..16].copy_from_slice(&machine.u64((3 << 30) | 4080));
    assert_eq!(layout.header(&page).unwrap().missed, Missed::Unknown);
}

#[test]
fn damage_is_named_and_ends_the_page() {
    let machine = MACHINES[0];
    let layout = machine.layout();
    let page = PageMaker::new(machine, 0).event(1, &[1; 8]).event(2, &[2; 8]).page();
    let last = |page: &[u8]| layout.entries(page).last().unwrap().unwrap_err();
    assert_eq!(last(&page[..10]), Damage::Header);
    assert_eq!(last(&page[..30]), Damage::Length);
    let mut cut = page.clone();
    cut[8] = 20;
    assert_eq!((last(&cut), layout.entries(&cut).count()), (Damage::Event, 2));
    let mut short = PageMaker::new(machine, 0).event(1, &[1; 200]).page();
    short[20] = 3;
    assert_eq!(last(&short), Damage::Event, "a length is at least that of itself");
}

#[test]
fn a_layout_is_read_and_nonsense_refused() {
    let layout = MACHINES[1].layout();
    assert_eq!((layout.size, layout.long), (4096, 4));
    let text = MACHINES[0].header_page();
    for (good, bad) in [
        ("timestamp", "time"),
        ("offset:8;\tsize:8", "offset:8;\tsize:3"),
        ("offset:8;\tsize:8", "offset:4;\tsize:8"),
        ("offset:16;", "offset:12;"),
        ("size:4080", "size:999999999999"),
        ("size:4080", "size:4"),
    ] {
        assert!(text.contains(good));
        assert!(Layout::parse(&text.replacen(good, bad, 1), Order::Little).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        which in 0..4_usize,
        begin in 0..u64::MAX >> 8,
        events in prop::collection::vec((0..1_u64 << 40, 1..40_usize, any::<u8>(), 0..4_u8), 0..15),
    ) {
        let machine = MACHINES[which];
        let (mut page, mut time, mut expected) = (PageMaker::new(machine, begin), begin, Vec::new());
        for (delta, words, byte, form) in events {
            let data = vec![byte; 4 * words];
            time += if form == 3 { delta % (1 << 27) + 1 } else { delta };
            page = match form {
                0 | 1 => page.event(time, &data),
                2 => page.stamped(time, &data),
                _ => page.discarded(time, data.len()),
            };
            if form != 3 {
                expected.push((time, data));
            }
        }
        prop_assert_eq!(read(machine, &page.page()), expected);
    }

    #[test]
    fn any_bytes_are_read_to_their_end(which in 0..4_usize, mut page in prop::collection::vec(any::<u8>(), 0..300)) {
        let layout = MACHINES[which].layout();
        // Most lengths are longer than any page.
        if page.len() > 16 {
            let low = if which < 2 { 8..12 } else { 6 + layout.long..8 + layout.long };
            page[low].fill(0);
            page[8] = 0;
            page[if which < 2 { 8 } else { 7 + layout.long }] = 200;
        }
        let mut end = 0;
        for entry in layout.entries(&page).flatten() {
            prop_assert!(entry.data.start >= end && entry.data.end <= page.len());
            end = entry.data.end;
        }
    }
}
