//! What operators and functions find in JSON documents, which are given as text.

use super::{EvalError, cast::json_kind, json_text::json_text};
use serde_json::Value as Json;
use tidegate_wire::model::{Value, ValueRef};

pub(super) fn parse(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or(Json::Null)
}

fn document(json: Option<&Json>) -> Value {
    json.map_or(Value::Null, |json| Value::Json(json.to_string().into()))
}

/// A document's text, as `->>` gives it: a string's content, NULL for null.
fn text(json: Option<&Json>) -> Result<Value, EvalError> {
    Ok(match json {
        None | Some(Json::Null) => Value::Null,
        Some(Json::String(text)) if text.contains('\0') => {
            return Err(EvalError::Argument {
                function: "->>",
                problem: "\\u0000 cannot be converted to text",
            });
        }
        Some(Json::String(text)) => Value::Text(text.as_str().into()),
        Some(json) => Value::Text(json_text(json).into()),
    })
}

fn element(items: &[Json], index: i64) -> Option<&Json> {
    let index = if index < 0 { index.checked_add(items.len() as i64)? } else { index };
    items.get(usize::try_from(index).ok()?)
}

/// `json -> key` and, as text, `json ->> key`.
pub(super) fn member(json: &str, key: &str, as_text: bool) -> Result<Value, EvalError> {
    let json = parse(json);
    let found = json.as_object().and_then(|members| members.get(key));
    if as_text { text(found) } else { Ok(document(found)) }
}

/// `json -> index` and, as text, `json ->> index`; negative from the end.
pub(super) fn item(json: &str, index: i64, as_text: bool) -> Result<Value, EvalError> {
    let json = parse(json);
    let found = match &json {
        Json::Array(items) => element(items, index),
        Json::Object(_) => None,
        // A scalar is the one item of itself.
        scalar => (index == 0 || index == -1).then_some(scalar),
    };
    if as_text { text(found) } else { Ok(document(found)) }
}

/// `json #> path` and, as text, `json #>> path`; the path is an array's text, as `{a,0,b}`.
pub(super) fn at_path(json: &str, path: &str, as_text: bool) -> Result<Value, EvalError> {
    let json = parse(json);
    let mut found = Some(&json);
    for step in array_items(path)? {
        let Some(step) = step else { return Ok(Value::Null) };
        found = match found {
            Some(Json::Object(members)) => members.get(&step),
            Some(Json::Array(items)) => step.parse().ok().and_then(|index| element(items, index)),
            _ => None,
        };
    }
    if as_text { text(found) } else { Ok(document(found)) }
}

/// The items of a text array's text; `None` is NULL.
pub(super) fn array_items(text: &str) -> Result<Vec<Option<String>>, EvalError> {
    let wrong = || EvalError::Argument { function: "#>", problem: "malformed array literal" };
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(wrong)?;
    let mut items = Vec::new();
    if inner.trim().is_empty() {
        return Ok(items);
    }
    let mut chars = inner.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
        let mut item = String::new();
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next().ok_or_else(wrong)? {
                    '"' => break,
                    '\\' => item.push(chars.next().ok_or_else(wrong)?),
                    c => item.push(c),
                }
            }
            while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
            items.push(Some(item));
        } else {
            while let Some(c) = chars.next_if(|c| *c != ',') {
                match c {
                    '"' | '{' | '}' => return Err(wrong()),
                    '\\' => item.push(chars.next().ok_or_else(wrong)?),
                    c => item.push(c),
                }
            }
            let item = item.trim_end();
            if item.is_empty() {
                return Err(wrong());
            }
            items.push((!item.eq_ignore_ascii_case("null")).then(|| item.to_owned()));
        }
        match chars.next() {
            None => return Ok(items),
            Some(',') => {}
            Some(_) => return Err(wrong()),
        }
    }
}

/// `json ? key`: whether it is a key of the object, or a string in the array, or the string itself.
pub(super) fn has_key(json: &str, key: &str) -> bool {
    match parse(json) {
        Json::Object(members) => members.contains_key(key),
        Json::Array(items) => items.iter().any(|item| item.as_str() == Some(key)),
        Json::String(text) => text == key,
        _ => false,
    }
}

/// `outer @> inner`
pub(super) fn contains(outer: &str, inner: &str) -> bool {
    match (parse(outer), parse(inner)) {
        // At the top an array contains a scalar that is an item of it.
        (Json::Array(items), inner) if !inner.is_array() && !inner.is_object() => {
            items.iter().any(|item| is_equal(item, &inner))
        }
        (outer, inner) => contains_document(&outer, &inner),
    }
}

fn contains_document(outer: &Json, inner: &Json) -> bool {
    match (outer, inner) {
        (Json::Object(outer), Json::Object(inner)) => inner
            .iter()
            .all(|(key, value)| outer.get(key).is_some_and(|found| contains_document(found, value))),
        (Json::Array(outer), Json::Array(inner)) => {
            inner.iter().all(|value| outer.iter().any(|found| contains_document(found, value)))
        }
        (outer, inner) => is_equal(outer, inner),
    }
}

fn is_equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(_), Json::Number(_)) => {
            let (a, b) = (a.to_string(), b.to_string());
            ValueRef::Json(&a).compare(ValueRef::Json(&b)).is_eq()
        }
        _ => a == b,
    }
}

/// `jsonb_array_length(json)`
pub(super) fn array_length(json: &str) -> Result<Value, EvalError> {
    let function = "jsonb_array_length";
    match parse(json) {
        Json::Array(items) => Ok(Value::Int8(items.len() as i64)),
        Json::Object(_) => {
            Err(EvalError::Argument { function, problem: "cannot get array length of a non-array" })
        }
        _ => Err(EvalError::Argument { function, problem: "cannot get array length of a scalar" }),
    }
}

/// `jsonb_typeof(json)`
pub(super) fn kind(json: &str) -> Value {
    Value::Text(json_kind(&parse(json)).into())
}
