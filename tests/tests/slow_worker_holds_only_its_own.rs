//! `slow_worker_holds_only_its_own`: a lagging worker holds back only connections that have a query on it.
//!
//! Two workers. On one stands a query whose condition takes a second for the one row of its table, on the other a cheap
//! query. When the slow row changes, a connection with the cheap query alone is released up to later commits while the
//! one with both still waits; then that one comes too.
//!
//! Seen to fail: with `cv_min` the least position of all workers instead of the connection's own, the quick connection is
//! released no earlier than the slow one.

use crate::support::{
    http::Http,
    raw::Raw,
    server::{TestServer, block_on, memory, until},
};
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};
use tidegate_client::Codec;
use tidegate_server::Config;

/// A condition that reads the row's text again and again, and never holds.
pub(crate) fn costly_condition(rounds: usize) -> Json {
    let text = (0..rounds).fold(
        json!({"col": "text"}),
        |inner, round| json!({"op": if round % 2 == 0 { "upper" } else { "lower" }, "args": [inner]}),
    );
    json!({"op": "=", "args": [text, "never"]})
}

/// A server with a table `slow` of rows with long text and a table `quick` with one row.
pub(crate) async fn slow_and_quick(config: Config, rows: u64, text_bytes: usize) -> (TestServer, Http) {
    let server = TestServer::start(config).await;
    let mut http = Http::connect(server.addr()).await;
    let columns = json!([{"name": "id", "type": "int8"}, {"name": "n", "type": "int8"},
        {"name": "text", "type": "text", "nullable": true}]);
    let table = |name: &str| json!({"name": name, "columns": columns, "primary_key": ["id"]});
    let mut ops = vec![json!({"insert": "quick", "row": {"id": 1, "n": 0}})];
    for id in 0..rows {
        ops.push(json!({"insert": "slow", "row": {"id": id, "n": 0, "text": "é".repeat(text_bytes / 2)}}));
    }
    http.commit([&json!({"tables": [table("slow"), table("quick")]}), &json!({ "ops": ops })]).await;
    (server, http)
}

/// A commit that changes a row of `slow` or `quick`.
pub(crate) fn set(table: &str, id: u64, n: u64) -> Json {
    json!({"ops": [{"update": table, "key": {"id": id}, "set": {"n": n}}]})
}

#[test]
fn slow_worker_holds_only_its_own() {
    block_on(async {
        let mut config = memory();
        config.workers.idle_ttl_ms = Duration::ZERO;
        let (server, mut http) = slow_and_quick(config, 1, 1 << 20).await;
        // The first query takes the first worker, the second the other one.
        let mut both = Raw::hello(server.addr(), Codec::MessagePack, json!({})).await;
        let hydrating = Instant::now();
        // As many rounds as make a second on this machine: the first try tells.
        both.subscribe(1, json!({"table": "slow", "where": costly_condition(20)})).await;
        both.snapshot(1).await;
        let rounds = (20.0 * 1.5 / hydrating.elapsed().as_secs_f64().max(0.01)) as usize;
        both.send(&json!({"unsubscribe": {"sub": 1}})).await;
        until("the first try is gone", async || http.status().await["queries"] == 0).await;
        both.subscribe(2, json!({"table": "slow", "where": costly_condition(rounds.clamp(20, 100))})).await;
        both.snapshot(2).await;
        both.subscribe(3, json!({"table": "quick"})).await;
        both.snapshot(3).await;
        let mut quick = Raw::hello(server.addr(), Codec::Json, json!({})).await;
        quick.subscribe(1, json!({"table": "quick"})).await;
        quick.snapshot(1).await;

        let slow_cv = http.commit([&set("slow", 0, 1)]).await;
        let changed = Instant::now();
        let last = http.commit([&set("quick", 1, 1), &set("quick", 1, 2)]).await;
        assert_eq!(last, slow_cv + 2);
        quick.released(last).await;
        let quick_after = changed.elapsed();
        both.released(last).await;
        let both_after = changed.elapsed();
        assert!(
            both_after > quick_after * 2,
            "the quick connection was released after {quick_after:?}, the slow one after {both_after:?}"
        );
        drop((quick, both));
        server.stop().await;
    });
}
