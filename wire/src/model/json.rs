//! JSON documents: their canonical text, what is wrong with one, and their order.
//!
//! The order is that of PostgreSQL's `jsonb`: Object > Array > Boolean > Number > String > Null; more members are
//! greater; keys compare by length, then bytes; numbers by value; text bytewise. A document that is an empty array is the
//! least, below null.

use super::numeric::Numeric;
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

/// Most levels of arrays and objects in a document that is given. What reads documents takes 127, which leaves room for
/// what queries put around them.
pub const DOCUMENT_LEVELS_MAX: usize = 100;

/// How many levels of arrays and objects a JSON text has.
#[must_use]
pub fn json_levels(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether a document has at most so many levels.
pub(crate) fn has_levels(json: &Json, most: usize) -> bool {
    match json {
        Json::Array(items) => most > 0 && items.iter().all(|item| has_levels(item, most - 1)),
        Json::Object(members) => most > 0 && members.values().all(|member| has_levels(member, most - 1)),
        _ => true,
    }
}

/// What is wrong with a JSON text and where. The line is named only in a text of several: whoever reads a stream of
/// lines names them itself, and two numbers would be one too many.
#[must_use]
pub fn json_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((what, column)) if error.line() == 1 => format!("{what} at column {column}"),
        _ => text,
    }
}

/// The text of a document as a `json` value holds it: compact, members in key order whatever order they came in, so
/// that documents that are equal but for that have one text.
pub(crate) fn canonical_text(json: &Json) -> String {
    serde_json::to_string(&Sorted(json)).expect("JSON serializes")
}

/// Serializes a document with its members in key order.
struct Sorted<'a>(&'a Json);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            Json::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                serializer.collect_map(members.into_iter().map(|(name, value)| (name, Sorted(value))))
            }
            leaf => leaf.serialize(serializer),
        }
    }
}

/// Appends an encoding of a JSON document whose bytewise order is its order as a value, equal for equal documents.
fn encode_ordered(json: &Json, out: &mut Vec<u8>) {
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
    match serde_json::from_str::<Json>(text) {
        Ok(Json::Array(items)) if items.is_empty() => out.push(0),
        Ok(json) => encode_ordered(&json, &mut out),
        Err(_) => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_line_only_among_several() {
        let fault = |text: &str| json_fault(&serde_json::from_str::<Json>(text).expect_err("not JSON"));
        assert_eq!(fault("[1,]"), "trailing comma at column 4");
        assert_eq!(fault("[1,\n2,]"), "trailing comma at line 2 column 3");
    }

    #[test]
    fn the_canonical_text_does_not_depend_on_the_order_of_members() {
        let text = |text: &str| canonical_text(&serde_json::from_str(text).expect("JSON"));
        let one = text(r#"{"b":[{"d":1,"c":[ ]}],"a":{"y":null,"x":"é\n"}, "ab":1.0}"#);
        assert_eq!(one, r#"{"a":{"x":"é\n","y":null},"ab":1.0,"b":[{"c":[],"d":1}]}"#);
        assert_eq!(one, text(r#"{"ab":1.0,"a":{"x":"é\n","y":null},"b":[{"c":[],"d":1}]}"#));
        assert_eq!(ordered_bytes(r#"{"a":1,"b":2}"#), ordered_bytes(r#"{"b":2,"a":1}"#));
    }
}
