//! A cell as it travels. Its type is not in it: the column's type, from the layout, says what it stands for.

use crate::codec::Codec;
use crate::model::{ColumnType, Value, json::canonical_text};
use bytes::Bytes;
use compact_str::CompactString;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value as Json;
use std::{fmt, sync::Arc};

/// A decoded but not yet typed cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A double.
    Float(f64),
    /// Text, or what the codec writes as text.
    Text(CompactString),
    /// Bytes.
    Bin(Bytes),
    /// A JSON array or object (JSON codec only).
    Json(Box<Json>),
}

/// A cell that does not have the form of its column's type.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("a cell of type {ty} cannot be {cell:?}")]
pub struct CellError {
    /// The column's type.
    pub ty: ColumnType,
    /// The cell.
    pub cell: Cell,
}

impl Cell {
    /// The cell that stands for a value in `codec`.
    #[must_use]
    pub fn from_value(value: &Value, codec: Codec) -> Self {
        match (codec, value) {
            (_, Value::Null) => Self::Null,
            (_, Value::Bool(v)) => Self::Bool(*v),
            (_, Value::Int8(v)) => Self::Int(*v),
            (_, Value::Text(v)) => Self::Text(v.clone()),
            (Codec::MessagePack, Value::Float8(v)) => Self::Float(*v),
            (Codec::MessagePack, Value::Bytea(v)) => Self::Bin(v.clone()),
            (Codec::MessagePack, Value::Timestamptz(v)) => Self::Int(*v),
            (Codec::MessagePack, Value::Date(v)) => Self::Int((*v).into()),
            (Codec::MessagePack, Value::Uuid(v)) => Self::Bin(Bytes::copy_from_slice(v.as_bytes())),
            (Codec::MessagePack, Value::Numeric(v)) => Self::Text(v.to_string().into()),
            (Codec::MessagePack, Value::Json(v)) => Self::Text(v.as_ref().into()),
            (Codec::Json, value) => match value.to_json() {
                Json::Null => Self::Null,
                Json::Bool(v) => Self::Bool(v),
                Json::Number(n) => match n.as_i64() {
                    Some(v) => Self::Int(v),
                    None => Self::Float(n.as_f64().unwrap_or(f64::NAN)),
                },
                Json::String(v) => Self::Text(v.into()),
                nested => Self::Json(Box::new(nested)),
            },
        }
    }

    /// The value of type `ty` that the cell stands for in `codec`.
    ///
    /// # Errors
    /// When the cell does not have the type's form.
    pub fn to_value(&self, ty: ColumnType, codec: Codec) -> Result<Value, CellError> {
        let error = || CellError { ty, cell: self.clone() };
        if codec == Codec::Json {
            let json = self.to_json();
            // What a query makes of documents may have more levels than one that is given.
            if ty == ColumnType::Json && !json.is_null() {
                return Ok(Value::Json(canonical_text(&json).into()));
            }
            // A JSON `null` document cannot be told from NULL; both read as NULL.
            return Value::from_json(ty, &json).map_err(|_| error());
        }
        Ok(match (ty, self) {
            (_, Self::Null) => Value::Null,
            (ColumnType::Bool, Self::Bool(v)) => Value::Bool(*v),
            (ColumnType::Int8, Self::Int(v)) => Value::Int8(*v),
            (ColumnType::Float8, Self::Float(v)) => Value::Float8(*v),
            (ColumnType::Text, Self::Text(v)) => Value::Text(v.clone()),
            (ColumnType::Bytea, Self::Bin(v)) => Value::Bytea(v.clone()),
            (ColumnType::Timestamptz, Self::Int(v)) => Value::Timestamptz(*v),
            (ColumnType::Date, Self::Int(v)) => Value::Date(i32::try_from(*v).map_err(|_| error())?),
            (ColumnType::Uuid, Self::Bin(v)) => Value::Uuid(uuid::Uuid::from_slice(v).map_err(|_| error())?),
            (ColumnType::Numeric, Self::Text(v)) => Value::Numeric(Arc::new(v.parse().map_err(|_| error())?)),
            (ColumnType::Json, Self::Text(v)) => Value::Json(v.as_str().into()),
            _ => return Err(error()),
        })
    }

    fn to_json(&self) -> Json {
        match self {
            Self::Null | Self::Bin(_) => Json::Null,
            Self::Bool(v) => Json::Bool(*v),
            Self::Int(v) => Json::from(*v),
            Self::Float(v) => Json::from(*v),
            Self::Text(v) => Json::from(v.as_str()),
            Self::Json(v) => (**v).clone(),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(v) => serializer.serialize_bool(*v),
            Self::Int(v) => serializer.serialize_i64(*v),
            Self::Float(v) => serializer.serialize_f64(*v),
            Self::Text(v) => serializer.serialize_str(v),
            Self::Bin(v) => serializer.serialize_bytes(v),
            Self::Json(v) => v.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Cell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a cell")
            }

            fn visit_unit<E>(self) -> Result<Cell, E> {
                Ok(Cell::Null)
            }

            fn visit_none<E>(self) -> Result<Cell, E> {
                Ok(Cell::Null)
            }

            fn visit_bool<E>(self, v: bool) -> Result<Cell, E> {
                Ok(Cell::Bool(v))
            }

            fn visit_i64<E>(self, v: i64) -> Result<Cell, E> {
                Ok(Cell::Int(v))
            }

            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Cell, E> {
                Ok(match i64::try_from(v) {
                    Ok(v) => Cell::Int(v),
                    // A double such as 1e19 is written by some JSON encoders without a fraction.
                    Err(_) => Cell::Float(v as f64),
                })
            }

            fn visit_f64<E>(self, v: f64) -> Result<Cell, E> {
                Ok(Cell::Float(v))
            }

            fn visit_str<E>(self, v: &str) -> Result<Cell, E> {
                Ok(Cell::Text(v.into()))
            }

            fn visit_bytes<E>(self, v: &[u8]) -> Result<Cell, E> {
                Ok(Cell::Bin(Bytes::copy_from_slice(v)))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Cell, A::Error> {
                Json::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(|v| Cell::Json(Box::new(v)))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Cell, A::Error> {
                Json::deserialize(de::value::MapAccessDeserializer::new(map)).map(|v| Cell::Json(Box::new(v)))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
