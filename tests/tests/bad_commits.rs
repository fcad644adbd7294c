//! Bad input over HTTP: a refused commit changes nothing and says which line, what came before it and what is at fault;
//! a body with an `Idempotency-Key` has one answer for ever; every error is JSON with a fitting status.
//!
//! Seen to fail: with the store going on after a refused commit of a body,
//! `lines_before_a_refused_one_stay_and_those_after_are_not_tried` counts three applied.

use crate::support::{
    http::{Answer, Http},
    server::{TestServer, block_on, memory},
};
use hyper::Method;
use serde_json::{Value as Json, json};
use tidegate_server::Config;

fn tables() -> Json {
    let columns = json!([
        {"name": "id", "type": "int8"},
        {"name": "name", "type": "text"},
        {"name": "ratio", "type": "float8", "nullable": true},
    ]);
    let pair = json!([{"name": "a", "type": "int8"}, {"name": "b", "type": "text"}]);
    json!({"tables": [
        {"name": "things", "columns": columns, "primary_key": ["id"]},
        {"name": "pairs", "columns": pair, "primary_key": ["a", "b"]},
    ]})
}

fn insert(id: i64) -> Json {
    json!({"ops": [{"insert": "things", "row": {"id": id, "name": format!("n{id}")}}]})
}

async fn start(config: Config) -> (TestServer, Http) {
    let server = TestServer::start(config).await;
    let mut http = Http::connect(server.addr()).await;
    http.commit([&tables(), &insert(1)]).await;
    let query = json!({"query": {"table": "things", "select": ["id"]}});
    assert_eq!(http.put("/v1/queries/ids", &query).await.status, 200);
    (server, http)
}

/// The ids of all things.
async fn ids(http: &mut Http) -> Vec<i64> {
    let rows = http.get("/v1/queries/ids/rows").await.json();
    rows["rows"].as_array().expect("rows").iter().map(|row| row["id"].as_i64().expect("an id")).collect()
}

