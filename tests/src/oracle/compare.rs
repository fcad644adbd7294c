//! The comparison of an expected with an actual result, for a failure a person can read.

use super::comparison::compare_json_numbers;
use serde_json::Value;
use std::fmt::Write as _;

/// Compares two results, numbers by value (1 is 1.0).
///
/// # Errors
/// The first difference, as a path into the result and the two values there. For lists of different lengths it is the
/// first place where they part.
pub fn compare_results(expected: &Value, actual: &Value) -> Result<(), String> {
    let mut path = String::from("$");
    difference(&mut path, expected, actual).map_or(Ok(()), Err)
}

fn difference(path: &mut String, expected: &Value, actual: &Value) -> Option<String> {
    let length = path.len();
    match (expected, actual) {
        (Value::Number(left), Value::Number(right)) if compare_json_numbers(left, right).is_eq() => None,
        (Value::Array(left), Value::Array(right)) => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                write!(path, "[{index}]").expect("a string takes everything");
                if let Some(found) = difference(path, left, right) {
                    return Some(found);
                }
                path.truncate(length);
            }
            let common = left.len().min(right.len());
            let (counts, extra) = match left.len().cmp(&right.len()) {
                std::cmp::Ordering::Equal => return None,
                std::cmp::Ordering::Less => ("unexpected", &right[common]),
                std::cmp::Ordering::Greater => ("missing", &left[common]),
            };
            Some(format!(
                "{path}: expected {} items, got {}; {counts} [{common}] = {extra}",
                left.len(),
                right.len()
            ))
        }
        (Value::Object(left), Value::Object(right)) => {
            for (name, value) in left {
                let Some(other) = right.get(name) else {
                    return Some(format!("{path}: {name:?} is missing, expected {value}, in {actual}"));
                };
                write!(path, ".{name}").expect("a string takes everything");
                if let Some(found) = difference(path, value, other) {
                    return Some(found);
                }
                path.truncate(length);
            }
            let extra = right.iter().find(|(name, _)| !left.contains_key(*name));
            extra.map(|(name, value)| format!("{path}: unexpected {name:?} = {value}"))
        }
        _ if expected == actual => None,
        _ => Some(format!("{path}: expected {expected}, got {actual}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_compare_by_value_and_paths_are_named() {
        assert_eq!(compare_results(&json!([{"a": 1}]), &json!([{"a": 1.0}])), Ok(()));
        let big = compare_results(&json!(9_007_199_254_740_993_i64), &json!(9_007_199_254_740_992.0));
        assert!(big.is_err());
        let found = compare_results(&json!([{"a": [{"b": 1}]}]), &json!([{"a": [{"b": 2}]}])).unwrap_err();
        assert_eq!(found, "$[0].a[0].b: expected 1, got 2");
        assert!(compare_results(&json!([1]), &json!([1, 2])).unwrap_err().contains("unexpected [1] = 2"));
        assert!(compare_results(&json!([1, 2]), &json!([1])).unwrap_err().contains("missing [1] = 2"));
        assert!(compare_results(&json!({"a": 1}), &json!({})).unwrap_err().contains("missing"));
        assert!(compare_results(&json!({}), &json!({"a": 1})).unwrap_err().contains("unexpected"));
        assert!(compare_results(&json!(null), &json!([])).is_err());
    }
}
