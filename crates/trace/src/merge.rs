//! The events of all CPUs in order of time, each CPU's from its own pages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::{CpuId, Nanos};

use crate::Tasks;
use crate::error::Result;
use crate::event::{Body, Cause, Event, Item, Lost};
use crate::format::Formats;
use crate::page::{Damage, Entry, Missed, Place};

/// Where the pages of one CPU come from.
pub trait Pages {
    /// Puts the next page into `page`, in place of what is there; false where there is none now.
    ///
    /// # Errors
    /// What the kernel answered.
    fn next_page(&mut self, page: &mut Vec<u8>) -> Result<bool>;
}

/// Streams of CPUs, merged. One page of each is in memory.
#[derive(Debug)]
pub struct Merge<P> {
    cpus: Vec<Cursor<P>>,
    /// What each CPU has next; CPUs that have run dry are not in it.
    next: Earliest,
    dry: Vec<usize>,
    /// The CPU whose item was lent last.
    lent: Option<usize>,
}

/// Times of CPUs, by their places, of which the earliest is wanted. One CPU often has several events before any other: its next time is
/// compared with the earliest of the others, and goes into the heap only where it is later.
#[derive(Debug, Default)]
struct Earliest {
    /// No later than any in the heap.
    front: Option<(Nanos, usize)>,
    others: BinaryHeap<Reverse<(Nanos, usize)>>,
}

impl Earliest {
    fn put(&mut self, new: (Nanos, usize)) {
        let later = match (self.front, self.others.peek_mut()) {
            (Some(front), _) if front <= new => new,
            (Some(front), _) => {
                self.front = Some(new);
                front
            }
            (None, Some(mut top)) if top.0 < new => {
                self.front = Some(std::mem::replace(&mut top.0, new));
                return;
            }
            (None, _) => {
                self.front = Some(new);
                return;
            }
        };
        self.others.push(Reverse(later));
    }

    fn peek(&mut self) -> Option<(Nanos, usize)> {
        self.front = self.front.take().or_else(|| self.others.pop().map(|Reverse(earliest)| earliest));
        self.front
    }

    fn take(&mut self) -> Option<(Nanos, usize)> {
        self.peek()?;
        self.front.take()
    }
}

/// Where one CPU's stream stands.
#[derive(Debug)]
struct Cursor<P> {
    cpu: CpuId,
    pages: P,
    page: Vec<u8>,
    place: Option<Place>,
    next: Option<Next>,
}

/// What comes next on a CPU.
#[derive(Clone, Debug)]
enum Next {
    Entry(Entry),
    Lost(Option<u64>, Cause),
}

impl<P: Pages> Merge<P> {
    /// Of these CPUs.
    pub fn new(cpus: impl IntoIterator<Item = (CpuId, P)>) -> Self {
        let cursor = |(cpu, pages)| Cursor { cpu, pages, page: Vec::new(), place: None, next: None };
        let cpus: Vec<_> = cpus.into_iter().map(cursor).collect();
        Self { dry: (0..cpus.len()).collect(), next: Earliest::default(), cpus, lent: None }
    }

    /// The CPUs, and where the pages of each come from.
    pub fn sources(&self) -> impl Iterator<Item = (CpuId, &P)> {
        self.cpus.iter().map(|cursor| (cursor.cpu, &cursor.pages))
    }

    /// Looks again at CPUs that had no page when they were asked last.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn refill(&mut self, formats: &Formats) -> Result<()> {
        for index in std::mem::take(&mut self.dry) {
            self.advance(index, formats)?;
        }
        Ok(())
    }

    /// The next item before `horizon`; none where there is none now. What threads are called is noted in `tasks`.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn next<'a>(
        &'a mut self,
        formats: &'a Formats,
        tasks: &'a mut Tasks,
        horizon: Nanos,
    ) -> Result<Option<Item<'a>>> {
        if let Some(index) = self.lent.take() {
            self.advance(index, formats)?;
        }
        if self.next.peek().is_none_or(|(time, _)| time >= horizon) {
            return Ok(None);
        }
        let Some((_, index)) = self.next.take() else { return Ok(None) };
        self.lent = Some(index);
        Ok(self.cpus[index].item(formats, tasks))
    }

    fn advance(&mut self, index: usize, formats: &Formats) -> Result<()> {
        match self.cpus[index].advance(formats)? {
            Some(time) => self.next.put((time, index)),
            None => self.dry.push(index),
        }
        Ok(())
    }
}

impl<P: Pages> Cursor<P> {
    /// Goes to what comes next; its time.
    fn advance(&mut self, formats: &Formats) -> Result<Option<Nanos>> {
        let layout = formats.layout();
        loop {
            if let Some(found) = self.place.as_mut().and_then(|place| place.next(layout, &self.page)) {
                return Ok(Some(self.found(found)));
            }
            self.place = None;
            if !self.pages.next_page(&mut self.page)? {
                return Ok(None);
            }
            let header = match layout.header(&self.page) {
                Ok(header) => header,
                // There is no time: it was before all that is still to come.
                Err(damage) => return Ok(Some(self.lost(Nanos::ZERO, None, Cause::Damaged(damage)))),
            };
            self.place = Some(Place::new(&header));
            match header.missed {
                Missed::Nothing => {}
                Missed::Events(events) => {
                    return Ok(Some(self.lost(header.time, Some(events), Cause::Overwritten)));
                }
                Missed::Unknown => return Ok(Some(self.lost(header.time, None, Cause::Overwritten))),
            }
        }
    }

    fn found(&mut self, found: std::result::Result<Entry, Damage>) -> Nanos {
        match found {
            Ok(entry) => {
                let time = entry.time;
                self.next = Some(Next::Entry(entry));
                time
            }
            Err(damage) => self.lost(Nanos::ZERO, None, Cause::Damaged(damage)),
        }
    }

    fn lost(&mut self, time: Nanos, events: Option<u64>, cause: Cause) -> Nanos {
        self.next = Some(Next::Lost(events, cause));
        time
    }

    fn item<'a>(&'a self, formats: &'a Formats, tasks: &'a mut Tasks) -> Option<Item<'a>> {
        let entry = match self.next.as_ref()? {
            Next::Lost(events, cause) => {
                return Some(Item::Lost(Lost { cpu: Some(self.cpu), events: *events, cause: *cause }));
            }
            Next::Entry(entry) => entry,
        };
        let data = &self.page[entry.data.clone()];
        Some(record(entry.time, self.cpu, data, formats, tasks))
    }
}

/// The event of a record; a record too short to say of what sort it is, is damage.
fn record<'a>(
    time: Nanos,
    cpu: CpuId,
    data: &'a [u8],
    formats: &'a Formats,
    tasks: &'a mut Tasks,
) -> Item<'a> {
    let read = formats.id(data).and_then(|id| {
        let format = formats.get(id);
        Some((id, format, formats.task(format, data)?))
    });
    let Some((id, format, task)) = read else {
        let cause = Cause::Damaged(Damage::Event);
        return Item::Lost(Lost { cpu: Some(cpu), events: Some(1), cause });
    };
    if let Some(format) = format {
        tasks.see(format, formats.layout().order, data);
    }
    let body = Body::Record { id, format, formats, data };
    Item::Event(Event { time, cpu, task, comm: tasks.find(task), body })
}

#[cfg(test)]
mod tests;
