//! A server in this process, spoken to over real sockets: what the session's own tests cannot see.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tidegate_server::{Config, RunningServer, Server};
use tidegate_wire::model::Cv;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Message, client::IntoClientRequest as _},
};

/// Longer than any wait that succeeds.
const PATIENCE: Duration = Duration::from_secs(20);

async fn server(adjust: impl FnOnce(&mut Config)) -> RunningServer {
    let mut config = Config::default();
    config.server.addr = "127.0.0.1:0".to_owned();
    config.store.data_dir = String::new();
    adjust(&mut config);
    Server::start(config).await.expect("starts")
}

/// An HTTP request; status and body.
async fn http(server: &RunningServer, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(server.addr).await.expect("connects");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        server.addr,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

async fn commit(server: &RunningServer, lines: &[Value]) -> u64 {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (status, answer) = http(server, "POST", "/v1/commits", &body).await;
    assert_eq!(status, 200, "{answer}");
    answer["cv"].as_u64().expect("a cv")
}

fn tables() -> Value {
    json!({"tables": [{"name": "t", "primary_key": ["id"], "columns": [
        {"name": "id", "type": "int8"}, {"name": "text", "type": "text", "nullable": true}]}]})
}

fn insert(id: u64, text: &str) -> Value {
    json!({"ops": [{"insert": "t", "row": {"id": id, "text": text}}]})
}

/// A client that speaks JSON.
struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// What came last on a connection.
#[derive(Debug, PartialEq)]
enum End {
    Closed(u16),
    Dropped,
}

impl Client {
    async fn connect(server: &RunningServer) -> Self {
        let mut request = format!("ws://{}/v1/sync", server.addr).into_client_request().expect("a URL");
        let protocol = "tidegate.v1+json".parse().expect("a header value");
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        let (socket, response) = connect_async(request).await.expect("upgrades");
        assert_eq!(response.headers()["sec-websocket-protocol"], "tidegate.v1+json");
        Self { socket }
    }

    async fn open(server: &RunningServer, hello: Value) -> Self {
        let mut client = Self::connect(server).await;
        client.send(json!({"hello": hello})).await;
        let welcome = client.next("welcome").await;
        assert_eq!(welcome["protocol"], 1);
        client
    }

    async fn send(&mut self, message: Value) {
        self.send_raw(Message::text(message.to_string())).await;
    }

    async fn send_raw(&mut self, message: Message) {
        self.socket.send(message).await.expect("sent");
    }

    /// The next message, or how the connection ended.
    async fn message(&mut self) -> Result<Value, End> {
        loop {
            match tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("something comes") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(frame))) => {
                    return Err(End::Closed(frame.expect("a code").code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(End::Dropped),
            }
        }
    }

    /// The content of the next message, which must be of a kind.
    async fn next(&mut self, kind: &str) -> Value {
        let mut message = self.message().await.expect("a message");
        assert!(message.get(kind).is_some(), "{kind} was expected, {message} came");
        message[kind].take()
    }

    /// The next message of a kind; those before it are passed over.
    async fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            let mut message = self.message().await.expect("a message");
            if let Some(body) = message.get_mut(kind) {
                return body.take();
            }
        }
    }

    /// The code of the next message, which must be an error, and how the connection then ends.
    async fn error_and_end(&mut self) -> (Value, End) {
        let error = self.next("error").await["code"].take();
        (error, self.message().await.expect_err("the end"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_delivered_and_released() {
    let server = server(|_| ()).await;
    commit(&server, &[tables(), insert(1, "one")]).await;
    let mut client = Client::open(&server, json!({})).await;
    client.send(json!({"subscribe": {"sub": 1, "query": {"table": "t"}}})).await;
    let subscribed = client.next("subscribed").await;
    assert_eq!((&subscribed["sub"], &subscribed["resumed"]), (&json!(1), &json!(false)));
    let snapshot = client.next("batch").await;
    assert_eq!(snapshot["ops"], json!([["+", 0, 1, [1, "one"]]]));
    client.next("progress").await;
    let cv = commit(&server, &[insert(2, "two")]).await;
    let batch = client.next("batch").await;
    assert_eq!((&batch["seq"], &batch["cv"]), (&json!(1), &json!(cv)));
    assert_eq!(client.next("progress").await["cv_min"], json!(cv));
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mutation_is_confirmed_by_its_row() {
    let server = server(|_| ()).await;
    commit(&server, &[tables()]).await;
    let mut client = Client::open(&server, json!({"client_id": "c-1"})).await;
    assert_eq!(client.next("subscribed").await["sub"], 0);
    client.next("batch").await;
    client.next("progress").await;
    let ops = json!([{"insert": "t", "row": {"id": 1}}]);
    client.send(json!({"push": {"mutations": [{"id": 1, "ops": ops}, {"id": 2, "ops": ops}]}})).await;
    let (mut results, mut confirmed) = (Vec::new(), Value::Null);
    while results.len() < 2 || confirmed != json!(2) {
        let message = client.message().await.expect("a message");
        if let Some(result) = message.get("push_result") {
            results.push((result["id"].clone(), result["error"]["code"].clone()));
        } else if let Some(batch) = message.get("batch") {
            confirmed = batch["ops"][0][3][1].clone();
        }
    }
    assert_eq!(results, [(json!(1), Value::Null), (json!(2), json!("conflict"))]);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_frames_end_the_connection_with_a_word() {
    let server = server(|config| config.limits.message_bytes_max = 2_000).await;
    let text = |length: usize| Message::text(json!({"ping": {"t": "x".repeat(length)}}).to_string());
    for (message, code, close) in [
        (Message::text("nonsense"), "bad_message", 1008),
        (Message::text("{\"nonsense\":1}"), "bad_message", 1008),
        (Message::binary(vec![0x81]), "bad_message", 1008),
        (text(2_000), "message_too_large", 1009),
        (text(1_000_000), "message_too_large", 1009),
    ] {
        let mut client = Client::open(&server, json!({})).await;
        client.send_raw(message).await;
        assert_eq!(client.error_and_end().await, (json!(code), End::Closed(close)));
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_messages_leave_the_connection_open() {
    let server = server(|_| ()).await;
    let mut client = Client::connect(&server).await;
    client.send(json!({"ping": {"t": 1}})).await;
    assert_eq!(client.next("error").await["code"], "bad_message");
    client.send(json!({"hello": {}})).await;
    client.next("welcome").await;
    for (query, code) in [
        (json!({"table": "none"}), "unknown_table"),
        (json!({"table": "tidegate_client_mutations", "select": ["none"]}), "unknown_column"),
        (json!({"nonsense": 1}), "bad_query"),
    ] {
        client.send(json!({"subscribe": {"sub": 1, "query": query}})).await;
        let error = client.next("error").await;
        assert_eq!((&error["code"], &error["sub"]), (&json!(code), &json!(1)));
    }
    client.send(json!({"subscribe": {"sub": 1, "query": {"table": "tidegate_client_mutations"}}})).await;
    client.next("subscribed").await;
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_is_closed() {
    let server = server(|config| {
        config.server.hello_timeout_ms = Duration::from_millis(100);
        config.server.ping_interval_ms = Duration::from_millis(100);
        config.server.silence_max_ms = Duration::from_millis(300);
    })
    .await;
    let mut client = Client::connect(&server).await;
    assert_eq!(client.error_and_end().await, (json!("bad_message"), End::Closed(1008)));
    // This one says hello and then does not even answer pings, as its socket is never read.
    let silent = Client::open(&server, json!({})).await;
    let started = Instant::now();
    while server.shared.hub.connections() > 0 {
        assert!(started.elapsed() < PATIENCE, "the silent connection stays");
        tokio::task::yield_now().await;
    }
    drop(silent);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_sent_away_and_holds_nobody() {
    let server = server(|config| {
        config.limits.outbox_bytes_max = 200_000;
        config.limits.frame_bytes_target = 50_000;
    })
    .await;
    commit(&server, &[tables()]).await;
    let subscribe = json!({"subscribe": {"sub": 1, "query": {"table": "t"}}});
    let mut slow = Client::open(&server, json!({})).await;
    slow.send(subscribe.clone()).await;
    slow.next("subscribed").await;
    let mut quick = Client::open(&server, json!({})).await;
    quick.send(subscribe).await;
    quick.next("subscribed").await;
    let text = "x".repeat(50_000);
    let mut id = 0;
    let started = Instant::now();
    while server.shared.hub.connections() > 1 {
        assert!(started.elapsed() < PATIENCE, "the slow connection stays");
        id += 1;
        let cv = commit(&server, &[insert(id, &text)]).await;
        loop {
            let message = quick.message().await.expect("the quick one is not disturbed");
            if message["progress"]["cv_min"] == json!(cv) {
                break;
            }
        }
    }
    // The slow one reads what was under way, and then why it was sent away.
    let mut last = Value::Null;
    let end = loop {
        match slow.message().await {
            Ok(message) => last = message,
            Err(end) => break end,
        }
    };
    assert!(end == End::Dropped || last["goaway"]["code"] == "slow_client", "{end:?} after {last}");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_listed_with_how_far_they_are() {
    let server = server(|_| {}).await;
    commit(&server, &[tables()]).await;
    let cv = commit(&server, &[insert(1, "a")]).await;
    let mut named = Client::open(&server, json!({"client_id": "c-1"})).await;
    let mut other = Client::open(&server, json!({})).await;
    for (is_named, sub) in [(true, 1), (true, 2), (false, 1)] {
        let client = if is_named { &mut named } else { &mut other };
        client.send(json!({"subscribe": {"sub": sub, "query": {"table": "t", "limit": sub}}})).await;
        while client.wait_for("progress").await["cv_min"].as_u64() < Some(cv) {}
    }
    let listed = until_listed(&server, |list| {
        list["total"] == 2
            && list["connections"]
                .as_array()
                .is_some_and(|all| all.iter().all(|one| one["released_cv"] == cv && one["outbox_bytes"] == 0))
    })
    .await;
    assert_eq!(listed["cv"], cv);
    let [first, second] = listed["connections"].as_array().expect("a list").as_slice() else {
        panic!("{listed}")
    };
    // Sub 0, the client's own row, is one too.
    assert_eq!((&first["client_id"], &first["subscriptions"]), (&json!("c-1"), &json!(3)));
    assert_eq!((&second["client_id"], &second["subscriptions"]), (&Value::Null, &json!(1)));
    for one in [first, second] {
        assert_eq!(one["lag_commits"], 0, "{one}");
        assert_eq!(one["codec"], "json");
        assert!(one["connected_seconds"].as_u64() < Some(PATIENCE.as_secs()), "{one}");
    }
    drop(named);
    let left = until_listed(&server, |list| list["total"] == 1).await;
    assert_eq!(left["connections"][0]["conn"], second["conn"]);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_does_not_read_is_listed_first_with_its_lag() {
    let server = server(|_| {}).await;
    commit(&server, &[tables()]).await;
    let mut quick = Client::open(&server, json!({})).await;
    let mut slow = Client::open(&server, json!({"client_id": "slow"})).await;
    for client in [&mut quick, &mut slow] {
        client.send(json!({"subscribe": {"sub": 1, "query": {"table": "t"}}})).await;
        client.wait_for("progress").await;
    }
    let text = "x".repeat(1 << 20);
    let mut id = 0;
    // More than what sockets take in: then its releases wait.
    let listed = loop {
        id += 1;
        let cv = commit(&server, &[insert(id, &text)]).await;
        while quick.wait_for("progress").await["cv_min"].as_u64() < Some(cv) {}
        let (_, listed) = http(&server, "GET", "/v1/connections", "").await;
        if listed["connections"][0]["lag_commits"].as_u64() >= Some(3) {
            break listed;
        }
        assert!(id < 30, "it should lag by now: {listed}");
    };
    let [first, second] = listed["connections"].as_array().expect("a list").as_slice() else {
        panic!("{listed}")
    };
    assert_eq!(first["client_id"], "slow");
    assert!(first["outbox_bytes"].as_u64() > Some(1 << 20), "{first}");
    assert_eq!(second["client_id"], Value::Null);
    assert!(second["lag_commits"].as_u64() <= Some(1), "{second}");
    server.shutdown().await;
}

/// Asks for the connections until the answer is as it should be.
async fn until_listed(server: &RunningServer, enough: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let (status, listed) = http(server, "GET", "/v1/connections", "").await;
        assert_eq!(status, 200, "{listed}");
        if enough(&listed) {
            return listed;
        }
        assert!(started.elapsed() < PATIENCE, "still {listed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_in_sql_have_an_arrival_to_measure_from_and_selects_have_none() {
    let server = server(|_| {}).await;
    commit(&server, &[tables()]).await;
    let arrived = |cv: &Value| server.shared.hub.arrivals.get(Cv(cv.as_u64().expect("a cv"))).is_some();
    let (_, selected) = http(&server, "POST", "/v1/sql", r#"{"sql": "select * from t"}"#).await;
    assert!(!arrived(&selected["cv"]), "the tables came by a statement of another kind");
    let (_, written) = http(&server, "POST", "/v1/sql", r#"{"sql": "insert into t values (1, 'a')"}"#).await;
    assert!(arrived(&written["cv"]), "{written}");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_shapes_are_listed_named_or_not() {
    let server = server(|_| {}).await;
    commit(&server, &[tables()]).await;
    let put = r#"{"sql": "select id from t where id > 5", "pin": true}"#;
    let (status, put) = http(&server, "PUT", "/v1/queries/late", put).await;
    assert_eq!(status, 200, "{put}");
    let mut client = Client::open(&server, json!({})).await;
    for sub in [1, 2] {
        let query = json!({"table": "t", "where": {"op": "=", "args": [{"col": "id"}, sub]}});
        client.send(json!({"subscribe": {"sub": sub, "query": query}})).await;
        client.wait_for("subscribed").await;
    }
    let (_, listed) = http(&server, "GET", "/v1/queries", "").await;
    assert_eq!(listed["live_total"], 2, "{listed}");
    let [asked, named] = listed["live"].as_array().expect("a list").as_slice() else { panic!("{listed}") };
    assert_eq!(named["shape"], listed["queries"][0]["shape"], "{listed}");
    assert_eq!(
        (&asked["bindings"], &asked["subscribers"]),
        (&json!(2), &json!(2)),
        "one shape, two bindings"
    );
    assert!(
        asked["plan"].as_array().is_some_and(|plan| plan
            .iter()
            .any(|line| line.as_str().is_some_and(|line| line.contains("id = p1")))),
        "{asked}"
    );
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_bounded() {
    let server = server(|config| config.limits.connections_max = 1).await;
    let first = Client::open(&server, json!({})).await;
    let url = format!("ws://{}/v1/sync", server.addr);
    let refused = connect_async(url).await.expect_err("one too many").to_string();
    assert!(refused.contains("503"), "{refused}");
    drop(first);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_says_goodbye() {
    let server = server(|_| ()).await;
    let mut client = Client::open(&server, json!({})).await;
    let stopping = tokio::spawn(server.shutdown());
    assert_eq!(client.next("goaway").await["code"], "shutting_down");
    assert_eq!(client.message().await, Err(End::Closed(1001)));
    // Reading on sends the answer to the close frame.
    assert_eq!(client.message().await, Err(End::Dropped));
    let started = Instant::now();
    stopping.await.expect("stops");
    assert!(started.elapsed() < Duration::from_secs(1), "a client that answers holds nothing up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_body_tells_how_far_it_got() {
    let server = server(|_| ()).await;
    let cv = commit(&server, &[tables(), insert(1, "one")]).await;
    let body =
        format!("{}\n\n{}\n{}\n{}\n", tables(), insert(2, "two"), insert(1, "again"), insert(3, "three"));
    let (status, answer) = http(&server, "POST", "/v1/commits", &body).await;
    assert_eq!(status, 409);
    let error = &answer["error"];
    assert_eq!(
        (&error["code"], &error["applied"], &error["cv"], &error["line"]),
        (&json!("conflict"), &json!(1), &json!(cv + 1), &json!(4))
    );
    let body = format!("{}\n{{\"ops\":\n", insert(3, "three"));
    let (status, answer) = http(&server, "POST", "/v1/commits", &body).await;
    let error = &answer["error"];
    assert_eq!(
        (status, &error["code"], &error["applied"], &error["line"]),
        (400, &json!("bad_message"), &json!(1), &json!(2))
    );
    let (status, _) = http(&server, "GET", "/nothing", "").await;
    assert_eq!(status, 404);
    let (status, _) = http(&server, "DELETE", "/v1/commits", "").await;
    assert_eq!(status, 405);
    server.shutdown().await;
}
