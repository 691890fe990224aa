//! A shell script taken apart, as far as what it runs and what it writes goes: quotes, variables with one value, pipes,
//! redirections, here-documents. A splitter of our own: a whole shell parser would weigh more than all that it is asked for here.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// One command with its redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// Its line, from 1.
    pub line: usize,
    /// Its words without quotes, known variables in place.
    pub words: Vec<String>,
    /// Files that it writes to; whether the name has an unquoted pattern in it.
    pub targets: Vec<(String, bool)>,
    /// The command whose output it reads.
    pub reads: Option<Vec<String>>,
    /// A here-document, with its first line's number.
    pub document: Option<(usize, String)>,
}

impl Simple {
    /// The words behind sudo, env, exec, time and the like.
    pub fn command(&self) -> &[String] {
        unwrapped(&self.words)
    }

    /// Whether another user than the one who redirects runs it.
    pub fn is_run_as_other(&self) -> bool {
        self.words.first().is_some_and(|word| matches!(word.as_str(), "sudo" | "doas"))
    }
}

/// The value of one of several options, in the next word or behind `=`.
pub fn value_of<'a>(arguments: &[&'a str], names: &[&str]) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| names.contains(argument));
    let behind = at.and_then(|at| arguments.get(at + 1).copied());
    let joined = arguments.iter().find_map(|argument| {
        let (name, value) = argument.split_once('=')?;
        names.contains(&name).then_some(value)
    });
    behind.or(joined)
}

/// Programs that run the command behind their options, and options of theirs that take a value.
const WRAPPERS: [(&str, &[&str]); 14] = [
    ("sudo", &["-u", "-g", "-E_"]),
    ("doas", &["-u"]),
    ("exec", &["-a"]),
    ("xargs", &["-n", "-I", "-P", "-L", "-d", "-s", "-E", "-a"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("env", &["-u", "-C"]),
    ("if", &[]),
    ("!", &[]),
    ("time", &[]),
    ("command", &[]),
    ("then", &[]),
    ("do", &[]),
    ("else", &[]),
];

/// What a wrapper runs, through all wrappers.
pub fn unwrapped(words: &[String]) -> &[String] {
    let mut rest = words;
    while let Some((first, after)) = rest.split_first() {
        let is_variable = first.split_once('=').is_some_and(|(name, _)| is_name(name)) && !after.is_empty();
        if is_variable {
            rest = after;
            continue;
        }
        let Some((_, valued)) = WRAPPERS.iter().find(|(name, _)| first == name) else { break };
        rest = after;
        while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
            let takes = usize::from(valued.contains(&option.as_str()));
            rest = rest.get(1 + takes..).unwrap_or_default();
        }
    }
    rest
}

/// The program's name without its directory.
pub fn program(words: &[String]) -> &str {
    words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word))
}

/// The commands of a script. Never fails: what is no shell gives words all the same.
pub fn commands(text: &str) -> Vec<Simple> {
    let mut variables = BTreeMap::new();
    let mut commands = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let mut logical = line.to_owned();
        while logical.ends_with('\\') {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next);
        }
        let mut parser = Parser::new(index + 1, &logical, &variables);
        parser.run();
        let Parser { commands: mut found, delimiters, assigned, .. } = parser;
        variables.extend(assigned);
        for delimiter in delimiters {
            let body: Vec<(usize, &str)> = lines
                .by_ref()
                .take_while(|(_, line)| line.trim_start_matches('\t').trim_end() != delimiter)
                .collect();
            let first = body.first().map_or(index + 2, |(index, _)| index + 1);
            let text: String = body.iter().map(|(_, line)| format!("{line}\n")).collect();
            let readers = found.iter_mut();
            if let Some(reader) = readers
                .into_iter()
                .find(|simple| simple.document.as_ref().is_some_and(|(_, text)| text.is_empty()))
            {
                reader.document = Some((first, text));
            }
        }
        commands.append(&mut found);
    }
    below_directory(&mut commands);
    commands
}

