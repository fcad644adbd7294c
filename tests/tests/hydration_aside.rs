//! A large result is hydrated beside its worker's other queries, and still equals the query run from scratch.
//!
//! One parent with more children than a worker reads between two commits; commits go on while it is hydrated, and a
//! small query on the same worker keeps up. Seen to fail with the deltas since the snapshot left out
//! (`Family::take_over` without its advance): the check then finds the rows that the commits changed.

use crate::support::{
    http::Http,
    server::{TestServer, block_on, memory},
};
use serde_json::json;
use tidegate_client::{Client, Query};

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
