//! The order of values, and what NULL makes of it.

use super::cell::Cell;
use super::decimal;
use serde_json::Value;
use std::cmp::Ordering;

/// The order of two values that have one, neither of them NULL.
///
/// # Panics
/// If the types do not compare: queries are checked before they run.
pub(super) fn compare(left: &Cell, right: &Cell) -> Ordering {
    match (left, right) {
        (Cell::Bool(left), Cell::Bool(right)) => left.cmp(right),
        (Cell::Int8(left), Cell::Int8(right)) => left.cmp(right),
        (Cell::Float8(left), Cell::Float8(right)) => compare_floats(*left, *right),
        (Cell::Int8(left), Cell::Float8(right)) => compare_int_with_float(*left, *right),
        (Cell::Float8(left), Cell::Int8(right)) => compare_int_with_float(*right, *left).reverse(),
        (Cell::Numeric(left), Cell::Numeric(right)) => decimal::compare(left, right),
        (Cell::Numeric(left), Cell::Int8(right)) => decimal::compare(left, &right.to_string()),
        (Cell::Int8(left), Cell::Numeric(right)) => decimal::compare(&left.to_string(), right),
        (Cell::Numeric(left), Cell::Float8(right)) => compare_decimal_with_float(left, *right),
        (Cell::Float8(left), Cell::Numeric(right)) => compare_decimal_with_float(right, *left).reverse(),
        (Cell::Text(left), Cell::Text(right)) | (Cell::Uuid(left), Cell::Uuid(right)) => {
            left.as_bytes().cmp(right.as_bytes())
        }
        (Cell::Bytea(left), Cell::Bytea(right)) => left.cmp(right),
        (Cell::Timestamptz(left), Cell::Timestamptz(right)) | (Cell::Date(left), Cell::Date(right)) => {
            left.cmp(right)
        }
        (Cell::Json(left), Cell::Json(right)) => {
            // A document that is an empty array is below all others.
            let is_empty = |document: &Value| document.as_array().is_some_and(Vec::is_empty);
            is_empty(right).cmp(&is_empty(left)).then_with(|| compare_json(left, right))
        }
        _ => panic!("no order between {left:?} and {right:?}"),
    }
}

/// The order of two cells in a sort, ascending, NULLs last.
pub(super) fn compare_nulls_last(left: &Cell, right: &Cell) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (false, false) => compare(left, right),
        (left, right) => left.cmp(&right),
    }
}

/// SQL's `=`, where a NULL on either side is no match.
pub(super) fn matches(left: &Cell, right: &Cell) -> bool {
    !left.is_null() && !right.is_null() && compare(left, right) == Ordering::Equal
}

/// `partial_cmp` takes −0 for 0; NaN is equal to itself and above everything.
fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn compare_int_with_float(left: i64, right: f64) -> Ordering {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if right.is_nan() || right >= TWO_TO_63 {
        return Ordering::Less;
    }
    if right < -TWO_TO_63 {
        return Ordering::Greater;
    }
    let whole = right.trunc();
    left.cmp(&(whole as i64)).then_with(|| compare_floats(whole, right))
}

fn compare_decimal_with_float(left: &str, right: f64) -> Ordering {
    if right.is_nan() || right == f64::INFINITY {
        Ordering::Less
    } else if right == f64::NEG_INFINITY {
        Ordering::Greater
    } else {
        // A double has at most 1,074 binary places, and so at most that many decimal ones: this text is exact.
        decimal::compare(left, &format!("{right:.1074}"))
    }
}

/// PostgreSQL's order of `jsonb`: null, strings, numbers, booleans, arrays, objects; shorter containers first; an
/// object's members go by key, shorter keys first.
fn compare_json(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::String(_) => 1,
        Value::Number(_) => 2,
        Value::Bool(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Value::Number(left), Value::Number(right)) => compare_json_numbers(left, right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => left.len().cmp(&right.len()).then_with(|| {
            let mut members = left.iter().zip(right).map(|(left, right)| compare_json(left, right));
            members.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (Value::Object(left), Value::Object(right)) => left.len().cmp(&right.len()).then_with(|| {
            let sorted = |object: &serde_json::Map<String, Value>| {
                let mut members: Vec<_> = object.clone().into_iter().collect();
                members.sort_by(|(left, _), (right, _)| {
                    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
                });
                members
            };
            let (left, right) = (sorted(left), sorted(right));
            let mut members = left.iter().zip(&right).map(|((left_key, left), (right_key, right))| {
                let keys = left_key.len().cmp(&right_key.len()).then_with(|| left_key.cmp(right_key));
                keys.then_with(|| compare_json(left, right))
            });
            members.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }),
        _ => rank(left).cmp(&rank(right)),
    }
}

/// The order of two JSON numbers by value: 1 is 1.0.
pub(super) fn compare_json_numbers(left: &serde_json::Number, right: &serde_json::Number) -> Ordering {
    let exact = |number: &serde_json::Number| match number.as_f64() {
        Some(float) if number.is_f64() => format!("{float:.1074}"),
        _ => number.to_string(),
    };
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => decimal::compare(&exact(left), &exact(right)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_compare_exactly() {
        let ascending = [
            Cell::Float8(f64::NEG_INFINITY),
            Cell::Int8(i64::MIN),
            Cell::Float8(-1.5),
            Cell::Int8(-1),
            Cell::Float8(-0.5),
            Cell::Int8(0),
            Cell::Float8(0.5),
            Cell::Int8(9_007_199_254_740_991),
            Cell::Float8(9_007_199_254_740_992.0),
            Cell::Int8(9_007_199_254_740_993),
            Cell::Int8(i64::MAX),
            Cell::Float8(9_223_372_036_854_775_808.0),
            Cell::Float8(f64::INFINITY),
            Cell::Float8(f64::NAN),
        ];
        for (i, left) in ascending.iter().enumerate() {
            for (j, right) in ascending.iter().enumerate() {
                assert_eq!(compare(left, right), i.cmp(&j), "{left:?} and {right:?}");
            }
        }
        assert_eq!(compare(&Cell::Float8(-0.0), &Cell::Float8(0.0)), Ordering::Equal);
        assert_eq!(compare(&Cell::Int8(0), &Cell::Float8(-0.0)), Ordering::Equal);
        assert_eq!(compare(&Cell::Numeric("0.1".into()), &Cell::Float8(0.1)), Ordering::Less);
    }

    #[test]
    fn json_has_the_order_of_jsonb() {
        let ascending = [
            json!("a"),
            json!("b"),
            json!(1),
            json!(1.5),
            json!(false),
            json!([]),
            json!([0]),
            json!({"b": 1}),
            json!({"aa": 0}),
        ];
        for (i, left) in ascending.iter().enumerate() {
            for (j, right) in ascending.iter().enumerate() {
                assert_eq!(compare_json(left, right), i.cmp(&j), "{left} and {right}");
            }
        }
    }
}
