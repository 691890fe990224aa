//! What a core notes of each receive while it runs: figures, faults, and what is published.

use std::sync::atomic::Ordering;

use crate::contract::watch::{Fault, Report};
use crate::model::{ObjectId, QueueId};
use crate::published;
use crate::state::{Figures, Local};

thread_local! {
    /// Asked for once: a system call.
    static THREAD: i32 = sys::schedule::thread_id();
}

impl Local {
    pub fn figures(&self, queue: QueueId) -> &Figures {
        &self.shared().cores[self.me].figures[queue.index()]
    }

    /// Run and response time of the event that just ended: one reading of the clock, which begins the next event too.
    #[inline(always)]
    pub fn watch(&self, queue: QueueId, sent: u64, word: u64) {
        // Not the last reading: the object may have read the clock itself.
        let start = self.begun.get();
        let end = self.read_clock();
        self.begun.set(end);
        self.publish_end((sent, start, end), queue);
        let figures = self.figures(queue);
        add(&figures.events, 1);
        let run = end - start;
        raise(&figures.worst_run, run);
        if sent > 0 {
            let response = end.saturating_sub(sent);
            raise(&figures.worst_response, response);
            self.judge(queue, run, response, word);
        }
    }

    #[inline(always)]
    pub fn publish_begin(&self, queue: QueueId) {
        if let Some(published) = &self.shared().published {
            published.begin(self.me, self.begun.get(), self.current.object.get(), queue.0);
        }
    }

    #[inline(always)]
    pub fn publish_end(&self, times: (u64, u64, u64), queue: QueueId) {
        if let Some(published) = &self.shared().published {
            published.end(self.me, times, self.current.object.get(), queue.0);
            self.accounted.set(times.2);
        }
    }

    /// Publishes that this core was held up since it looked last, where it was.
    #[inline]
    pub fn account(&self) {
        let Some(published) = &self.shared().published else { return };
        let (since, now) = (self.accounted.replace(0), self.read_clock());
        if since > 0 && now - since > published::GAP {
            published.end(self.me, (0, since, now), 0, 0);
        }
        self.accounted.set(now.max(1));
    }

    #[inline]
    fn judge(&self, queue: QueueId, run: u64, response: u64, word: u64) {
        let Some(contract) = self.shared().queues[queue.index()].contract.get() else { return };
        if run > contract.budget {
            add(&self.figures(queue).overruns, 1);
            self.report(Fault::Overrun, queue, word, run, contract.budget);
        }
        if response > contract.deadline {
            add(&self.figures(queue).late, 1);
            self.report(Fault::Late, queue, word, response, contract.deadline);
        }
    }

    #[cold]
    pub fn report(&self, fault: Fault, queue: QueueId, event: u64, took: u64, allowed: u64) {
        let object = ObjectId(self.current.object.get().saturating_sub(1));
        let report =
            Report { fault, object, queue, event, core: self.me, time: self.now.get(), took, allowed };
        if self.reports.push(report).is_err() {
            add(&self.shared().cores[self.me].reports_lost, 1);
        }
    }

    /// Publishes which thread is this core now.
    pub fn publish_thread(&self) {
        if let Some(published) = &self.shared().published {
            published.thread(self.me, THREAD.with(|thread| *thread));
        }
    }
}

/// Adds to a figure that one core writes.
#[inline(always)]
fn add(figure: &std::sync::atomic::AtomicU64, number: u64) {
    figure.store(figure.load(Ordering::Relaxed) + number, Ordering::Relaxed);
}

/// Keeps the greatest.
#[inline(always)]
fn raise(figure: &std::sync::atomic::AtomicU64, value: u64) {
    if value > figure.load(Ordering::Relaxed) {
        figure.store(value, Ordering::Relaxed);
    }
}
