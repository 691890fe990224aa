//! Assignments of a shell's file as `sh` would make them (POSIX.1-2017, shell command language): quotes, variables,
//! comments. What only running it would tell, a command's output or a condition, makes a variable unknown.

use std::collections::BTreeMap;

use super::{Piece, Place};

/// What a file's variables hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    values: BTreeMap<String, Option<Vec<Piece>>>,
    is_opaque: bool,
}

impl Variables {
    /// What a variable holds, nothing for one that was never set; none where only running the file would tell.
    pub fn get(&self, name: &str) -> Option<Vec<Piece>> {
        if self.is_opaque {
            return None;
        }
        self.values.get(name).map_or_else(|| Some(Vec::new()), Clone::clone)
    }

    /// A variable's text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|pieces| pieces.iter().map(|piece| piece.text.as_str()).collect())
    }

    pub(super) fn set(&mut self, name: &str, value: Option<Vec<Piece>>) {
        self.values.insert(name.to_owned(), value);
    }
}

/// A word of a statement.
pub(super) struct ShellWord<'a> {
    /// As it stands in the file.
    pub raw: &'a str,
    pieces: Vec<Piece>,
    is_known: bool,
}

/// No word of a kernel command line is longer, in bytes; a variable that holds itself twice would soon be.
const LONGEST: usize = 64 << 10;

impl ShellWord<'_> {
    /// Adds what a variable holds.
    fn expand(&mut self, pieces: Vec<Piece>) {
        self.pieces.extend(pieces);
        let length: usize = self.pieces.iter().map(|piece| piece.text.len().max(1)).sum();
        if length > LONGEST {
            self.pieces.clear();
            self.is_known = false;
        }
    }

    /// What it comes to, if that is known.
    pub fn pieces(&self) -> Option<&[Piece]> {
        self.is_known.then_some(&self.pieces)
    }

    /// Its text; empty where it is not known.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// The name and value of `NAME=value`.
    fn assignment(&self) -> Option<(&str, Option<Vec<Piece>>)> {
        let (name, _) = self.raw.split_once('=')?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return None;
        }
        let mut pieces = self.pieces.clone();
        let length = name.len() + 1;
        if let Some(first) = pieces.first_mut() {
            first.text.drain(..length.min(first.text.len()));
            first.place.span.start += length;
        }
        pieces.retain(|piece| !piece.text.is_empty());
        Some((name, self.is_known.then_some(pieces)))
    }
}

/// Sets what the assignments of a file set.
pub fn source(path: &str, text: &str, variables: &mut Variables) {
    let mut lexer = Lexer::new(path, text);
    let mut depth = 0_usize;
    while let Some(statement) = lexer.statement(variables) {
        let command = statement.iter().position(|word| !LEADERS.contains(&word.raw));
        let command = &statement[command.unwrap_or(statement.len())..];
        let Some(first) = command.first() else { continue };
        match first.raw {
            "if" | "while" | "until" | "for" | "case" | "{" | "(" => depth += 1,
            "fi" | "done" | "esac" | "}" | ")" => depth = depth.saturating_sub(1),
            "." | "source" | "eval" => variables.is_opaque = true,
            _ => {}
        }
        assign(command, depth == 0, variables);
    }
}

/// Words that stand before a command.
const LEADERS: [&str; 5] = ["then", "else", "do", "elif", "!"];

