use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::made_up::{MACHINES, PageMaker};

/// Pages that are there, and some that come later.
#[derive(Debug)]
struct Queue(VecDeque<Option<Vec<u8>>>);

impl Pages for Queue {
    fn next_page(&mut self, page: &mut Vec<u8>) -> Result<bool> {
        let next = self.0.pop_front().flatten();
        next.map(|next| *page = next).map_or(Ok(false), |()| Ok(true))
    }
}

struct Reader {
    merge: Merge<Queue>,
    formats: Formats,
    tasks: Tasks,
}

impl Reader {
    fn new(cpus: Vec<Vec<Option<Vec<u8>>>>) -> Self {
        let queues = (0..).map(CpuId).zip(cpus.into_iter().map(|pages| Queue(pages.into())));
        Self { merge: Merge::new(queues), formats: MACHINES[0].formats(), tasks: Tasks::default() }
    }

    /// Everything up to a moment, in words.
    fn up_to(&mut self, horizon: u64) -> Vec<String> {
        self.merge.refill(&self.formats).unwrap();
        let mut all = Vec::new();
        while let Some(item) = self.merge.next(&self.formats, &mut self.tasks, Nanos(horizon)).unwrap() {
            all.push(match item {
                Item::Event(event) => {
                    let next = event.text("next_comm").unwrap();
                    format!("{} {} {}>{next}", event.time.0, event.cpu, event.comm.unwrap_or("?"))
                }
                Item::Lost(lost) => format!("lost {:?} on {:?}", lost.events, lost.cpu.map(|cpu| cpu.0)),
            });
        }
        all
    }
}

fn page(begin: u64) -> PageMaker {
    PageMaker::new(MACHINES[0], begin)
}

fn to(task: i32, next: i32, comm: &str) -> Vec<u8> {
    MACHINES[0].switch(task, next, comm)
}

#[test]
fn events_of_all_cpus_come_in_order_of_time_and_tasks_get_their_names() {
    let first = page(1).event(10, &to(0, 7, "cat")).event(30, &to(7, 0, "swapper/0")).page();
    let second = page(2).event(20, &to(0, 8, "dog")).page();
    let third = page(35).event(40, &to(8, 7, "tiger")).event(50, &to(7, 0, "swapper/1")).page();
    let mut reader = Reader::new(vec![vec![Some(first)], vec![Some(second), Some(third)]]);
    assert_eq!(
        reader.up_to(u64::MAX),
        [
            "10 0 <idle>>cat",
            "20 1 <idle>>dog",
            "30 0 cat>swapper/0",
            "40 1 dog>tiger",
            "50 1 tiger>swapper/1"
        ]
    );
    assert!(reader.up_to(u64::MAX).is_empty());
}

#[test]
fn what_is_lost_stands_where_it_was_lost() {
    let first = page(1).event(10, &to(0, 7, "a")).page();
    let second = page(20).event(25, &to(7, 0, "b")).lost(Some(45));
    let other = page(2).event(15, &to(0, 8, "c")).event(22, &to(8, 0, "d")).page();
    let mut reader = Reader::new(vec![vec![Some(first), Some(second)], vec![Some(other)]]);
    let words = ["10 0 <idle>>a", "15 1 <idle>>c", "lost Some(45) on Some(0)", "22 1 c>d", "25 0 a>b"];
    assert_eq!(reader.up_to(u64::MAX), words);
}

#[test]
fn damage_is_a_loss_and_the_next_page_goes_on() {
    let mut damaged = page(1).event(10, &to(0, 7, "a")).event(11, &to(7, 8, "b")).page();
    damaged[8] -= 1;
    let pages = vec![Some(damaged), Some(vec![1, 2, 3]), Some(page(20).event(25, &to(8, 0, "c")).page())];
    let mut reader = Reader::new(vec![pages]);
    let words = ["10 0 <idle>>a", "lost None on Some(0)", "lost None on Some(0)", "25 0 ?>c"];
    assert_eq!(reader.up_to(u64::MAX), words);
}

#[test]
fn a_record_too_short_to_have_a_task_is_lost() {
    let mut reader = Reader::new(vec![vec![Some(page(1).event(10, &[1, 0, 0, 0]).page())]]);
    assert_eq!(reader.up_to(u64::MAX), ["lost Some(1) on Some(0)"]);
}

#[test]
fn what_is_recorded_while_it_is_read_waits_for_the_others() {
    let first = page(1).event(10, &to(0, 7, "a")).event(100, &to(7, 0, "b")).page();
    let late = page(1).event(50, &to(0, 8, "c")).page();
    let mut reader = Reader::new(vec![vec![Some(first)], vec![None, Some(late)]]);
    assert_eq!(reader.up_to(40), ["10 0 <idle>>a"]);
    assert_eq!(reader.up_to(200), ["50 1 <idle>>c", "100 0 a>b"]);
}

proptest! {
    #[test]
    fn no_event_is_lost_or_out_of_order(
        cpus in prop::collection::vec(prop::collection::vec(prop::collection::vec(0..1000_u64, 0..10), 0..4), 1..4),
        horizons in prop::collection::vec(0..200_000_u64, 0..4),
    ) {
        let mut expected = 0;
        let pages = |deltas: Vec<Vec<u64>>| {
            let mut time = 0;
            let page = |deltas: Vec<u64>| {
                deltas.into_iter().fold(page(time), |page, delta| {
                    time += delta;
                    expected += 1;
                    page.event(time, &to(1, 2, "x"))
                }).page()
            };
            deltas.into_iter().map(page).map(Some).collect()
        };
        let mut reader = Reader::new(cpus.into_iter().map(pages).collect());
        let horizons = horizons.into_iter().chain([u64::MAX]);
        let all: Vec<String> = horizons.flat_map(|horizon| reader.up_to(horizon)).collect();
        let times: Vec<u64> = all.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
        prop_assert_eq!(times.len(), expected);
        prop_assert!(times.is_sorted());
    }
}
