//! YAML, as far as configuration files use it: maps, lists, flow lists and maps, block texts.

use super::super::containers::capability_fault;
use super::super::reading::Reading;
use super::super::{Remark, RemarkId};
use crate::Severity;

/// A value with the line that it begins on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
    /// Whether it is a scalar between quotes.
    pub(super) quoted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn new(line: usize, value: Value) -> Self {
        Self { line, value, quoted: false }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(super) fn entries(&self) -> &[(String, Node)] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    pub(super) fn items(&self) -> &[Node] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// The items of a list below a key.
    pub(super) fn items_of<'a>(&'a self, key: &str) -> &'a [Node] {
        self.get(key).map(Node::items).unwrap_or_default()
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }
}

struct Row<'a> {
    line: usize,
    indent: usize,
    text: &'a str,
}

fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let trimmed = text.trim();
    let empty = trimmed.is_empty() || trimmed.starts_with('#') || trimmed == "---" || trimmed == "...";
    (!empty).then(|| Row { line, indent: text.len() - text.trim_start().len(), text: trimmed })
}

struct Rows<'a> {
    rows: &'a [Row<'a>],
    next: usize,
}

/// `key: value` or `key:`.
fn pair(text: &str) -> Option<(String, &str)> {
    let (key, value) = match text.split_once(": ") {
        // A comment is no value.
        Some((key, value)) if value.trim().starts_with('#') => (key, ""),
        Some((key, value)) => (key, value.trim()),
        None => (text.strip_suffix(':')?, ""),
    };
    let key = unquoted(key.trim());
    let is_key = !key.is_empty() && !key.contains([' ', '=', '{', '[', '>', '|', '$']);
    is_key.then_some((key, value))
}

/// A scalar without its quotes or the comment behind it.
pub(super) fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or_else(|| text.split(" #").next().unwrap_or(text).trim_end()).to_owned()
}

/// A whole text; nothing where it is no YAML, or begins with neither a list nor a map.
pub(super) fn parse(text: &str) -> Option<Node> {
    let rows: Vec<Row> = text.lines().enumerate().filter_map(|(index, line)| row(index + 1, line)).collect();
    let first = rows.first()?;
    let begins = first.text.starts_with("- ") || pair(first.text).is_some();
    document(&mut Rows { rows: &rows, next: 0 }).filter(|_| begins)
}

fn document(rows: &mut Rows) -> Option<Node> {
    let top = block(rows, 0, 0)?;
    (rows.next == rows.rows.len()).then_some(top)
}

/// How deep files nest at most.
const DEEPEST: usize = 32;

/// The map or list whose rows stand at the next row's column, which is at least `least`.
fn block(rows: &mut Rows, least: usize, depth: usize) -> Option<Node> {
    let first = rows.rows.get(rows.next).filter(|row| row.indent >= least && depth < DEEPEST)?;
    let (line, indent) = (first.line, first.indent);
    let is_list = first.text.starts_with("- ") || first.text == "-";
    let (mut items, mut entries) = (Vec::new(), Vec::new());
    while let Some(row) = rows.rows.get(rows.next).filter(|row| row.indent == indent) {
        match row.text.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            Some(rest) if is_list => items.push(item(rows, row, rest.trim_start(), depth)?),
            None if !is_list => {
                let (key, rest) = pair(row.text)?;
                rows.next += 1;
                entries.push((key, value(rows, row.line, rest, indent, depth)?));
            }
            _ => break,
        }
    }
    let value = if is_list { Value::List(items) } else { Value::Map(entries) };
    Some(Node::new(line, value))
}

/// What stands behind `- `: a scalar, or the first entry of a map whose others are indented as far.
fn item(rows: &mut Rows, row: &Row, rest: &str, depth: usize) -> Option<Node> {
    rows.next += 1;
    let column = row.indent + row.text.len() - rest.len();
    let Some((key, text)) = pair(rest).filter(|_| !rest.starts_with(['"', '\'', '['])) else {
        return value(rows, row.line, rest, row.indent, depth);
    };
    let mut entries = vec![(key, value(rows, row.line, text, column, depth)?)];
    while rows.rows.get(rows.next).is_some_and(|next| next.indent == column && !next.text.starts_with("- ")) {
        let row = &rows.rows[rows.next];
        let (key, text) = pair(row.text)?;
        rows.next += 1;
        entries.push((key, value(rows, row.line, text, column, depth)?));
    }
    Some(Node::new(row.line, Value::Map(entries)))
}

