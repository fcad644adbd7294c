//! Values of one type as values of another: PostgreSQL's casts and text forms.

use super::{
    EvalError, arithmetic, calendar, interval::Interval, json_path, json_text::json_text, typing::Type,
};
use bigdecimal::BigDecimal;
use serde_json::Value as Json;
use std::{fmt::Write as _, sync::Arc};
use tidegate_wire::model::{
    ColumnType, DOCUMENT_LEVELS_MAX, Numeric, Value, ValueRef, json_levels, numeric::NUMERIC_DIGITS_MAX,
};

/// Converts a value to a type; NULL stays NULL. Intervals are told apart by `from_interval`.
///
/// # Errors
/// When the value is none of that type.
pub fn convert(value: ValueRef<'_>, ty: Type) -> Result<Value, EvalError> {
    match (value, ty) {
        (ValueRef::Null, _) => Ok(Value::Null),
        (ValueRef::Text(text), ty) => from_text(text, ty),
        (value, Type::Column(ColumnType::Text)) => Ok(Value::Text(text_of(value).into())),
        (ValueRef::Bool(truth), Type::Int4) => Ok(Value::Int8(truth.into())),
        (ValueRef::Int8(number), Type::Column(ColumnType::Bool)) => Ok(Value::Bool(number != 0)),
        (ValueRef::Json(text), ty) => from_json(text, ty),
        (value @ (ValueRef::Int8(_) | ValueRef::Float8(_) | ValueRef::Numeric(_)), Type::Int4) => {
            let value =
                arithmetic::convert(value, ColumnType::Int8).map_err(|_| EvalError::OutOfRange("integer"))?;
            arithmetic::int4(value)
        }
        (ValueRef::Float8(number), Type::Column(ColumnType::Numeric)) => float8_to_numeric(number),
        (ValueRef::Date(days), Type::Column(ColumnType::Timestamptz)) => {
            calendar::midnight(days).map(Value::Timestamptz)
        }
        (ValueRef::Timestamptz(micros), Type::Column(ColumnType::Date)) => date_of(micros),
        (value, Type::Column(ty)) => arithmetic::convert(value, ty),
        (value, _) => Ok(value.to_value()),
    }
}

/// The value of a type that a text stands for, as PostgreSQL reads it.
///
/// # Errors
/// When the text is none of that type.
pub fn from_text(text: &str, ty: Type) -> Result<Value, EvalError> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let wrong = |ty| EvalError::InvalidText { ty, text: text.to_owned() };
    Ok(match ty {
        Type::Interval => Interval::parse(text)?.to_value(),
        Type::Int4 => {
            let value = integer(trimmed, "integer", text)?;
            if i32::try_from(value).is_err() {
                return Err(EvalError::TextOutOfRange { ty: "integer", text: text.to_owned() });
            }
            Value::Int8(value)
        }
        Type::Column(column) => match column {
            ColumnType::Text => Value::Text(text.into()),
            ColumnType::Bool => Value::Bool(truth(trimmed).ok_or_else(|| wrong("boolean"))?),
            ColumnType::Int8 => Value::Int8(integer(trimmed, "bigint", text)?),
            ColumnType::Float8 => Value::Float8(float8(trimmed, text)?),
            ColumnType::Numeric => Value::Numeric(Arc::new(numeric(trimmed, text)?)),
            ColumnType::Bytea => bytea(text)?,
            ColumnType::Timestamptz => Value::Timestamptz(calendar::parse_moment(text)?),
            ColumnType::Date => Value::Date(calendar::parse_date(text)?),
            ColumnType::Uuid => uuid(text).ok_or_else(|| wrong("uuid"))?,
            ColumnType::Json => {
                if json_levels(text.as_bytes()) > DOCUMENT_LEVELS_MAX {
                    return Err(EvalError::JsonLevels);
                }
                let json: Json = serde_json::from_str(text).map_err(|_| wrong("json"))?;
                if has_nul(&json) {
                    return Err(wrong("json"));
                }
                // A JSON null is a document here, not SQL's NULL.
                Value::Json(json.to_string().into())
            }
        },
    })
}

/// The date of a moment.
pub(super) fn date_of(micros: i64) -> Result<Value, EvalError> {
    calendar::date(micros.div_euclid(super::interval::MICROS_PER_DAY)).map(Value::Date)
}

