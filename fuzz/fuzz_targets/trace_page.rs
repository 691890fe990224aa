//! Any bytes are a page of a ring buffer, of a machine of any sort: events follow each other within it, and nothing else is
//! read. The first byte says what sort.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::format::Formats;
use trace::page::Layout;
use trace::{Error, Item, Merge, Order, Pages, Tasks};
use units::{CpuId, Nanos};

const FORMAT: &str = "name: sched_switch\nID: 372\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char next_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:__data_loc cpumask_t mask;\toffset:28;\tsize:4;\tsigned:0;\n\
    \tfield:unsigned long caller[];\toffset:32;\tsize:0;\tsigned:0;\n";

struct Pieces<'a>(std::slice::Chunks<'a, u8>);

impl Pages for Pieces<'_> {
    fn next_page(&mut self, page: &mut Vec<u8>) -> Result<bool, Error> {
        page.clear();
        Ok(self.0.next().map(|piece| page.extend_from_slice(piece)).is_some())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((sort, bytes)) = bytes.split_first() else { return };
    let long = if sort & 1 == 0 { 8 } else { 4 };
    let order = if sort & 2 == 0 { Order::Little } else { Order::Big };
    let header = format!(
        "field: u64 timestamp;\toffset:0;\tsize:8;\nfield: local_t commit;\toffset:8;\tsize:{long};\n\
         field: char data;\toffset:{};\tsize:1024;\n",
        8 + long
    );
    let layout = Layout::parse(&header, order).expect("a layout");
    let mut end = 0;
    for entry in layout.entries(bytes).flatten() {
        assert!(entry.data.start >= end && entry.data.end <= bytes.len());
        end = entry.data.end;
    }
    let mut formats = Formats::new(layout);
    formats.add(FORMAT).expect("a format");
    let mut merge = Merge::new([(CpuId(0), Pieces(bytes.chunks(layout.size)))]);
    let mut tasks = Tasks::default();
    merge.refill(&formats).expect("memory is read");
    while let Some(item) = merge.next(&formats, &mut tasks, Nanos(u64::MAX)).expect("memory is read") {
        if let Item::Event(event) = item {
            assert!(event.addresses("caller").len() <= bytes.len());
            let _ = (
                event.cpus("mask"),
                event.text("next_comm"),
                event.label("next_pid"),
                event.fields().count(),
            );
        }
    }
});
