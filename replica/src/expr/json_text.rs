//! The text of a JSON document, as PostgreSQL's `jsonb` has it: a space behind each comma and colon, short names first.

use super::cast::numeric;
use serde_json::Value as Json;

/// A document's text.
pub(super) fn json_text(json: &Json) -> String {
    let mut out = String::new();
    write(json, &mut out);
    out
}

fn write(json: &Json, out: &mut String) {
    match json {
        Json::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                separate(at, out);
                write(item, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| (name.len(), *name));
            out.push('{');
            for (at, (name, member)) in members.into_iter().enumerate() {
                separate(at, out);
                out.push_str(&Json::from(name.as_str()).to_string());
                out.push_str(": ");
                write(member, out);
            }
            out.push('}');
        }
        Json::Number(number) => {
            let text = number.to_string();
            // PostgreSQL writes all digits.
            let digits = text.contains('e').then(|| numeric(&text, &text).ok()).flatten();
            out.push_str(&digits.map_or(text, |digits| digits.to_string()));
        }
        Json::Null | Json::Bool(_) | Json::String(_) => out.push_str(&json.to_string()),
    }
}

fn separate(at: usize, out: &mut String) {
    if at > 0 {
        out.push_str(", ");
    }
}