fn truth(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let starts = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if starts("true", 1) || starts("yes", 1) || lower == "on" || lower == "1" {
        Some(true)
    } else if starts("false", 1) || starts("no", 1) || starts("off", 2) || lower == "0" {
        Some(false)
    } else {
        None
    }
}

fn integer(trimmed: &str, ty: &'static str, text: &str) -> Result<i64, EvalError> {
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(EvalError::InvalidText { ty, text: text.to_owned() });
    }
    trimmed.parse().map_err(|_| EvalError::TextOutOfRange { ty, text: text.to_owned() })
}

fn float8(trimmed: &str, text: &str) -> Result<f64, EvalError> {
    let value: f64 = trimmed
        .parse()
        .map_err(|_| EvalError::InvalidText { ty: "double precision", text: text.to_owned() })?;
    let has_digits = trimmed.bytes().any(|byte| byte.is_ascii_digit());
    let mantissa = trimmed.split(['e', 'E']).next().unwrap_or(trimmed);
    let vanished = value == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if (value.is_infinite() && has_digits) || vanished {
        return Err(EvalError::TextOutOfRange { ty: "double precision", text: text.to_owned() });
    }
    Ok(value)
}

pub(super) fn numeric(trimmed: &str, text: &str) -> Result<Numeric, EvalError> {
    let wrong = || EvalError::InvalidText { ty: "numeric", text: text.to_owned() };
    let lower = trimmed.to_ascii_lowercase();
    match lower.as_str() {
        "nan" => return Ok(Numeric::NaN),
        "infinity" | "inf" | "+infinity" | "+inf" => return Ok(Numeric::Infinity),
        "-infinity" | "-inf" => return Ok(Numeric::NegativeInfinity),
        _ => {}
    }
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent_digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !all_digits(whole)
        || !all_digits(fraction)
        || (whole.is_empty() && fraction.is_empty())
        || exponent_digits.is_empty()
        || !all_digits(exponent_digits)
    {
        return Err(wrong());
    }
    let exponent: i64 = exponent.parse().map_err(|_| EvalError::NumericOverflow)?;
    let digits = format!("{whole}{fraction}");
    let scale = fraction.len() as i64 - exponent;
    if digits.len() > NUMERIC_DIGITS_MAX || scale.unsigned_abs() > NUMERIC_DIGITS_MAX as u64 {
        return Err(EvalError::NumericOverflow);
    }
    let magnitude: bigdecimal::num_bigint::BigInt = digits.parse().map_err(|_| wrong())?;
    let magnitude = if mantissa.starts_with('-') { -magnitude } else { magnitude };
    super::decimal::finish(&BigDecimal::new(magnitude, scale), scale.max(0)).map(Numeric::Finite)
}

