//! The set of workers: starts them, answers requests for samples, starts programs again, and says what went wrong.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use sys::process::{self, Ended, Pid, Reaped};
use sys::schedule;
use units::Nanos;

use super::Context;
use super::cgroup::Group;
use super::ledger::Ledger;
use super::looks::Looks;
use super::worker::{self, WorkerId};
use crate::board::State;
use crate::message::Message;
use crate::pipe::{pipe, read_available};
use crate::{Program, Work};

/// The shortest and the longest that a step of a sequence lasts. Long enough for a stressor to get going; short, because
/// one was seen to keep all other ordinary threads waiting for as long as it ran (stress-ng --switch in an autogroup of
/// its own, Linux 6.18), the recorder among them.
const STEP: std::ops::RangeInclusive<Duration> = Duration::from_millis(250)..=Duration::from_secs(2);
/// How long a program that was asked to end may take.
const ENDING: Duration = Duration::from_millis(500);
/// How long to wait before a program that failed is started again.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How much of what a program prints on standard error is kept.
const ERRORS_KEPT: usize = 600;

/// All workers, children of this process.
pub(super) struct WorkerSet<'a> {
    pub(super) context: &'a Context,
    group: Option<&'a Group>,
    pub(super) own: Pid,
    members: Vec<Member>,
    pub(super) ledger: Ledger,
    pub(super) looks: Looks,
}

/// A worker's place, whether or not it is taken.
struct Member {
    id: WorkerId,
    pid: Option<Pid>,
    started: Instant,
    /// When the program was asked to end to make room for the next step.
    ending: Option<Instant>,
    /// When to start the program again.
    again: Option<Instant>,
    errors: Option<OwnedFd>,
    text: Vec<u8>,
}

impl<'a> WorkerSet<'a> {
    pub fn new(context: &'a Context, group: Option<&'a Group>) -> Self {
        let ids = (0..context.plan.load.stressors.len()).flat_map(|stressor| {
            (0..context.board.workers(stressor)).map(move |worker| WorkerId { stressor, worker, step: 0 })
        });
        let members = ids.map(Member::new).collect();
        let stressors = context.plan.load.stressors.iter().enumerate();
        let mut programs = stressors.filter(|(_, stressor)| matches!(stressor.work, Work::Program(_)));
        let only_program = programs.next().map(|(index, _)| index).filter(|_| programs.next().is_none());
        let workers: Vec<usize> =
            (0..context.plan.load.stressors.len()).map(|stressor| context.board.workers(stressor)).collect();
        let (ledger, looks) = (Ledger::new(only_program), Looks::of(&workers));
        Self { context, group, own: process::own_pid(), members, ledger, looks }
    }

    /// Starts everybody and goes on until the parent lets go of the leash or the keeper of this process ends.
    pub fn run(mut self, keeper: Option<BorrowedFd<'_>>) {
        for index in 0..self.members.len() {
            let id = self.members[index].id;
            self.launch(index, self.context.plan.start_offset(id.stressor, id.worker));
        }
        while self.attend(keeper) {
            self.reap();
            self.take_turns();
            self.look_if_due();
        }
    }

