//! `slow_client_holds_nobody`: a client that does not read costs bounded memory and delays no one else.
//!
//! One client subscribes and never reads again, another reads. Commits of large rows go on until the first has been sent
//! away: the second gets each of them, what waits for the first never exceeds its outbox, and its subscription is gone.
//!
//! Seen to fail: with the outbox's bound not looked at, more waits than the limit allows.

use crate::support::{
    http::Http,
    raw::Raw,
    server::{TestServer, block_on, memory, until},
};
use serde_json::json;
use tidegate_client::{Codec, ErrorCode};
use tidegate_wire::protocol::ServerMessage;

#[test]
fn slow_client_holds_nobody() {
    block_on(async {
        let limit = 256 << 10;
        let mut config = memory();
        config.limits.outbox_bytes_max = limit;
        let server = TestServer::start(config).await;
        let mut http = Http::connect(server.addr()).await;
        let columns = json!([{"name": "id", "type": "int8"}, {"name": "text", "type": "text"}]);
        let tables = json!({"tables": [{"name": "t", "columns": columns, "primary_key": ["id"]}]});
        http.commit([&tables, &json!({"ops": [{"insert": "t", "row": {"id": 1, "text": ""}}]})]).await;
        for codec in Codec::ALL {
            let mut reads = Raw::hello(server.addr(), codec, json!({})).await;
            reads.subscribe(1, json!({"table": "t"})).await;
            reads.snapshot(1).await;
            let mut sleeps = Raw::hello(server.addr(), codec, json!({})).await;
            sleeps.subscribe(1, json!({"table": "t"})).await;
            sleeps.snapshot(1).await;
            let mut commits = 0_u64;
            loop {
                let text = format!("{commits} {}", "x".repeat(50_000));
                let cv = http
                    .commit([&json!({"ops": [{"update": "t", "key": {"id": 1}, "set": {"text": text}}]})])
                    .await;
                reads.released(cv).await;
                commits += 1;
                let status = http.status().await;
                let waiting = status["outbox_bytes"].as_u64().expect("bytes");
                // Beside the sleeper's the reader's own outbox may have one commit under way.
                assert!(waiting <= limit as u64 + 60_000, "{waiting} bytes wait");
                if status["connections"] == 1 {
                    break;
                }
                // The kernel's buffers take a few megabytes before the outbox fills.
                assert!(commits < 2_000, "a client that does not read is sent away");
            }
            // It reads what was under way, and perhaps why it was sent away.
            loop {
                match sleeps.next().await {
                    crate::support::raw::Next::Closed(_) => break,
                    crate::support::raw::Next::Message(ServerMessage::Goaway(goaway)) => {
                        assert_eq!(goaway.code, ErrorCode::SlowClient);
                    }
                    crate::support::raw::Next::Message(_) => {}
                }
            }
            drop(reads);
            until("no connection and no subscription is left", async || {
                let status = http.status().await;
                (&status["connections"], &status["subscriptions"]) == (&json!(0), &json!(0))
            })
            .await;
        }
        server.stop().await;
    });
}
