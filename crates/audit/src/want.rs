//! What is wanted of a value: the small grammar in which rules and conditions speak.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use survey::{Item, Value};
use units::CpuList;

use crate::division::Division;

/// What is wanted of a value.
///
/// | words | hold for |
/// | --- | --- |
/// | `= WORD` | a value that is WORD; for CPUs the same set, for a flag `yes`, `no`, `y`, `n`, `1`, `0` |
/// | `not WORD` | any other value, and an absent one |
/// | `one of A B C` | a value that is one of them |
/// | `<= N`, `>= N`, `< N`, `> N` | a number, or a version: as many parts as N has are compared, 6.12.5 is `<= 6.12` |
/// | `present`, `absent` | whether there is a value |
/// | `none` | an empty list, set or text |
/// | `all WANT`, `any WANT` | each item of a list, at least one |
/// | `within CPUS`, `disjoint CPUS`, `covers CPUS` | a set of CPUs; CPUS is a list or `{isolated}`, `{housekeeping}` |
/// | `contains WORD`, `lacks WORD` | a text with or without that word among its words (between blanks and commas); a list with or without such an item |
/// | `anything` | every value: the rule is not asked |
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Want {
    /// `= WORD`.
    Equal(String),
    /// `not WORD`.
    Not(String),
    /// `one of A B C`.
    OneOf(Vec<String>),
    /// `<= N` and its like.
    Compare(Comparison, Limit),
    /// `present`.
    Present,
    /// `absent`.
    Absent,
    /// `none`.
    None,
    /// `all WANT`.
    All(Box<Want>),
    /// `any WANT`.
    Any(Box<Want>),
    /// `within CPUS`.
    Within(Cpus),
    /// `disjoint CPUS`.
    Disjoint(Cpus),
    /// `covers CPUS`.
    Covers(Cpus),
    /// `contains WORD`.
    Contains(String),
    /// `lacks WORD`.
    Lacks(String),
    /// `anything`.
    Anything,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`.
    Less,
    /// `<=`.
    AtMost,
    /// `>=`.
    AtLeast,
    /// `>`.
    More,
}

/// A number or a version to compare with: `10`, `-1`, `6.12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit(Vec<i64>);

/// A set of CPUs in a want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// `{isolated}`.
    Isolated,
    /// `{housekeeping}`.
    Housekeeping,
    /// `2-3`.
    These(CpuList),
}

/// Why a text is no want.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a want: {why}; wants are `= WORD`, `not WORD`, `one of A B`, `<= N`, `>= N`, `< N`, `> N`, \
     `present`, `absent`, `none`, `all WANT`, `any WANT`, `within CPUS`, `disjoint CPUS`, `covers CPUS`, \
     `contains WORD`, `lacks WORD`, `anything`"
)]
pub struct ParseWantError {
    text: String,
    why: String,
}

/// A value of another kind than the want speaks of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {kind}")]
pub struct Mismatch {
    value: String,
    kind: &'static str,
}

impl TryFrom<String> for Want {
    type Error = ParseWantError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for Want {
    type Err = ParseWantError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.trim()).map_err(|why| ParseWantError { text: text.to_owned(), why })
    }
}

fn parse(text: &str) -> Result<Want, String> {
    let (head, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let alone = |want| if rest.is_empty() { Ok(want) } else { Err(format!("nothing can follow `{head}`")) };
    match head {
        "=" => Ok(Want::Equal(word(head, rest)?)),
        "not" => Ok(Want::Not(word(head, rest)?)),
        "one" => one_of(rest),
        "<" => Ok(Want::Compare(Comparison::Less, rest.parse()?)),
        "<=" => Ok(Want::Compare(Comparison::AtMost, rest.parse()?)),
        ">=" => Ok(Want::Compare(Comparison::AtLeast, rest.parse()?)),
        ">" => Ok(Want::Compare(Comparison::More, rest.parse()?)),
        "present" => alone(Want::Present),
        "absent" => alone(Want::Absent),
        "none" => alone(Want::None),
        "all" => each(rest).map(|want| Want::All(Box::new(want))),
        "any" => each(rest).map(|want| Want::Any(Box::new(want))),
        "within" => rest.parse().map(Want::Within),
        "disjoint" => rest.parse().map(Want::Disjoint),
        "covers" => rest.parse().map(Want::Covers),
        "contains" => Ok(Want::Contains(word(head, rest)?)),
        "lacks" => Ok(Want::Lacks(word(head, rest)?)),
        "anything" => alone(Want::Anything),
        "" => Err("it is empty".to_owned()),
        _ => Err(format!("it begins with `{head}`")),
    }
}

/// The rest of a want is one text: a value may hold blanks, but not at its ends.
fn word(head: &str, rest: &str) -> Result<String, String> {
    if rest.is_empty() { Err(format!("a word must follow `{head}`")) } else { Ok(rest.to_owned()) }
}

fn one_of(rest: &str) -> Result<Want, String> {
    let mut words = rest.split_whitespace();
    if words.next() != Some("of") {
        return Err("`of` must follow `one`".to_owned());
    }
    let words: Vec<String> = words.map(str::to_owned).collect();
    if words.len() < 2 { Err("`one of` needs two words or more".to_owned()) } else { Ok(Want::OneOf(words)) }
}

/// What an item is asked: everything but what asks for items itself or speaks of absence.
fn each(rest: &str) -> Result<Want, String> {
    match parse(rest)? {
        Want::All(_) | Want::Any(_) | Want::Present | Want::Absent | Want::Anything => {
            Err(format!("`{rest}` cannot be asked of an item"))
        }
        want => Ok(want),
    }
}

impl FromStr for Limit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.parse::<i64>().ok().map(|number| vec![number]);
        let version = || text.split('.').map(|part| part.parse::<u32>().ok().map(i64::from)).collect();
        number.or_else(version).map(Self).ok_or_else(|| format!("`{text}` is neither a number nor a version"))
    }
}

