//! Pages and files as a kernel would have written them, for tests.

use crate::Order;
use crate::format::Formats;
use crate::page::Layout;

/// A machine with numbers in this order and a `long` of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    pub order: Order,
    pub long: usize,
}

pub const MACHINES: [Machine; 4] = [
    Machine { order: Order::Little, long: 8 },
    Machine { order: Order::Little, long: 4 },
    Machine { order: Order::Big, long: 8 },
    Machine { order: Order::Big, long: 4 },
];

const PADDING: u32 = 29;
const EXTEND: u32 = 30;
const STAMP: u32 = 31;
const DELTA: u64 = (1 << 27) - 1;

impl Machine {
    pub fn header_page(self) -> String {
        let (long, data) = (self.long, 8 + self.long);
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{};\tsigned:0;\n",
            4096 - data
        )
    }

    pub fn layout(self) -> Layout {
        Layout::parse(&self.header_page(), self.order).unwrap()
    }

    pub fn formats(self) -> Formats {
        let mut formats = Formats::new(self.layout());
        formats.add(SWITCH).unwrap();
        formats.add(PRINT).unwrap();
        formats
    }

    pub fn u16(self, number: u16) -> [u8; 2] {
        if self.order == Order::Little { number.to_le_bytes() } else { number.to_be_bytes() }
    }

    pub fn u32(self, number: u32) -> [u8; 4] {
        if self.order == Order::Little { number.to_le_bytes() } else { number.to_be_bytes() }
    }

    pub fn u64(self, number: u64) -> [u8; 8] {
        if self.order == Order::Little { number.to_le_bytes() } else { number.to_be_bytes() }
    }

    /// A number of the kernel's `long`.
    pub fn long(self, number: u64) -> Vec<u8> {
        if self.long == 8 { self.u64(number).to_vec() } else { self.u32(number as u32).to_vec() }
    }

    fn word(self, kind: u32, delta: u64) -> [u8; 4] {
        let delta = (delta & DELTA) as u32;
        self.u32(if self.order == Order::Little { kind | delta << 5 } else { kind << 27 | delta })
    }

    /// A record of `sched_switch` to a thread.
    pub fn switch(self, task: i32, next: i32, comm: &str) -> Vec<u8> {
        let mut data = self.u16(372).to_vec();
        data.extend([0, 2]);
        data.extend(self.u32(task.cast_unsigned()));
        let mut name = comm.as_bytes().to_vec();
        name.resize(16, 0);
        data.extend(name);
        data.extend(self.u32(next.cast_unsigned()));
        data
    }
}

/// A page that is being written.
pub struct PageMaker {
    machine: Machine,
    time: u64,
    begin: u64,
    data: Vec<u8>,
}

impl PageMaker {
    pub fn new(machine: Machine, begin: u64) -> Self {
        Self { machine, time: begin, begin, data: Vec::new() }
    }

    /// Adds a record, with a time stamp of its own where the time since the last one is too long for a delta.
    pub fn event(mut self, time: u64, record: &[u8]) -> Self {
        let mut delta = time - self.time;
        if delta > DELTA {
            self.data.extend(self.machine.word(EXTEND, delta));
            self.data.extend(self.machine.u32((delta >> 27) as u32));
            delta = 0;
        }
        self.time = time;
        self.record(delta, record)
    }

    /// The same with an absolute stamp before it.
    pub fn stamped(mut self, time: u64, record: &[u8]) -> Self {
        self.data.extend(self.machine.word(STAMP, time));
        self.data.extend(self.machine.u32((time >> 27) as u32));
        self.time = time;
        self.record(0, record)
    }

    fn record(mut self, delta: u64, record: &[u8]) -> Self {
        let mut record = record.to_vec();
        record.resize(record.len().next_multiple_of(4), 0);
        let words = record.len() / 4;
        if (1..=28).contains(&words) {
            self.data.extend(self.machine.word(words as u32, delta));
        } else {
            self.data.extend(self.machine.word(0, delta));
            self.data.extend(self.machine.u32(record.len() as u32 + 4));
        }
        self.data.extend(record);
        self
    }

    /// An event that was given up: its room is skipped, its time is not.
    pub fn discarded(mut self, time: u64, length: usize) -> Self {
        self.data.extend(self.machine.word(PADDING, time - self.time));
        self.time = time;
        self.data.extend(self.machine.u32(length as u32 + 4));
        self.data.extend(vec![0xee; length]);
        self
    }

    /// The rest of the page is not used.
    pub fn padded(mut self) -> Self {
        self.data.extend(self.machine.word(PADDING, 0));
        self.data.extend([0xee; 12]);
        self
    }

    pub fn page(self) -> Vec<u8> {
        self.missing(None)
    }

    /// With events lost before it: how many, or none where that is not known.
    pub fn lost(self, events: Option<u64>) -> Vec<u8> {
        self.missing(Some(events))
    }

    fn missing(self, lost: Option<Option<u64>>) -> Vec<u8> {
        let machine = self.machine;
        let flags = match lost {
            None => 0,
            Some(None) => 1 << 31,
            Some(Some(_)) => 3 << 30,
        };
        let mut page = machine.u64(self.begin).to_vec();
        page.extend(machine.long(self.data.len() as u64 | flags));
        page.extend(self.data);
        if let Some(Some(events)) = lost {
            page.extend(machine.long(events));
        }
        page.resize(4096, 0);
        page
    }
}

pub const SWITCH: &str = "name: sched_switch
ID: 372
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char next_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;

print fmt: \"next_comm=%s next_pid=%d\", REC->next_comm, REC->next_pid
";

pub const PRINT: &str = "name: print
ID: 5
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;

print fmt: \"%ps: %s\", (void *)REC->ip, REC->buf
";
