//! Strict readers of JUnit XML and TAP, and what a program that reads them decides.
#![allow(dead_code)]

use std::collections::BTreeMap;

use serde_json::Value;

/// An XML element, as far as JUnit needs one.
#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    pub children: Vec<Element>,
    pub text: String,
}

/// Reads well-formed XML of elements, attributes and texts; panics at anything else.
pub struct Xml<'a> {
    rest: &'a str,
}

impl<'a> Xml<'a> {
    pub fn document(text: &'a str) -> Element {
        let rest = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
        assert!(
            rest.chars()
                .all(|c| c == '\n' || c == '\t' || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}')))
        );
        let mut xml = Xml { rest };
        let root = xml.element();
        assert_eq!(xml.rest.trim(), "");
        root
    }

    fn expect(&mut self, text: &str) {
        self.rest =
            self.rest.strip_prefix(text).unwrap_or_else(|| panic!("no `{text}` before `{:.60}`", self.rest));
    }

    fn until(&mut self, end: &[char]) -> &'a str {
        let at = self.rest.find(end).unwrap();
        let (head, rest) = self.rest.split_at(at);
        self.rest = rest;
        head
    }

    fn element(&mut self) -> Element {
        self.expect("<");
        let mut element = Element { name: self.until(&[' ', '>', '/']).to_owned(), ..Element::default() };
        while self.rest.starts_with(' ') {
            self.expect(" ");
            let name = self.until(&['=']).to_owned();
            self.expect("=\"");
            let value = plain(self.until(&['"']));
            self.expect("\"");
            assert!(element.attributes.insert(name, value).is_none());
        }
        if self.rest.starts_with("/>") {
            self.expect("/>");
            return element;
        }
        self.expect(">");
        while !self.rest.starts_with("</") {
            if self.rest.starts_with('<') {
                element.children.push(self.element());
            } else {
                element.text.push_str(&plain(self.until(&['<'])));
            }
        }
        self.expect(&format!("</{}>", element.name));
        element
    }
}

pub fn plain(text: &str) -> String {
    assert!(!text.contains('<'));
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let (entity, rest) = part.split_once(';').unwrap();
        let entities = [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\'')];
        plain.push(entities.iter().find(|(name, _)| *name == entity).unwrap().1);
        plain.push_str(rest);
    }
    plain
}

/// A test point.
#[derive(Debug, PartialEq, Eq)]
pub struct Point {
    pub ok: bool,
    pub description: String,
    pub directive: String,
    pub diagnostics: Vec<(String, Value)>,
}

/// Reads TAP 13 with the escapes of TAP 14; panics at what is none.
pub fn points(text: &str) -> Vec<Point> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("TAP version 13"));
    let planned: usize = lines.next().unwrap().strip_prefix("1..").unwrap().parse().unwrap();
    let mut points: Vec<Point> = Vec::new();
    let mut within = false;
    for line in lines {
        match line {
            "  ---" => within = true,
            "  ..." => within = false,
            line if within => {
                let (key, value) = line.trim_start().split_once(": ").unwrap();
                points
                    .last_mut()
                    .unwrap()
                    .diagnostics
                    .push((key.to_owned(), serde_json::from_str(value).unwrap()));
            }
            line => points.push(point(line, points.len() + 1)),
        }
    }
    assert!(!within && points.len() == planned);
    points
}

pub fn point(line: &str, number: usize) -> Point {
    let (ok, rest) = line
        .strip_prefix("not ok ")
        .map_or_else(|| (true, line.strip_prefix("ok ").unwrap()), |rest| (false, rest));
    let rest = rest.strip_prefix(&format!("{number} - ")).unwrap();
    let unescaped = |text: &str| text.replace("\\#", "#").replace("\\\\", "\\");
    let directive = rest
        .char_indices()
        .find(|&(at, c)| c == '#' && rest[..at].chars().rev().take_while(|&c| c == '\\').count() % 2 == 0);
    let (description, directive) = directive.map_or((rest, ""), |(at, _)| (&rest[..at], &rest[at + 1..]));
    Point {
        ok,
        description: unescaped(description.trim()),
        directive: directive.trim().to_owned(),
        diagnostics: Vec::new(),
    }
}

/// What a build server counts in a JUnit file: cases, failures, errors and skipped ones. Panics where the file's own counts are others.
pub fn counted(text: &str) -> [usize; 4] {
    let root = Xml::document(text);
    assert_eq!(root.name, "testsuites");
    let of = |suites: &[&Element]| {
        let cases = || suites.iter().flat_map(|suite| &suite.children);
        let with = |child: &str| {
            cases().filter(|case| case.children.iter().any(|inner| inner.name == child)).count()
        };
        [cases().count(), with("failure"), with("error"), with("skipped")]
    };
    let stated = |element: &Element| {
        ["tests", "failures", "errors", "skipped"]
            .map(|name| element.attributes[name].parse::<usize>().unwrap())
    };
    for suite in &root.children {
        assert_eq!(stated(suite), of(&[suite]), "{}", suite.attributes["name"]);
    }
    let all = of(&root.children.iter().collect::<Vec<_>>());
    assert_eq!(stated(&root), all);
    all
}

/// Whether a harness lets a TAP stream pass: no point failed but those with a TODO.
pub fn harness_passes(text: &str) -> bool {
    points(text).iter().all(|point| point.ok || point.directive.starts_with("TODO"))
}