impl FromStr for Cpus {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "{isolated}" => Ok(Self::Isolated),
            "{housekeeping}" => Ok(Self::Housekeeping),
            "" => Err("CPUs must follow".to_owned()),
            list => {
                list.parse().map(Self::These).map_err(|error: units::ParseCpuListError| error.to_string())
            }
        }
    }
}

impl Want {
    /// Whether `value` is as wanted; `None` stands for an absent value, for the wants that speak of absence.
    ///
    /// # Errors
    /// [`Mismatch`] for a value of another kind: a text where a number is wanted.
    pub fn holds(&self, value: &Value, division: &Division) -> Result<bool, Mismatch> {
        match self {
            Self::Equal(word) => equal(value, word),
            Self::Not(word) => equal(value, word).map(|equal| !equal),
            Self::OneOf(words) => {
                let equal: Vec<bool> =
                    words.iter().map(|word| equal(value, word)).collect::<Result<_, _>>()?;
                Ok(equal.contains(&true))
            }
            Self::Compare(comparison, limit) => limit.order(value).map(|order| comparison.takes(order)),
            Self::Present | Self::Anything => Ok(true),
            Self::Absent => Ok(false),
            Self::None => is_none(value),
            Self::All(want) => want.of_items(value, division).map(|held| held.iter().all(|held| *held)),
            Self::Any(want) => want.of_items(value, division).map(|held| held.contains(&true)),
            Self::Within(cpus) => Ok(set(value)?.difference(cpus.of(division)).is_empty()),
            Self::Disjoint(cpus) => Ok(set(value)?.intersection(cpus.of(division)).is_empty()),
            Self::Covers(cpus) => Ok(cpus.of(division).difference(&set(value)?).is_empty()),
            Self::Contains(word) => contains(value, word),
            Self::Lacks(word) => contains(value, word).map(|contains| !contains),
        }
    }

    /// What an absent value is to wants that speak of absence themselves.
    pub fn holds_for_absent(&self) -> Option<bool> {
        match self {
            Self::Not(_) | Self::Absent | Self::Anything => Some(true),
            Self::Present => Some(false),
            _ => None,
        }
    }

    /// Whether it names CPUs that the user sets apart.
    pub fn needs_division(&self) -> bool {
        match self {
            Self::All(want) | Self::Any(want) => want.needs_division(),
            Self::Within(cpus) | Self::Disjoint(cpus) | Self::Covers(cpus) => !matches!(cpus, Cpus::These(_)),
            _ => false,
        }
    }

    /// The items of a list that are not as wanted; all of them where at least one should have been.
    pub fn failing<'a>(&self, value: &'a Value, division: &Division) -> Vec<&'a Item> {
        match (self, value) {
            (Self::All(want), Value::List(items)) => {
                items.iter().filter(|item| want.of_item(item, division) == Ok(false)).collect()
            }
            (_, Value::List(items)) => items.iter().collect(),
            _ => Vec::new(),
        }
    }

    fn of_items(&self, value: &Value, division: &Division) -> Result<Vec<bool>, Mismatch> {
        let Value::List(items) = value else { return Err(Mismatch::new(value, "a list")) };
        items.iter().map(|item| self.of_item(item, division)).collect()
    }

    fn of_item(&self, item: &Item, division: &Division) -> Result<bool, Mismatch> {
        self.holds(&Value::Text(item.value.clone()), division)
    }
}

impl Mismatch {
    fn new(value: impl fmt::Display, kind: &'static str) -> Self {
        Self { value: value.to_string(), kind }
    }
}

