//! Keys that files of other programs have, with what their values are.

use std::sync::LazyLock;

use machine::grammar::{Kind, cpu_list};

use super::nearest::nearest_of;
use super::{Remark, RemarkId};
use crate::Severity;

/// See its head.
static TABLE: LazyLock<String> =
    LazyLock::new(|| machine::packed::text(include_bytes!(concat!(env!("OUT_DIR"), "/keys.txt.gz"))));

/// A key of a format.
pub struct Key {
    format: &'static str,
    sections: Vec<&'static str>,
    name: &'static str,
    /// What its value is.
    pub value: Value,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// As for a kernel parameter.
    Of(Kind),
    /// CPUs with blanks or commas between them.
    Indices,
    /// `80%`.
    Percent,
    /// A number with a unit, or `infinity`.
    Limit,
    /// Governors with `|` between them.
    Governors,
    /// A command that no shell sees.
    Command,
    /// A hardware address of the network.
    Address,
    /// A mask of CPUs, with `0x` before it or not.
    Hexadecimal,
    /// Nanoseconds of a cycle, 5 us at least.
    Period,
}

static KEYS: LazyLock<Vec<Key>> =
    LazyLock::new(|| TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(entry).collect());

fn entry(line: &'static str) -> Option<Key> {
    let mut columns = line.split('|').map(str::trim);
    let (format, sections, name, value) =
        (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
    Some(Key { format, sections: sections.split(',').collect(), name, value: Value::parse(value)? })
}

/// The key of that name.
pub fn key(format: &str, section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.format == format && key.name == name && key.sections.contains(&section))
}

/// What is wrong with `name = value` in a section.
pub fn remark(line: usize, format: &str, section: &str, name: &str, value: &str) -> Option<Remark> {
    let of = |id, message: String| {
        Some(Remark::new(line, id, Severity::Error, format!("{name}={value}"), message))
    };
    if let Some(key) = key(format, section, name) {
        return key.fault(value).and_then(|message| of(RemarkId::Malformed, message));
    }
    let of_format = || KEYS.iter().filter(|key| key.format == format);
    if let Some(elsewhere) = of_format().find(|key| key.name == name) {
        return of(
            RemarkId::Malformed,
            format!("belongs to [{}]: in [{section}] it is passed over", elsewhere.sections.join("], [")),
        );
    }
    let here = of_format().filter(|key| key.sections.contains(&section)).map(|key| key.name);
    let meant = nearest_of(name, here)?;
    of(RemarkId::Misspelt, format!("there is no such key: {meant} is meant"))
        .map(|remark| remark.instead(format!("{meant}={value}")))
}

/// What is wrong with the value of a key, whatever the section.
pub fn value_remark(line: usize, format: &str, name: &str, value: &str) -> Option<Remark> {
    let key = KEYS.iter().find(|key| key.format == format && key.name == name)?;
    let message = key.fault(value)?;
    Some(Remark::new(line, RemarkId::Malformed, Severity::Error, format!("{name}={value}"), message))
}

/// Whether the format has a key of that name anywhere.
pub fn is_known(format: &str, name: &str) -> bool {
    KEYS.iter().any(|key| key.format == format && key.name == name)
}

impl Key {
    fn fault(&self, value: &str) -> Option<String> {
        self.value.fault_of(value)
    }
}

impl Value {
    /// As the tables write it.
    pub fn parse(text: &'static str) -> Option<Self> {
        Some(match text {
            "indices" => Self::Indices,
            "percent" => Self::Percent,
            "limit" => Self::Limit,
            "governors" => Self::Governors,
            "command" => Self::Command,
            "mac" => Self::Address,
            "period" => Self::Period,
            "hex" => Self::Hexadecimal,
            kind => Self::Of(Kind::parse(kind)?),
        })
    }

    /// What is wrong with a value of that kind.
    pub fn fault_of(&self, value: &str) -> Option<String> {
        let is_open = value.contains(['$', '%', '<', '{']) && *self != Self::Percent;
        if value.is_empty() || is_open {
            return None;
        }
        match self {
            Value::Of(kind) => kind.fault(Some(value), None).map(|fault| fault.message),
            Value::Indices => indices_fault(value),
            Value::Percent => {
                let number = value.strip_suffix('%').and_then(|number| number.parse::<u32>().ok());
                number.is_none().then(|| format!("takes a percentage, as 50%, not `{value}`"))
            }
            Value::Limit => limit_fault(value),
            Value::Governors => {
                let key = key("assignment", "", "governor")?;
                value.split('|').find_map(|governor| key.fault(governor.trim()))
            }
            Value::Command => None,
            Value::Hexadecimal => {
                let digits = value.trim_start_matches("0x");
                Kind::Mask.fault(Some(digits), None).map(|fault| fault.message).or_else(|| {
                    value.contains(',').then(|| format!("takes a hexadecimal mask, not the list `{value}`"))
                })
            }
            Value::Address => address_fault(value),
            Value::Period => {
                let length = value.parse::<u64>().ok()?;
                (length < 5_000).then(|| format!("is in nanoseconds: {}", units::Nanos(length)))
            }
        }
    }
}

/// `00:11:22:33:44:55`.
fn address_fault(value: &str) -> Option<String> {
    let is_byte =
        |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'x');
    let is_address = value.split([':', '-']).count() == 6 && value.split([':', '-']).all(is_byte);
    (!is_address).then(|| format!("takes a hardware address, as 00:11:22:33:44:55, not `{value}`"))
}

fn indices_fault(value: &str) -> Option<String> {
    if value == "numa" || value.starts_with('~') {
        return None;
    }
    if value == "all" {
        return Some("takes numbers and ranges of CPUs, as 2 3 or 2-3, not `all`".to_owned());
    }
    let list = value.split_whitespace().collect::<Vec<_>>().join(",");
    cpu_list(&list, None, None)
        .err()
        .map(|_| format!("takes numbers and ranges of CPUs, as 2 3 or 2-3, not `{value}`"))
}

fn limit_fault(value: &str) -> Option<String> {
    let one = |text: &str| {
        let digits = text.trim_end_matches(|c: char| "KMGTPEkB".contains(c));
        text == "infinity" || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    (!value.split(':').all(one)).then(|| format!("takes a number or infinity, not `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_table_is_read() {
        assert_eq!(KEYS.len(), TABLE.lines().filter(|line| !line.starts_with('#')).count());
    }
}