/// `\x0aff`, or text with `\\` and `\ooo`.
fn bytea(text: &str) -> Result<Value, EvalError> {
    let wrong = || EvalError::InvalidText { ty: "bytea", text: text.to_owned() };
    let mut bytes = Vec::with_capacity(text.len());
    if let Some(digits) = text.strip_prefix("\\x") {
        let mut high = None;
        for c in digits.chars() {
            if high.is_none() && c.is_ascii_whitespace() {
                continue;
            }
            let digit = c.to_digit(16).ok_or_else(wrong)? as u8;
            match high.take() {
                None => high = Some(digit),
                Some(high) => bytes.push(high << 4 | digit),
            }
        }
        if high.is_some() {
            return Err(wrong());
        }
        return Ok(ValueRef::Bytea(&bytes).to_value());
    }
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return Ok(ValueRef::Bytea(&bytes).to_value()),
            [b'\\', b'\\', rest @ ..] => {
                bytes.push(b'\\');
                rest
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [b'\\', ..] => return Err(wrong()),
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
}

/// 32 digits, in braces or not, with hyphens after any group of four.
fn uuid(text: &str) -> Option<Value> {
    let inner = text.strip_prefix('{').map_or(Some(text), |rest| rest.strip_suffix('}'))?;
    let (mut digits, mut after_hyphen) = (String::with_capacity(32), false);
    for c in inner.chars() {
        if c == '-' {
            if after_hyphen || digits.is_empty() || digits.len() % 4 != 0 || digits.len() == 32 {
                return None;
            }
            after_hyphen = true;
            continue;
        }
        after_hyphen = false;
        digits.push(c.is_ascii_hexdigit().then_some(c)?);
    }
    let json = Json::from(digits);
    Value::from_json(ColumnType::Uuid, &json).ok()
}

fn has_nul(json: &Json) -> bool {
    match json {
        Json::String(text) => text.contains('\0'),
        Json::Array(items) => items.iter().any(has_nul),
        Json::Object(members) => members.iter().any(|(key, value)| key.contains('\0') || has_nul(value)),
        _ => false,
    }
}

fn from_json(text: &str, ty: Type) -> Result<Value, EvalError> {
    let json: Json = serde_json::from_str(text).unwrap_or(Json::Null);
    let refused = || EvalError::CastOfJson { kind: json_kind(&json), ty: ty.postgres_name() };
    match (&json, ty) {
        (_, Type::Column(ColumnType::Json)) => Ok(Value::Json(text.into())),
        (Json::Bool(truth), Type::Column(ColumnType::Bool)) => Ok(Value::Bool(*truth)),
        (Json::Number(number), ty) if ty.is_number() => {
            let digits = number.to_string();
            let number = Value::Numeric(Arc::new(numeric(&digits, &digits)?));
            convert(number.as_ref(), ty)
        }
        _ => Err(refused()),
    }
}

/// What PostgreSQL calls a document's kind.
pub(super) fn json_kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// PostgreSQL goes by 15 significant digits here.
fn float8_to_numeric(value: f64) -> Result<Value, EvalError> {
    if !value.is_finite() {
        return Ok(Value::Numeric(Arc::new(value.into())));
    }
    let shortened = format!("{value:.14e}");
    let (mantissa, exponent) = shortened.split_once('e').unwrap_or((&shortened, "0"));
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    numeric(&format!("{mantissa}e{exponent}"), &shortened).map(|value| Value::Numeric(Arc::new(value)))
}

/// A value's text, as a cast to text gives it. An interval is not told from a `bytea`: see [`interval_text`].
#[must_use]
pub fn text_of(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Bool(truth) => truth.to_string(),
        ValueRef::Int8(number) => number.to_string(),
        ValueRef::Float8(number) => float8_text(number),
        ValueRef::Text(text) => text.to_owned(),
        ValueRef::Json(text) => json_text(&json_path::parse(text)),
        ValueRef::Bytea(bytes) => {
            let mut out = String::with_capacity(2 + 2 * bytes.len());
            out.push_str("\\x");
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
            out
        }
        ValueRef::Timestamptz(micros) => calendar::moment_text(micros),
        ValueRef::Date(days) => calendar::date_text(days.into()),
        ValueRef::Uuid(uuid) => uuid.hyphenated().to_string(),
        ValueRef::Numeric(number) => number.to_numeric().to_string(),
    }
}

/// An interval's text.
#[must_use]
pub fn interval_text(value: ValueRef<'_>) -> String {
    Interval::from_value(value).to_string()
}

/// The shortest digits that read back as the same double; an exponent from 10^15 on and below 10^-4.
fn float8_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..15).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// The value as `numeric(precision, scale)`.
///
/// # Errors
/// When it has more digits before the point than there is room for.
pub fn to_precision(value: ValueRef<'_>, precision: u32, scale: i32) -> Result<Value, EvalError> {
    let ValueRef::Numeric(number) = value else { return Ok(value.to_value()) };
    let finite = match number.to_numeric() {
        Numeric::Finite(finite) => finite,
        Numeric::NaN => return Ok(value.to_value()),
        _ => return Err(EvalError::NumericField { precision, scale }),
    };
    let rounded = super::decimal::round(&finite, i64::from(scale))?;
    let (digits, own_scale) = rounded.as_bigint_and_exponent();
    let integer_digits = match digits.magnitude().to_string() {
        zero if zero == "0" => i64::MIN,
        digits => digits.len() as i64 - own_scale,
    };
    if integer_digits > i64::from(precision) - i64::from(scale) {
        return Err(EvalError::NumericField { precision, scale });
    }
    let shown = super::decimal::finish(&rounded, i64::from(scale.max(0)))?;
    Ok(Value::Numeric(Arc::new(Numeric::Finite(shown))))
}
