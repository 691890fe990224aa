//! A machine's answers in memory: what was read of a live system, an unpacked archive, or a tree made up for a test.

use std::collections::BTreeMap;

use record::Fact;
use rustix::io::Errno;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Without the directory.
    pub text: String,
    /// Whether it is a directory; a link to one is not.
    pub is_directory: bool,
}

/// What each path answered. Paths begin with `/` and have no `.` and `..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The files that were read, or why not.
    pub files: BTreeMap<String, Fact<Vec<u8>>>,
    /// The directories that were listed. Where everything is here, they need not be.
    pub directories: BTreeMap<String, Fact<Vec<Name>>>,
    /// The symbolic links that were read.
    pub links: BTreeMap<String, Fact<String>>,
    /// What was looked for and not opened.
    pub present: BTreeMap<String, Fact<()>>,
    /// Whether what is not here was not asked for. Otherwise it does not exist.
    pub is_capture: bool,
}

impl Tree {
    /// Nothing yet of a machine of which only a part will be read.
    pub fn captured() -> Self {
        Self { is_capture: true, ..Self::default() }
    }

    /// A whole machine with these files and nothing else.
    pub fn whole(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let files = files.into_iter().map(|(path, bytes)| (path, Fact::Value(bytes))).collect();
        Self { files, ..Self::default() }
    }

    /// The same with other names for paths and for what directories list.
    pub(super) fn renamed(self, name: fn(&str) -> String) -> Self {
        fn paths<T>(map: BTreeMap<String, Fact<T>>, name: fn(&str) -> String) -> BTreeMap<String, Fact<T>> {
            map.into_iter().map(|(path, fact)| (name(&path), fact)).collect()
        }
        let listed =
            |names: Vec<Name>| names.into_iter().map(|of| Name { text: name(&of.text), ..of }).collect();
        let directories = paths(self.directories, name).into_iter();
        Self {
            files: paths(self.files, name),
            directories: directories.map(|(path, names)| (path, names.map(listed))).collect(),
            links: paths(self.links, name),
            present: paths(self.present, name),
            is_capture: self.is_capture,
        }
    }

    /// What a path is that is not here.
    fn elsewhere<T>(&self) -> Fact<T> {
        if self.is_capture { Fact::Unsupported } else { Fact::Absent }
    }

    /// The files with contents by their paths, those as one that differ in numbers only, with how many they are.
    pub fn outline(&self) -> Vec<(String, usize)> {
        let mut patterns: BTreeMap<String, usize> = BTreeMap::new();
        for (path, _) in self.contents() {
            *patterns.entry(without_numbers(path)).or_default() += 1;
        }
        patterns.into_iter().collect()
    }

    pub(super) fn file(&self, path: &str) -> Fact<Vec<u8>> {
        let path = &self.resolved(path);
        match self.files.get(path) {
            Some(fact) => fact.clone(),
            None if self.is_directory(path) => Fact::Unreadable(Errno::ISDIR.raw_os_error()),
            None => self.elsewhere(),
        }
    }

    pub(super) fn directory(&self, path: &str) -> Fact<Vec<Name>> {
        let path = &self.resolved(path);
        if let Some(fact) = self.directories.get(path) {
            return fact.clone();
        }
        if self.is_capture || !self.is_directory(path) {
            return self.elsewhere();
        }
        let mut names: BTreeMap<&str, bool> = BTreeMap::new();
        for rest in self.below(path) {
            let (name, is_directory) = rest.split_once('/').map_or((rest, false), |(name, _)| (name, true));
            *names.entry(name).or_default() |= is_directory || self.is_directory(&format!("{path}/{name}"));
        }
        let names = names.into_iter();
        Fact::Value(names.map(|(text, is_directory)| Name { text: text.to_owned(), is_directory }).collect())
    }

    pub(super) fn presence(&self, path: &str) -> Fact<()> {
        let path = &self.resolved(path);
        match (self.present.get(path), self.files.get(path)) {
            (Some(fact), _) => fact.clone(),
            (None, Some(fact)) => fact.clone().map(drop),
            (None, None) if self.is_directory(path) => Fact::Value(()),
            (None, None) => self.elsewhere(),
        }
    }

    pub(super) fn link(&self, path: &str) -> Fact<String> {
        let (directory, name) = path.rsplit_once('/').unwrap_or_default();
        let path = format!("{}/{name}", self.resolved(directory));
        self.links.get(&path).cloned().unwrap_or_else(|| self.elsewhere())
    }

    /// Whether a path that is not a file is a directory as far as is known here: listed, with something below it, or
    /// found as an empty one.
    fn is_directory(&self, path: &str) -> bool {
        let is_listed = matches!(self.directories.get(path), Some(Fact::Value(_)));
        let is_there = !self.is_capture && !self.files.contains_key(path) && self.present.contains_key(path);
        is_listed || is_there || self.below(path).next().is_some()
    }

    /// The path with its links followed, as the kernel follows them. A capture has every path as it was asked for.
    fn resolved(&self, path: &str) -> String {
        let mut path = path.to_owned();
        if self.is_capture || self.links.is_empty() {
            return path;
        }
        for _ in 0..MOST_LINKS {
            let ends = path.match_indices('/').map(|(end, _)| end).skip(1).chain([path.len()]);
            let link = |end: usize| match self.links.get(&path[..end]) {
                Some(Fact::Value(target)) => Some((end, target)),
                _ => None,
            };
            let Some((end, target)) = ends.collect::<Vec<_>>().into_iter().find_map(link) else {
                return path;
            };
            path = joined(&path[..end], target) + &path[end..];
        }
        path
    }

    /// What exists below a directory, each without the directory's path.
    fn below(&self, directory: &str) -> impl Iterator<Item = &str> {
        let prefix = format!("{}/", directory.trim_end_matches('/'));
        let directories = existing(&self.directories, prefix.clone());
        let present = existing(&self.present, prefix.clone());
        existing(&self.files, prefix.clone())
            .chain(directories)
            .chain(existing(&self.links, prefix))
            .chain(present)
    }
}

/// With one `*` for each run of digits.
fn without_numbers(path: &str) -> String {
    let mut pattern = String::new();
    for character in path.chars() {
        match character {
            '0'..='9' if pattern.ends_with('*') => {}
            '0'..='9' => pattern.push('*'),
            other => pattern.push(other),
        }
    }
    pattern
}

/// As many as the kernel follows (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// Where a link points, as a path from the root.
fn joined(link: &str, target: &str) -> String {
    let directory = if target.starts_with('/') { "" } else { link.rsplit_once('/').unwrap_or_default().0 };
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.iter().map(|part| format!("/{part}")).collect()
}

/// The paths that begin with `prefix` and exist, each without it.
fn existing<T>(map: &BTreeMap<String, Fact<T>>, prefix: String) -> impl Iterator<Item = &str> {
    map.range(prefix.clone()..)
        .map_while(move |(path, fact)| Some((path.strip_prefix(&prefix)?, fact)))
        .filter(|(_, fact)| !matches!(fact, Fact::Absent))
        .map(|(rest, _)| rest)
}
