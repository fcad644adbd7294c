//! Ten queries of an airport's boards, over the recorded flights.

use serde_json::{Value as Json, json};

const ORIGINS: [&str; 3] = ["EWR", "JFK", "LGA"];

fn and(args: &[Json]) -> Json {
    json!({"op": "and", "args": args})
}

fn compare(op: &str, column: &str, value: impl Into<Json>) -> Json {
    json!({"op": op, "args": [{"col": column}, value.into()]})
}

/// For each airport the next departures, the cancelled flights and the late ones; and the flights to one destination.
pub(crate) fn queries() -> Vec<Json> {
    let airline =
        json!({"as": "airline", "one": true, "on": [["carrier", "carrier"]], "query": {"table": "airlines"}});
    let plane =
        json!({"as": "plane", "one": true, "on": [["tailnum", "tailnum"]], "query": {"table": "planes"}});
    let mut queries = Vec::new();
    for origin in ORIGINS {
        queries.push(json!({"table": "flights",
            "where": and(&[compare("=", "origin", origin), compare("=", "status", "scheduled")]),
            "order_by": [["sched_dep", "asc"]], "limit": 20, "related": [airline, plane]}));
        queries.push(json!({"table": "flights",
            "where": and(&[compare("=", "origin", origin), compare("=", "status", "cancelled")]),
            "order_by": [["sched_dep", "desc"]], "limit": 50, "related": [airline]}));
        queries.push(json!({"table": "flights",
            "where": and(&[compare("=", "origin", origin), compare(">=", "dep_delay", 60)]),
            "order_by": [["sched_dep", "desc"]], "limit": 50, "related": [airline]}));
    }
    queries.push(json!({"table": "flights", "where": compare("=", "dest", "LAX"),
        "order_by": [["sched_dep", "desc"]], "limit": 30, "related": [airline, plane]}));
    queries
}

/// The operations of a commit that brings each of [`queries`] one row, with a text of its own as `tailnum`.
pub(crate) fn last_commit(tailnums: &[String]) -> Json {
    let flight = |n: usize, origin: &str, dest: &str, dep: &str, delay: Json, status: &str| {
        json!({"insert": "flights", "row": {
            "id": 1_000_000_000 + n, "carrier": "UA", "flight": n, "tailnum": tailnums[n], "origin": origin,
            "dest": dest, "sched_dep": dep, "distance": 1, "dep_delay": delay, "status": status}})
    };
    let (first, last) = ("1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z");
    let mut ops = Vec::new();
    for origin in ORIGINS {
        ops.push(flight(ops.len(), origin, "ZZZ", first, Json::Null, "scheduled"));
        ops.push(flight(ops.len(), origin, "ZZZ", last, Json::Null, "cancelled"));
        ops.push(flight(ops.len(), origin, "ZZZ", last, json!(999), "departed"));
    }
    ops.push(flight(ops.len(), "ZZZ", "LAX", last, Json::Null, "departed"));
    Json::Array(ops)
}
