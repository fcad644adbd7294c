//! `log_is_gapless`: commits reach the store in cv order, each exactly once, across restarts too.
//!
//! Four writers at once, refused commits among theirs, three lives of one data folder. Every commit inserts one row: the
//! versions that were answered are one gapless run, and a connection that watches gets every row once, in order.
//!
//! Seen to fail: with the committer adding two for each commit instead of one, the snapshot's assertion of this name stops
//! the store, and the first commit is not taken.

use crate::support::{
    http::Http,
    raw::Raw,
    server::{TestServer, block_on, memory},
};
use serde_json::{Value as Json, json};
use std::{collections::BTreeSet, net::SocketAddr};
use tidegate_client::Codec;
use tidegate_wire::protocol::{ServerMessage, server::Op};
use tokio::task::JoinSet;

const COMMITS: u64 = 60;

fn insert(id: u64) -> Json {
    json!({"insert": "log", "row": {"id": id}})
}

/// Posts commits one by one; the versions answered.
async fn post(addr: SocketAddr, first: u64) -> Vec<u64> {
    let mut http = Http::connect(addr).await;
    let mut versions = Vec::new();
    for id in first..first + COMMITS {
        versions.push(http.commit([&json!({"ops": [insert(id)]})]).await);
        if id % 5 == 0 {
            // Its first operation is good; the whole is refused, and takes no version.
            let refused = json!({"ops": [insert(900_000 + id), insert(id)]}).to_string();
            assert_eq!(http.post_commits(refused).await.code(), "conflict");
        }
    }
    versions
}

/// Pushes mutations; how many, since a push is not told its version.
async fn push(addr: SocketAddr, first: u64, life: u64) -> u64 {
    let mut raw = Raw::hello(addr, Codec::Json, json!({"client_id": format!("life-{life}")})).await;
    for (id, key) in (1..).zip(first..first + COMMITS) {
        raw.send(&json!({"push": {"mutations": [{"id": id, "ops": [insert(key)]}]}})).await;
    }
    let mut answered = 0;
    while answered < COMMITS {
        if let ServerMessage::PushResult(result) = raw.message().await {
            assert_eq!(result.error, None);
            answered += 1;
        }
    }
    answered
}

#[test]
fn log_is_gapless() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = memory();
        config.store.data_dir = folder.path().to_str().expect("UTF-8").to_owned();
        let mut newest = 0;
        for life in 0..3_u64 {
            let server = TestServer::start(config.clone()).await;
            let mut http = Http::connect(server.addr()).await;
            assert_eq!(http.status().await["cv"], json!(newest), "a restart goes on where the log ends");
            if life == 0 {
                let columns = json!([{"name": "id", "type": "int8"}]);
                let tables = json!({"tables": [{"name": "log", "columns": columns, "primary_key": ["id"]}]});
                newest = http.commit([&tables]).await;
                assert_eq!(newest, 1);
            }
            let mut watcher = Raw::hello(server.addr(), Codec::MessagePack, json!({})).await;
            watcher.subscribe(1, json!({"table": "log"})).await;
            let mut rows = watcher.snapshot(1).await.len() as u64;
            assert_eq!(rows, newest - 1, "one row for each commit after the tables");

            let first = life * 10_000;
            let mut writers = JoinSet::new();
            for writer in 0..3 {
                writers.spawn(post(server.addr(), first + 1_000 * writer));
            }
            let pushed = push(server.addr(), first + 4_000, life);
            let (answered, pushed) = tokio::join!(writers.join_all(), pushed);
            assert!(answered.iter().all(|own| own.is_sorted_by(|earlier, later| earlier < later)));
            let answered: Vec<u64> = answered.into_iter().flatten().collect();
            let different: BTreeSet<u64> = answered.iter().copied().collect();
            assert_eq!(different.len(), answered.len(), "each commit has a version of its own");
            let last = http.status().await["cv"].as_u64().expect("a cv");
            assert_eq!(last, newest + answered.len() as u64 + pushed, "no version is left out");
            assert!(different.iter().all(|cv| (newest + 1..=last).contains(cv)));

            let mut seen = BTreeSet::new();
            let final_cv = http.commit([&json!({"ops": [insert(first + 9_000)]})]).await;
            assert_eq!(final_cv, last + 1);
            for message in watcher.released(final_cv).await {
                let ServerMessage::Batch(batch) = message else { continue };
                for op in batch.ops {
                    let Op::Add { cells, .. } = op else { panic!("only insertions: {op:?}") };
                    assert!(seen.insert(format!("{:?}", cells[0])), "a row came twice");
                }
            }
            rows += seen.len() as u64;
            newest = final_cv;
            assert_eq!(rows, newest - 1);
            drop(watcher);
            server.stop().await;
        }
    });
}
