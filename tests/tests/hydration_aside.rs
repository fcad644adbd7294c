//! A large result is hydrated beside its worker's other queries, and still equals the query run from scratch.
//!
//! One parent with more children than a worker reads between two commits; commits go on while it is hydrated, and a
//! small query on the same worker keeps up. Seen to fail with the deltas since the snapshot left out
//! (`Family::take_over` without its advance): the check then finds the rows that the commits changed.
//!
//! One that nobody waits for any more ends, and the next one begins. Seen to fail with a budget that does not ask who
//! waits (`Budget::is_unwanted`), and with bindings kept that are not hydrated (`Binding::is_over`).

use crate::support::{
    http::Http,
    raw::Raw,
    server::{TestServer, block_on, memory},
};
use serde_json::json;
use std::time::Duration;
use tidegate_client::{Client, Codec, Query};

const CHILDREN: u64 = 30_000;
const COMMITS: u64 = 300;

#[test]
fn a_large_result_catches_up_with_the_commits_made_meanwhile() {
    block_on(catches_up());
}

async fn catches_up() {
    let mut config = memory();
    config.workers.count = 1;
    let server = TestServer::start(config).await;
    let mut http = Http::connect(server.addr()).await;
    let mut body = String::new();
    let tables = json!({"tables":[
        {"name":"parents","columns":[{"name":"id","type":"int8"}],"primary_key":["id"]},
        {"name":"children","columns":[{"name":"id","type":"int8"},{"name":"parent","type":"int8"},
            {"name":"n","type":"int8"}],"primary_key":["id"]}]});
    body.push_str(&format!("{tables}\n{}\n", json!({"ops":[{"insert":"parents","row":{"id":1}}]})));
    for first in (0..CHILDREN).step_by(1_000) {
        let ops: Vec<_> = (first..first + 1_000)
            .map(|id| json!({"insert":"children","row":{"id":id,"parent":1,"n":0}}))
            .collect();
        body.push_str(&format!("{}\n", json!({"ops":ops})));
    }
    assert_eq!(http.post_commits(body).await.status, 200);

    let client = Client::connect(&server.url()).await.expect("connects");
    let small = Query::json(json!({"table":"children","where":{"op":"=","args":[{"col":"id"},0]}}));
    let mut small = client.subscribe(small).await.expect("subscribes");
    while small.rows().is_empty() {
        small.next().await.expect("the small query's rows");
    }
    let large = Query::json(json!({"table":"parents","related":[{"as":"children","on":[["id","parent"]],
        "query":{"table":"children"}}]}));
    let opened = client.open(large);
    let mut last = 0;
    for commit in 1..=COMMITS {
        // Each commit removes one child, adds one, and changes one.
        let line = json!({"ops":[
            {"delete":"children","key":{"id":commit}},
            {"insert":"children","row":{"id":CHILDREN + commit,"parent":1,"n":1}},
            {"update":"children","key":{"id":0},"set":{"n":commit}}]});
        last = http.commit([&line]).await;
    }
    let mut large = opened;
    while large.rows().is_empty() || client.cv().0 < last {
        large.next().await.expect("the large query's rows");
    }
    let shown = large.rows().to_json();
    let children = shown[0]["children"].as_array().expect("children");
    assert_eq!(children.len() as u64, CHILDREN);
    assert_eq!(children[0], json!({"id":0,"parent":1,"n":COMMITS}));
    assert_eq!(small.rows().to_json()[0]["n"], json!(COMMITS));
    let replica = server.replica();
    let report = tokio::task::spawn_blocking(move || replica.check()).await.expect("checks");
    assert_eq!(report.differences, [], "view_equals_fresh_query");
    assert_eq!(report.checked, 2);
    client.close().await;
    server.stop().await;
}

#[test]
fn a_hydration_that_nobody_waits_for_ends() {
    block_on(ends());
}

async fn ends() {
    let mut config = memory();
    config.workers.count = 1;
    config.workers.deadline_ms = Duration::from_secs(3_600);
    config.workers.idle_ttl_ms = Duration::from_secs(3_600);
    let server = TestServer::start(config).await;
    let mut http = Http::connect(server.addr()).await;
    let tables =
        json!({"tables":[{"name":"t","columns":[{"name":"id","type":"int8"}],"primary_key":["id"]}]});
    let ops: Vec<_> = (0..CHILDREN).map(|id| json!({"insert":"t","row":{"id":id}})).collect();
    http.commit(&[tables, json!({"ops":ops})]).await;

    // Days of work, each; the side thread does one at a time.
    let endless = |most: u64| {
        format!("select count(*) as n from t a, t b, t c where a.id + b.id + c.id < 0 and a.id < {most}")
    };
    let mut leaves = Raw::hello(server.addr(), Codec::Json, json!({})).await;
    let mut goes_on = Raw::hello(server.addr(), Codec::Json, json!({})).await;
    for sub in [1, 2] {
        leaves.send(&json!({"subscribe":{"sub":sub,"sql":endless(CHILDREN - sub)}})).await;
    }
    // On the same worker, so that the others have been handed to the side thread when this one's rows come.
    leaves.subscribe(3, json!({"table":"t","limit":1})).await;
    leaves.snapshot(3).await;
    // Large, but soon done; it waits for the others.
    goes_on.subscribe(1, json!({"table":"t"})).await;
    leaves.send(&json!({"unsubscribe":{"sub":1}})).await;
    drop(leaves);
    assert_eq!(goes_on.snapshot(1).await.len() as u64, CHILDREN);
    server.stop().await;
}
