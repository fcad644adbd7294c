//! `POST /v1/explain`: the plan of a query in either form, without a name for it.

use crate::support::{
    http::{Answer, Http},
    server::{TestServer, block_on, memory},
};
use hyper::Method;
use serde_json::{Value as Json, json};

async fn start() -> (TestServer, Http) {
    let server = TestServer::start(memory()).await;
    let mut http = Http::connect(server.addr()).await;
    let columns = json!([{"name": "id", "type": "int8"}, {"name": "g", "type": "int8"}]);
    let tables = json!({"tables": [{"name": "things", "columns": columns, "primary_key": ["id"]}]});
    let row = json!({"ops": [{"insert": "things", "row": {"id": 1, "g": 7}}]});
    http.commit(&[tables, row]).await;
    (server, http)
}

async fn explain(http: &mut Http, body: &Json) -> Answer {
    http.send(Method::POST, "/v1/explain", &[], body.to_string()).await
}

async fn plan(http: &mut Http, body: &Json) -> Vec<String> {
    let answer = explain(http, body).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    serde_json::from_value(answer.json()["plan"].clone()).expect("lines")
}

#[test]
fn queries_of_both_forms_have_a_plan() {
    block_on(async {
        let (server, mut http) = start().await;
        let by_g = json!({"op": "=", "args": [{"col": "g"}, {"param": "g"}]});
        let nested = json!({"query": {"table": "things", "where": by_g}, "args": {"g": 7}});
        let lines = plan(&mut http, &nested).await;
        assert_eq!(
            lines[1..],
            ["parameter p1: int8, here 7", "things by index (g) where g = p1 order by id"]
        );
        let mut analyzed = nested.clone();
        analyzed["analyze"] = json!(true);
        let lines = plan(&mut http, &analyzed).await;
        assert!(
            lines.last().is_some_and(|line| line.starts_with("not live; computed once: 1 row, ")),
            "{lines:?}"
        );

        let select =
            json!({"sql": "select g, count(*) as n from things where g = :g group by g", "args": {"g": 7}});
        let lines = plan(&mut http, &select).await;
        assert!(lines.iter().any(|line| line.contains("group by")), "{lines:?}");

        // By its name it is the same.
        let definition = json!({"query": nested["query"], "args": {"g": "int8"}});
        assert_eq!(http.put("/v1/queries/by_g", &definition).await.status, 200);
        let named = http.get("/v1/queries/by_g/explain?args=%7B%22g%22:7%7D").await.json();
        assert_eq!(json!(plan(&mut http, &nested).await), named["plan"]);
        server.stop().await;
    });
}

#[test]
fn what_has_no_plan_is_refused_as_it_is_by_a_subscription() {
    block_on(async {
        let (server, mut http) = start().await;
        let things = json!({"table": "things"});
        for (body, code, words) in [
            (json!({}), "bad_message", "exactly one of query and sql"),
            (json!({"query": things, "sql": "select 1"}), "bad_message", "exactly one of query and sql"),
            (json!({"query": things, "analyse": true}), "bad_message", "analyse"),
            (json!({"query": things, "args": {"p": 1}}), "bad_args", "p"),
            (json!({"query": things, "args": {"auth.sub": 1}}), "forbidden", "auth.sub"),
            (json!({"query": {"table": "thigns"}}), "unknown_table", "(at query)"),
            (json!({"sql": "select x from things"}), "unknown_column", "(line 1, column 8)"),
            (json!({"sql": "select 1 / 0 as x", "analyze": true}), "query_faulted", "division by zero"),
        ] {
            let answer = explain(&mut http, &body).await;
            assert_eq!(answer.code(), code, "{body}: {}", answer.json());
            let message = answer.json()["error"]["message"].to_string();
            assert!(message.contains(words), "{body}: {message}");
        }
        server.stop().await;
    });
}
