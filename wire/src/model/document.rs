//! Reading JSON documents from whatever encoding carries them.

use super::value::non_finite_name;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{
    Deserializer,
    de::{self, DeserializeSeed, Visitor},
};
use serde_json::{Map, Value as Json};
use std::fmt;

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
