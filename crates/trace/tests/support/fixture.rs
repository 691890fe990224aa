//! What a kernel once recorded, in one text: its formats, the pages of its CPUs in hexadecimal, what it printed of them,
//! and the functions whose addresses stand in them.

use std::collections::BTreeMap;
use std::fmt::Write;

use sysroot::SysRoot;
use trace::format::Formats;
use trace::page::Layout;
use trace::{Error, Item, Merge, Order, Pages, Symbols, Tasks};
use units::{CpuId, Nanos};

use super::kernel::instance;
use trace::live::Instance;

/// What a section of the text begins with; its name follows.
const MARK: &str = "=== ";

const EVENTS: [(&str, &str); 8] = [
    ("sched/sched_switch", "prev_pid == ME || next_pid == ME"),
    ("sched/sched_waking", "pid == ME"),
    ("timer/hrtimer_expire_entry", "common_pid == ME"),
    ("raw_syscalls/sys_enter", "common_pid == ME && id != 1"),
    ("irq/softirq_entry", "common_pid == ME"),
    ("workqueue/workqueue_execute_start", ""),
    ("timer/tick_stop", ""),
    ("ipi/ipi_send_cpumask", ""),
];

/// Prints a fixture of this kernel.
pub fn record() {
    let mut text = String::new();
    let mut busy = instance(64 << 10);
    let me = rustix::thread::gettid().as_raw_nonzero().to_string();
    busy.write("events/sched/sched_waking/trigger", &format!("stacktrace if pid == {me}")).unwrap();
    let mut events = vec!["ftrace/print".to_owned(), "ftrace/kernel_stack".to_owned()];
    for (event, filter) in EVENTS {
        if !busy.has(event) {
            continue;
        }
        let filter = filter.replace("ME", &me);
        busy.enable(event, Some(filter.as_str()).filter(|filter| !filter.is_empty())).unwrap();
        events.push(event.to_owned());
    }
    for number in 0..3 {
        busy.write("trace_marker", &format!("number {number}")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
    busy.write("tracing_on", "0").unwrap();
    section(&mut text, "header_page", busy.read("events/header_page").value().unwrap());
    for event in events {
        let path = format!("{}/../../events/{event}/format", busy.directory());
        section(&mut text, &format!("format {event}"), &std::fs::read_to_string(path).unwrap());
    }
    section(&mut text, "trace", busy.read("trace").value().unwrap());
    pages(&mut text, "page", &busy, usize::MAX);
    // The buffer is overrun, and the first page tells.
    let mut lossy = instance(8 << 10);
    for number in 0..2_000 {
        lossy.write("trace_marker", &format!("number {number}")).unwrap();
    }
    pages(&mut text, "lossy", &lossy, 1);
    let fixture = Fixture::parse(&text);
    let symbols = Symbols::live(&SysRoot::live()).unwrap();
    let addresses = fixture.addresses();
    let symbol = |address: u64| {
        symbols.function(address).map(|(name, offset)| format!("{:x} T {name}\n", address - offset))
    };
    let mut lines: Vec<String> = addresses.into_iter().filter_map(symbol).collect();
    lines.sort();
    lines.dedup();
    section(&mut text, "kallsyms", &lines.concat());
    println!("\n{text}{MARK}end");
}

fn section(text: &mut String, name: &str, content: &str) {
    write!(text, "{MARK}{name}\n{}\n", content.trim_end()).unwrap();
}

fn pages(text: &mut String, name: &str, instance: &Instance, most: usize) {
    let size = instance.formats().layout().size;
    for cpu in instance.cpus() {
        let path = std::env::temp_dir().join(format!("worstcase-fixture-{cpu}"));
        instance.spool(cpu, &std::fs::File::create(&path).unwrap()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for page in bytes.chunks(size).take(most) {
            let end = page.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let lines =
                page[..end].chunks(48).map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect());
            section(text, &format!("{name} {cpu}"), &lines.collect::<Vec<String>>().join("\n"));
        }
        std::fs::remove_file(path).unwrap();
    }
}

/// A fixture that was read.
pub struct Fixture {
    pub formats: Formats,
    pub trace: String,
    pub symbols: Symbols,
    pages: Vec<(String, CpuId, Vec<u8>)>,
}

/// The pages of one CPU.
pub struct Kept(std::vec::IntoIter<Vec<u8>>);

impl Pages for Kept {
    fn next_page(&mut self, page: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(self.0.next().map(|next| *page = next).is_some())
    }
}

impl Fixture {
    pub fn parse(text: &str) -> Self {
        let sections = text.split(MARK).filter_map(|section| section.split_once('\n'));
        let sections: Vec<(&str, &str)> = sections.collect();
        let one =
            |name: &str| sections.iter().find(|(one, _)| *one == name).map_or("", |(_, content)| content);
        let layout = Layout::parse(one("header_page"), Order::Little).unwrap();
        let mut formats = Formats::new(layout);
        let mut pages = Vec::new();
        for (name, content) in &sections {
            match name.split_once(' ') {
                Some(("format", _)) => formats.add(content).unwrap(),
                Some((kind @ ("page" | "lossy"), cpu)) => {
                    pages.push((kind.to_owned(), CpuId(cpu.parse().unwrap()), bytes(content, layout.size)));
                }
                _ => {}
            }
        }
        let symbols = Symbols::read(one("kallsyms").as_bytes()).unwrap();
        Self { formats, trace: one("trace").to_owned(), symbols, pages }
    }

    /// The pages of one kind, by CPU.
    pub fn merge(&self, kind: &str) -> Merge<Kept> {
        let mut cpus: BTreeMap<CpuId, Vec<Vec<u8>>> = BTreeMap::new();
        for (_, cpu, page) in self.pages.iter().filter(|(one, ..)| one == kind) {
            cpus.entry(*cpu).or_default().push(page.clone());
        }
        let mut merge = Merge::new(cpus.into_iter().map(|(cpu, pages)| (cpu, Kept(pages.into_iter()))));
        merge.refill(&self.formats).unwrap();
        merge
    }

    /// Shows all items of one kind of pages.
    pub fn each(&self, kind: &str, mut see: impl FnMut(&Item<'_>)) {
        let (mut merge, mut tasks) = (self.merge(kind), Tasks::default());
        while let Some(item) = merge.next(&self.formats, &mut tasks, Nanos(u64::MAX)).unwrap() {
            see(&item);
        }
    }

    fn addresses(&self) -> Vec<u64> {
        let mut all = Vec::new();
        self.each("page", |item| {
            let Item::Event(event) = item else { return };
            all.extend(["function", "callsite", "callback"].iter().filter_map(|field| event.unsigned(field)));
            all.extend(event.addresses("caller"));
        });
        all
    }
}

fn bytes(text: &str, size: usize) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let mut bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
    bytes.resize(size, 0);
    bytes
}