/// `A=1 B=2` and `export A=1` set variables. Behind another word, as in `test x && A=1`, nobody knows.
fn assign(command: &[ShellWord<'_>], is_certain: bool, variables: &mut Variables) {
    let is_plain = command.iter().all(|word| word.assignment().is_some())
        || command.first().is_some_and(|first| matches!(first.raw, "export" | "readonly"));
    for (name, value) in command.iter().filter_map(ShellWord::assignment) {
        variables.set(name, value.filter(|_| is_plain && is_certain));
    }
    for word in command {
        if let Some((name, _)) = word.raw.split_once("+=") {
            variables.set(name, None);
        }
    }
}

/// Takes a text apart. GRUB's own script has the same words and quotes.
pub(super) struct Lexer<'a> {
    path: &'a str,
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(path: &'a str, text: &'a str) -> Self {
        Self { path, text, at: 0, line: 1 }
    }

    /// The words up to the end of a line or a semicolon; none at the end of the text.
    pub fn statement(&mut self, variables: &Variables) -> Option<Vec<ShellWord<'a>>> {
        self.peek()?;
        let mut words = Vec::new();
        loop {
            while self.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\r')) || self.is_continued() {
                self.next();
            }
            match self.peek() {
                None => return Some(words),
                Some('\n' | ';') => {
                    self.next();
                    return Some(words);
                }
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next();
                    }
                }
                Some(_) => words.push(self.word(variables)),
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        self.line += usize::from(next == '\n');
        Some(next)
    }

    /// A backslash at the end of a line joins it with the next.
    fn is_continued(&mut self) -> bool {
        let is_continued = self.rest().starts_with("\\\n");
        if is_continued {
            self.next();
        }
        is_continued
    }

    fn word(&mut self, variables: &Variables) -> ShellWord<'a> {
        let start = self.at;
        let mut word = ShellWord { raw: "", pieces: Vec::new(), is_known: true };
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' => break,
                '\'' => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word, variables),
                '$' | '`' => self.expansion(&mut word, variables),
                _ if self.is_continued() => drop(self.next()),
                _ => self.literal(&mut word, |c| " \t\r\n;'\"$`".contains(c), |_| true),
            }
        }
        word.raw = self.text.get(start..self.at).unwrap_or_default();
        word
    }

    /// Characters up to one that ends them; a backslash is taken off before those that it protects.
    fn literal(
        &mut self,
        word: &mut ShellWord<'a>,
        ends: impl Fn(char) -> bool,
        protects: impl Fn(char) -> bool,
    ) {
        let (start, line, mut text) = (self.at, self.line, String::new());
        while let Some(next) = self.peek().filter(|&next| !ends(next)) {
            self.next();
            match self.peek().filter(|&after| next == '\\' && protects(after)) {
                Some('\n') => drop(self.next()),
                Some(_) => text.extend(self.next()),
                None => text.push(next),
            }
        }
        let place = Place { path: self.path.to_owned(), line, span: start..self.at };
        word.pieces.push(Piece { text, place });
    }

    fn single_quoted(&mut self, word: &mut ShellWord<'a>) {
        self.next();
        self.literal(word, |c| c == '\'', |_| false);
        word.is_known &= self.next().is_some();
    }

    fn double_quoted(&mut self, word: &mut ShellWord<'a>, variables: &Variables) {
        self.next();
        while let Some(next) = self.peek().filter(|&next| next != '"') {
            match next {
                '$' | '`' => self.expansion(word, variables),
                _ => self.literal(word, |c| "\"$`".contains(c), |c| "\"$`\\\n".contains(c)),
            }
        }
        word.is_known &= self.next().is_some();
    }

    /// `$NAME`, `${NAME}`; a command's output and anything more clever is not known.
    fn expansion(&mut self, word: &mut ShellWord<'a>, variables: &Variables) {
        let (rest, start, line) = (self.rest(), self.at, self.line);
        let name = |text: &'a str| {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
            &text[..end]
        };
        let plain = rest.strip_prefix('$').map(name).unwrap_or_default();
        let braced = rest.strip_prefix("${").map(name).unwrap_or_default();
        // `${NAME-}` and `${NAME:-}` are the same without an error where nothing was set.
        let after = rest.get(braced.len() + 2..).unwrap_or_default();
        let end = ["}", "-}", ":-}"].into_iter().find(|end| !braced.is_empty() && after.starts_with(end));
        let (found, length) = if !plain.is_empty() {
            (Some(plain), plain.len() + 1)
        } else if let Some(end) = end {
            (Some(braced), braced.len() + 2 + end.len())
        } else {
            (None, self.unknown_length())
        };
        while self.at < start + length && self.next().is_some() {}
        match found.map(|name| variables.get(name)) {
            Some(Some(pieces)) => word.expand(pieces),
            None if &rest[..length] == "$" => {
                let place = Place { path: self.path.to_owned(), line, span: start..self.at };
                word.pieces.push(Piece { text: "$".to_owned(), place });
            }
            _ => word.is_known = false,
        }
    }

    /// Up to what closes `$(`, `${` or a backquote, which may not be nested in a way that matters: the word is lost.
    fn unknown_length(&self) -> usize {
        let rest = self.rest();
        let until = |open: usize, close: char| {
            rest.get(open..).and_then(|inner| inner.find(close)).map_or(rest.len(), |end| open + end + 1)
        };
        match rest.as_bytes() {
            [b'$', b'(', ..] => until(2, ')'),
            [b'$', b'{', ..] => until(2, '}'),
            [b'`', ..] => until(1, '`'),
            _ => 1,
        }
    }
}
