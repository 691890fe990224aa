use proptest::prelude::*;

use super::*;
use crate::made_up::{MACHINES, Machine, PRINT, PageMaker, SWITCH};
use crate::{Event, Value};

const PAGE: u64 = 4096;

/// A file as trace-cmd writes it, in pieces.
struct Maker {
    machine: Machine,
    bytes: Vec<u8>,
}

impl Maker {
    fn new(machine: Machine, version: &str) -> Self {
        let mut maker = Self { machine, bytes: MAGIC.to_vec() };
        maker.text(version);
        maker.bytes.push(u8::from(machine.order == Order::Big));
        maker.bytes.push(machine.long as u8);
        maker.u32(4096);
        maker
    }

    fn u16(&mut self, number: u16) {
        self.bytes.extend(self.machine.u16(number));
    }

    fn u32(&mut self, number: u32) {
        self.bytes.extend(self.machine.u32(number));
    }

    fn u64(&mut self, number: u64) {
        self.bytes.extend(self.machine.u64(number));
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    fn long_text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn headers(&mut self) {
        self.text("header_page");
        self.long_text(&self.machine.header_page());
        self.text("header_event");
        self.long_text("");
    }

    fn internal(&mut self) {
        self.u32(1);
        self.long_text(PRINT);
    }

    fn systems(&mut self) {
        self.u32(1);
        self.text("sched");
        self.u32(1);
        self.long_text(SWITCH);
    }

    fn symbols(&mut self) {
        let text = "0000000000000010 T first\n";
        self.u32(text.len() as u32);
        self.bytes.extend(text.as_bytes());
    }

    /// Puts the place of what follows where it was left out.
    fn here(&mut self, at: usize) {
        let number = self.machine.u64(self.bytes.len() as u64);
        self.bytes[at..at + 8].copy_from_slice(&number);
    }

    /// Two pages of two CPUs, on page boundaries, with their places in a table that ends at `table`.
    fn pages(&mut self, tables: [usize; 2]) {
        let machine = self.machine;
        let page = |time, task| {
            PageMaker::new(machine, time).event(time + 5, &machine.switch(0, task, "cat")).page()
        };
        for (cpu, table) in tables.into_iter().enumerate() {
            let length = self.bytes.len().next_multiple_of(PAGE as usize);
            self.bytes.resize(length, 0);
            self.here(table);
            self.bytes.extend(page(100 + cpu as u64, 7 + cpu as i32));
        }
    }

    fn six(machine: Machine) -> Vec<u8> {
        let mut maker = Self::new(machine, "6");
        maker.headers();
        maker.internal();
        maker.systems();
        maker.symbols();
        maker.u32(0);
        maker.long_text("7 old\n");
        maker.u32(2);
        maker.text("options  ");
        maker.u16(CLOCK);
        maker.u32(13);
        maker.text("local [mono]");
        maker.u16(0);
        maker.text("flyrecord");
        let table = maker.bytes.len();
        for _ in 0..2 {
            maker.u64(0);
            maker.u64(PAGE);
        }
        maker.pages([table, table + 16]);
        maker.bytes
    }

    fn section(&mut self, kind: u16, flags: u16) {
        self.u16(kind);
        self.u16(flags);
        self.u32(0);
        self.u64(0);
    }

    fn seven(machine: Machine, algorithm: &str, flags: u16) -> Vec<u8> {
        let mut maker = Self::new(machine, "7");
        maker.text(algorithm);
        maker.text("1");
        let options = maker.bytes.len();
        maker.u64(0);
        let mut places = Vec::new();
        for (kind, write) in [
            (16, Self::headers as fn(&mut Self)),
            (17, Self::internal),
            (18, Self::systems),
            (19, Self::symbols),
        ] {
            places.push((kind, maker.bytes.len() as u64));
            maker.section(kind, flags);
            write(&mut maker);
        }
        let buffer = maker.bytes.len() as u64;
        maker.section(BUFFER, 0);
        maker.here(options);
        maker.section(0, 0);
        for (kind, place) in places {
            maker.u16(kind);
            maker.u32(8);
            maker.u64(place);
        }
        maker.u16(BUFFER);
        maker.u32(8 + 4 + 5 + 8 + 40);
        maker.u64(buffer);
        maker.text("one");
        maker.text("mono");
        maker.u32(4096);
        maker.u32(2);
        let mut tables = [0; 2];
        for (cpu, table) in tables.iter_mut().enumerate() {
            maker.u32(cpu as u32 * 2);
            *table = maker.bytes.len();
            maker.u64(0);
            maker.u64(PAGE);
        }
        maker.u16(0);
        maker.u32(8);
        maker.u64(0);
        maker.pages(tables);
        maker.bytes
    }
}

fn place(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).position(|found| found == text).unwrap()
}

const BUFFER: u16 = 3;
const CLOCK: u16 = 4;

/// All items of all buffers, in words.
fn items(saved: &Saved) -> Vec<String> {
    let mut words = Vec::new();
    for buffer in saved.buffers() {
        let mut events = saved.events(buffer).unwrap();
        while let Some(item) = events.next_item().unwrap() {
            words.push(match item {
                Item::Event(event) => in_words(&event),
                Item::Lost(lost) => format!("lost {:?} {:?}", lost.cpu, lost.events),
            });
        }
    }
    words
}

