//! Cells as a client gives them, before the types of their columns are known.
//!
//! In JSON a cell has the JSON form of its column's type. In MessagePack it has the MessagePack form, which JSON cannot
//! hold: bytes, doubles that are no numbers, integers for points in time, text that is a JSON document. So what
//! MessagePack gave is kept as it came until [`Given::to_value`] is told the type. Where the MessagePack form of a type
//! is not the JSON form, the JSON form is taken too, but for `json`, whose text is always a document's.

use super::{
    ColumnType, DOCUMENT_LEVELS_MAX, Value, document, json_levels, time, value::ValueError,
    value::non_finite_name,
};
use crate::codec::decode_json;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
    ser::SerializeMap as _,
};
use serde_json::{Map, Value as Json};
use std::{fmt, sync::Arc};
use uuid::Uuid;

/// See the module's description. Shown and compared as what is written, whatever encoding that came in.
#[derive(Clone)]
pub enum Given {
    /// In the type's JSON form.
    Json(Json),
    /// A MessagePack integer.
    Int(i64),
    /// A MessagePack double.
    Float(f64),
    /// A MessagePack string.
    Text(String),
    /// MessagePack bytes.
    Bin(Bytes),
}

impl Given {
    /// The value of type `ty` that the cell stands for.
    ///
    /// # Errors
    /// When the cell has none of the type's forms.
    pub fn to_value(&self, ty: ColumnType) -> Result<Value, ValueError> {
        let fail = |expected: &str| ValueError::new(expected, &self.to_json());
        Ok(match (ty, self) {
            (ColumnType::Timestamptz, Self::Int(micros)) if time::TIMESTAMPTZ_MICROS.contains(micros) => {
                Value::Timestamptz(*micros)
            }
            (ColumnType::Timestamptz, Self::Int(_)) => {
                return Err(fail("timestamptz (microseconds since 1970, years 0000 to 9999)"));
            }
            (ColumnType::Date, Self::Int(days)) => match i32::try_from(*days) {
                Ok(days) if time::DATE_DAYS.contains(&days) => Value::Date(days),
                _ => return Err(fail("date (days since 1970, years 0000 to 9999)")),
            },
            (ColumnType::Float8, Self::Float(double)) => Value::Float8(*double),
            (ColumnType::Numeric, Self::Float(double)) if !double.is_finite() => {
                Value::Numeric(Arc::new((*double).into()))
            }
            (ty, Self::Float(double)) if !double.is_finite() => return Err(fail(ty.name())),
            (ColumnType::Bytea, Self::Bin(bytes)) => Value::Bytea(bytes.clone()),
            (ColumnType::Uuid, Self::Bin(bytes)) => {
                Value::Uuid(Uuid::from_slice(bytes).map_err(|_| fail("uuid (16 bytes)"))?)
            }
            (ty, Self::Bin(_)) => return Err(fail(ty.name())),
            (ColumnType::Json, Self::Text(text)) if json_levels(text.as_bytes()) > DOCUMENT_LEVELS_MAX => {
                return Err(ValueError::too_deep(text));
            }
            (ColumnType::Json, Self::Text(text)) => {
                let document: Json =
                    decode_json(text.as_bytes()).map_err(|_| fail("json (a string holding JSON)"))?;
                Value::from_json(ty, &document)?
            }
            (ty, Self::Json(json)) => Value::from_json(ty, json)?,
            (ty, Self::Int(_) | Self::Float(_) | Self::Text(_)) => Value::from_json(ty, &self.to_json())?,
        })
    }

    /// The JSON that is most like it.
    fn to_json(&self) -> Json {
        match self {
            Self::Json(json) => json.clone(),
            Self::Int(integer) => Json::from(*integer),
            Self::Float(double) => json_of_double(*double),
            Self::Text(text) => Json::from(text.as_str()),
            Self::Bin(bytes) => Json::from(BASE64.encode(bytes)),
        }
    }
}

