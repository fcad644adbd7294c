//! Queries as the command line gives them: JSON or SQL, in a flag, a file or on stdin.

use super::Failure;
use serde_json::{Map, Value};
use std::{io::Read as _, path::Path};
use tidegate_client::Query;

/// The words that a statement in SQL begins with.
const SQL_WORDS: [&str; 14] = [
    "select", "with", "values", "table", "explain", "show", "create", "drop", "insert", "update", "delete",
    "alter", "truncate", "begin",
];

/// The query of a flag or an argument.
///
/// # Errors
/// When it is neither SQL nor JSON.
pub fn of_argument(text: &str, place: &str) -> Result<Query, Failure> {
    parse(text, place).map_err(Failure::Usage)
}

/// Text that starts with `{` is a query as JSON, text that begins as a statement does is SQL.
fn parse(text: &str, place: &str) -> Result<Query, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("{place} is empty; it must hold a query in SQL or as JSON"));
    }
    if !text.starts_with('{') {
        return if is_sql(text) { Ok(Query::sql(text)) } else { Err(neither(text, place)) };
    }
    match tidegate_wire::codec::decode_json::<Value>(text.as_bytes()) {
        Ok(query) => Ok(Query::json(query)),
        Err(error) => Err(format!("{place} is not a query as JSON: {error}")),
    }
}

/// Whether a text begins as SQL does: with a keyword, a parenthesis or a comment. What follows is the server's to judge.
fn is_sql(text: &str) -> bool {
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let is_keyword = SQL_WORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword));
    // A table's name alone may be one of the words.
    (is_keyword && word.len() < text.len()) || ["(", "--", "/*"].iter().any(|start| text.starts_with(start))
}

/// What to write instead; a single word is likely to be a table's name.
fn neither(text: &str, place: &str) -> String {
    let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let table = if is_name { text } else { "flights" };
    format!(
        "{place} is neither SQL nor JSON: a query is SQL (\"select * from {table}\") or JSON such as {{\"table\":\"{table}\"}}"
    )
}

/// The query in a file; `-` is stdin.
///
/// # Errors
/// When it cannot be read, or holds none.
pub fn read(path: &Path) -> Result<Query, Failure> {
    let mut text = String::new();
    let (read, place) = if path == Path::new("-") {
        (std::io::stdin().read_to_string(&mut text).map(|_| ()), "stdin".to_owned())
    } else {
        (std::fs::read_to_string(path).map(|content| text = content), path.display().to_string())
    };
    read.map_err(|error| {
        Failure::Failed(format!(
            "cannot read the query from {place}; check the path and permissions ({error})"
        ))
    })?;
    parse(&text, &place).map_err(Failure::Failed)
}

/// The values of `--args`.
///
/// # Errors
/// When the text is not a JSON object.
pub fn arguments(text: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(text) = text else { return Ok(Map::new()) };
    serde_json::from_str(text).map_err(|error| {
        Failure::Usage(format!("--args must be a JSON object such as {{\"project\":7}}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_and_sql_are_told_apart() {
        assert_eq!(parse(" {\"table\":\"t\"}\n", "x").ok(), Some(Query::json(json!({"table": "t"}))));
        for sql in ["select 1", "SELECT\n1", "(select 1)", "-- all\nselect 1", "with a as (select 1) table a"]
        {
            assert_eq!(parse(&format!("{sql}\n"), "x").ok(), Some(Query::sql(sql)), "{sql}");
        }
        for wrong in
            ["", "  \n", "{", "{\"table\":\"t\"} more", "flights", "select", "[1]", "flights where x"]
        {
            let Err(text) = parse(wrong, "q.json") else { panic!("{wrong:?} is taken") };
            assert!(text.starts_with("q.json is "), "{text}");
        }
        let told = parse("trips", "x").expect_err("a table's name");
        assert!(told.contains("\"select * from trips\"") && told.contains("{\"table\":\"trips\"}"), "{told}");
        assert!(matches!(arguments(Some("[1]")), Err(Failure::Usage(_))));
        assert_eq!(arguments(Some("{\"p\":7}")).expect("taken")["p"], 7);
    }
}
