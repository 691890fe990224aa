//! Files of programs that touch latency, known by their paths, with the keys that they have: the table `placed.txt`.

use std::sync::LazyLock;

use super::keys::Value;

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/placed.txt.gz"))));

/// A program's file.
pub struct File {
    pub program: &'static str,
    pub grammar: Grammar,
    /// Whether the program reads no other key.
    pub whole: bool,
    pub paths: Vec<&'static str>,
    pub keys: Vec<(&'static str, Value)>,
    /// What people write for another key of the file.
    pub slips: Vec<(&'static str, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    Assign,
    Equals,
    Directive,
}

/// The files of the table.
pub static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let mut files: Vec<File> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix("@ "), files.last_mut()) {
            (Some(head), _) => files.extend(file(head)),
            (None, Some(file)) => match line.split_once(" | = ") {
                Some(slip) => file.slips.push(slip),
                None => file.keys.extend(key(line)),
            },
            (None, None) => {}
        }
    }
    files
});

fn file(head: &'static str) -> Option<File> {
    let mut columns = head.split(" | ");
    let (program, grammar, paths) = (columns.next()?, columns.next()?, columns.next()?);
    let (grammar, whole) = grammar.strip_suffix(" whole").map_or((grammar, false), |grammar| (grammar, true));
    let grammar = match grammar {
        "assign" => Grammar::Assign,
        "equals" => Grammar::Equals,
        "directive" => Grammar::Directive,
        _ => return None,
    };
    Some(File {
        program,
        grammar,
        whole,
        paths: paths.split(',').collect(),
        keys: Vec::new(),
        slips: Vec::new(),
    })
}

fn key(line: &'static str) -> Option<(&'static str, Value)> {
    let (name, value) = line.split_once(" | ")?;
    Some((name, Value::parse(value)?))
}

impl File {
    /// Whether the file stands there.
    pub fn is_at(&self, path: &str) -> bool {
        self.paths.iter().any(|known| match known.split_once('*') {
            Some((begin, end)) => path.starts_with(begin) && path.ends_with(end),
            None => path == *known,
        })
    }

    /// What the value of a key is.
    pub fn key(&self, name: &str) -> Option<&Value> {
        self.keys.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// A line as the program takes it apart; nothing for one that is no setting.
    pub fn setting<'a>(&self, line: &'a str) -> Option<(&'a str, &'a str)> {
        let bare = |value: &'a str| value.trim().trim_matches(['"', '\'']);
        match self.grammar {
            Grammar::Assign => {
                let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
                Some((name, bare(value.split(" #").next().unwrap_or(value))))
            }
            Grammar::Equals => line.split_once('=').map(|(name, value)| (name.trim(), bare(value))),
            Grammar::Directive if line.starts_with('[') => None,
            Grammar::Directive => {
                let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                Some((name, bare(value)))
            }
        }
    }
}

/// Whether an assignment of that name is one of a file's, wherever it stands, and what is wrong with it.
pub fn assigned(name: &str, value: &str) -> Option<Option<String>> {
    let slips = FILES.iter().flat_map(|file| &file.slips);
    if let Some((_, meant)) = slips.into_iter().find(|(slip, _)| *slip == name) {
        return Some(Some(format!("nothing reads {name}: {meant} is meant")));
    }
    let sourced = FILES.iter().filter(|file| file.grammar == Grammar::Assign);
    let known = sourced.into_iter().find_map(|file| file.key(name))?;
    Some(known.fault_of(value))
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_line_of_the_table_is_read() {
        let lines = || super::TABLE.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(super::FILES.len(), lines().filter(|line| line.starts_with('@')).count());
        let keys: usize = super::FILES.iter().map(|file| file.keys.len() + file.slips.len()).sum();
        assert_eq!(keys, lines().filter(|line| !line.starts_with('@')).count());
    }
}
