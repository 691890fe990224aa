//! Responses: the parts of each stand in table, foot and page.

use histogram::Histogram;
use record::instrument::response::{Frames, Part, Receive, ResponseSeries, ResponseSetup};
use record::{Fact, InstrumentPlan, Own, Record, Setup};
use report::foot::Notes;
use report::table;
use units::Nanos;

use crate::mend as insta;
use crate::sample::{Spec, plain};

fn setup() -> ResponseSetup {
    ResponseSetup {
        interval: Nanos::from_millis(1),
        patience: Nanos::from_micros(900),
        peer: "10.0.0.2:2307".into(),
        interface: None,
        frames: 4,
        size: 64,
        socket_priority: None,
        hardware_stamps: false,
        ptp_frames: false,
        receive: Receive::Sleep,
    }
}

/// One load on one CPU; nothing is known of the time at the peer, and of the worst response's parts but one.
pub fn record() -> Record {
    with_parts(setup(), &[Some(5_000), Some(21_000), None, Some(3_600)])
}

/// The same, of a card that stamps what it sends alone.
fn by_card() -> Record {
    let setup = ResponseSetup { hardware_stamps: true, interface: Some("eth0".into()), ..setup() };
    with_parts(setup, &[Some(5_000), Some(700), Some(20_300), None, None, Some(3_600)])
}

fn with_parts(setup: ResponseSetup, lengths: &[Option<u64>]) -> Record {
    let spec = Spec { loads: vec!["idle"], cpus: 1, ..Spec::default() };
    let mut record = spec.record();
    record.header.plan.instrument = InstrumentPlan::Response(setup.clone());
    let scenario = &mut record.scenarios[0];
    let names = setup.parts();
    scenario.head.planned.setup = Setup::Response(setup);
    let series = &mut scenario.series[0];
    let took = |nanos: &Option<u64>| {
        let mut took = Histogram::default();
        nanos.iter().for_each(|&nanos| took.record(Nanos(nanos)));
        took
    };
    let of = |(&name, nanos)| Part { name, took: took(nanos) };
    let known: Vec<Option<Nanos>> = lengths.iter().map(|part| part.map(Nanos)).collect();
    let mut worst_parts = vec![Fact::Absent; series.worst.len()];
    worst_parts[0] = Fact::Value(known);
    series.own = Own::Response(ResponseSeries {
        expected: series.accounted(),
        frames: Frames { sent: 40_000, answered: 39_997, lost: 3, ..Frames::default() },
        parts: names.iter().zip(lengths).map(of).collect(),
        worst_parts,
        ..ResponseSeries::default()
    });
    record
}

#[test]
fn the_table_has_the_parts_and_the_foot_those_of_the_worst() {
    insta::assert_snapshot!(table::bench(&record(), false, Notes::Few("DIR"), &plain()), @r"
    responses, CPU 0, us  no load
    min                       1.5
    avg                       2.7
    p99 *                     5.0
    p99.9 *                   7.8
    p99.99 *                 22.4
    max                      29.6
    max send                  5.0
    max wire                 21.0
    max peer                    -
    max receive               3.6
    cycles                  10000
    missed                      0
    lost frames                 3

    * of all cycles due: one that was not answered counts with the time that it was
      waited for, one that was skipped with how late it would have been; - means too
      few samples, or nothing known
    parts, each by its own longest: send until the driver has the frame, wire there
      and back, peer from its kernel to its answer, receive from the own kernel to
      the thread

    Worst: 29.6 us on CPU 0 under no load, 1.9 s into it. Of it: send 5.0 us, wire
      21.0 us, peer unknown, receive 3.6 us.
    Checked: SCHED_FIFO 98 on every thread, memory locked, 0 page faults, 0
      migrations, 0 preemptions, nothing lost in recording.

    note  rt-throttling-on  the kernel may take time from real-time threads:
          /proc/sys/kernel/sched_rt_runtime_us is 950000 of 1000000
    note  guest             this is a virtual machine: /sys/hypervisor says kvm
    note  not-isolated      measured CPUs are not isolated:
          /sys/devices/system/cpu/isolated is empty
          about one: worstcase why rt-throttling-on

    INCONCLUSIVE  measured CPUs are not isolated
                  this is a virtual machine
    10000 activations, worth about 9500 independent ones: rarer delays can be
    missed.
    ");
}

#[test]
fn what_a_card_stamps_are_rows_and_columns_of_their_own() {
    let text = table::bench(&by_card(), false, Notes::Few("DIR"), &plain());
    let row = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let parts = ["send", "transmit", "wire", "peer", "deliver", "receive"];
    let rows = parts.map(|part| row(&format!("max {part} ")).unwrap());
    assert_eq!(rows, ["5.0", "0.7", "20.3", "-", "-", "3.6"], "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let worst = "send 5.0 us, transmit 0.7 us, wire 20.3 us, peer unknown, deliver unknown, receive 3.6 us.";
    assert!(words.contains(worst), "{text}");
    let page = report::page::page(&[by_card()]).unwrap();
    let table = &page[page.find("The longest responses</span></caption>").unwrap()..];
    let head = &table[..table.find("</thead>").unwrap_or_else(|| table.find("</tr>").unwrap())];
    let places = parts.map(|part| head.find(&format!(">{part}")).unwrap_or_else(|| panic!("{part}: {head}")));
    assert!(places.is_sorted(), "{head}");
}

#[test]
fn the_page_has_the_parts_of_each_of_the_worst_and_says_of_which_nothing_is_known() {
    let page = report::page::page(&[record()]).unwrap();
    for words in ["The longest responses", "max receive", "lost frames"] {
        assert!(page.contains(words), "{words}");
    }
    let table = &page[page.find("The longest responses</span></caption>").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    let rows: Vec<&str> = table.split("<tr").skip(2).collect();
    assert!(rows[0].contains("21.0"), "{}", rows[0]);
    assert!(!rows[1].contains("21.0"), "{}", rows[1]);
}