/// Names of files behind `cd` into one of the kernel's directories become absolute.
fn below_directory(commands: &mut [Simple]) {
    let mut directory = String::new();
    for simple in commands {
        if program(simple.command()) == "cd" {
            let path = simple.command().get(1).map_or("", String::as_str).trim_end_matches('/');
            let is_kernels = path.starts_with("/sys") || path.starts_with("/proc");
            directory = match () {
                () if is_kernels => path.to_owned(),
                () if !directory.is_empty()
                    && !path.is_empty()
                    && !path.starts_with(['/', '.', '$', '-', '~']) =>
                {
                    format!("{directory}/{path}")
                }
                () => String::new(),
            };
        } else if !directory.is_empty() {
            let absolute = |path: &mut String| {
                if !path.starts_with(['/', '-', '$', '~', '.']) {
                    *path = format!("{directory}/{path}");
                }
            };
            simple.targets.iter_mut().for_each(|(path, _)| absolute(path));
            if program(&simple.words) == "tee" {
                simple.words.iter_mut().skip(1).for_each(absolute);
            }
        }
    }
}

/// One logical line.
struct Parser<'a> {
    line: usize,
    rest: Peekable<Chars<'a>>,
    variables: &'a BTreeMap<String, String>,
    assigned: BTreeMap<String, String>,
    commands: Vec<Simple>,
    delimiters: Vec<String>,
    current: Simple,
    word: Option<String>,
    /// Whether the word has `*`, `?` or `[` outside quotes.
    pattern: bool,
    /// What becomes of the next word.
    next: Next,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Word,
    Target,
    Source,
    Document,
}

impl<'a> Parser<'a> {
    fn new(line: usize, text: &'a str, variables: &'a BTreeMap<String, String>) -> Self {
        Self {
            line,
            rest: text.chars().peekable(),
            variables,
            assigned: BTreeMap::new(),
            commands: Vec::new(),
            delimiters: Vec::new(),
            current: Simple { line, ..Simple::default() },
            word: None,
            pattern: false,
            next: Next::Word,
        }
    }

    fn run(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                '#' if self.word.is_none() => break,
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '\\' => self.push_next(),
                '$' => self.variable(),
                '<' if self.placeholder() => {}
                '>' | '<' => self.redirection(c),
                '|' | ';' | '&' => self.operator(c),
                '(' | ')' if self.word.is_none() => self.end_command(false),
                c if c.is_whitespace() => self.end_word(),
                c => {
                    self.pattern |= matches!(c, '*' | '?' | '[');
                    self.push(c);
                }
            }
        }
        self.end_command(false);
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_with(String::new).push(c);
    }

    fn push_next(&mut self) {
        if let Some(c) = self.rest.next() {
            self.push(c);
        }
    }

    fn single_quoted(&mut self) {
        self.word.get_or_insert_with(String::new);
        while let Some(c) = self.rest.next().filter(|c| *c != '\'') {
            self.push(c);
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_with(String::new);
        while let Some(c) = self.rest.next().filter(|c| *c != '"') {
            match c {
                '\\' if matches!(self.rest.peek(), Some('"' | '\\' | '$' | '`')) => self.push_next(),
                '$' => self.variable(),
                c => self.push(c),
            }
        }
    }

    /// `$name`, `${name}` by its only value; anything else stays as it is.
    fn variable(&mut self) {
        let mut name = String::new();
        let closing = match self.rest.peek() {
            Some('{') => Some('}'),
            Some('(') => Some(')'),
            _ => None,
        };
        if let Some(closing) = closing {
            let opening = self.rest.next().unwrap_or_default();
            let mut depth = 1;
            for c in self.rest.by_ref() {
                depth += i32::from(c == opening) - i32::from(c == closing);
                if depth == 0 {
                    break;
                }
                name.push(c);
            }
            let text = match self.variables.get(&name).or_else(|| self.assigned.get(&name)) {
                Some(value) if closing == '}' => value.clone(),
                _ => format!("${opening}{name}{closing}"),
            };
            self.word.get_or_insert_with(String::new).push_str(&text);
            return;
        }
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        let value = self.variables.get(&name).or_else(|| self.assigned.get(&name)).cloned();
        let text = value.unwrap_or_else(|| format!("${name}"));
        self.word.get_or_insert_with(String::new).push_str(&text);
    }

    /// `<cpu>`: what a reader fills in.
    fn placeholder(&mut self) -> bool {
        let ahead: String = self.rest.clone().take_while(|c| *c != '>' && !c.is_whitespace()).collect();
        let ends = self.rest.clone().nth(ahead.chars().count()) == Some('>');
        let is_name =
            !ahead.is_empty() && ahead.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if ends && is_name {
            let text = format!("<{ahead}>");
            self.rest.nth(ahead.chars().count());
            self.word.get_or_insert_with(String::new).push_str(&text);
        }
        ends && is_name
    }

    fn redirection(&mut self, sign: char) {
        if self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
            self.word = None; // a descriptor's number
        }
        self.end_word();
        let mut signs = String::from(sign);
        while let Some(c) = self.rest.next_if(|c| matches!(c, '>' | '<' | '&' | '|')) {
            signs.push(c);
        }
        self.next = match signs.as_str() {
            "<<" => {
                let _ = self.rest.next_if_eq(&'-');
                Next::Document
            }
            ">" | ">>" | ">|" | "<>" => Next::Target,
            _ => Next::Source,
        };
    }

    fn operator(&mut self, sign: char) {
        let twice = self.rest.next_if_eq(&sign).is_some();
        if sign == '&' && !twice && self.rest.peek() == Some(&'>') {
            return;
        }
        self.end_command(sign == '|' && !twice);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let pattern = std::mem::take(&mut self.pattern);
        match std::mem::replace(&mut self.next, Next::Word) {
            Next::Target => self.current.targets.push((word, pattern)),
            Next::Source => {}
            Next::Document => {
                self.delimiters.push(word);
                self.current.document = Some((0, String::new()));
            }
            Next::Word => self.current.words.push(word),
        }
    }

    fn end_command(&mut self, piped: bool) {
        self.end_word();
        let ended = std::mem::replace(&mut self.current, Simple { line: self.line, ..Simple::default() });
        if piped {
            self.current.reads = Some(unwrapped(&ended.words).to_vec());
            self.current.document = ended.document.clone();
        }
        // A loop over one pattern: the variable stands for any of its files.
        if let [first, name, inside, list] = ended.words.as_slice() {
            if first == "for" && inside == "in" && is_name(name) && list.starts_with('/') {
                self.assigned.insert(name.clone(), list.clone());
            }
        }
        if ended.words.len() == 1 {
            if let Some((name, value)) = ended.words[0].split_once('=').filter(|(name, _)| is_name(name)) {
                self.assigned.insert(name.to_owned(), value.to_owned());
            }
        }
        let ended = if piped { Simple { document: None, ..ended } } else { ended };
        if !ended.words.is_empty() || !ended.targets.is_empty() {
            self.commands.push(ended);
        }
    }
}