fn in_words(event: &Event<'_>) -> String {
    let fields: Vec<String> =
        event.fields().map(|(name, value): (_, Value<'_>)| format!("{name}={value}")).collect();
    format!("{} {} {} {}", event.time.0, event.cpu, event.name(), fields.join(" "))
}

#[test]
fn version_six_is_read_in_both_orders_and_widths() {
    for machine in MACHINES {
        let saved = Saved::of_bytes(Maker::six(machine)).unwrap();
        let buffer = &saved.buffers()[0];
        assert_eq!((buffer.name.as_str(), buffer.clock.as_deref()), ("", Some("mono")));
        let words =
            ["105 0 sched_switch next_comm=cat next_pid=7", "106 1 sched_switch next_comm=cat next_pid=8"];
        assert_eq!(items(&saved), words, "{machine:?}");
        assert_eq!(saved.symbols().unwrap().function(0x12), Some(("first", 2)));
        assert_eq!(saved.formats().get(5).unwrap().name, "print");
    }
}

#[test]
fn version_seven_is_read_and_names_its_buffers_and_cpus() {
    for machine in MACHINES {
        let saved = Saved::of_bytes(Maker::seven(machine, "none", 0)).unwrap();
        let buffer = &saved.buffers()[0];
        assert_eq!((buffer.name.as_str(), buffer.clock.as_deref()), ("one", Some("mono")));
        let words =
            ["105 0 sched_switch next_comm=cat next_pid=7", "106 2 sched_switch next_comm=cat next_pid=8"];
        assert_eq!(items(&saved), words, "{machine:?}");
    }
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let refused = |bytes: Vec<u8>| Saved::of_bytes(bytes).unwrap_err();
    let error = refused(Maker::seven(MACHINES[0], "zstd", 1));
    assert!(error.reason.contains("compressed with zstd") && error.hint.contains("convert"), "{error}");
    assert!(refused(b"something else".to_vec()).reason.contains("not a file of trace-cmd"));
    assert!(refused(Maker::new(MACHINES[0], "8").bytes).reason.contains("version 8"));
    assert!(refused(Maker::new(MACHINES[0], "6").bytes).reason.contains("ends too early"));
    assert!(refused(Vec::new()).reason.contains("ends too early"));
}

/// A file that is mostly a hole, and says that all of it is one text.
#[test]
fn a_hostile_file_takes_bounded_memory() {
    let mut maker = Maker::new(MACHINES[0], "6");
    maker.text("header_page");
    maker.u64(1 << 40);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.dat");
    std::fs::write(&path, &maker.bytes).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 41).unwrap();
    assert!(Saved::open(&path).unwrap_err().reason.contains("more to say"));

    let mut maker = Maker::new(MACHINES[0], "6");
    maker.headers();
    maker.u32(u32::MAX);
    (0..=1 << 16).for_each(|_| maker.long_text(""));
    assert!(Saved::of_bytes(maker.bytes).unwrap_err().reason.contains("more events"));

    let mut maker = Maker::six(MACHINES[0]);
    let options = place(&maker, b"options  ") + 10;
    let pages = place(&maker, b"flyrecord") as u64;
    let tail = maker.split_off(options);
    // Each is the place of the pages of all CPUs, again.
    for _ in 0..2000 {
        maker.extend(3_u16.to_le_bytes());
        maker.extend(9_u32.to_le_bytes());
        maker.extend((pages + 2000 * 15).to_le_bytes());
        maker.push(0);
    }
    maker.extend(tail);
    assert!(Saved::of_bytes(maker).unwrap_err().reason.contains("more instances"));
}

#[test]
fn only_regular_files_are_opened() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for path in [&pipe, Path::new("/dev/zero")] {
        assert!(Saved::open(path).unwrap_err().reason.contains("not a regular file"), "{path:?}");
    }
}

#[test]
fn a_clock_that_counts_no_time_is_refused() {
    let mut bytes = Maker::six(MACHINES[0]);
    let at = place(&bytes, b"local [mono]");
    bytes[at..at + 12].copy_from_slice(b"[counter] xx");
    let saved = Saved::of_bytes(bytes).unwrap();
    let error = saved.events(&saved.buffers()[0]).unwrap_err();
    assert!(error.reason.contains("counter"), "{error}");
}

#[test]
fn pages_that_were_cut_off_are_lost() {
    let mut bytes = Maker::six(MACHINES[0]);
    let length = bytes.len();
    bytes.truncate(length - 4096 + 20);
    let words = items(&Saved::of_bytes(bytes.clone()).unwrap());
    assert_eq!(words[0], "lost Some(CpuId(1)) None", "its time is unknown: before everything");
    assert!(words.len() == 2 && words[1].starts_with("105 0"), "{words:?}");
    bytes.truncate(length - 2 * 4096);
    assert_eq!(items(&Saved::of_bytes(bytes).unwrap()).len(), 2, "a loss on each CPU");
}

proptest! {
    #[test]
    fn a_damaged_file_is_refused_or_read(
        which in 0..4_usize, seven: bool, places in prop::collection::vec((0..3_000_usize, any::<u8>()), 1..4), end in 0..20_000_usize,
    ) {
        let machine = MACHINES[which];
        let mut bytes = if seven { Maker::seven(machine, "none", 0) } else { Maker::six(machine) };
        for (place, byte) in places {
            let length = bytes.len();
            bytes[place % length] = byte;
        }
        bytes.truncate(end);
        if let Ok(saved) = Saved::of_bytes(bytes) {
            for buffer in saved.buffers() {
                let Ok(mut events) = saved.events(buffer) else { continue };
                while events.next_item().unwrap().is_some() {}
            }
        }
    }
}
