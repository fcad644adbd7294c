//! `tidegate status`: how a server is doing.

use super::{Failure, client::Target, finish_with, table};
use clap::Args;
use indicatif::HumanBytes;
use serde_json::Value;
use std::time::Duration;

/// Show how a server is doing: positions, queues, queries, connections, memory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tidegate status\n  tidegate status --json | jq .cv")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Print the server's answer as one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the status.
///
/// # Errors
/// When the server cannot be asked.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let status = arguments.target.get("/v1/status", Duration::from_secs(30))?;
    finish_with(&if arguments.json { format!("{status}\n") } else { text(&status) })
}

fn text(status: &Value) -> String {
    let show = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rows = |list: &Value, keys: &[&str]| -> Vec<Vec<String>> {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().map(|item| keys.iter().map(|key| show(&item[*key])).collect()).collect()
    };
    let ready = match status["reason"].as_str() {
        Some(reason) => format!("no: {reason}"),
        None => "yes".to_owned(),
    };
    let mut facts = vec![vec!["ready".to_owned(), ready]];
    for (name, value) in [
        ("server", &status["server"]),
        ("source", &status["source"]["url"]),
        ("commit version", &status["cv"]),
        ("source lag, s", &status["source"]["lag_seconds"]),
        ("uptime, s", &status["uptime_seconds"]),
        ("connections", &status["connections"]),
        ("subscriptions", &status["subscriptions"]),
        ("queries", &status["queries"]),
        ("bindings", &status["bindings"]),
        ("drain queue", &status["drain_queue"]),
    ] {
        facts.push(vec![name.to_owned(), show(value)]);
    }
    for (name, value) in [
        ("outbox", &status["outbox_bytes"]),
        ("store", &status["store_bytes"]),
        ("log", &status["log_bytes"]),
        ("memory", &status["memory_bytes"]),
    ] {
        let size = value.as_u64().map_or_else(|| show(value), |bytes| HumanBytes(bytes).to_string());
        facts.push(vec![name.to_owned(), size]);
    }
    let mut out = table::render(&["", ""], &facts).trim_start().to_owned();
    let worker_keys = ["worker", "cv", "queue", "families"];
    out += "\n";
    out += &table::render(
        &["worker", "commit version", "queue", "queries"],
        &rows(&status["workers"], &worker_keys),
    );
    out += "\n";
    out += &table::render(&["table", "rows"], &rows(&status["tables"], &["name", "rows"]));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn people_get_tables() {
        let text = text(&json!({
            "server": "tidegate/0", "ready": false, "reason": "worker 0 is behind", "cv": 12,
            "source": {"url": "embedded", "lag_seconds": 0},
            "store_bytes": 0, "log_bytes": 1023, "memory_bytes": 220_200_960_u64,
            "workers": [{"worker": 0, "cv": 11, "queue": 3, "families": 2}],
            "tables": [{"name": "flights", "rows": 27004}],
        }));
        for part in [
            "ready           no: worker 0 is behind",
            "commit version  12",
            "flights  27004",
            "store           0 B",
            "log             1023 B",
            "memory          210.00 MiB",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
