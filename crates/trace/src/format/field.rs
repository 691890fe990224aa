//! One field: where it stands in a record, and what it holds.

use crate::bytes::{Order, signed};
use crate::value::Value;

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type in C, as the kernel writes it.
    pub kind: String,
    /// Its first byte in the record.
    pub offset: usize,
    /// Its length in bytes; 0 where it goes on to the end of the record.
    pub size: usize,
    place: Place,
    form: Form,
}

/// Where the value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the field.
    Here,
    /// The field holds where it is in the record, in its low 16 bits, and how long, in the others.
    Elsewhere,
    /// The same, counted from the end of the field.
    Beyond,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unsigned,
    Signed,
    Text,
    Bytes,
}

/// A `field:` line, in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldLine<'a> {
    kind: &'a str,
    pub name: &'a str,
    is_array: bool,
    pub offset: usize,
    pub size: usize,
    is_signed: bool,
}

/// Reads `field:char comm[16]; offset:8; size:16; signed:0;`.
pub(crate) fn field_line(line: &str) -> Option<FieldLine<'_>> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let (kind, name) = parts.next()?.rsplit_once(char::is_whitespace)?;
    let mut line = FieldLine {
        kind: kind.trim(),
        name: name.split('[').next()?.trim_start_matches('*'),
        is_array: name.contains('[') || kind.contains('['),
        offset: 0,
        size: 0,
        is_signed: false,
    };
    for (key, value) in parts.filter_map(|part| part.split_once(':')) {
        match key {
            "offset" => line.offset = value.parse().ok()?,
            "size" => line.size = value.parse().ok()?,
            "signed" => line.is_signed = value == "1",
            _ => {}
        }
    }
    (!line.name.is_empty()).then_some(line)
}

impl Field {
    pub(crate) fn new(line: FieldLine<'_>) -> Self {
        let words =
            |word: &str| line.kind.split(|c: char| !c.is_alphanumeric() && c != '_').any(|one| one == word);
        let place = match () {
            () if words("__data_loc") => Place::Elsewhere,
            () if words("__rel_loc") => Place::Beyond,
            () => Place::Here,
        };
        let is_text = words("char") && !words("unsigned") && !words("signed");
        let form = match (line.is_array || place != Place::Here, is_text) {
            (true, true) => Form::Text,
            (true, false) => Form::Bytes,
            (false, _) if !matches!(line.size, 1 | 2 | 4 | 8) => Form::Bytes,
            (false, _) if line.is_signed => Form::Signed,
            (false, _) => Form::Unsigned,
        };
        let (name, kind) = (line.name.to_owned(), line.kind.to_owned());
        Self { name, kind, offset: line.offset, size: line.size, place, form }
    }

    /// Whether it holds a text.
    pub fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    /// What a record says in it; none where the record is too short.
    pub fn value<'a>(&self, order: Order, data: &'a [u8]) -> Option<Value<'a>> {
        let bytes = self.bytes(order, data)?;
        Some(match self.form {
            Form::Unsigned => Value::Unsigned(order.number(bytes)?),
            Form::Signed => Value::Signed(signed(order.number(bytes)?, bytes.len())),
            Form::Text => Value::Text(text(bytes)),
            Form::Bytes => Value::Bytes(bytes),
        })
    }

    fn bytes<'a>(&self, order: Order, data: &'a [u8]) -> Option<&'a [u8]> {
        let end = self.offset.checked_add(self.size)?;
        match self.place {
            Place::Here if self.size == 0 => data.get(self.offset..),
            Place::Here => data.get(self.offset..end),
            Place::Elsewhere => located(order, data, self.offset, 0),
            Place::Beyond => located(order, data, self.offset, end),
        }
    }
}

fn located(order: Order, data: &[u8], at: usize, from: usize) -> Option<&[u8]> {
    let word = order.u32(data, at)?;
    let (offset, length) = ((word & 0xffff) as usize, (word >> 16) as usize);
    let begin = from.checked_add(offset)?;
    data.get(begin..begin.checked_add(length)?)
}

/// Up to the first NUL. Bytes that are not UTF-8 are replaced.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}