impl Comparison {
    const fn takes(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::AtLeast => order.is_ge(),
            Self::More => order.is_gt(),
        }
    }
}

impl Limit {
    /// How `value` stands to it, in as many parts as it has.
    fn order(&self, value: &Value) -> Result<Ordering, Mismatch> {
        let parts = match value {
            Value::Number(number) => vec![*number],
            Value::Text(text) => {
                numbers(text).ok_or_else(|| Mismatch::new(value, "a number or a version"))?
            }
            _ => return Err(Mismatch::new(value, "a number")),
        };
        let compared = parts.iter().chain(std::iter::repeat(&0)).take(self.0.len());
        Ok(compared.cmp(self.0.iter()))
    }
}

/// A number, or the numbers at the head of a version: 6, 18 and 44 of `6.18.44-fc`.
fn numbers(text: &str) -> Option<Vec<i64>> {
    if let Ok(number) = text.parse() {
        return Some(vec![number]);
    }
    let head = text.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
    let parts: Vec<i64> = head.split('.').map_while(|part| part.parse().ok()).collect();
    (!parts.is_empty()).then_some(parts)
}

impl Cpus {
    fn of<'a>(&'a self, division: &'a Division) -> &'a CpuList {
        match self {
            Self::Isolated => &division.isolated,
            Self::Housekeeping => &division.housekeeping,
            Self::These(cpus) => cpus,
        }
    }
}

fn equal(value: &Value, word: &str) -> Result<bool, Mismatch> {
    match value {
        Value::Flag(flag) => {
            truth(word).map(|wanted| wanted == *flag).ok_or_else(|| Mismatch::new(word, "yes or no"))
        }
        Value::Number(number) => Ok(word.parse() == Ok(*number)),
        Value::Text(text) => Ok(text == word),
        Value::Cpus(cpus) => Ok(word.parse().as_ref() == Ok(cpus)),
        Value::List(_) => Err(Mismatch::new(value, "a single value")),
    }
}

fn truth(word: &str) -> Option<bool> {
    match word {
        "yes" | "y" | "Y" | "1" => Some(true),
        "no" | "n" | "N" | "0" => Some(false),
        _ => None,
    }
}

fn is_none(value: &Value) -> Result<bool, Mismatch> {
    match value {
        Value::List(items) => Ok(items.is_empty()),
        Value::Cpus(cpus) => Ok(cpus.is_empty()),
        Value::Text(text) => Ok(text.is_empty()),
        Value::Flag(_) | Value::Number(_) => Err(Mismatch::new(value, "a list or a set")),
    }
}

/// A set of CPUs: as such, as one CPU's number, or as a kernel list.
fn set(value: &Value) -> Result<CpuList, Mismatch> {
    let mismatch = || Mismatch::new(value, "a list of CPUs");
    match value {
        Value::Cpus(cpus) => Ok(cpus.clone()),
        Value::Number(_) | Value::Text(_) => value.to_string().parse().map_err(|_| mismatch()),
        Value::Flag(_) | Value::List(_) => Err(mismatch()),
    }
}

fn contains(value: &Value, word: &str) -> Result<bool, Mismatch> {
    let among = |text: &str| text.split([' ', '\t', '\n', ',']).any(|part| part == word);
    match value {
        Value::Text(text) => Ok(text == word || among(text)),
        Value::Number(number) => Ok(word.parse() == Ok(*number)),
        Value::List(items) => Ok(items.iter().any(|item| item.name == word || item.value == word)),
        Value::Flag(_) | Value::Cpus(_) => Err(Mismatch::new(value, "a text or a list")),
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(word) => write!(f, "= {word}"),
            Self::Not(word) => write!(f, "not {word}"),
            Self::OneOf(words) => write!(f, "one of {}", words.join(" ")),
            Self::Compare(comparison, limit) => write!(f, "{comparison} {limit}"),
            Self::Present => f.write_str("present"),
            Self::Absent => f.write_str("absent"),
            Self::None => f.write_str("none"),
            Self::All(want) => write!(f, "all {want}"),
            Self::Any(want) => write!(f, "any {want}"),
            Self::Within(cpus) => write!(f, "within {cpus}"),
            Self::Disjoint(cpus) => write!(f, "disjoint {cpus}"),
            Self::Covers(cpus) => write!(f, "covers {cpus}"),
            Self::Contains(word) => write!(f, "contains {word}"),
            Self::Lacks(word) => write!(f, "lacks {word}"),
            Self::Anything => f.write_str("anything"),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::AtLeast => ">=",
            Self::More => ">",
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(i64::to_string).collect::<Vec<_>>().join("."))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isolated => f.write_str("{isolated}"),
            Self::Housekeeping => f.write_str("{housekeeping}"),
            Self::These(cpus) => cpus.fmt(f),
        }
    }
}
