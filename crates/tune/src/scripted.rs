//! A machine that is made up: its kernel takes what a kernel takes, and errs where a script says so.

use std::collections::BTreeMap;

use control::{Kernel, SliceProperty};
use machine::{latency_request, swaps, tasks};
use record::Fact;
use rustix::io::Errno;
use survey::running;
use sysroot::{SysRoot, Tree};
use units::{CpuList, Policy};

use crate::setting::Form;

/// What goes wrong with one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The kernel says no.
    Refuse(Errno),
    /// It says yes and does nothing.
    Ignore,
    /// It takes this in the place of what was written.
    Clamp(String),
    /// The process is killed before it writes.
    KillBefore,
    /// The process is killed as soon as it has written.
    KillAfter,
}

/// The panic that stands for the end of the process.
#[derive(Debug)]
pub struct Killed;

/// The machine.
#[derive(Clone, Debug)]
pub struct Scripted {
    /// Its files.
    pub tree: Tree,
    /// How often it was written to.
    pub writes: usize,
    faults: BTreeMap<usize, Fault>,
    unlimited: Option<Vec<u8>>,
    /// What was stopped or taken away, by its name.
    aside: BTreeMap<String, Tree>,
}

impl Scripted {
    /// One that has the files of `tree`.
    pub fn new(tree: Tree) -> Self {
        Self { tree, writes: 0, faults: BTreeMap::new(), unlimited: None, aside: BTreeMap::new() }
    }

    /// The same, on which the write of that number goes wrong, counted from 0 on.
    pub fn with(mut self, write: usize, fault: Fault) -> Self {
        self.faults.insert(self.writes + write, fault);
        self
    }

