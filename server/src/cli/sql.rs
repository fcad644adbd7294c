//! `tidegate sql`: statements in SQL, run once.

use super::{Failure, client::Target, finish_with, query_text, table};
use clap::Args;
use serde_json::{Value, json};
use std::{
    io::{self, Read as _},
    time::Duration,
};

/// Longest wait for an answer; the server's own limit comes before.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// Run statements in SQL and print their results.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tidegate sql 'select status, count(*) from flights group by status order by 2 desc'\n  tidegate sql --args '{\"p\":\"JFK\"}' 'select count(*) as n from flights where origin = :p'\n  tidegate sql \"insert into notes values (1, 'a') returning *\"\n  tidegate sql 'begin; update a set n = n - 1; update b set n = n + 1; commit'\n  tidegate sql --json < report.sql\n\nWhat stands between begin and commit is one commit; every other statement that writes is one of its own.\nWhen a statement fails, what those before it did stands, but for a transaction, of which nothing is left."
)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The statements, separated by semicolons; without them, stdin is read
    #[arg(value_name = "STATEMENTS")]
    sql: Option<String>,
    /// Values of the statements' parameters, a JSON object
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Print one JSON object per result
    #[arg(long)]
    json: bool,
}

/// Prints the results: when a statement fails, of those before it that stand.
///
/// # Errors
/// When the server cannot be asked, or refuses a statement.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let sql = match &arguments.sql {
        Some(sql) => sql.clone(),
        None => {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| Failure::Failed(format!("cannot read stdin: {error}")))?;
            text
        }
    };
    let args = query_text::arguments(arguments.args.as_deref())?;
    let body = json!({"sql": sql, "args": args});
    match arguments.target.post("/v1/sql", &body, ANSWER_TIME_MAX)? {
        Ok(answer) => finish_with(&shown(&answer["results"], arguments.json)),
        Err(refusal) => {
            let results = &refusal.0["results"];
            finish_with(&shown(results, arguments.json))?;
            Err(Failure::Failed(match results.as_array().map_or(0, Vec::len) {
                0 => refusal.to_string(),
                1 => format!("{refusal}; statement 1 stands"),
                count => format!("{refusal}; statements 1 to {count} stand"),
            }))
        }
    }
}

/// Results as they are printed.
fn shown(results: &Value, as_json: bool) -> String {
    let results = results.as_array().map(Vec::as_slice).unwrap_or_default();
    if as_json {
        return results.iter().map(|result| format!("{result}\n")).collect();
    }
    results.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// A result as people read it: its rows, if it shows any, and what was done.
fn text(result: &Value) -> String {
    let command = result["command"].as_str().unwrap_or("select").to_uppercase();
    let done = result["affected"].as_u64().map(|affected| match command.as_str() {
        "INSERT" => format!("INSERT 0 {affected}\n"),
        "UPDATE" | "DELETE" => format!("{command} {affected}\n"),
        _ => format!("{command}\n"),
    });
    let rows = if result["rows"].is_array() { rows_text(result) } else { String::new() };
    rows + &done.unwrap_or_default()
}

/// A result's rows as a table, and their number.
fn rows_text(result: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let columns = list(&result["columns"]);
    let headings: Vec<&str> = columns.iter().map(|column| column["name"].as_str().unwrap_or("?")).collect();
    let show = |cell: &Value| match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let rows: Vec<Vec<String>> =
        list(&result["rows"]).iter().map(|row| list(row).iter().map(show).collect()).collect();
    let count = rows.len();
    format!("{}({count} {})\n", table::render(&headings, &rows), if count == 1 { "row" } else { "rows" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_tables() {
        let result = json!({"columns": [{"name": "a", "type": "text"}, {"name": "n", "type": "int8"}],
            "rows": [["x", 1], [null, 12]]});
        assert_eq!(text(&result), "a   n\nx   1\n   12\n(2 rows)\n");
        let result = json!({"command": "insert", "columns": [{"name": "a", "type": "int8"}], "rows": [[1]],
            "affected": 1});
        assert_eq!(text(&result), "a\n1\n(1 row)\nINSERT 0 1\n");
        assert_eq!(text(&json!({"command": "update", "affected": 3})), "UPDATE 3\n");
        assert_eq!(text(&json!({"command": "create table", "affected": 0})), "CREATE TABLE\n");
    }
}
