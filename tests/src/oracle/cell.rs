//! Types and cells: a column's value once its JSON form has been checked against the column's type.

use super::{calendar, decimal};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

/// A column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int8,
    Float8,
    Text,
    Bytea,
    Timestamptz,
    Date,
    Uuid,
    Numeric,
    Json,
}

impl Kind {
    const ALL: [(Kind, &str); 10] = [
        (Kind::Bool, "bool"),
        (Kind::Int8, "int8"),
        (Kind::Float8, "float8"),
        (Kind::Text, "text"),
        (Kind::Bytea, "bytea"),
        (Kind::Timestamptz, "timestamptz"),
        (Kind::Date, "date"),
        (Kind::Uuid, "uuid"),
        (Kind::Numeric, "numeric"),
        (Kind::Json, "json"),
    ];

    pub(super) fn named(name: &str) -> Option<Kind> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map(|(_, name)| *name).expect("every kind is listed")
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Kind::Int8 | Kind::Float8 | Kind::Numeric)
    }

    /// Whether values of the two types have an order between them: the same type, or numbers both.
    pub(super) fn compares_with(self, other: Kind) -> bool {
        self == other || (self.is_number() && other.is_number())
    }
}

/// One value. Timestamps are microseconds and dates days since 1970; a uuid is its lower-case text, which has the
/// order of its bytes; a numeric is its text as given.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    Bool(bool),
    Int8(i64),
    Float8(f64),
    Text(String),
    Bytea(Vec<u8>),
    Timestamptz(i64),
    Date(i64),
    Uuid(String),
    Numeric(String),
    Json(Value),
}

impl Cell {
    /// Reads the JSON form of a value of the given type; null is NULL for every type, `json` included. `None` where
    /// it is not of that type.
    pub(super) fn read(kind: Kind, value: &Value) -> Option<Cell> {
        Some(match (kind, value) {
            (_, Value::Null) => Cell::Null,
            (Kind::Json, value) => Cell::Json(value.clone()),
            (Kind::Bool, Value::Bool(truth)) => Cell::Bool(*truth),
            (Kind::Int8, Value::Number(number)) => Cell::Int8(number.as_i64()?),
            (Kind::Float8, Value::Number(number)) => Cell::Float8(number.as_f64()?),
            (Kind::Float8, Value::String(text)) => Cell::Float8(match text.as_str() {
                "NaN" => f64::NAN,
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                _ => return None,
            }),
            (Kind::Text, Value::String(text)) => Cell::Text(text.clone()),
            (Kind::Bytea, Value::String(text)) => Cell::Bytea(BASE64.decode(text).ok()?),
            (Kind::Timestamptz, Value::String(text)) => Cell::Timestamptz(calendar::read_timestamp(text)?),
            (Kind::Date, Value::String(text)) => Cell::Date(calendar::read_date(text)?),
            (Kind::Uuid, Value::String(text)) if is_uuid(text) => Cell::Uuid(text.to_ascii_lowercase()),
            (Kind::Numeric, Value::String(text)) if decimal::is_decimal(text) => Cell::Numeric(text.clone()),
            _ => return None,
        })
    }

    /// Reads a literal or argument of a query. As [`Cell::read`], but a fractional number may meet an `int8`: the two
    /// have an exact order.
    pub(super) fn read_literal(kind: Kind, value: &Value) -> Option<Cell> {
        match (kind, value) {
            (Kind::Int8, Value::Number(number)) if number.is_f64() => number.as_f64().map(Cell::Float8),
            _ => Cell::read(kind, value),
        }
    }

    /// The JSON form.
    pub(super) fn show(&self) -> Value {
        match self {
            Cell::Null => Value::Null,
            Cell::Bool(truth) => Value::from(*truth),
            Cell::Int8(number) => Value::from(*number),
            Cell::Float8(number) if number.is_nan() => Value::from("NaN"),
            Cell::Float8(number) if number.is_infinite() => {
                Value::from(if *number > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Cell::Float8(number) => Value::from(*number),
            Cell::Text(text) | Cell::Uuid(text) | Cell::Numeric(text) => Value::from(text.as_str()),
            Cell::Bytea(bytes) => Value::from(BASE64.encode(bytes)),
            Cell::Timestamptz(micros) => Value::from(calendar::show_timestamp(*micros)),
            Cell::Date(days) => Value::from(calendar::show_date(*days)),
            Cell::Json(value) => value.clone(),
        }
    }

    /// The value's type; NULL has none.
    pub(super) fn kind(&self) -> Option<Kind> {
        Some(match self {
            Cell::Null => return None,
            Cell::Bool(_) => Kind::Bool,
            Cell::Int8(_) => Kind::Int8,
            Cell::Float8(_) => Kind::Float8,
            Cell::Text(_) => Kind::Text,
            Cell::Bytea(_) => Kind::Bytea,
            Cell::Timestamptz(_) => Kind::Timestamptz,
            Cell::Date(_) => Kind::Date,
            Cell::Uuid(_) => Kind::Uuid,
            Cell::Numeric(_) => Kind::Numeric,
            Cell::Json(_) => Kind::Json,
        })
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Cell::Null)
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
