//! `trace.dat`, version 6 (trace-cmd.dat.v6(5)): `trace-cmd report` and KernelShark read it.
//!
//! Switches and wakings are the kernel's own events `sched_switch` and `sched_waking`; what else a record kept stands in words
//! in events `print`, as what programs write to `trace_marker`.

use std::borrow::Cow;

use record::Explanation;

use crate::trace_events::{Kept, Thread, What, all, names};

/// Bytes of a page, and of those the data behind its header.
const PAGE: usize = 4096;
const HEADER: usize = 16;

const SWITCH: u16 = 1;
const WAKING: u16 = 2;
const PRINT: u16 = 5;

/// The longest words of an event: several of them fit on a page.
const LONGEST: usize = 1000;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";

const HEADER_EVENT: &str = "# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
";

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

";

const SWITCH_FIELDS: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: \"prev_comm=%s prev_pid=%d prev_prio=%d ==> next_comm=%s next_pid=%d next_prio=%d\", REC->prev_comm, \
REC->prev_pid, REC->prev_prio, REC->next_comm, REC->next_pid, REC->next_prio
";

const WAKING_FIELDS: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;

print fmt: \"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, REC->target_cpu
";

const PRINT_FIELDS: &str = "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;

print fmt: \"%s\", REC->buf
";

/// The file.
pub fn file(explanations: &[Explanation]) -> Vec<u8> {
    let events = all(explanations);
    let mut file = Writer(b"\x17\x08\x44tracing6\0".to_vec());
    file.bytes(&[0, 8]);
    file.u32(PAGE);
    file.text("header_page");
    file.long(HEADER_PAGE);
    file.text("header_event");
    file.long(HEADER_EVENT);
    file.u32(1);
    file.long(&format("print", PRINT, PRINT_FIELDS));
    file.u32(1);
    file.text("sched");
    file.u32(2);
    let knows_states = events
        .values()
        .flatten()
        .any(|event| matches!(&event.what, What::Switch(previous, _) if previous.state.is_some()));
    // Of older records states are not known: tools show none where there is no such field.
    let renamed = SWITCH_FIELDS.replace("prev_state", "unused");
    file.long(&format("sched_switch", SWITCH, if knows_states { SWITCH_FIELDS } else { &renamed }));
    file.long(&format("sched_waking", WAKING, WAKING_FIELDS));
    // Neither symbols nor texts of printk: functions stand as names already.
    file.u32(0);
    file.u32(0);
    let threads = names(&events).into_iter().filter(|(tid, _)| *tid != 0);
    file.long(&threads.map(|(tid, name)| format!("{tid} {}\n", one_line(name))).collect::<String>());
    let cpus = events.keys().last().map_or(1, |last| *last + 1);
    file.u32(cpus as usize);
    file.bytes(b"options  \0");
    file.clock();
    file.bytes(b"flyrecord\0");
    let data: Vec<Vec<u8>> =
        (0..cpus).map(|cpu| events.get(&cpu).map_or_else(Vec::new, |events| pages(events))).collect();
    let mut offset = (file.0.len() + data.len() * 16).next_multiple_of(PAGE);
    for pages in &data {
        file.u64(offset as u64);
        file.u64(pages.len() as u64);
        offset += pages.len();
    }
    file.0.resize(file.0.len().next_multiple_of(PAGE), 0);
    file.0.extend(data.into_iter().flatten());
    file.0
}

fn format(name: &str, id: u16, fields: &str) -> String {
    format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}")
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\0'], "?")
}

/// Words of at most [`LONGEST`] bytes. Of a stack whole callers are kept, and how many more there were is said.
fn fitting(words: &str) -> Cow<'_, str> {
    const CALLERS: &str = " < ";
    const ROOM: usize = LONGEST - " < 18446744073709551615 more callers".len();
    if words.len() <= LONGEST {
        return words.into();
    }
    let cuts = || words.match_indices(CALLERS).map(|(at, _)| at);
    match cuts().take_while(|at| *at <= ROOM).last() {
        Some(cut) => {
            let more = cuts().filter(|at| *at >= cut).count();
            format!("{}{CALLERS}{more} more callers", &words[..cut]).into()
        }
        None => {
            let cut = words.char_indices().map(|(at, _)| at).take_while(|at| *at <= ROOM).last();
            let cut = cut.unwrap_or_default();
            format!("{} ... {} more bytes", &words[..cut], words.len() - cut).into()
        }
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    fn u16(&mut self, number: u16) {
        self.bytes(&number.to_le_bytes());
    }

    fn u32(&mut self, number: usize) {
        self.bytes(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn i32(&mut self, number: i32) {
        self.bytes(&number.to_le_bytes());
    }

    /// With a zero byte behind it.
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0]);
    }

    /// Its length before it.
    fn long(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// The option that names the clock, and the end of all options.
    fn clock(&mut self) {
        const CLOCK: u16 = 4;
        let clock = b"local [mono]\0";
        self.u16(CLOCK);
        self.u32(clock.len());
        self.bytes(clock);
        self.u16(0);
    }

    /// 16 bytes of a thread's name.
    fn name(&mut self, name: &str) {
        let mut bytes = [0; 16];
        for (byte, of_name) in bytes.iter_mut().take(15).zip(name.bytes()) {
            *byte = of_name;
        }
        self.bytes(&bytes);
    }
}

