//! The order of JSON documents, PostgreSQL's `jsonb`: Object > Array > Boolean > Number > String > Null; more
//! members are greater; keys compare by length, then bytes; numbers by value; text bytewise. A document that is an empty
//! array is the least, below null.

use super::numeric::Numeric;
use serde_json::Value as Json;

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