    /// Workers that live.
    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.members.iter().filter_map(|member| member.pid)
    }

    /// Which of its stressor's workers a process is.
    pub(super) fn worker_of(&self, pid: Pid) -> Option<usize> {
        self.members.iter().find(|member| member.pid == Some(pid)).map(|member| member.id.worker)
    }

    fn work(&self, index: usize) -> &'a Work {
        &self.context.plan.load.stressors[self.members[index].id.stressor].work
    }

    fn program(&self, index: usize) -> Option<&'a Program> {
        match self.work(index) {
            Work::Program(program) => Some(program),
            _ => None,
        }
    }

    fn launch(&mut self, index: usize, delay: Nanos) {
        let (context, group, own) = (self.context, self.group, self.own);
        let errors = self.program(index).and_then(|_| pipe().ok());
        let member = &mut self.members[index];
        let (id, (read, write)) = (member.id, errors.unzip());
        match process::fork(|| worker::enter(context, id, delay, own, || join(group), write)) {
            Ok(pid) => {
                member.restart(pid, read);
                self.ledger.enter(pid, id.stressor);
                if matches!(self.work(index), Work::Program(_)) {
                    context.board.set_state(id.stressor, id.worker, State::Running);
                    context.reporter.tell(&Message::Step { stressor: id.stressor, step: id.step });
                }
            }
            Err(error) => self.fail(index, &format!("a worker could not be started: {error}")),
        }
    }

    fn fail(&self, index: usize, text: &str) {
        let id = self.members[index].id;
        // First the reason: the parent asks for it as soon as it sees the state.
        self.context.failure(id.stressor, text);
        self.context.board.set_state(id.stressor, id.worker, State::Failed);
    }

    /// Waits for something to do; false when it is time to end.
    fn attend(&mut self, keeper: Option<BorrowedFd<'_>>) -> bool {
        let leash = std::io::stdin();
        let errors: Vec<usize> =
            (0..self.members.len()).filter(|&index| self.members[index].errors.is_some()).collect();
        let mut fds = vec![leash.as_fd(), keeper.unwrap_or(leash.as_fd())];
        fds.extend(errors.iter().filter_map(|&index| self.members[index].errors.as_ref()).map(AsFd::as_fd));
        let Ok(ready) = sys::signal::wait_readable(&fds, self.patience()) else { return false };
        let (watched, printed) = ready.split_at(2);
        errors
            .into_iter()
            .zip(printed)
            .filter(|(_, ready)| **ready)
            .for_each(|(index, _)| self.members[index].read());
        if keeper.is_some() && watched[1] {
            return false;
        }
        !watched[0] || self.answer(leash.as_fd())
    }

    /// Programs that end are to be followed at once; built-in workers do not end.
    fn patience(&self) -> Duration {
        let any = (0..self.members.len()).any(|index| self.program(index).is_some());
        Duration::from_millis(if any { 20 } else { 250 }).min(self.looks.patience())
    }

    /// Answers requests for samples; false at the end of the pipe.
    fn answer(&mut self, leash: BorrowedFd<'_>) -> bool {
        let mut requests = [0_u8; 64];
        let count = match rustix::io::read(leash, &mut requests) {
            Ok(0) => return false,
            Ok(count) => count as u64,
            Err(error) => return error == sys::Errno::INTR || error == sys::Errno::AGAIN,
        };
        // Whatever is asked for is asked for now: what the load did meanwhile would count for it.
        schedule::before_ordinary(|| self.look());
        let board = &self.context.board;
        board.answered().publish(board.answered().get() + count);
        true
    }

    fn reap(&mut self) {
        while let Ok(Some(reaped)) = process::reap() {
            self.ledger.close(&reaped);
            let found = self.members.iter().position(|member| member.pid == Some(reaped.pid));
            if let Some(index) = found {
                self.members[index].pid = None;
                self.members[index].read();
                match self.program(index) {
                    Some(program) => self.program_ended(index, program, &reaped),
                    None => self.worker_ended(index, reaped.ended),
                }
            }
        }
    }

    /// A built-in worker ends only where it has said why or was killed.
    fn worker_ended(&mut self, index: usize, ended: Ended) {
        if ended != Ended::Exited(i32::from(worker::GAVE_UP)) {
            let name = self.context.plan.load.stressors[self.members[index].id.stressor].name();
            self.fail(index, &format!("a worker of {name} {ended}; it is not replaced"));
        }
    }

    fn program_ended(&mut self, index: usize, program: &Program, reaped: &Reaped) {
        let stepped = !program.steps.is_empty();
        if self.members[index].ending.take().is_some() {
            // What the leader of the group left behind makes room too.
            let _ = process::kill_group(reaped.pid);
            return self.next_step(index, program, Duration::ZERO);
        }
        match reaped.ended {
            Ended::Exited(0) if stepped => self.next_step(index, program, Duration::ZERO),
            Ended::Exited(0) if program.again => self.members[index].again = Some(Instant::now()),
            Ended::Exited(0) => self.ended_by_itself(index, program),
            ended => {
                let text = self.members[index].why(program, ended);
                self.fail(index, &text);
                if stepped {
                    self.next_step(index, program, AFTER_FAILURE);
                } else if program.again {
                    self.members[index].again = Some(Instant::now() + AFTER_FAILURE);
                }
            }
        }
    }

    /// A program that has put itself into the background goes on; one that has left nobody is a load that is over.
    fn ended_by_itself(&mut self, index: usize, program: &Program) {
        let member = &self.members[index];
        if !self.ledger.has_living(member.id.stressor, self.own) {
            let text = format!("{} ended by itself after {:.1?}", program.shown(), member.started.elapsed());
            self.fail(index, &text);
        }
    }

    fn next_step(&mut self, index: usize, program: &Program, after: Duration) {
        let member = &mut self.members[index];
        member.id.step = (member.id.step + 1) % program.steps.len().max(1);
        member.again = Some(Instant::now() + after);
    }

    /// Starts programs whose time has come, ends steps whose time is over.
    fn take_turns(&mut self) {
        for index in 0..self.members.len() {
            let Some(program) = self.program(index) else { continue };
            let member = &mut self.members[index];
            match (member.pid, member.again) {
                (None, Some(again)) if again <= Instant::now() => self.launch(index, Nanos::ZERO),
                (Some(pid), _) if !program.steps.is_empty() => {
                    let length =
                        step_length(self.context.plan.duration.map(Nanos::duration), program.steps.len());
                    member.end_step(pid, length);
                }
                _ => {}
            }
        }
    }
}