fn body(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Each operation that is refused, its code, and what the message has to name.
fn refused_ops() -> Vec<(Json, &'static str, Vec<&'static str>)> {
    vec![
        (json!({"insert": "things", "row": {"id": 1, "name": "x"}}), "conflict", vec!["things", "1"]),
        (
            json!({"update": "things", "key": {"id": 77}, "set": {"name": "x"}}),
            "conflict",
            vec!["things", "77"],
        ),
        (json!({"delete": "things", "key": {"id": 77}}), "conflict", vec!["things", "77"]),
        (json!({"insert": "nothing", "row": {}}), "unknown_table", vec!["nothing"]),
        (
            json!({"insert": "things", "row": {"id": 9, "name": "x", "colour": 1}}),
            "unknown_column",
            vec!["colour"],
        ),
        (
            json!({"update": "things", "key": {"id": 1}, "set": {"colour": 1}}),
            "unknown_column",
            vec!["colour"],
        ),
        (json!({"delete": "things", "key": {"colour": 1}}), "unknown_column", vec!["colour"]),
        (
            json!({"insert": "things", "row": {"id": "nine", "name": "x"}}),
            "type_mismatch",
            vec!["id", "nine"],
        ),
        (json!({"insert": "things", "row": {"id": 1.5, "name": "x"}}), "type_mismatch", vec!["id"]),
        (json!({"insert": "things", "row": {"id": 9, "name": null}}), "type_mismatch", vec!["name", "null"]),
        (json!({"insert": "things", "row": {"id": 9}}), "type_mismatch", vec!["name", "null"]),
        (json!({"insert": "things", "row": {"name": "x"}}), "type_mismatch", vec!["id"]),
        (
            json!({"update": "things", "key": {"id": 1}, "set": {"ratio": "big"}}),
            "type_mismatch",
            vec!["ratio"],
        ),
        (json!({"update": "things", "key": {"id": 1}, "set": {"id": 2}}), "bad_message", vec!["id", "key"]),
        (json!({"delete": "pairs", "key": {"a": 1}}), "bad_message", vec!["b"]),
        (json!({"delete": "things", "key": {"id": 1, "name": "n1"}}), "bad_message", vec!["name"]),
        (json!({"upsert": "things", "row": {}}), "bad_message", vec!["operation"]),
        (
            json!({"delete": "tidegate_client_mutations", "key": {"client_id": "x"}}),
            "forbidden",
            vec!["tidegate_client_mutations"],
        ),
    ]
}

#[test]
fn a_refused_commit_changes_nothing() {
    block_on(async {
        let (server, mut http) = start(memory()).await;
        let before = http.status().await;
        for (op, code, names) in refused_ops() {
            let good = json!({"insert": "things", "row": {"id": 50, "name": "x"}});
            let cv = http.status().await["cv"].as_u64();
            let answer = http.post_commits(json!({"ops": [good, op]}).to_string()).await;
            let error = &answer.json()["error"];
            assert_eq!(error["code"], code, "{op}: {error}");
            assert!((400..500).contains(&answer.status), "{op}: {}", answer.status);
            assert_eq!((&error["applied"], &error["line"]), (&json!(0), &json!(1)), "{op}: {error}");
            assert_eq!((error["cv"].as_u64(), answer.cv), (cv, cv), "{op}: {error}");
            let message = error["message"].as_str().expect("a message");
            for name in names {
                assert!(message.contains(name), "{op}: {message:?} does not name {name}");
            }
        }
        assert_eq!(http.status().await["cv"], before["cv"], "a refused commit takes no version");
        assert_eq!(ids(&mut http).await, [1]);
        server.stop().await;
    });
}

#[test]
fn lines_before_a_refused_one_stay_and_those_after_are_not_tried() {
    block_on(async {
        let (server, mut http) = start(memory()).await;
        let start = http.status().await["cv"].as_u64().expect("a cv");
        let good = |id| insert(id).to_string();
        for (offset, bad, code) in [
            (10, insert(1).to_string(), "conflict"),
            (20, "{\"ops\":".to_owned(), "bad_message"),
            (30, "garbage".to_owned(), "bad_message"),
            (40, "{\"ops\":[],\"at\":\"noon\"}".to_owned(), "bad_message"),
            (50, tables().to_string(), "bad_message"),
        ] {
            let lines = [good(offset), String::new(), good(offset + 1), bad, good(offset + 2)];
            let answer = http.post_commits(body(&lines.each_ref().map(String::as_str))).await;
            let error = &answer.json()["error"];
            let cv = start + (offset as u64 / 10) * 2;
            assert_eq!(
                (&error["code"], &error["applied"], &error["cv"], &error["line"]),
                (&json!(code), &json!(2), &json!(cv), &json!(4)),
                "{error}"
            );
        }
        assert_eq!(ids(&mut http).await, [1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51]);
        server.stop().await;
    });
}

#[test]
fn a_tables_line_that_contradicts_is_a_conflict() {
    block_on(async {
        let (server, mut http) = start(memory()).await;
        let mut again = tables();
        assert_eq!(http.post_commits(body(&[&again.to_string()])).await.status, 200, "the same again");
        again["tables"][0]["columns"][1]["type"] = json!("int8");
        let answer = http.post_commits(body(&[&again.to_string(), &insert(2).to_string()])).await;
        let error = &answer.json()["error"];
        assert_eq!((answer.status, error["code"].as_str()), (409, Some("conflict")), "{error}");
        assert_eq!((&error["applied"], &error["line"]), (&json!(0), &json!(1)), "{error}");
        assert!(error["message"].as_str().expect("text").contains("things"), "{error}");
        let reserved = json!({"tables": [{"name": "tidegate_client_mutations", "columns": [{"name": "a",
            "type": "int8"}], "primary_key": ["a"]}]});
        let answer = http.post_commits(reserved.to_string()).await;
        assert!(matches!(answer.code().as_str(), "forbidden" | "conflict"), "{:?}", answer.body);
        for wrong in [
            json!({"tables": [{"name": "w", "columns": [{"name": "a", "type": "money"}], "primary_key": ["a"]}]}),
            json!({"tables": [{"name": "w", "columns": [{"name": "a", "type": "int8"}], "primary_key": []}]}),
            json!({"tables": [{"name": "w", "columns": [{"name": "a", "type": "int8"}], "primary_key": ["b"]}]}),
            json!({"tables": [{"name": "w", "columns": [{"name": "a", "type": "int8"}, {"name": "a", "type": "int8"}],
                "primary_key": ["a"]}]}),
            json!({"tables": 5}),
        ] {
            let answer = http.post_commits(wrong.to_string()).await;
            let code = answer.code();
            assert!(code == "bad_message" || code == "unknown_column", "{code}: {wrong}");
            assert_eq!(answer.status, 400);
        }
        assert_eq!(ids(&mut http).await, [1]);
        server.stop().await;
    });
}

async fn keyed(http: &mut Http, key: &str, body: &str) -> Answer {
    http.send(Method::POST, "/v1/commits", &[("idempotency-key", key)], body.to_owned()).await
}

#[test]
fn a_body_with_a_key_is_applied_once() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = memory();
        config.store.data_dir = folder.path().to_str().expect("UTF-8").to_owned();
        let (server, mut http) = start(config.clone()).await;
        let two = body(&[&insert(2).to_string(), &insert(3).to_string()]);
        let first = keyed(&mut http, "k", &two).await;
        assert_eq!(first.status, 200, "{:?}", first.body);
        assert_eq!(keyed(&mut http, "k", &two).await, first);
        let other = keyed(&mut http, "k", &body(&[&insert(4).to_string()])).await;
        assert_eq!((other.status, other.code().as_str()), (409, "conflict"));

        // A refusal is repeated too, although the same body would be taken by now.
        let half = body(&[&insert(5).to_string(), &insert(1).to_string(), &insert(6).to_string()]);
        let refused = keyed(&mut http, "r", &half).await;
        assert_eq!((refused.code().as_str(), &refused.json()["error"]["applied"]), ("conflict", &json!(1)));
        http.commit([&json!({"ops": [{"delete": "things", "key": {"id": 1}}]})]).await;
        let again = keyed(&mut http, "r", &half).await;
        assert_eq!((again.status, &again.body), (refused.status, &refused.body));
        // And both over a restart.
        server.stop().await;
        let server = TestServer::start(config).await;
        let mut http = Http::connect(server.addr()).await;
        assert_eq!(keyed(&mut http, "k", &two).await, first);
        let again = keyed(&mut http, "r", &half).await;
        assert_eq!((again.status, &again.body), (refused.status, &refused.body));
        assert_eq!(ids(&mut http).await, [2, 3, 5]);
        assert_eq!(keyed(&mut http, &"k".repeat(255), &body(&[])).await.status, 200);
        for key in ["", &"k".repeat(256), "a b", "a\tb"] {
            let answer = keyed(&mut http, key, &two).await;
            assert_eq!((answer.status, answer.code().as_str()), (400, "bad_message"));
        }
        server.stop().await;
    });
}

