//! `tidegate check`: whether maintained results equal the queries run from scratch.

use super::{Failure, client::Target, finish_with, table};
use clap::Args;
use serde_json::Value;
use std::time::Duration;

/// Re-run every live query from scratch and compare with its maintained result.
///
/// Prints each difference; exits 1 if there is any. The server goes on serving meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tidegate check\n  tidegate check --url http://10.0.0.5:7300 --json")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Print the server's report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the report.
///
/// # Errors
/// When the server cannot be asked, or there are differences.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let report = arguments.target.get("/v1/check", Duration::from_secs(600))?;
    let differences = report["differences"].as_array().map(Vec::as_slice).unwrap_or_default();
    finish_with(&if arguments.json { format!("{report}\n") } else { text(&report["checked"], differences) })?;
    // The report says it all; a further line on stderr would only repeat it.
    if differences.is_empty() { Ok(()) } else { Err(Failure::Silent) }
}

fn text(checked: &Value, differences: &[Value]) -> String {
    let is_one = checked.as_u64() == Some(1);
    if differences.is_empty() {
        return if is_one {
            "1 maintained result equals its query run from scratch\n".to_owned()
        } else {
            format!("{checked} maintained results equal their queries run from scratch\n")
        };
    }
    let cell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rows: Vec<_> = differences
        .iter()
        .map(|difference| ["query", "args", "detail"].map(|key| cell(&difference[key])).to_vec())
        .collect();
    let table = table::render(&["query", "arguments", "difference"], &rows);
    let (count, results) = (rows.len(), if is_one { "result" } else { "results" });
    let differ = if count == 1 { "differs from its query" } else { "differ from their queries" };
    format!("{table}\n{count} of {checked} maintained {results} {differ} run from scratch\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_listed() {
        let text =
            text(&json!(3), &[json!({"query": "t where p", "args": [1], "detail": "row 5 is missing"})]);
        assert!(text.contains("row 5 is missing") && text.contains("1 of 3"), "{text}");
        assert!(text.contains("1 of 3 maintained results differs from its query"), "{text}");
        assert!(super::text(&json!(3), &[]).starts_with("3 maintained results equal their queries"));
        assert!(super::text(&json!(1), &[]).starts_with("1 maintained result equals its query"));
    }
}
