//! Names of threads by their id: a record holds the id alone.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use machine::facts::place::FIRST_PID_NAMESPACE;
use record::Fact;
use sysroot::SysRoot;

use crate::bytes::Order;
use crate::format::{Field, Format};
use crate::value::Value;

/// What the kernel's text calls an idle CPU.
const IDLE: &str = "<idle>";

/// The names that are known so far.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// What events and /proc say; none for a thread that was looked for and is gone.
    names: HashMap<i32, Option<String>, Hashing>,
    /// What `saved_cmdlines` says. The kernel brings a name up to date only when a switch is recorded: the name of an
    /// earlier thread with the same id may stand there.
    saved: HashMap<i32, String, Hashing>,
    live: Option<Living>,
}

/// A machine whose threads are looked for.
#[derive(Clone, Debug)]
struct Living {
    root: SysRoot,
    /// Whether ids in its /proc are those of its trace.
    has_processes: bool,
    /// Where its `saved_cmdlines` is.
    saved: String,
    /// Whether that was read since [`Tasks::begin`].
    has_read: bool,
    /// Threads that may have come into it afterwards.
    not_found: Vec<i32>,
}

/// Ids are looked up for each event: multiplied by a random odd number, which nobody who made a trace can know.
#[derive(Clone, Copy, Debug)]
struct Hashing(u64);

impl Default for Hashing {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0) | 1)
    }
}

impl BuildHasher for Hashing {
    type Hasher = Product;
    fn build_hasher(&self) -> Product {
        Product { factor: self.0, hash: 0 }
    }
}

/// The hash of one id.
struct Product {
    factor: u64,
    hash: u64,
}

impl Hasher for Product {
    fn write_i32(&mut self, id: i32) {
        // The table takes the lowest and the highest bits; the highest are the best mixed.
        self.hash = u64::from(u32::from_ne_bytes(id.to_ne_bytes())).wrapping_mul(self.factor).rotate_left(32);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(self.factor));
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

impl Tasks {
    /// Those of `saved_cmdlines`: an id and a name in each line. The kernel keeps a few only (`saved_cmdlines_size`).
    pub fn parse(text: &str) -> Self {
        let mut tasks = Self::default();
        tasks.add(text);
        tasks
    }

    /// None yet. Threads of which no event says a name are looked for in /proc: one that never gives its CPU away is in
    /// no other place. In a process namespace ids are others there, and nothing is looked for. Those that are not there are
    /// looked for in the kernel's list, `saved`.
    pub(crate) fn live(root: &SysRoot, saved: String) -> Self {
        let namespace = root.link("/proc/self/ns/pid");
        let has_processes = namespace.value().is_some_and(|name| name == FIRST_PID_NAMESPACE);
        let living =
            Living { root: root.clone(), has_processes, saved, has_read: false, not_found: Vec::new() };
        Self { live: Some(living), ..Self::default() }
    }

    /// Looks for none from now on.
    pub(crate) fn look_for_none(&mut self) {
        self.live = None;
    }

    /// Another reading begins: the kernel's list may have others by now.
    pub(crate) fn begin(&mut self) {
        let Some(living) = &mut self.live else { return };
        living.has_read = false;
        for task in living.not_found.drain(..) {
            self.names.remove(&task);
        }
    }

    /// Adds those of `saved_cmdlines`, which are those of now.
    pub fn add(&mut self, text: &str) {
        let line = |line| {
            let (id, name) = str::trim_start(line).split_once(' ')?;
            Some((id.parse().ok()?, name)).filter(|_| name != "<...>")
        };
        self.saved.extend(text.lines().filter_map(line).map(|(id, name)| (id, name.to_owned())));
    }

    /// The name of a thread, as far as it is known.
    pub fn name(&self, task: i32) -> Option<&str> {
        let saved = || self.saved.get(&task).map(String::as_str);
        if task == 0 { Some(IDLE) } else { self.names.get(&task).and_then(Option::as_deref).or_else(saved) }
    }

    /// The same; one that is not known is looked for.
    pub(crate) fn find(&mut self, task: i32) -> Option<&str> {
        if task != 0 && !self.names.contains_key(&task) {
            self.look_for(task);
        }
        self.name(task)
    }

    /// The kernel's list comes last: for reading it the kernel keeps preemption off for some 20,000 instructions.
    fn look_for(&mut self, task: i32) {
        let Some(living) = &mut self.live else { return };
        let comm = || living.root.read(&format!("/proc/{task}/comm")).value().cloned();
        let name = if living.has_processes { comm() } else { None };
        if name.is_none() {
            let was_read = std::mem::replace(&mut living.has_read, true);
            let list = (!was_read).then(|| living.root.read(&living.saved));
            living.not_found.extend(was_read.then_some(task));
            self.add(list.as_ref().and_then(Fact::value).map_or("", String::as_str));
        }
        self.names.insert(task, name);
    }

    /// Takes what an event says of threads.
    pub(crate) fn see(&mut self, format: &Format, order: Order, data: &[u8]) {
        format.tasks().for_each(|(id, name)| self.see_one(id, name, order, data));
    }

    fn see_one(&mut self, id: &Field, name: &Field, order: Order, data: &[u8]) {
        let Some(Value::Signed(id)) = id.value(order, data) else { return };
        let (Ok(id), Some(Value::Text(name))) = (i32::try_from(id), name.value(order, data)) else { return };
        self.note(id, name);
    }

    fn note(&mut self, task: i32, name: Cow<'_, str>) {
        match self.names.get_mut(&task) {
            Some(Some(known)) if *known == name => {}
            Some(known) => *known = Some(name.into_owned()),
            None => drop(self.names.insert(task, Some(name.into_owned()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_names_may_hold_blanks_and_the_last_one_holds() {
        let mut tasks = Tasks::parse("7 sh\n 9 <...>\nx y\n");
        tasks.add("7 tmux: server\n8 cat\n");
        let names = [7, 8, 9, 0].map(|id| tasks.name(id).map(str::to_owned));
        assert_eq!(names.map(Option::unwrap_or_default), ["tmux: server", "cat", "", "<idle>"]);
    }

    #[test]
    fn a_thread_that_lives_is_not_called_by_the_saved_name_of_an_earlier_one() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        std::fs::write(tree.path().join("proc/7/comm"), "probe\n").unwrap();
        let saved = tree.path().join("saved");
        std::fs::write(&saved, "7 rustc\n8 gone\n").unwrap();
        let root = SysRoot::at(tree.path());
        let living = Living {
            root,
            has_processes: true,
            saved: "/saved".into(),
            has_read: false,
            not_found: Vec::new(),
        };
        let mut tasks = Tasks { live: Some(living), ..Tasks::default() };
        assert_eq!(
            [7, 8, 9].map(|id| tasks.find(id).map(str::to_owned)),
            [Some("probe".into()), Some("gone".into()), None]
        );
        assert_eq!(tasks.find(7), Some("probe"));
        // What came into the list since is found in the next reading, and the list is not read for those that are known.
        std::fs::write(&saved, "10 late\n").unwrap();
        assert_eq!(tasks.find(10), None);
        tasks.begin();
        assert_eq!(tasks.find(7), Some("probe"));
        assert!(!tasks.live.as_ref().unwrap().has_read);
        assert_eq!(tasks.find(10), Some("late"));
    }
}