/// A body's outcome is remembered too when none of its lines is a commit that was taken or refused.
#[test]
fn every_end_of_a_body_with_a_key_is_remembered() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = memory();
        config.store.data_dir = folder.path().to_str().expect("UTF-8").to_owned();
        config.limits.line_bytes_max = 2_000;
        let (mut server, mut http) = start(config.clone()).await;
        let table = |name: &str, ty: &str| {
            json!({"tables": [{"name": name, "columns": [{"name": "id", "type": ty}], "primary_key": ["id"]}]})
                .to_string()
        };
        let long = insert(20).to_string().replace("\"id\"", &format!("{}\"id\"", " ".repeat(3_000)));
        let bodies = [
            ("empty", String::new(), 200),
            ("tables", table("new", "int8"), 200),
            ("contradiction", body(&[&table("things", "text"), &insert(21).to_string()]), 409),
            ("long", long.clone(), 413),
            ("late", body(&[&insert(22).to_string(), &insert(23).to_string(), &long]), 413),
            ("cut", "{\"ops\":[\n".to_owned(), 400),
            ("nonsense", "xyz".to_owned(), 400),
        ];
        let mut answers = Vec::new();
        for (key, body, status) in &bodies {
            let answer = keyed(&mut http, key, body).await;
            assert_eq!(answer.status, *status, "{key}: {:?}", answer.body);
            let stated = answer.json();
            let stated = stated.get("error").unwrap_or(&stated)["cv"].as_u64();
            assert_eq!(answer.cv, stated, "{key}");
            answers.push(answer);
            http.commit([&json!({"ops": []})]).await;
        }
        for _ in 0..2 {
            for ((key, body, _), answer) in bodies.iter().zip(&answers) {
                assert_eq!(keyed(&mut http, key, body).await, *answer, "{key}");
                let other = keyed(&mut http, key, &insert(30).to_string()).await;
                assert_eq!((other.status, other.code().as_str()), (409, "conflict"), "{key}");
            }
            server.stop().await;
            server = TestServer::start(config.clone()).await;
            http = Http::connect(server.addr()).await;
        }
        assert_eq!(ids(&mut http).await, [1, 22, 23]);
        server.stop().await;
    });
}

