//! `queues_are_bounded`: every queue has a limit and a stated behaviour when it is full.
//!
//! * A worker's queue of one commit and the drain's of 16 inputs, under writers that outrun them: the log waits, the
//!   queues never hold more, and nothing is lost.
//! * Outboxes: `slow_client_holds_nobody`. Messages, mutations, subscriptions, commits: `bad_input` and `bad_commits`.
//! * Connections: one more is answered 503.
//!
//! Seen to fail: with room for a thousand commits at a worker whatever is configured, 900 are seen to wait; with the hub
//! not looking at its count of connections, the third is taken.

use crate::support::{
    counters::{COUNTERS, Counters, counter},
    http::Http,
    raw::Raw,
    server::{TestServer, block_on, memory},
};
use serde_json::{Value as Json, json};
use tidegate_client::Codec;
use tokio::task::JoinSet;

#[test]
fn queues_are_bounded() {
    block_on(async {
        let mut config = memory();
        config.workers.queue_max = 1;
        config.drain.queue_max = 16;
        let server = TestServer::start(config).await;
        let mut http = Http::connect(server.addr()).await;
        let columns = json!([{"name": "id", "type": "int8"}, {"name": "n", "type": "int8"}]);
        let tables = json!({"tables": [{"name": "t", "columns": columns, "primary_key": ["id"]}]});
        let rows: Vec<Json> =
            (0..2_000).map(|id| json!({"insert": "t", "row": {"id": id, "n": 0}})).collect();
        let filled = http.commit([&tables, &json!({ "ops": rows })]).await;
        let mut raw = Raw::hello(server.addr(), Codec::MessagePack, json!({})).await;
        for sub in 1..=20_u64 {
            // Distinct shapes, so that both workers have their share.
            let columns = if sub % 2 == 0 { json!(["id", "n"]) } else { json!(["n"]) };
            let condition = (1..sub).fold(json!(true), |inner, n| {
                json!({"op": "and", "args": [inner, {"op": "<>", "args": [{"col": "n"}, format!("-{n}").parse::<i64>().expect("a number")]}]})
            });
            raw.subscribe(sub, json!({"table": "t", "select": columns, "where": condition})).await;
            raw.snapshot(sub).await;
        }
        let mut writers = JoinSet::new();
        for writer in 0..4_u64 {
            let addr = server.addr();
            writers.spawn(async move {
                let mut http = Http::connect(addr).await;
                for round in 1..=5 {
                    let commits: Vec<Json> = (0..60)
                        .map(|id| {
                            let key = writer * 500 + id;
                            json!({"ops": [{"update": "t", "key": {"id": key}, "set": {"n": round}}]})
                        })
                        .collect();
                    http.commit(&commits).await;
                }
            });
        }
        let mut longest = (0, 0);
        while !writers.is_empty() {
            let status = http.status().await;
            for worker in status["workers"].as_array().expect("workers") {
                longest.0 = longest.0.max(worker["queue"].as_u64().expect("a length"));
            }
            longest.1 = longest.1.max(status["drain_queue"].as_u64().expect("a length"));
            while let Some(ended) = writers.try_join_next() {
                ended.expect("a writer writes");
            }
        }
        assert!(longest.0 <= 1 && longest.1 <= 16, "queues held {longest:?}");
        let last = http.status().await["cv"].as_u64().expect("a cv");
        assert_eq!(last, filled + 4 * 5 * 60, "every commit was taken");
        raw.released(last).await;
        println!("the longest queues: {longest:?}");
        drop(raw);
        server.stop().await;
    });
}

#[test]
fn connections_are_bounded() {
    block_on(async {
        let mut config = memory();
        config.limits.connections_max = 2;
        let server = TestServer::start(config).await;
        let mut http = Http::connect(server.addr()).await;
        let first = Raw::hello(server.addr(), Codec::Json, json!({})).await;
        let second = Raw::hello(server.addr(), Codec::Json, json!({})).await;
        let upgrade = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", Codec::Json.subprotocol()),
        ];
        let answer = http.send(hyper::Method::GET, "/v1/sync", &upgrade, "").await;
        assert_eq!(answer.status, 503, "{:?}", answer.body);
        drop((first, second));
        server.stop().await;
    });
}

/// What the scenario of the other invariants' tests promises of itself: its queries stand on different workers.
#[test]
fn the_counters_queries_are_spread_over_the_workers() {
    block_on(async {
        let mut counters = Counters::start().await;
        let mut raw = Raw::hello(counters.server.addr(), Codec::Json, json!({})).await;
        for index in 0..COUNTERS {
            raw.subscribe(index as u64 + 1, counter(index)).await;
            raw.snapshot(index as u64 + 1).await;
        }
        let status = counters.http.status().await;
        let families: Vec<&Json> =
            status["workers"].as_array().expect("workers").iter().map(|worker| &worker["families"]).collect();
        assert_eq!(families, [&json!(1); COUNTERS]);
        drop(raw);
        counters.server.stop().await;
    });
}
