//! Expressions of Kconfig files (Documentation/kbuild/kconfig-language.rst): `A && (B || !C) && D = y`.

use std::fmt;

use machine::kernel_config::{KernelConfig, Setting};

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    Symbol(String),
    /// A comparison with a symbol or constant.
    Equal(String, String),
    Unequal(String, String),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    /// What this reader does not follow: macros, orders of numbers. Taken to hold.
    Unread(String),
}

/// Nested deeper, an expression is not followed: no kernel's is.
const DEEPEST: usize = 64;

impl Expression {
    /// Reads an expression; what it does not follow becomes [`Expression::Unread`].
    pub fn parse(text: &str) -> Self {
        let tokens = tokens(text);
        let mut parser = Parser { tokens: &tokens, depth: 0 };
        match parser.or() {
            Some(expression) if parser.tokens.is_empty() => expression,
            _ => Self::Unread(text.trim().to_owned()),
        }
    }

    /// The parts that must all hold.
    pub fn conjuncts(&self) -> Vec<&Self> {
        match self {
            Self::And(a, b) => [a.conjuncts(), b.conjuncts()].concat(),
            other => vec![other],
        }
    }

    /// Whether it is not `n`.
    pub fn holds(&self, config: &KernelConfig) -> bool {
        self.level(config) > 0
    }

    /// 0, 1 and 2 for n, m and y.
    fn level(&self, config: &KernelConfig) -> u8 {
        match self {
            Self::Symbol(name) => level_of(name, config),
            Self::Equal(a, b) => {
                if text_of(a, config) == text_of(b, config) {
                    2
                } else {
                    0
                }
            }
            Self::Unequal(a, b) => {
                if text_of(a, config) == text_of(b, config) {
                    0
                } else {
                    2
                }
            }
            Self::Not(inner) => 2 - inner.level(config),
            Self::And(a, b) => a.level(config).min(b.level(config)),
            Self::Or(a, b) => a.level(config).max(b.level(config)),
            Self::Unread(_) => 2,
        }
    }

    /// The symbols that occur, in order, each once.
    pub fn symbols(&self) -> Vec<&str> {
        let mut symbols = Vec::new();
        self.collect(&mut symbols);
        let mut seen = Vec::new();
        symbols.retain(|symbol| {
            !is_constant(symbol) && !seen.contains(symbol) && {
                seen.push(*symbol);
                true
            }
        });
        symbols
    }

    fn collect<'a>(&'a self, symbols: &mut Vec<&'a str>) {
        match self {
            Self::Symbol(name) => symbols.push(name),
            Self::Equal(a, b) | Self::Unequal(a, b) => symbols.extend([a.as_str(), b.as_str()]),
            Self::Not(inner) => inner.collect(symbols),
            Self::And(a, b) | Self::Or(a, b) => {
                a.collect(symbols);
                b.collect(symbols);
            }
            Self::Unread(_) => {}
        }
    }
}

fn is_constant(name: &str) -> bool {
    matches!(name, "y" | "n" | "m")
        || name.starts_with(['"', '\''])
        || name.starts_with(|c: char| c.is_ascii_digit())
}

fn level_of(name: &str, config: &KernelConfig) -> u8 {
    match (name, config.get(name)) {
        ("y", _) | (_, Some(Setting::Yes)) => 2,
        ("m", _) | (_, Some(Setting::Module)) => 1,
        _ => 0,
    }
}

fn text_of(name: &str, config: &KernelConfig) -> String {
    if is_constant(name) {
        return name.trim_matches(['"', '\'']).to_owned();
    }
    config.value_of(name)
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '&' | '|' if rest.len() > 1 && rest[1..].starts_with(first) => 2,
            '!' if rest[1..].starts_with('=') => 2,
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |at| at + 2),
            c if c.is_ascii_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        tokens.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [String],
    depth: usize,
}

impl Parser<'_> {
    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.tokens.first().is_some_and(|token| token == wanted);
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }

    fn or(&mut self) -> Option<Expression> {
        let mut left = self.and()?;
        while self.take("||") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Some(left)
    }

    fn and(&mut self) -> Option<Expression> {
        let mut left = self.unary()?;
        while self.take("&&") {
            left = Expression::And(Box::new(left), Box::new(self.unary()?));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let expression = if self.take("!") {
            Expression::Not(Box::new(self.unary()?))
        } else if self.take("(") {
            let inner = self.or()?;
            self.take(")").then_some(inner)?
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Some(expression)
    }

    fn comparison(&mut self) -> Option<Expression> {
        let name = self.name()?;
        if self.take("=") {
            Some(Expression::Equal(name, self.name()?))
        } else if self.take("!=") {
            Some(Expression::Unequal(name, self.name()?))
        } else {
            Some(Expression::Symbol(name))
        }
    }

    fn name(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        let is_name = first.starts_with(|c: char| c.is_ascii_alphanumeric() || "_\"'".contains(c));
        self.tokens = rest;
        is_name.then(|| first.clone())
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol(name) => f.write_str(name),
            Self::Equal(a, b) => write!(f, "{a} = {b}"),
            Self::Unequal(a, b) => write!(f, "{a} != {b}"),
            Self::Not(inner) if matches!(**inner, Self::Symbol(_)) => write!(f, "!{inner}"),
            Self::Not(inner) => write!(f, "!({inner})"),
            Self::And(a, b) => write!(f, "({a} && {b})"),
            Self::Or(a, b) => write!(f, "({a} || {b})"),
            Self::Unread(text) => f.write_str(text),
        }
    }
}
