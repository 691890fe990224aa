//! What a fact is: a value, or why there is none, and where that was read.

use std::fmt;

use record::Fact;
use units::CpuList;

/// A fact's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A number, in the unit that the kernel uses there.
    Number(i64),
    /// A text or word.
    Text(String),
    /// A set of CPUs.
    Cpus(CpuList),
    /// Several things of one kind, each with its name: files of a pattern, interrupts, threads.
    List(Vec<Item>),
}

/// One of several things of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is: a path, `irq 24 eth0`, `ksoftirqd/2 (23)`.
    pub name: String,
    /// Its value, as text.
    pub value: String,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(if *flag { "yes" } else { "no" }),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Cpus(cpus) => cpus.fmt(f),
            Self::List(items) if items.is_empty() => f.write_str("none"),
            Self::List(items) => {
                let shown: Vec<String> =
                    items.iter().map(|item| format!("{}: {}", item.name, item.value)).collect();
                f.write_str(&shown.join(", "))
            }
        }
    }
}

/// A fact as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The value, or why there is none.
    pub value: Fact<Value>,
    /// Where it was read: paths below `/`, `the kernel's configuration in /proc/config.gz`, `the kernel's log`.
    pub from: Vec<String>,
}

impl Reading {
    /// From one or several places.
    pub(crate) fn new<T: Into<Value>>(value: Fact<T>, from: &[&str]) -> Self {
        Self { value: value.map(Into::into), from: from.iter().map(|&place| place.to_owned()).collect() }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<CpuList> for Value {
    fn from(cpus: CpuList) -> Self {
        Self::Cpus(cpus)
    }
}

impl From<Vec<Item>> for Value {
    fn from(items: Vec<Item>) -> Self {
        Self::List(items)
    }
}

/// A fact read from one place.
pub fn reading(value: Fact<Value>, from: &str) -> Reading {
    Reading { value, from: vec![from.to_owned()] }
}

/// A list read from one place.
pub fn list(items: Vec<Item>, from: &str) -> Reading {
    reading(Fact::Value(Value::List(items)), from)
}

/// What nobody can answer here: there is no process asked about, no CPU set apart, no such feature.
pub fn unsupported(from: &str) -> Reading {
    reading(Fact::Unsupported, from)
}

pub fn item(name: impl Into<String>, value: impl std::fmt::Display) -> Item {
    Item { name: name.into(), value: value.to_string() }
}

/// The state of a fact without a value.
pub fn lost<T, U>(fact: &Fact<T>) -> Fact<U> {
    match fact {
        Fact::Value(_) | Fact::Unsupported => Fact::Unsupported,
        Fact::Absent => Fact::Absent,
        Fact::Unreadable(errno) => Fact::Unreadable(*errno),
    }
}
