//! The fields of an event that came as text.

use std::borrow::Cow;

use crate::value::Value;

/// Fields that have another name in an event's text than in its format.
const FIELDS: [(&str, &str, &str); 2] = [("sys_enter", "id", "NR"), ("sys_exit", "id", "NR")];

/// What stands behind the name of an event: `comm=a b pid=7 ==> ..`, in words of its own for each event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl<'a> Details<'a> {
    /// The text of a field: what stands after `key=` up to the next key, else the word after `key`.
    pub fn find(self, field: &str) -> Option<&'a str> {
        if (self.name, field) == ("print", "buf") {
            return Some(self.text);
        }
        let is_same = |(name, format, _): &&(&str, &str, &str)| (*name, *format) == (self.name, field);
        let key = FIELDS.iter().find(is_same).map_or(field, |(.., text)| *text);
        if let Some(rest) = self.after(key, '=') {
            return Some(rest[..end(rest)].trim_end());
        }
        self.after(key, ' ')?.split_whitespace().next()
    }

    fn after(self, key: &str, sign: char) -> Option<&'a str> {
        let begins = |place: &usize| *place == 0 || self.text[..*place].ends_with(' ');
        let places = self.text.match_indices(key).map(|(place, _)| place).filter(begins);
        let mut rests = places.map(|place| &self.text[place + key.len()..]);
        rests.find_map(|rest| rest.strip_prefix(sign))
    }

    /// The same as a number, where its first word is one.
    pub fn value(self, field: &str) -> Option<Value<'a>> {
        let text = self.find(field)?;
        let word = text.split_whitespace().next().unwrap_or_default();
        let hexadecimal = word.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        Some(match (hexadecimal, word.parse::<u64>(), word.parse::<i64>()) {
            (Some(Ok(number)), ..) | (None, Ok(number), _) => Value::Unsigned(number),
            (None, Err(_), Ok(number)) => Value::Signed(number),
            _ => Value::Text(Cow::Borrowed(text)),
        })
    }
}

/// Where a value ends: at ` key=` or ` ==> `. Names of threads hold blanks.
fn end(rest: &str) -> usize {
    let is_end = |place: &usize| {
        let word = rest[place + 1..].split(' ').next().unwrap_or_default();
        let key = word.split_once('=').map(|(key, _)| key);
        let is_name = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        word == "==>" || key.is_some_and(|key| !key.is_empty() && is_name(key))
    };
    rest.match_indices(' ').map(|(place, _)| place).find(is_end).unwrap_or(rest.len())
}