/// A double as JSON: its name when it is no number.
fn json_of_double(double: f64) -> Json {
    serde_json::Number::from_f64(double).map_or_else(|| Json::from(non_finite_name(double)), Json::Number)
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json(json) => json.serialize(serializer),
            Self::Float(double) if !serializer.is_human_readable() => serializer.serialize_f64(*double),
            Self::Bin(bytes) if !serializer.is_human_readable() => serializer.serialize_bytes(bytes),
            other => other.to_json().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            Json::deserialize(deserializer).map(Self::Json)
        } else {
            deserializer.deserialize_any(GivenVisitor)
        }
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cell")
    }

    fn visit_unit<E>(self) -> Result<Given, E> {
        Ok(Given::Json(Json::Null))
    }

    fn visit_none<E>(self) -> Result<Given, E> {
        Ok(Given::Json(Json::Null))
    }

    fn visit_bool<E>(self, v: bool) -> Result<Given, E> {
        Ok(Given::Json(Json::Bool(v)))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Given, E> {
        Ok(Given::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Given, E> {
        Ok(i64::try_from(v).map_or_else(|_| Given::Json(Json::from(v)), Given::Int))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Given, E> {
        Ok(Given::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Given, E> {
        Ok(Given::Text(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Given, E> {
        Ok(Given::Text(v))
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Given, E> {
        Ok(Given::Bin(Bytes::copy_from_slice(v)))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Given, A::Error> {
        document::DocumentVisitor.visit_seq(seq).map(Given::Json)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Given, A::Error> {
        document::DocumentVisitor.visit_map(map).map(Given::Json)
    }
}

/// Cells by column name, in the order given; of a name that comes twice, the last.
#[derive(Clone, Debug, Default)]
pub struct GivenRow(Vec<(String, Given)>);

impl GivenRow {
    /// The cell of a column.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&Given> {
        self.0.iter().find(|(name, _)| name == column).map(|(_, cell)| cell)
    }

    /// The columns' names and their cells.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Given)> {
        self.0.iter().map(|(name, cell)| (name.as_str(), cell))
    }

    /// The cells taken to have the JSON form of their types. What JSON does not have stays as it is.
    #[must_use]
    pub fn in_json_form(self) -> Self {
        let cells = self.0.into_iter().map(|(name, cell)| match cell {
            Given::Int(_) | Given::Text(_) => (name, Given::Json(cell.to_json())),
            other => (name, other),
        });
        Self(cells.collect())
    }

    fn put(&mut self, name: String, cell: Given) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = cell,
            None => self.0.push((name, cell)),
        }
    }
}

impl FromIterator<(String, Given)> for GivenRow {
    fn from_iter<I: IntoIterator<Item = (String, Given)>>(cells: I) -> Self {
        let mut row = Self::default();
        cells.into_iter().for_each(|(name, cell)| row.put(name, cell));
        row
    }
}

impl From<Map<String, Json>> for GivenRow {
    fn from(cells: Map<String, Json>) -> Self {
        Self(cells.into_iter().map(|(name, json)| (name, Given::Json(json))).collect())
    }
}

impl PartialEq for GivenRow {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|(name, cell)| other.get(name) == Some(cell))
    }
}

impl Serialize for GivenRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, cell) in &self.0 {
            map.serialize_entry(name, cell)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for GivenRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RowVisitor;

        impl<'de> Visitor<'de> for RowVisitor {
            type Value = GivenRow;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("cells by column name")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<GivenRow, A::Error> {
                let mut row = GivenRow::default();
                while let Some((name, cell)) = map.next_entry()? {
                    row.put(name, cell);
                }
                Ok(row)
            }
        }

        deserializer.deserialize_map(RowVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{codec::Codec, model::Numeric};

    /// What MessagePack gives for one cell.
    fn packed(write: impl FnOnce(&mut Vec<u8>)) -> Given {
        let mut bytes = Vec::new();
        write(&mut bytes);
        let mut cells = Vec::new();
        Codec::MessagePack.decode(&bytes, |cell: Given| cells.push(cell)).expect("it decodes");
        cells.pop().expect("one")
    }

    fn int(v: i64) -> Given {
        packed(|out| drop(rmp::encode::write_sint(out, v)))
    }

    fn float(v: f64) -> Given {
        packed(|out| drop(rmp::encode::write_f64(out, v)))
    }

    fn text(v: &str) -> Given {
        packed(|out| drop(rmp::encode::write_str(out, v)))
    }

    fn bin(v: &[u8]) -> Given {
        packed(|out| drop(rmp::encode::write_bin(out, v)))
    }

    #[test]
    fn messagepack_cells_have_the_forms_of_the_types() {
        use ColumnType as T;
        let id = Uuid::from_u128(7);
        let json = |text: &str| Value::Json(text.into());
        let numeric = |v: Numeric| Value::Numeric(Arc::new(v));
        for (cell, ty, value) in [
            (int(-5), T::Int8, Value::Int8(-5)),
            (int(i64::MIN), T::Int8, Value::Int8(i64::MIN)),
            (float(3.0), T::Int8, Value::Int8(3)),
            (float(f64::NAN), T::Float8, Value::Float8(f64::NAN)),
            (float(f64::NEG_INFINITY), T::Float8, Value::Float8(f64::NEG_INFINITY)),
            (int(2), T::Float8, Value::Float8(2.0)),
            (text("NaN"), T::Float8, Value::Float8(f64::NAN)),
            (text("a"), T::Text, Value::Text("a".into())),
            (bin(b"ab"), T::Bytea, Value::Bytea(Bytes::from_static(b"ab"))),
            (text("YWI="), T::Bytea, Value::Bytea(Bytes::from_static(b"ab"))),
            (int(1_500_000), T::Timestamptz, Value::Timestamptz(1_500_000)),
            (text("1970-01-01T00:00:01.5Z"), T::Timestamptz, Value::Timestamptz(1_500_000)),
            (int(-1), T::Date, Value::Date(-1)),
            (text("1969-12-31"), T::Date, Value::Date(-1)),
            (bin(id.as_bytes()), T::Uuid, Value::Uuid(id)),
            (text(&id.to_string()), T::Uuid, Value::Uuid(id)),
            (text("1.50"), T::Numeric, numeric("1.50".parse().expect("a number"))),
            (float(0.1), T::Numeric, numeric("0.1".parse().expect("a number"))),
            (float(f64::INFINITY), T::Numeric, numeric(Numeric::Infinity)),
            (text("{\"b\":[1,null],\"a\":\"x\"}"), T::Json, json("{\"a\":\"x\",\"b\":[1,null]}")),
            (text("\"x\""), T::Json, json("\"x\"")),
            (text("null"), T::Json, Value::Null),
            (int(4), T::Json, json("4")),
            (packed(|out| out.push(0xc0)), T::Bytea, Value::Null),
        ] {
            assert_eq!(cell.to_value(ty), Ok(value), "{cell:?} as {ty}");
        }
    }

    #[test]
    fn cells_in_json_form_are_read_as_json() {
        let row =
            GivenRow::from_iter([("at", int(5)), ("doc", text("true"))].map(|(n, c)| (n.to_owned(), c)));
        let row = row.in_json_form();
        let value = |name, ty| row.get(name).expect("a cell").to_value(ty);
        assert_eq!(value("doc", ColumnType::Json), Ok(Value::Json("\"true\"".into())));
        assert!(value("at", ColumnType::Timestamptz).is_err());
        assert_eq!(value("at", ColumnType::Int8), Ok(Value::Int8(5)));
    }

    #[test]
    fn what_has_no_form_of_the_type_is_refused() {
        use ColumnType as T;
        for (cell, ty) in [
            (float(f64::NAN), T::Int8),
            (float(f64::NAN), T::Text),
            (float(f64::NAN), T::Json),
            (float(f64::NAN), T::Timestamptz),
            (bin(b"ab"), T::Text),
            (bin(b"ab"), T::Json),
            (bin(b"ab"), T::Uuid),
            (int(i64::MAX), T::Timestamptz),
            (int(2_932_897), T::Date),
            (int(1), T::Bool),
            (int(1), T::Text),
            (text("x"), T::Json),
            (Given::Json(Json::from(5)), T::Timestamptz),
            (Given::Json(Json::from(5)), T::Date),
        ] {
            assert!(cell.to_value(ty).is_err(), "{cell:?} as {ty}");
        }
    }
}