    /// What a file holds.
    pub fn text(&self, path: &str) -> Option<String> {
        self.tree.files.get(path)?.value().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Another program writes a file.
    pub fn put(&mut self, path: &str, text: &str) {
        self.tree.files.insert(path.to_owned(), Fact::Value(text.as_bytes().to_vec()));
    }

    /// One write, which `change` makes unless the script says otherwise; what it is clamped to is given to it.
    fn written(
        &mut self,
        mut change: impl FnMut(&mut Self, Option<&str>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let fault = self.faults.remove(&self.writes);
        self.writes += 1;
        match fault {
            None => change(self, None),
            Some(Fault::Refuse(errno)) => Err(errno),
            Some(Fault::Ignore) => Ok(()),
            Some(Fault::Clamp(text)) => change(self, Some(&text)),
            Some(Fault::KillBefore) => std::panic::panic_any(Killed),
            Some(Fault::KillAfter) => {
                let _ = change(self, None);
                std::panic::panic_any(Killed)
            }
        }
    }

    fn store(&mut self, path: &str, value: &str) -> Result<(), Errno> {
        if let Some(group) = path.strip_suffix("/tasks") {
            return self.enter(group, value);
        }
        let old = match self.tree.files.get(path) {
            Some(Fact::Value(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Some(Fact::Unreadable(errno)) => return Err(Errno::from_raw_os_error(*errno)),
            _ => return Err(Errno::NOENT),
        };
        let new = match path.ends_with("/cgroup.subtree_control") {
            true => controllers(&old, value),
            false => taken(Form::of(path, &old), &old, value),
        };
        let new = new.ok_or(Errno::INVAL)?;
        if self.is_above_the_highest_clock(path, &new) {
            return Err(Errno::INVAL);
        }
        let end = &old[old.trim_end().len()..];
        self.put(path, &format!("{new}{end}"));
        if let Some(top) = path.strip_suffix("/cgroup.subtree_control") {
            self.show_cpusets(top, new.split_whitespace().any(|name| name == "cpuset"));
        }
        if let Some(group) = path.strip_suffix("/cpuset.cpus") {
            let effective = ["cpus.effective", "effective_cpus"].map(|name| format!("{group}/cpuset.{name}"));
            if let Some(file) = effective.into_iter().find(|file| self.tree.files.contains_key(file)) {
                self.put(&file, &format!("{new}{end}"));
            }
        }
        if path.ends_with("/cpuset.cpus.partition") {
            self.forget_affinities(path.trim_end_matches(".partition"));
        }
        Ok(())
    }

    /// The files of groups below `top` about their CPUs come and go with the controller.
    pub fn show_cpusets(&mut self, top: &str, are_there: bool) {
        let is_below = |path: &String| path.rsplit_once('/').is_some_and(|(above, _)| above == top);
        let groups: Vec<String> = self.tree.present.keys().filter(|path| is_below(path)).cloned().collect();
        for (group, (name, text)) in groups.iter().flat_map(|group| GROUP.map(|file| (group, file))) {
            let path = format!("{group}/{name}");
            match (are_there, self.tree.files.contains_key(&path)) {
                (true, false) => self.put(&path, text),
                (false, true) if name.starts_with("cpuset.") => drop(self.tree.files.remove(&path)),
                _ => {}
            }
        }
    }

    /// Whether the limits of a clock would stand the wrong way round.
    fn is_above_the_highest_clock(&self, path: &str, new: &str) -> bool {
        let clock = |text: &str| text.trim().parse::<u64>().ok();
        let other =
            |end: &str, beside: &str| clock(&self.text(&format!("{}{beside}", path.strip_suffix(end)?))?);
        let (lowest, highest) = ("scaling_min_freq", "scaling_max_freq");
        clock(new).is_some_and(|new| {
            other(lowest, highest).is_some_and(|highest| new > highest)
                || other(highest, lowest).is_some_and(|lowest| new < lowest)
        })
    }

    /// As the kernel does when it makes or takes away a partition of the CPUs in the file `taken`.
    fn forget_affinities(&mut self, taken: &str) {
        let cpus = |text: Option<String>| text.and_then(|text| text.trim().parse::<CpuList>().ok());
        let Some(online) = cpus(self.text("/sys/devices/system/cpu/online")) else { return };
        let left = online.difference(&cpus(self.text(taken)).unwrap_or_default());
        // Where a test says nothing of the version, programs stay where they are.
        let is_old = self.text("/proc/sys/kernel/osrelease").is_some_and(|text| text.starts_with("6.1."));
        let is_forgotten = |task: &tasks::Task| if task.kernel { !task.bound } else { is_old };
        for task in tasks::all(&self.root()).into_iter().filter(is_forgotten) {
            let _ = self.bind(task.tid, &left.to_string());
        }
    }

    /// A thread changes its cpuset of v1, and forgets to which CPUs it was bound.
    fn enter(&mut self, group: &str, tid: &str) -> Result<(), Errno> {
        let path = format!("{group}/tasks");
        let cpus = self.text(&format!("{group}/cpuset.cpus")).ok_or(Errno::NOENT)?;
        let lists: Vec<String> =
            self.tree.files.keys().filter(|path| path.ends_with("/tasks")).cloned().collect();
        for list in lists {
            let text = self.text(&list).unwrap_or_default();
            let others: String =
                text.lines().filter(|line| *line != tid).map(|line| format!("{line}\n")).collect();
            self.put(&list, &if list == path { format!("{others}{tid}\n") } else { others });
        }
        self.bind(tid.parse().map_err(|_| Errno::INVAL)?, cpus.trim())
    }

    /// Lets a thread run on these CPUs.
    fn bind(&mut self, tid: i32, cpus: &str) -> Result<(), Errno> {
        const FIELD: &str = "Cpus_allowed_list:";
        self.edit(&format!("{}/status", Scripted::thread(tid)), |text| {
            let old = text.lines().find(|line| line.starts_with(FIELD))?;
            Some(text.replacen(old, &format!("{FIELD}\t{cpus}"), 1))
        })
    }

    /// Replaces a part of a file that the kernel makes from a thread.
    fn edit(&mut self, path: &str, change: impl Fn(&str) -> Option<String>) -> Result<(), Errno> {
        let text = self.text(path).ok_or(Errno::SRCH)?;
        self.put(path, &change(&text).ok_or(Errno::INVAL)?);
        Ok(())
    }

    /// The directory of a thread of the kernel, which is a process of its own.
    fn thread(tid: i32) -> String {
        format!("/proc/{tid}/task/{tid}")
    }
}

/// What a new control group has, as far as it matters.
const GROUP: [(&str, &str); 4] = [
    ("cpuset.cpus", "\n"),
    ("cpuset.cpus.effective", "\n"),
    ("cpuset.cpus.partition", "member\n"),
    ("cgroup.procs", ""),
];

/// What it has in the cpusets of v1.
const GROUP_V1: [(&str, &str); 7] = [
    ("cpuset.cpus", "\n"),
    ("cpuset.effective_cpus", "\n"),
    ("cpuset.mems", "\n"),
    ("cpuset.cpu_exclusive", "0\n"),
    ("cpuset.sched_load_balance", "1\n"),
    ("cgroup.procs", ""),
    ("tasks", ""),
];

/// The controllers of `old` with one added or taken away.
fn controllers(old: &str, change: &str) -> Option<String> {
    let (sign, name) = change.split_at_checked(1)?;
    let others = old.split_whitespace().filter(|other| *other != name);
    let added = (sign == "+").then_some(name);
    Some(added.into_iter().chain(others).collect::<Vec<_>>().join(" "))
}

/// What a file says after `value` was written over `old`; none where the kernel would not take it.
fn taken(form: Form, old: &str, value: &str) -> Option<String> {
    let (old, value) = (old.trim(), value.trim());
    match form {
        Form::Choice => {
            let plain = old.replace(['[', ']', '(', ')'], "");
            let brackets = if old.contains('[') { ("[", "]") } else { ("(", ")") };
            let mark = |word: &str| match word == value {
                true => format!("{}{word}{}", brackets.0, brackets.1),
                false => word.to_owned(),
            };
            let words: Vec<&str> = plain.split(' ').collect();
            words.contains(&value).then(|| words.into_iter().map(mark).collect::<Vec<_>>().join(" "))
        }
        Form::Mask => CpuList::from_mask(value).map(|cpus| mask_like(old, &cpus)),
        Form::List => value.parse::<CpuList>().ok().map(|cpus| cpus.to_string()),
        Form::Fields => {
            let fields = value.split_whitespace().count();
            let rest = old.split('\t').skip(fields).map(|field| format!("\t{field}"));
            Some(value.to_owned() + &rest.collect::<String>())
        }
        Form::Whole | Form::Limit | Form::Lowest => Some(value.to_owned()),
    }
}

/// A mask with the groups and digits of `old`.
fn mask_like(old: &str, cpus: &CpuList) -> String {
    let widths: Vec<usize> = old.split(',').map(str::len).collect();
    let mask = cpus.to_mask();
    let groups: Vec<&str> = mask.split(',').collect();
    let missing = vec!["0"; widths.len().saturating_sub(groups.len())];
    let padded = [missing, groups].concat().into_iter().zip(widths);
    padded.map(|(group, width)| format!("{group:0>width$}")).collect::<Vec<_>>().join(",")
}

impl Kernel for Scripted {
    fn root(&self) -> SysRoot {
        SysRoot::of(self.tree.clone())
    }

    fn write_file(&mut self, path: &str, value: &str) -> Result<(), Errno> {
        self.written(|machine, clamped| machine.store(path, clamped.unwrap_or(value)))
    }

    fn set_affinity(&mut self, tid: i32, cpus: &CpuList) -> Result<(), Errno> {
        self.written(|machine, clamped| {
            machine.bind(tid, &clamped.map_or_else(|| cpus.to_string(), str::to_owned))
        })
    }

    fn set_scheduling(&mut self, tid: i32, policy: Policy, priority: u32) -> Result<(), Errno> {
        self.written(|machine, _| {
            machine.edit(&format!("{}/stat", Scripted::thread(tid)), |text| {
                // proc(5) counts from 1, the name is the second; fields 40 and 41 are priority and policy.
                let (head, rest) = text.rsplit_once(") ")?;
                let mut fields: Vec<String> = rest.split(' ').map(str::to_owned).collect();
                *fields.get_mut(40 - 3)? = priority.to_string();
                *fields.get_mut(41 - 3)? = policy.number().to_string();
                Some(format!("{head}) {}", fields.join(" ")))
            })
        })
    }

    fn make_directory(&mut self, path: &str) -> Result<(), Errno> {
        self.written(|machine, _| {
            if machine.tree.present.contains_key(path) {
                return Err(Errno::EXIST);
            }
            machine.tree.present.insert(path.to_owned(), Fact::Value(()));
            let above = path.rsplit_once('/').map_or("", |(above, _)| above);
            let is_v1 = machine.tree.files.contains_key(&format!("{above}/cpuset.sched_load_balance"));
            for (name, text) in if is_v1 { &GROUP_V1[..] } else { &GROUP[..] } {
                machine.put(&format!("{path}/{name}"), text);
            }
            Ok(())
        })
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), Errno> {
        self.written(|machine, _| {
            let is_full = |list: &str| machine.text(list).is_some_and(|text| !text.trim().is_empty());
            if ["cgroup.procs", "tasks"].iter().any(|list| is_full(&format!("{path}/{list}"))) {
                return Err(Errno::BUSY);
            }
            machine.tree.present.remove(path).ok_or(Errno::NOENT)?;
            machine.tree.files.retain(|file, _| !file.starts_with(&format!("{path}/")));
            machine.forget_affinities(path);
            Ok(())
        })
    }

    fn swap(&mut self, path: &str, priority: Option<i32>) -> Result<(), Errno> {
        self.written(|machine, _| {
            let text = machine.text(swaps::PATH).ok_or(Errno::NOENT)?;
            let own = |line: &&str| line.split_whitespace().next() == Some(path);
            let line = text.lines().find(own).map(str::to_owned);
            let new = match (priority, line) {
                (None, Some(line)) => {
                    machine
                        .aside
                        .insert(path.to_owned(), Tree::whole([(path.to_owned(), line.clone().into_bytes())]));
                    text.replacen(&format!("{line}\n"), "", 1)
                }
                (Some(_), None) => {
                    let line = machine.aside.remove(path).ok_or(Errno::INVAL)?;
                    let line =
                        line.files[path].value().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                    format!("{text}{}\n", line.unwrap_or_default())
                }
                _ => return Err(Errno::INVAL),
            };
            machine.put(swaps::PATH, &new);
            Ok(())
        })
    }

    fn service(&mut self, manager: &str, run: bool) -> Result<(), Errno> {
        let program = manager.trim_end_matches(".service").rsplit('/').next().unwrap_or_default().to_owned();
        self.written(|machine, _| {
            if run {
                let process = machine.aside.remove(&program).ok_or(Errno::NOENT)?;
                machine.tree.files.extend(process.files);
                return Ok(());
            }
            let own =
                running(&machine.root(), &[&program]).first().map(|item| format!("/proc/{}/", item.value));
            let own = own.ok_or(Errno::NOENT)?;
            let (process, rest) = std::mem::take(&mut machine.tree.files)
                .into_iter()
                .partition(|(path, _)| path.starts_with(&own));
            machine.tree.files = rest;
            machine.aside.insert(program.clone(), Tree { files: process, ..Tree::default() });
            Ok(())
        })
    }

    fn slice(&mut self, group: &str, property: SliceProperty, value: &str) -> Result<(), Errno> {
        self.written(|machine, _| {
            let is_there = machine.tree.present.contains_key(group);
            let is_empty = machine.text(&format!("{group}/cgroup.procs")).is_none_or(|text| text.is_empty());
            if value.is_empty() && is_empty {
                machine.tree.present.remove(group);
                machine.tree.files.retain(|file, _| !file.starts_with(&format!("{group}/")));
                return Ok(());
            }
            if !is_there {
                machine.tree.present.insert(group.to_owned(), Fact::Value(()));
                GROUP.iter().for_each(|(name, text)| machine.put(&format!("{group}/{name}"), text));
            }
            if property == SliceProperty::AllowedCpus {
                machine.put(&format!("{group}/cpuset.cpus"), &format!("{value}\n"));
                machine.put(&format!("{group}/cpuset.cpus.effective"), &format!("{value}\n"));
            }
            Ok(())
        })
    }

    fn limit_latency(&mut self, microseconds: Option<u32>) -> Result<(), Errno> {
        self.written(|machine, _| {
            let path = latency_request::PATH;
            let now = machine.tree.files.get(path).and_then(Fact::value).cloned().ok_or(Errno::NOENT)?;
            let before = machine.unlimited.get_or_insert(now).clone();
            let limit = microseconds.and_then(|limit| i32::try_from(limit).ok());
            let bytes = limit.map_or(before, |limit| limit.to_ne_bytes().to_vec());
            machine.tree.files.insert(path.to_owned(), Fact::Value(bytes));
            Ok(())
        })
    }
}
