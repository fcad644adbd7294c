//! Values, their one comparator, and their JSON form.

use super::{ColumnType, DOCUMENT_LEVELS_MAX, Numeric, json, time};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use compact_str::CompactString;
use serde_json::Value as Json;
use std::{cmp::Ordering, sync::Arc};
use uuid::Uuid;

/// One cell's value, owned.
#[derive(Clone, Debug)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// `bool`.
    Bool(bool),
    /// `int8`.
    Int8(i64),
    /// `float8`.
    Float8(f64),
    /// `text`, without NUL.
    Text(CompactString),
    /// `bytea`.
    Bytea(Bytes),
    /// `timestamptz`: microseconds since 1970.
    Timestamptz(i64),
    /// `date`: days since 1970.
    Date(i32),
    /// `uuid`.
    Uuid(Uuid),
    /// `numeric`.
    Numeric(Arc<Numeric>),
    /// `json`: the document's text, compact, members in key order.
    Json(Arc<str>),
}

/// One cell's value, borrowed from a [`Value`] or straight from an encoded row.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// SQL NULL.
    Null,
    /// `bool`.
    Bool(bool),
    /// `int8`.
    Int8(i64),
    /// `float8`.
    Float8(f64),
    /// `text`.
    Text(&'a str),
    /// `bytea`.
    Bytea(&'a [u8]),
    /// `timestamptz`: microseconds since 1970.
    Timestamptz(i64),
    /// `date`: days since 1970.
    Date(i32),
    /// `uuid`.
    Uuid(&'a Uuid),
    /// `numeric`, in its text form.
    Numeric(NumericRef<'a>),
    /// `json`, in its text form.
    Json(&'a str),
}

/// A `numeric` either parsed or as the text a row holds.
#[derive(Clone, Copy, Debug)]
pub enum NumericRef<'a> {
    /// Parsed.
    Parsed(&'a Numeric),
    /// As stored.
    Text(&'a str),
}

impl NumericRef<'_> {
    /// The parsed number. Stored text always parses; text that does not counts as NaN.
    #[must_use]
    pub fn to_numeric(self) -> Numeric {
        match self {
            Self::Parsed(numeric) => numeric.clone(),
            Self::Text(text) => text.parse().unwrap_or(Numeric::NaN),
        }
    }
}

/// Why a JSON value is not a value of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct ValueError {
    /// What the type takes.
    pub expected: String,
    /// The JSON that was given, shortened.
    pub found: String,
}

impl ValueError {
    pub(super) fn new(expected: &str, found: &Json) -> Self {
        Self { expected: expected.to_owned(), found: shorten(found.to_string()) }
    }

    /// Of a document with more than [`DOCUMENT_LEVELS_MAX`] levels, given as text or not.
    #[must_use]
    pub fn too_deep(document: &impl ToString) -> Self {
        let expected = format!("json of at most {DOCUMENT_LEVELS_MAX} levels");
        Self { expected, found: shorten(document.to_string()) }
    }
}

impl Value {
    /// The value borrowed.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Bool(v) => ValueRef::Bool(*v),
            Self::Int8(v) => ValueRef::Int8(*v),
            Self::Float8(v) => ValueRef::Float8(*v),
            Self::Text(v) => ValueRef::Text(v),
            Self::Bytea(v) => ValueRef::Bytea(v),
            Self::Timestamptz(v) => ValueRef::Timestamptz(*v),
            Self::Date(v) => ValueRef::Date(*v),
            Self::Uuid(v) => ValueRef::Uuid(v),
            Self::Numeric(v) => ValueRef::Numeric(NumericRef::Parsed(v)),
            Self::Json(v) => ValueRef::Json(v),
        }
    }

    /// Whether this is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value of type `ty` that a JSON value stands for; JSON `null` is NULL for every type, `json` included.
    ///
    /// # Errors
    /// When the JSON is not in the type's form (`docs/protocol.md`, Types).
    pub fn from_json(ty: ColumnType, json: &Json) -> Result<Self, ValueError> {
        let fail = |expected: &str| ValueError::new(expected, json);
        if json.is_null() {
            return Ok(Self::Null);
        }
        Ok(match (ty, json) {
            (ColumnType::Bool, Json::Bool(v)) => Self::Bool(*v),
            (ColumnType::Int8, Json::Number(n)) => match (n.as_i64(), n.as_f64()) {
                (Some(v), _) => Self::Int8(v),
                // A JavaScript client may write 3 as 3.0; beyond 2^53 a double no longer names one integer.
                (None, Some(v)) if v.fract() == 0.0 && v.abs() <= 9_007_199_254_740_992.0 => {
                    Self::Int8(v as i64)
                }
                _ => return Err(fail("int8 (a whole number of 64 bits)")),
            },
            (ColumnType::Float8, Json::Number(n)) => {
                Self::Float8(n.as_f64().ok_or_else(|| fail("float8 (a number)"))?)
            }
            (ColumnType::Float8, Json::String(s)) => Self::Float8(match s.as_str() {
                "NaN" => f64::NAN,
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                _ => return Err(fail("float8 (a number, or \"NaN\", \"Infinity\", \"-Infinity\")")),
            }),
            (ColumnType::Text, Json::String(s)) if !s.contains('\0') => Self::Text(s.as_str().into()),
            (ColumnType::Bytea, Json::String(s)) => {
                Self::Bytea(BASE64.decode(s).map_err(|_| fail("bytea (base64)"))?.into())
            }
            (ColumnType::Timestamptz, Json::String(s)) => {
                let expected = "timestamptz (RFC 3339, years 0000 to 9999)";
                Self::Timestamptz(time::parse_timestamptz(s).ok_or_else(|| fail(expected))?)
            }
            (ColumnType::Date, Json::String(s)) => {
                Self::Date(time::parse_date(s).ok_or_else(|| fail("date (YYYY-MM-DD, years 0000 to 9999)"))?)
            }
            (ColumnType::Uuid, Json::String(s)) => {
                Self::Uuid(Uuid::try_parse(s).map_err(|_| fail("uuid (hyphenated)"))?)
            }
            (ColumnType::Numeric, Json::String(s)) => {
                Self::Numeric(Arc::new(s.parse().map_err(|_| fail("numeric (a decimal as a string)"))?))
            }
            (ColumnType::Numeric, Json::Number(n)) => {
                Self::Numeric(Arc::new(n.to_string().parse().map_err(|_| fail("numeric (a decimal)"))?))
            }
            (ColumnType::Json, json) if !json::has_levels(json, DOCUMENT_LEVELS_MAX) => {
                return Err(ValueError::too_deep(json));
            }
            (ColumnType::Json, json) => Self::Json(json::canonical_text(json).into()),
            (ColumnType::Text, Json::String(_)) => return Err(fail("text without a NUL character")),
            (ty, _) => return Err(fail(ty.name())),
        })
    }

    /// The JSON form of the value.
    #[must_use]
    pub fn to_json(&self) -> Json {
        self.as_ref().to_json()
    }

    /// This value as one of type `ty` that is equal to it, or `None` when no value of `ty` equals it. Lets numbers
    /// of one type be looked up in an index over another.
    #[must_use]
    pub fn convert_exact(&self, ty: ColumnType) -> Option<Self> {
        self.as_ref().convert_exact(ty)
    }
}

impl PartialEq for Value {
    /// Equality of the one comparator, with NULL equal to NULL (as in keys and `is not distinct from`).
    fn eq(&self, other: &Self) -> bool {
        self.as_ref().compare(other.as_ref()) == Ordering::Equal
    }
}

impl Eq for Value {}

impl<'a> ValueRef<'a> {
    /// Whether this is NULL.
    #[must_use]
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value's type; `None` for NULL.
    #[must_use]
    pub fn column_type(self) -> Option<ColumnType> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(_) => ColumnType::Bool,
            Self::Int8(_) => ColumnType::Int8,
            Self::Float8(_) => ColumnType::Float8,
            Self::Text(_) => ColumnType::Text,
            Self::Bytea(_) => ColumnType::Bytea,
            Self::Timestamptz(_) => ColumnType::Timestamptz,
            Self::Date(_) => ColumnType::Date,
            Self::Uuid(_) => ColumnType::Uuid,
            Self::Numeric(_) => ColumnType::Numeric,
            Self::Json(_) => ColumnType::Json,
        })
    }

    /// The value, owned.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(v),
            Self::Int8(v) => Value::Int8(v),
            Self::Float8(v) => Value::Float8(v),
            Self::Text(v) => Value::Text(v.into()),
            Self::Bytea(v) => Value::Bytea(Bytes::copy_from_slice(v)),
            Self::Timestamptz(v) => Value::Timestamptz(v),
            Self::Date(v) => Value::Date(v),
            Self::Uuid(v) => Value::Uuid(*v),
            Self::Numeric(v) => Value::Numeric(Arc::new(v.to_numeric())),
            Self::Json(v) => Value::Json(v.into()),
        }
    }

    /// The one comparator. Numbers of different types compare exactly by value; a `date` compares with a
    /// `timestamptz` as its midnight; NULL is equal to NULL and above everything (callers that need three-valued
    /// logic test for NULL first); values of unrelated types, which type checking keeps apart, compare by type.
    #[must_use]
    pub fn compare(self, other: ValueRef<'_>) -> Ordering {
        use ValueRef as V;
        match (self, other) {
            (V::Null, V::Null) => Ordering::Equal,
            (V::Null, _) => Ordering::Greater,
            (_, V::Null) => Ordering::Less,
            (V::Bool(a), V::Bool(b)) => a.cmp(&b),
            (V::Int8(a), V::Int8(b)) | (V::Timestamptz(a), V::Timestamptz(b)) => a.cmp(&b),
            (V::Float8(a), V::Float8(b)) => compare_float8(a, b),
            (V::Text(a), V::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (V::Bytea(a), V::Bytea(b)) => a.cmp(b),
            (V::Date(a), V::Date(b)) => a.cmp(&b),
            (V::Uuid(a), V::Uuid(b)) => a.as_bytes().cmp(b.as_bytes()),
            (V::Json(a), V::Json(b)) if a == b => Ordering::Equal,
            (V::Json(a), V::Json(b)) => json::ordered_bytes(a).cmp(&json::ordered_bytes(b)),
            (V::Int8(a), V::Float8(b)) => compare_int8_float8(a, b),
            (V::Float8(a), V::Int8(b)) => compare_int8_float8(b, a).reverse(),
            (V::Numeric(a), V::Numeric(b)) => a.to_numeric().cmp(&b.to_numeric()),
            (V::Numeric(a), V::Int8(b)) => a.to_numeric().cmp(&b.into()),
            (V::Int8(a), V::Numeric(b)) => Numeric::from(a).cmp(&b.to_numeric()),
            (V::Numeric(a), V::Float8(b)) => a.to_numeric().cmp(&b.into()),
            (V::Float8(a), V::Numeric(b)) => Numeric::from(a).cmp(&b.to_numeric()),
            (V::Date(a), V::Timestamptz(b)) => midnight(a).cmp(&i128::from(b)),
            (V::Timestamptz(a), V::Date(b)) => i128::from(a).cmp(&midnight(b)),
            (a, b) => (a.column_type().map(|t| t as u8)).cmp(&b.column_type().map(|t| t as u8)),
        }
    }

    /// Whether two values cannot be told apart: 1 and 1.0 can, though they compare as equal.
    #[must_use]
    pub fn is_same(self, other: ValueRef<'_>) -> bool {
        use ValueRef as V;
        match (self, other) {
            (V::Numeric(NumericRef::Text(a)), V::Numeric(NumericRef::Text(b))) => a == b,
            (V::Numeric(a), V::Numeric(b)) => a.to_numeric().to_string() == b.to_numeric().to_string(),
            (V::Float8(a), V::Float8(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (V::Json(a), V::Json(b)) => a == b,
            _ => self.column_type() == other.column_type() && self.compare(other).is_eq(),
        }
    }

    /// Whether a value can be equal to this one and yet not the same.
    #[must_use]
    pub fn has_spellings(self) -> bool {
        matches!(self, Self::Numeric(_) | Self::Float8(_) | Self::Json(_))
    }

    /// See [`Value::convert_exact`].
    #[must_use]
    pub fn convert_exact(self, ty: ColumnType) -> Option<Value> {
        let own = self.column_type()?;
        if own == ty {
            return Some(self.to_value());
        }
        let converted = match (self, ty) {
            (Self::Int8(v), ColumnType::Float8) => Value::Float8(v as f64),
            (Self::Int8(v), ColumnType::Numeric) => Value::Numeric(Arc::new(v.into())),
            (Self::Float8(v), ColumnType::Int8) if v.fract() == 0.0 => Value::Int8(v as i64),
            (Self::Float8(v), ColumnType::Numeric) => Value::Numeric(Arc::new(v.into())),
            (Self::Numeric(v), ColumnType::Float8) => match v.to_numeric() {
                Numeric::NaN => Value::Float8(f64::NAN),
                Numeric::Infinity => Value::Float8(f64::INFINITY),
                Numeric::NegativeInfinity => Value::Float8(f64::NEG_INFINITY),
                Numeric::Finite(v) => Value::Float8(v.to_string().parse().ok()?),
            },
            (Self::Numeric(v), ColumnType::Int8) => match v.to_numeric() {
                Numeric::Finite(v) if v.is_integer() => {
                    Value::Int8(v.with_scale(0).to_plain_string().parse().ok()?)
                }
                _ => return None,
            },
            (Self::Date(v), ColumnType::Timestamptz) => Value::Timestamptz(i64::try_from(midnight(v)).ok()?),
            (Self::Timestamptz(v), ColumnType::Date) => {
                Value::Date(i32::try_from(v.div_euclid(MICROS_PER_DAY)).ok()?)
            }
            _ => return None,
        };
        (self.compare(converted.as_ref()) == Ordering::Equal).then_some(converted)
    }

    /// The JSON form of the value (`docs/protocol.md`, Types).
    #[must_use]
    pub fn to_json(self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(v) => Json::Bool(v),
            Self::Int8(v) => Json::from(v),
            Self::Float8(v) => match serde_json::Number::from_f64(v) {
                Some(number) => Json::Number(number),
                None => Json::from(non_finite_name(v)),
            },
            Self::Text(v) => Json::from(v),
            Self::Bytea(v) => Json::from(BASE64.encode(v)),
            Self::Timestamptz(v) => Json::from(time::format_timestamptz(v)),
            Self::Date(v) => Json::from(time::format_date(v)),
            Self::Uuid(v) => Json::from(v.hyphenated().to_string()),
            Self::Numeric(NumericRef::Text(v)) => Json::from(v),
            Self::Numeric(NumericRef::Parsed(v)) => Json::from(v.to_string()),
            Self::Json(v) => serde_json::from_str(v).unwrap_or(Json::Null),
        }
    }
}

const MICROS_PER_DAY: i64 = 86_400_000_000;

fn midnight(days: i32) -> i128 {
    i128::from(days) * i128::from(MICROS_PER_DAY)
}

/// The JSON and text name of a NaN or an infinity.
pub(crate) fn non_finite_name(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// PostgreSQL's order of doubles: NaN equals itself and is the greatest; −0 equals 0.
fn compare_float8(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Compares by exact value, where converting either side could round.
fn compare_int8_float8(integer: i64, double: f64) -> Ordering {
    if double.is_nan() {
        return Ordering::Less;
    }
    // 2^63 is exact as a double; at or beyond it no int8 is greater.
    if double >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if double < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let whole = double.trunc();
    integer.cmp(&(whole as i64)).then_with(|| {
        let rest = double - whole;
        0.0_f64.partial_cmp(&rest).expect("a finite difference is comparable")
    })
}

fn shorten(mut text: String) -> String {
    if let Some((cut, _)) = text.char_indices().nth(60) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_read_to_the_last_bit() {
        for number in [
            2.770_142_669_748_114_6_f64,
            0.1 + 0.2,
            5e-324,
            1.797_693_134_862_315_7e308,
            9_007_199_254_740_993.0,
        ] {
            let json: Json = serde_json::from_str(&format!("{number:?}")).expect("a number");
            let Ok(Value::Float8(read)) = Value::from_json(ColumnType::Float8, &json) else {
                panic!("{json} is one")
            };
            assert_eq!(read.to_bits(), number.to_bits(), "{number:?}");
        }
    }

    #[test]
    fn int8_compares_with_fractions_exactly() {
        let big = 9_007_199_254_740_993; // 2^53 + 1 has no double of its own
        assert_eq!(ValueRef::Int8(big).compare(ValueRef::Float8(9_007_199_254_740_992.0)), Ordering::Greater);
        assert_eq!(ValueRef::Int8(2).compare(ValueRef::Float8(2.5)), Ordering::Less);
        assert_eq!(ValueRef::Int8(-2).compare(ValueRef::Float8(-2.5)), Ordering::Greater);
        assert_eq!(ValueRef::Int8(i64::MAX).compare(ValueRef::Float8(9.3e18)), Ordering::Less);
        assert_eq!(ValueRef::Int8(i64::MIN).compare(ValueRef::Float8(i64::MIN as f64)), Ordering::Equal);
        assert_eq!(ValueRef::Int8(0).compare(ValueRef::Float8(f64::NAN)), Ordering::Less);
        assert_eq!(ValueRef::Int8(0).compare(ValueRef::Float8(f64::NEG_INFINITY)), Ordering::Greater);
    }

    #[test]
    fn json_forms_round_trip() {
        for (ty, json) in [
            (ColumnType::Int8, "9223372036854775807"),
            (ColumnType::Float8, "\"NaN\""),
            (ColumnType::Float8, "1.5"),
            (ColumnType::Text, "\"héllo\""),
            (ColumnType::Bytea, "\"AAEC\""),
            (ColumnType::Timestamptz, "\"2013-02-04T05:00:00Z\""),
            (ColumnType::Timestamptz, "\"1969-12-31T23:59:59.999999Z\""),
            (ColumnType::Date, "\"2013-02-04\""),
            (ColumnType::Uuid, "\"67e55044-10b1-426f-9247-bb680e5fe0c8\""),
            (ColumnType::Numeric, "\"1.500\""),
            (ColumnType::Json, "{\"a\":[1,null]}"),
            (ColumnType::Bool, "true"),
        ] {
            let parsed: Json = serde_json::from_str(json).expect("test JSON");
            let value = Value::from_json(ty, &parsed).expect(json);
            assert_eq!(value.to_json(), parsed, "{ty} {json}");
        }
    }

    #[test]
    fn what_no_column_holds_is_refused_with_the_range() {
        for (ty, text) in [
            (ColumnType::Timestamptz, "10000-01-01T00:00:00Z"),
            (ColumnType::Timestamptz, "9999-12-31T23:59:59.999999-00:01"),
            (ColumnType::Timestamptz, "0000-01-01T00:00:00+00:01"),
            (ColumnType::Timestamptz, "-000001-12-31T00:00:00Z"),
            (ColumnType::Date, "10000-01-01"),
            (ColumnType::Date, "-000001-12-31"),
        ] {
            let error = Value::from_json(ty, &Json::from(text)).expect_err(text).to_string();
            assert!(error.contains("years 0000 to 9999") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn conversions_are_exact_or_refused() {
        assert_eq!(Value::Float8(2.5).convert_exact(ColumnType::Int8), None);
        assert_eq!(Value::Int8((1 << 53) + 1).convert_exact(ColumnType::Float8), None);
        assert_eq!(Value::Int8(7).convert_exact(ColumnType::Float8), Some(Value::Float8(7.0)));
        assert_eq!(Value::Float8(9.3e18).convert_exact(ColumnType::Int8), None);
    }
}
