//! The one reader of JSON.
//!
//! Deriving makes two readers of each struct: of an object, and of an array of its fields in their order, which nobody writes.
//! This deserializer asks for objects, so that the second is in no program (a twentieth of one). And as all that is read comes
//! from bytes, each type is read by one kind of deserializer.

use std::cell::OnceCell;

use serde::Deserialize as _;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde_json::de::SliceRead;

/// Reads a value that is all of `json`.
///
/// # Errors
/// It is no JSON, or not that of the type.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(Objects(&mut reader))?;
    reader.end()?;
    Ok(value)
}

/// Reads what was put together or changed as JSON.
///
/// # Errors
/// It is not the JSON of the type.
pub fn read_value<T: DeserializeOwned>(value: &serde_json::Value) -> serde_json::Result<T> {
    read(&serde_json::to_vec(value)?)
}

/// Reads a flattened field by the reader of all others, for `#[serde(flatten, deserialize_with = "..")]`. Left to itself, a
/// flattened field brings a second reader of each type below it, of what its object was kept in: a hundredth of the program.
///
/// # Errors
/// It is not the JSON of the type.
pub fn flattened<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let fields = serde_json::Map::deserialize(deserializer)?;
    let json = OnceCell::new();
    T::deserialize(Flattened { fields, json: &json }).map_err(D::Error::custom)
}

/// The members of an object, some of which are a flattened field.
struct Flattened<'de> {
    fields: serde_json::Map<String, serde_json::Value>,
    /// For their JSON, which must be there as long as what is read from it.
    json: &'de OnceCell<Vec<u8>>,
}

impl<'de> Flattened<'de> {
    /// Those members alone that `names` has.
    fn only(mut self, names: &[&str]) -> Self {
        self.fields.retain(|name, _| names.contains(&name.as_str()));
        self
    }

    fn reader(self) -> serde_json::Result<serde_json::Deserializer<SliceRead<'de>>> {
        let json = serde_json::to_vec(&self.fields)?;
        Ok(serde_json::Deserializer::from_slice(self.json.get_or_init(|| json)))
    }
}

impl<'de> Deserializer<'de> for Flattened<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> serde_json::Result<V::Value> {
        Err(Error::custom("only structs and enums are flattened"))
    }

    /// A struct that has a flattened field itself asks for all.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        Objects(&mut self.reader()?).deserialize_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> serde_json::Result<V::Value> {
        Objects(&mut self.only(fields).reader()?).deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> serde_json::Result<V::Value> {
        if !self.fields.keys().any(|key| variants.contains(&key.as_str())) {
            return Err(Error::custom(format!("no variant of enum {name} found in flattened data")));
        }
        Objects(&mut self.only(variants).reader()?).deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct identifier ignored_any
    }
}

/// Has what it passes through ask for objects where structs are wanted.
struct Objects<T>(T);

macro_rules! asked_alike {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Objects(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    asked_alike! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Objects(visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Objects(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Objects(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, Objects(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, length, Objects(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Objects(visitor))
    }
}

macro_rules! visited_alike {
    ($($method:ident $of:ty)*) => {
        $(fn $method<E: Error>(self, value: $of) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Objects<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.expecting(f)
    }

    visited_alike! {
        visit_bool bool visit_i64 i64 visit_u64 u64 visit_i128 i128 visit_u128 u128 visit_f64 f64
        visit_str &str visit_borrowed_str &'de str visit_string String
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Objects(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Objects(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Objects(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Objects(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Objects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(Objects(seed)).map(|(value, variant)| (value, Objects(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, Objects(visitor))
    }

    /// Its fields are an object as those of a struct are.
    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.newtype_variant_seed(Fields(visitor))
    }
}

/// Deserializes by a visitor of fields.
struct Fields<V>(V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Fields<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_map(Objects(self.0))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::Request;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Kind {
        Alone,
        One(u8),
        Two(u8, String),
        Fields { left: Option<Box<Kind>>, right: Vec<(u32, f64)> },
    }

    #[test]
    fn what_is_written_is_read() {
        let left = Some(Box::new(Kind::Two(7, "\u{e9}\n".to_owned())));
        let fields = Kind::Fields { left, right: vec![(1, 0.5)] };
        for kind in [Kind::Alone, Kind::One(1), fields] {
            assert_eq!(read::<Kind>(&serde_json::to_vec(&kind).unwrap()).unwrap(), kind);
        }
        let request = Request::default();
        assert_eq!(read::<Request>(&serde_json::to_vec(&request).unwrap()).unwrap(), request);
        assert_eq!(read_value::<Request>(&serde_json::json!({})).unwrap(), request);
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Around {
        before: u8,
        #[serde(flatten, deserialize_with = "flattened")]
        own: Kind,
        #[serde(flatten, deserialize_with = "flattened")]
        pair: Pair,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair {
        least: u64,
        #[serde(default)]
        most: Option<u64>,
    }

    #[test]
    fn flattened_fields_are_found_between_others() {
        let own = Kind::Fields { left: None, right: vec![(3, 0.1)] };
        let around = Around { before: 1, own, pair: Pair { least: u64::MAX, most: None } };
        assert_eq!(read::<Around>(&serde_json::to_vec(&around).unwrap()).unwrap(), around);
        let foreign = br#"{"before": 2, "later": [], "least": 4, "One": 3}"#;
        let pair = Pair { least: 4, most: None };
        assert_eq!(read::<Around>(foreign).unwrap(), Around { before: 2, own: Kind::One(3), pair });
        let error = read::<Around>(br#"{"before": 2, "least": 4}"#).unwrap_err();
        assert!(error.to_string().contains("Kind"), "{error}");
        let error = read::<Around>(br#"{"before": 2, "One": 4}"#).unwrap_err();
        assert!(error.to_string().contains("least"), "{error}");
    }

    #[test]
    fn fields_in_an_array_are_refused_and_so_is_what_follows() {
        assert!(read::<Kind>(br#"{"Fields": [null, []]}"#).is_err());
        assert!(read::<Request>(b"[]").is_err());
        assert!(read::<u8>(b"1 2").is_err());
        let error = read::<Vec<u8>>(b"[1,\n x]").unwrap_err();
        assert_eq!((error.line(), error.column()), (2, 2));
    }
}
