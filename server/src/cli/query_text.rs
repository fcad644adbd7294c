//! Queries as the command line gives them: JSON or SQL, in a flag, a file or on stdin.

use super::Failure;
use serde_json::{Map, Value};
use std::{io::Read as _, path::Path};
use tidegate_client::Query;

/// Text that starts with `{` is a query as JSON, anything else SQL.
///
/// # Errors
/// When it starts as JSON and is not.
pub fn parse(text: &str, place: &str) -> Result<Query, Failure> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::Failed(format!("{place} is empty; it must hold a query as JSON or SQL")));
    }
    if !text.starts_with('{') {
        return Ok(Query::sql(text));
    }
    match tidegate_wire::codec::decode_json::<Value>(text.as_bytes()) {
        Ok(query) => Ok(Query::json(query)),
        Err(error) => Err(Failure::Failed(format!("{place} is not a query as JSON: {error}"))),
    }
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
    read.map_err(|error| Failure::Failed(format!("cannot read the query from {place}: {error}")))?;
    parse(&text, &place)
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
        assert_eq!(parse("select 1\n", "x").ok(), Some(Query::sql("select 1")));
        for wrong in ["", "  \n", "{", "{\"table\":\"t\"} more"] {
            let Err(Failure::Failed(text)) = parse(wrong, "q.json") else { panic!("{wrong:?} is taken") };
            assert!(text.starts_with("q.json is "), "{text}");
        }
        assert!(matches!(arguments(Some("[1]")), Err(Failure::Usage(_))));
        assert_eq!(arguments(Some("{\"p\":7}")).expect("taken")["p"], 7);
    }
}
