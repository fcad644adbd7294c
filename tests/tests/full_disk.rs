//! A full disk: commits are refused with `not_ready`, reads and subscriptions go on, and once there is room again all
//! that was acknowledged is there.
//!
//! Seen to fail: with the store closing itself when its log cannot be written, a new subscription that needs an index is
//! refused with `not_ready`.

use crate::support::{
    binary::Process,
    http::Http,
    raw::Raw,
    server::{block_on, until},
};
use serde_json::{Value as Json, json};
use tidegate_client::{Codec, ErrorCode};
use tidegate_wire::protocol::ServerMessage;

fn insert(id: u64, bytes: usize) -> Json {
    json!({"ops": [{"insert": "log", "row": {"id": id, "text": "x".repeat(bytes)}}]})
}

async fn ids(http: &mut Http) -> Vec<u64> {
    let rows = http.get("/v1/queries/ids/rows").await;
    assert_eq!(rows.status, 200, "{:?}", rows.body);
    let rows = rows.json();
    rows["rows"].as_array().expect("rows").iter().map(|row| row["id"].as_u64().expect("an id")).collect()
}

#[test]
fn a_full_disk_stops_writes_only() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = Process::serve_on_small_disk(folder.path(), 64).await;
        let mut http = Http::connect(process.addr).await;
        let columns = json!([{"name": "id", "type": "int8"}, {"name": "text", "type": "text"}]);
        http.commit([&json!({"tables": [{"name": "log", "columns": columns, "primary_key": ["id"]}]})]).await;
        let query = json!({"query": {"table": "log", "select": ["id"]}});
        assert_eq!(http.put("/v1/queries/ids", &query).await.status, 200);
        let mut stays = Raw::hello(process.addr, Codec::Json, json!({"client_id": "c"})).await;
        stays.subscribe(1, query["query"].clone()).await;
        stays.snapshot(1).await;

        let mut acknowledged = Vec::new();
        let mut newest = 0;
        let refusal = loop {
            let id = acknowledged.len() as u64;
            let answer = http.post_commits(insert(id, 3_000).to_string()).await;
            if answer.status != 200 {
                break answer;
            }
            newest = answer.json()["cv"].as_u64().expect("a cv");
            acknowledged.push(id);
            assert!(id < 1_000, "the disk gets full");
        };
        assert_eq!((refusal.status, refusal.code().as_str()), (503, "not_ready"), "{:?}", refusal.body);
        assert_eq!(refusal.json()["error"]["cv"], json!(newest));
        assert!(acknowledged.len() > 5);

        // Commits and mutations are refused, again and again; what is there can be read and subscribed to.
        for _ in 0..3 {
            assert_eq!(http.post_commits(insert(5_000, 3_000).to_string()).await.code(), "not_ready");
            let mutation = json!({"id": 1, "ops": insert(5_001, 3_000)["ops"]});
            stays.send(&json!({"push": {"mutations": [mutation]}})).await;
            let result = loop {
                if let ServerMessage::PushResult(result) = stays.message().await {
                    break result;
                }
            };
            assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::NotReady));
            assert_eq!(ids(&mut http).await, acknowledged);
            let mut fresh = Raw::hello(process.addr, Codec::MessagePack, json!({})).await;
            // A new shape, which needs an index of its own.
            fresh.subscribe(1, json!({"table": "log", "order_by": [["text", "desc"]], "limit": 1_000})).await;
            assert_eq!(fresh.snapshot(1).await.len(), acknowledged.len());
            stays.round_trip().await;
        }
        assert_eq!(http.get("/healthz").await.status, 200);
        process.kill().await;

        let mut process = Process::serve(folder.path()).await;
        let mut http = Http::connect(process.addr).await;
        assert_eq!(ids(&mut http).await, acknowledged);
        assert_eq!(http.status().await["cv"], json!(newest));
        assert_eq!(http.commit([&insert(9_000, 10)]).await, newest + 1);
        until("the server is ready", async || http.get("/readyz").await.status == 200).await;
        process.kill().await;
    });
}