/// Whether a text can be a shell variable's name.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        commands(text).into_iter().map(|simple| simple.words).collect()
    }

    #[test]
    fn quotes_pipes_and_redirections_are_taken_apart() {
        let found = commands("echo 'a b' \"c d\" > /x 2>&1; sudo echo 1 | tee -a /y # why\n");
        assert_eq!(found[0].words, ["echo", "a b", "c d"]);
        assert_eq!(found[0].targets, [("/x".to_owned(), false)]);
        assert_eq!(found[1].words, ["sudo", "echo", "1"]);
        assert_eq!(found[2].reads.as_deref(), Some(&["echo".to_owned(), "1".to_owned()][..]));
        assert!(found[1].is_run_as_other());
        assert_eq!(found[2].command(), ["tee", "-a", "/y"]);
    }

    #[test]
    fn variables_with_a_value_are_put_in_place() {
        assert_eq!(
            words("A=2-3\necho $A ${A} \"$A\" '$A' $B $(nproc)")[1],
            ["echo", "2-3", "2-3", "2-3", "$A", "$B", "$(nproc)"]
        );
    }

    #[test]
    fn here_documents_belong_to_who_reads_them() {
        let found = commands("cat <<'EOF' | sudo tee /etc/x\na = 1\nEOF\necho done\n");
        assert_eq!(found[1].document, Some((2, "a = 1\n".to_owned())));
        assert_eq!(found[2].words, ["echo", "done"]);
    }

    #[test]
    fn patterns_and_placeholders_are_seen() {
        let found = commands("echo <cpu> > /sys/cpu*/x");
        assert_eq!(found[0].words, ["echo", "<cpu>"]);
        assert_eq!(found[0].targets, [("/sys/cpu*/x".to_owned(), true)]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "(\\PC|[\n\"'\\\\$<>|;&#(){}=]|<<EOF\n|EOF\n){0,60}") {
            let _ = commands(&text);
        }
    }
}