fn value(rows: &mut Rows, line: usize, rest: &str, indent: usize, depth: usize) -> Option<Node> {
    if rest.starts_with(['|', '>']) && rest.len() <= 2 {
        let mut text = String::new();
        while let Some(row) = rows.rows.get(rows.next).filter(|row| row.indent > indent) {
            text += row.text;
            text.push('\n');
            rows.next += 1;
        }
        return Some(Node::new(line + 1, Value::Text(text)));
    }
    if rest.is_empty() {
        let list_here =
            rows.rows.get(rows.next).is_some_and(|row| row.text.starts_with('-') && row.indent == indent);
        let least = if list_here { indent } else { indent + 1 };
        return block(rows, least, depth + 1).or_else(|| Some(Node::new(line, Value::Text(String::new()))));
    }
    if rest.starts_with(['[', '{']) {
        let whole = rest.split(" #").next().unwrap_or(rest).trim_end();
        if let Some((node, "")) = flow(whole, line, depth) {
            return Some(node);
        }
    }
    let quoted = rest.starts_with(['"', '\'']);
    Some(Node { quoted, ..Node::new(line, Value::Text(unquoted(rest))) })
}

/// A flow list or map, `[a, b]` and `{a: b}`, or a scalar in one, and what stands behind it.
fn flow(text: &str, line: usize, depth: usize) -> Option<(Node, &str)> {
    let text = text.trim_start();
    let of = |value| Node::new(line, value);
    if depth >= DEEPEST {
        return None;
    }
    if let Some(mut rest) = text.strip_prefix('[').map(str::trim_start) {
        let mut items = Vec::new();
        while !rest.starts_with(']') {
            let (item, behind) = flow(rest, line, depth + 1)?;
            items.push(item);
            rest = after_comma(behind, ']')?;
        }
        return Some((of(Value::List(items)), rest[1..].trim_start()));
    }
    if let Some(mut rest) = text.strip_prefix('{').map(str::trim_start) {
        let mut entries = Vec::new();
        while !rest.starts_with('}') {
            let (key, behind) = rest.split_once(':')?;
            let (value, behind) = flow(behind, line, depth + 1)?;
            entries.push((unquoted(key), value));
            rest = after_comma(behind, '}')?;
        }
        return Some((of(Value::Map(entries)), rest[1..].trim_start()));
    }
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (inner, behind) = text[1..].split_once(quote)?;
        let node = Node { quoted: true, ..of(Value::Text(inner.to_owned())) };
        return Some((node, behind.trim_start()));
    }
    let end = text.find([',', ']', '}']).unwrap_or(text.len());
    let (scalar, behind) = text.split_at(end);
    Some((of(Value::Text(scalar.trim().to_owned())), behind))
}

/// Behind the comma after an item, or at the sign that ends the list.
fn after_comma(text: &str, end: char) -> Option<&str> {
    if text.starts_with(end) {
        return Some(text);
    }
    text.strip_prefix(',').map(str::trim_start)
}

/// An error at a line.
pub(super) fn wrong(
    reading: &mut Reading,
    line: usize,
    id: RemarkId,
    shown: impl Into<String>,
    message: String,
) {
    reading.remarks.push(Remark::new(line, id, Severity::Error, shown, message));
}

/// What is wrong with a list of capabilities.
pub(super) fn capabilities(list: Option<&Node>, reading: &mut Reading) {
    for item in list.into_iter().flat_map(Node::items) {
        if let Some((name, message)) = item.text().and_then(|name| Some((name, capability_fault(name)?))) {
            wrong(reading, item.line, RemarkId::Malformed, name, message);
        }
    }
}