#[test]
fn concurrent_bodies_with_one_key_are_applied_once() {
    block_on(async {
        let (server, mut http) = start(memory()).await;
        let lines: Vec<String> = (100..400).map(|id| insert(id).to_string()).collect();
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (addr, body) = (server.addr(), body.clone());
            all.spawn(async move {
                let mut http = Http::connect(addr).await;
                keyed(&mut http, "k", &body).await
            });
        }
        let answers = all.join_all().await;
        assert!(answers.iter().all(|answer| *answer == answers[0] && answer.status == 200), "{answers:?}");
        assert_eq!(ids(&mut http).await.len(), 301);
        server.stop().await;
    });
}

#[test]
fn limits_on_commits_are_kept() {
    block_on(async {
        let mut config = memory();
        config.limits.commit_ops_max = 3;
        config.limits.line_bytes_max = 2_000;
        config.limits.body_bytes_max = 5_000;
        config.limits.request_bytes_max = 2_000;
        let (server, mut http) = start(config).await;
        let ops: Vec<Json> = (10..14).map(|id| insert(id)["ops"][0].clone()).collect();
        assert_eq!(http.post_commits(json!({"ops": ops}).to_string()).await.code(), "bad_message");
        assert_eq!(http.post_commits(json!({"ops": ops[..3]}).to_string()).await.status, 200);
        let long = json!({"ops": [{"insert": "things", "row": {"id": 20, "name": "x".repeat(3_000)}}]});
        let answer = http.post_commits(body(&[&insert(15).to_string(), &long.to_string()])).await;
        let error = &answer.json()["error"];
        assert_eq!((&error["code"], &error["applied"]), (&json!("message_too_large"), &json!(1)), "{error}");
        assert_eq!((answer.status, &error["line"]), (413, &json!(2)), "{error}");
        let many: String = (1_000..1_200).map(|id| format!("{}\n", insert(id))).collect();
        assert_eq!(keyed(&mut http, "k", &many).await.code(), "message_too_large");
        let definition = json!({"query": {"table": "things"}, "args": {"p": "x".repeat(3_000)}});
        let answer = http.put("/v1/queries/long", &definition).await;
        assert_eq!((answer.status, answer.code().as_str()), (413, "message_too_large"));
        assert_eq!(ids(&mut http).await, [1, 10, 11, 12, 15]);
        server.stop().await;
    });
}