fn data(event: &Kept) -> Vec<u8> {
    let mut data = Writer(Vec::new());
    let head = |data: &mut Writer, id: u16| {
        data.u16(id);
        data.bytes(&[0, 0]);
        data.i32(event.task);
    };
    let thread = |data: &mut Writer, thread: &Thread| {
        data.name(&thread.name);
        data.i32(thread.tid);
        data.i32(thread.priority);
    };
    match &event.what {
        What::Switch(previous, next) => {
            head(&mut data, SWITCH);
            thread(&mut data, previous);
            data.u64(previous.state.unwrap_or_default().bits().into());
            thread(&mut data, next);
        }
        What::Waking(woken) => {
            head(&mut data, WAKING);
            thread(&mut data, woken);
            data.u32(event.cpu as usize);
        }
        What::Words(words) => {
            head(&mut data, PRINT);
            data.u64(0);
            data.text(&fitting(&one_line(words)));
        }
    }
    data.0.resize(data.0.len().next_multiple_of(4), 0);
    data.0
}

/// The pages of a CPU's ring buffer, whose events are in order of time.
fn pages(events: &[Kept]) -> Vec<u8> {
    let mut pages = Vec::new();
    let mut page: Option<(u64, u64, Vec<u8>)> = None;
    for event in events {
        let data = data(event);
        let needed = data.len() + 16;
        if page.as_ref().is_some_and(|(_, _, written)| written.len() + needed > PAGE - HEADER) {
            finish(page.take(), &mut pages);
        }
        let (_, before, written) = page.get_or_insert((event.at, event.at, Vec::new()));
        put(event.at - *before, &data, written);
        *before = event.at;
    }
    finish(page, &mut pages);
    pages
}

/// An event behind the others of its page.
fn put(delta: u64, data: &[u8], written: &mut Vec<u8>) {
    const BITS: u32 = 27;
    const EXTEND: u32 = 30;
    const MOST_WORDS: u32 = 28;
    let low = |delta: u64| u32::try_from(delta & ((1 << BITS) - 1)).unwrap_or_default() << 5;
    let mut rest = delta;
    if delta >> BITS != 0 {
        written.extend((EXTEND | low(delta)).to_le_bytes());
        written.extend(u32::try_from(delta >> BITS).unwrap_or(u32::MAX).to_le_bytes());
        rest = 0;
    }
    let words = u32::try_from(data.len() / 4).unwrap_or(u32::MAX);
    if words <= MOST_WORDS {
        written.extend((words | low(rest)).to_le_bytes());
    } else {
        written.extend(low(rest).to_le_bytes());
        written.extend(u32::try_from(data.len() + 4).unwrap_or_default().to_le_bytes());
    }
    written.extend(data);
}

fn finish(page: Option<(u64, u64, Vec<u8>)>, pages: &mut Vec<u8>) {
    let Some((time, _, written)) = page else { return };
    let end = pages.len() + PAGE;
    pages.extend(time.to_le_bytes());
    pages.extend((written.len() as u64).to_le_bytes());
    pages.extend(written);
    pages.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_does_not_fit_keeps_whole_names_and_says_how_many_are_left_out() {
        let names: Vec<String> = (0..100).map(|number| format!("a_function_number_{number}")).collect();
        let whole = format!("stack {}", names.join(" < "));
        let words = fitting(&whole);
        assert!(words.len() <= LONGEST, "{words}");
        let (kept, more) = words.rsplit_once(" < ").unwrap();
        let kept: Vec<&str> = kept.strip_prefix("stack ").unwrap().split(" < ").collect();
        assert!(kept.iter().zip(&names).all(|(one, other)| one == other) && kept.len() > 20);
        assert_eq!(more, format!("{} more callers", names.len() - kept.len()));
        assert_eq!(fitting("stack a < b"), "stack a < b");
        let long = "\u{e4}".repeat(2_000);
        assert!(fitting(&long).len() <= LONGEST && fitting(&long).ends_with(" more bytes"));
    }
}
