//! The order of JSON documents, PostgreSQL's `jsonb`: Object > Array > Boolean > Number > String > Null; more
//! members are greater; keys compare by length, then bytes; numbers by value; text bytewise.

use super::numeric::Numeric;
use super::value::non_finite_name;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{
    Deserializer,
    de::{self, DeserializeSeed, Visitor},
};
use serde_json::{Map, Value as Json};
use std::fmt;

/// Appends an encoding of a JSON document whose bytewise order is its order as a value, equal for equal documents.
pub(crate) fn encode_ordered(json: &Json, out: &mut Vec<u8>) {
    match json {
        Json::Null => out.push(1),
        Json::String(text) => {
            out.push(2);
            encode_text(text, out);
        }
        Json::Number(number) => {
            out.push(3);
            let numeric = match number.as_i64() {
                Some(integer) => Numeric::from(integer),
                None => number.to_string().parse().unwrap_or(Numeric::NaN),
            };
            numeric.encode_ordered(out);
        }
        Json::Bool(value) => out.extend([4, u8::from(*value)]),
        Json::Array(items) => {
            out.push(5);
            out.extend((items.len() as u32).to_be_bytes());
            items.iter().for_each(|item| encode_ordered(item, out));
        }
        Json::Object(members) => {
            out.push(6);
            out.extend((members.len() as u32).to_be_bytes());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            for (key, value) in members {
                out.extend((key.len() as u32).to_be_bytes());
                encode_text(key, out);
                encode_ordered(value, out);
            }
        }
    }
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    // JSON strings may hold NUL, so it is escaped; the terminator stays the least.
    for byte in text.bytes() {
        if byte == 0 {
            out.extend([0, 0xff]);
        } else {
            out.push(byte);
        }
    }
    out.extend([0, 0]);
}

/// The ordered encoding of a document given as text; text that does not parse orders first.
pub(crate) fn ordered_bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    if let Ok(json) = serde_json::from_str::<Json>(text) {
        encode_ordered(&json, &mut out);
    }
    out
}

/// Reads a document from whatever encoding. What JSON does not have takes the form that cells have in JSON: a double
/// that is no number its name, bytes their base64.
///
/// # Errors
/// When the input is malformed, or a map has keys that are not text.
pub fn document<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
    deserializer.deserialize_any(DocumentVisitor)
}

/// As [`document`], or nothing.
///
/// # Errors
/// As [`document`].
pub fn optional_document<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    document(deserializer).map(|json| if json.is_null() { None } else { Some(json) })
}

/// Documents by name; nothing is none.
///
/// # Errors
/// As [`document`], and for anything but a map.
pub fn documents<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Json>, D::Error> {
    match document(deserializer)? {
        Json::Object(members) => Ok(members),
        Json::Null => Ok(Map::new()),
        _ => Err(de::Error::custom("expected a map of values by name")),
    }
}

/// See [`document`].
pub(super) struct DocumentVisitor;

impl<'de> DeserializeSeed<'de> for DocumentVisitor {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        document(deserializer)
    }
}

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_none<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Json, E> {
        Ok(Json::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Json, E> {
        Ok(Json::from(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Json, E> {
        Ok(Json::from(v))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Json, E> {
        Ok(serde_json::Number::from_f64(v).map_or_else(|| Json::from(non_finite_name(v)), Json::Number))
    }

    fn visit_str<E>(self, v: &str) -> Result<Json, E> {
        Ok(Json::from(v))
    }

    fn visit_string<E>(self, v: String) -> Result<Json, E> {
        Ok(Json::String(v))
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Json, E> {
        Ok(Json::from(BASE64.encode(v)))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(DocumentVisitor)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            members.insert(name, map.next_value_seed(DocumentVisitor)?);
        }
        Ok(Json::Object(members))
    }
}