#[test]
fn every_path_answers_errors_in_json() {
    block_on(async {
        let (server, mut http) = start(memory()).await;
        let query = json!({"query": {"table": "things", "where": {"op": "=", "args": [{"col": "id"},
            {"param": "p"}]}}, "args": {"p": "int8"}});
        assert_eq!(http.put("/v1/queries/by_id", &query).await.status, 200);
        for (method, path, request, status, code) in [
            (Method::GET, "/v1/nothing", "", 404, "bad_message"),
            (Method::DELETE, "/v1/commits", "", 405, "bad_message"),
            (Method::GET, "/v1/queries/none", "", 404, "unknown_name"),
            (Method::DELETE, "/v1/queries/none", "", 404, "unknown_name"),
            (Method::GET, "/v1/queries/none/rows", "", 404, "unknown_name"),
            (Method::GET, "/v1/queries/none/changes", "", 404, "unknown_name"),
            (Method::GET, "/v1/queries/%ff", "", 400, "bad_message"),
            (Method::PUT, "/v1/queries/%ff", "{\"query\":{\"table\":\"things\"}}", 400, "bad_message"),
            (Method::GET, "/v1/queries/%ff/rows", "", 400, "bad_message"),
            (Method::GET, "/v1/queries/%ff/changes", "", 400, "bad_message"),
            (Method::GET, "/%ff", "", 400, "bad_message"),
            (Method::GET, "/v1/queries/by_id/rows", "", 400, "bad_args"),
            (Method::GET, "/v1/queries/by_id/rows?args=5", "", 400, "bad_args"),
            (Method::GET, "/v1/queries/by_id/rows?args=%7B%22p%22:1,%22q%22:2%7D", "", 400, "bad_args"),
            (Method::GET, "/v1/queries/by_id/rows?args=%7B%22p%22:%22x%22%7D", "", 400, "bad_args"),
            (Method::GET, "/v1/queries/ids/rows?args=%7B%22auth.sub%22:1%7D", "", 403, "forbidden"),
            (Method::GET, "/v1/queries/ids/rows?arg=%7B%7D", "", 400, "bad_message"),
            (Method::GET, "/v1/queries/ids/rows?since=1", "", 400, "bad_message"),
            (Method::GET, "/v1/queries/ids/changes?since=x", "", 400, "bad_message"),
            (Method::GET, "/v1/queries/ids/changes?args=%7B%7D&args=%7B%7D", "", 400, "bad_message"),
            (Method::GET, "/v1/queries/%ff/rows", "", 400, "bad_message"),
            (Method::GET, "/v1/sync", "", 400, "bad_message"),
            (Method::PUT, "/v1/queries/new", "{", 400, "bad_message"),
            (Method::PUT, "/v1/queries/new", "{}", 400, "bad_message"),
            (Method::PUT, "/v1/queries/new", "{\"query\":{\"table\":\"none\"}}", 404, "unknown_table"),
            (Method::PUT, "/v1/queries/new", "{\"query\":{\"table\":\"things\",\"x\":1}}", 400, "bad_query"),
            (Method::POST, "/v1/commits", "[]", 400, "bad_message"),
            (Method::POST, "/v1/commits", "\u{1}\u{2}", 400, "bad_message"),
        ] {
            let answer = http.send(method.clone(), path, &[], request).await;
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{method} {path} {request}");
        }
        let undeclared = json!({"query": query["query"]});
        let answer = http.put("/v1/queries/undeclared", &undeclared).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_args"));
        let text = answer.json()["error"]["message"].to_string();
        assert!(text.contains(r#"\"args\":{\"p\":\"int8\"}"#), "what to write is not in {text}");
        let foreign = [("origin", "http://evil.example")];
        let statement = json!({"sql": "insert into things (id) values (2)"}).to_string();
        for (path, body) in [("/v1/commits", insert(2).to_string()), ("/v1/sql", statement)] {
            let answer = http.send(Method::POST, path, &foreign, body).await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{path}");
        }
        let encoded = [("content-encoding", "br")];
        let answer = http.send(Method::POST, "/v1/commits", &encoded, "x").await;
        assert_eq!(answer.status, 415);
        let broken = [("content-encoding", "gzip")];
        let answer = http.send(Method::POST, "/v1/commits", &broken, "this is not gzip").await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_message"));
        // Compressed, and not declared as such.
        for magic in [&b"\x1f\x8b\x08\x00"[..], b"\x28\xb5\x2f\xfd\x00"] {
            for headers in [&[][..], &[("idempotency-key", "compressed")]] {
                let answer = http.send(Method::POST, "/v1/commits", headers, magic).await;
                assert_eq!((answer.status, answer.code().as_str()), (415, "bad_message"));
            }
        }
        assert_eq!(http.post_commits("").await.status, 200, "an empty body has nothing to refuse");
        assert_eq!(ids(&mut http).await, [1]);
        server.stop().await;
    });
}
