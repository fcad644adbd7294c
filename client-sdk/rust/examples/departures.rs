//! The next departures of an airport, live: `departures [URL] [AIRPORT] [UPDATES]`.
//!
//! Runs against `tidegate demo`. Prints the board on each change and ends after UPDATES of them (default: never).

use anyhow::Context;
use serde_json::json;
use tidegate_client::{Client, Node, Query, Rows, Value};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| "http://127.0.0.1:7300".to_owned());
    let airport = args.next().unwrap_or_else(|| "JFK".to_owned());
    let updates: usize = match args.next() {
        Some(text) => text.parse().context("UPDATES is a number")?,
        None => usize::MAX,
    };
    let client = Client::connect(&url).await?;
    let query = json!({
        "table": "flights",
        "where": {"op": "and", "args": [
            {"op": "=", "args": [{"col": "origin"}, {"param": "airport"}]},
            {"op": "=", "args": [{"col": "status"}, "scheduled"]}]},
        "select": ["flight", "dest", "sched_dep", "status"],
        "order_by": [["sched_dep", "asc"]],
        "limit": 12,
        "related": [
            {"as": "airline", "one": true, "on": [["carrier", "carrier"]],
                "query": {"table": "airlines", "select": ["name"]}},
            {"as": "plane", "one": true, "on": [["tailnum", "tailnum"]],
                "query": {"table": "planes", "select": ["manufacturer", "model"]}}]});
    let mut board = client.subscribe(Query::json(query).arg("airport", airport.as_str())).await?;
    let mut seen = 0;
    while seen < updates {
        let Some(update) = board.next().await else { break };
        println!("\n{airport}, commit {}: {} changes", update.cv, update.changes.len());
        print(&update.rows);
        seen += 1;
    }
    client.close().await;
    Ok(())
}

fn print(rows: &Rows) {
    println!("{:<22}{:<8}{:<6}{:<28}{:<30}status", "scheduled", "flight", "to", "airline", "plane");
    for row in rows {
        let of = |name: &str, column: &str| row.one(name).map(|node| text(node, column)).unwrap_or_default();
        println!(
            "{:<22}{:<8}{:<6}{:<28}{:<30}{}",
            text(row, "sched_dep"),
            text(row, "flight"),
            text(row, "dest"),
            of("airline", "name"),
            format!("{} {}", of("plane", "manufacturer"), of("plane", "model")),
            text(row, "status"),
        );
    }
}

fn text(node: &Node, column: &str) -> String {
    match node.get(column).map(|value| value.to_value()) {
        None | Some(Value::Null) => String::new(),
        Some(Value::Text(text)) => text.into(),
        Some(value) => value.to_json().to_string().trim_matches('"').to_owned(),
    }
}