/// An equal share of the load's time for each of `steps`, within [`STEP`], less what it takes to end one and start the
/// next, so that all get their turn.
fn step_length(duration: Option<Duration>, steps: usize) -> Duration {
    let duration = duration.map(|duration| duration * 4 / 5);
    let share =
        duration.map_or(*STEP.end(), |duration| duration / u32::try_from(steps.max(1)).unwrap_or(u32::MAX));
    share.clamp(*STEP.start(), *STEP.end())
}

fn join(group: Option<&Group>) {
    if let Some(group) = group {
        // A worker outside the group is still a descendant, and found as such.
        let _ = group.join();
    }
}

impl Member {
    fn new(id: WorkerId) -> Self {
        let (pid, ending, again, errors) = (None, None, None, None);
        Self { id, pid, started: Instant::now(), ending, again, errors, text: Vec::new() }
    }

    fn restart(&mut self, pid: Pid, errors: Option<OwnedFd>) {
        *self = Self { pid: Some(pid), errors, ..Self::new(self.id) };
    }

    /// Takes in what the program printed, and keeps the end of it.
    fn read(&mut self) {
        let Some(errors) = &self.errors else { return };
        let ended = read_available(errors.as_fd(), &mut self.text);
        self.text.drain(..self.text.len().saturating_sub(ERRORS_KEPT));
        if ended {
            self.errors = None;
        }
    }

    fn end_step(&mut self, pid: Pid, length: Duration) {
        match self.ending {
            None if self.started.elapsed() >= length => {
                self.ending = Some(Instant::now());
                let _ = process::end_group(pid);
            }
            Some(since) if since.elapsed() >= ENDING => {
                let _ = process::kill_group(pid);
            }
            _ => {}
        }
    }

    /// How the program ended, and its last words.
    fn why(&self, program: &Program, ended: Ended) -> String {
        let step = program.steps.get(self.id.step).map(|step| format!(" {step}")).unwrap_or_default();
        let text = String::from_utf8_lossy(&self.text);
        let last: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = last[last.len().saturating_sub(2)..].join("; ");
        match ended {
            Ended::Exited(127) => format!("{} ({last})", program.as_missing()),
            _ if last.is_empty() => format!("{}{step} {ended}", program.shown()),
            _ => format!("{}{step} {ended}: {last}", program.shown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_share_the_time_within_bounds() {
        let seconds = |number| Some(Duration::from_secs(number));
        assert_eq!(step_length(seconds(10), 20), Duration::from_millis(400));
        assert_eq!(step_length(seconds(1), 20), Duration::from_millis(250));
        assert_eq!(step_length(seconds(36_000), 20), Duration::from_secs(2));
        assert_eq!(step_length(None, 20), Duration::from_secs(2));
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_its_package() {
        let mut member = Member::new(WorkerId { stressor: 0, worker: 0, step: 0 });
        member.text = b"\nsh: 1: hackbench: not found\n".to_vec();
        let program = Program::shell("hackbench -l 1");
        let text = member.why(&program, Ended::Exited(127));
        assert!(text.contains("hackbench was not found") && text.contains("rt-tests"), "{text}");
        assert_eq!(
            member.why(&program, Ended::Killed(9)),
            "hackbench was killed by signal 9: sh: 1: hackbench: not found"
        );
    }
}
