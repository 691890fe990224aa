//! A machine's answers in memory: what was read of a live system, an unpacked archive, or a tree made up for a test.

use std::collections::BTreeMap;

use record::Fact;
use rustix::io::Errno;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Its name.
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

    /// What a path is that is not here.
    fn elsewhere<T>(&self) -> Fact<T> {
        if self.is_capture { Fact::Unsupported } else { Fact::Absent }
    }

    pub(super) fn file(&self, path: &str) -> Fact<Vec<u8>> {
        match self.files.get(path) {
            Some(fact) => fact.clone(),
            None if self.below(path).next().is_some() => Fact::Unreadable(Errno::ISDIR.raw_os_error()),
            None => self.elsewhere(),
        }
    }

    pub(super) fn directory(&self, path: &str) -> Fact<Vec<Name>> {
        if let Some(fact) = self.directories.get(path) {
            return fact.clone();
        }
        let mut names: BTreeMap<&str, bool> = BTreeMap::new();
        for rest in self.below(path) {
            match rest.split_once('/') {
                Some((name, _)) => names.insert(name, true),
                None => names.insert(rest, false),
            };
        }
        let name = |(text, is_directory): (&str, bool)| Name { text: text.to_owned(), is_directory };
        match names.is_empty() || self.is_capture {
            true => self.elsewhere(),
            false => Fact::Value(names.into_iter().map(name).collect()),
        }
    }

    pub(super) fn presence(&self, path: &str) -> Fact<()> {
        match (self.present.get(path), self.files.get(path)) {
            (Some(fact), _) => fact.clone(),
            (None, Some(fact)) => fact.clone().map(drop),
            (None, None) if self.below(path).next().is_some() => Fact::Value(()),
            (None, None) => self.elsewhere(),
        }
    }

    pub(super) fn link(&self, path: &str) -> Fact<String> {
        self.links.get(path).cloned().unwrap_or_else(|| self.elsewhere())
    }

    /// What exists below a directory, each without the directory's path.
    fn below(&self, directory: &str) -> impl Iterator<Item = &str> {
        let prefix = format!("{}/", directory.trim_end_matches('/'));
        let directories = existing(&self.directories, prefix.clone());
        existing(&self.files, prefix.clone()).chain(directories).chain(existing(&self.links, prefix))
    }
}

/// The paths that begin with `prefix` and exist, each without it.
fn existing<T>(map: &BTreeMap<String, Fact<T>>, prefix: String) -> impl Iterator<Item = &str> {
    map.range(prefix.clone()..)
        .map_while(move |(path, fact)| Some((path.strip_prefix(&prefix)?, fact)))
        .filter(|(_, fact)| !matches!(fact, Fact::Absent))
        .map(|(rest, _)| rest)
}
