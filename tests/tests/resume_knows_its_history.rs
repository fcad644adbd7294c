//! A client is resumed onto the history that it was served from, across restarts too, and onto no other: there the
//! same commit version stands for other rows.

use crate::support::{
    http::Http,
    raw::Raw,
    server::{TestServer, block_on, memory, within},
};
use serde_json::{Value as Json, json};
use std::net::SocketAddr;
use tidegate_client::Codec;
use tidegate_server::Config;
use tidegate_wire::protocol::{ServerMessage, server::Subscribed};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// A server with one table, the rows `ids` and a named query `q` of them; all such servers stand at the same version.
async fn serving(config: Config, ids: [u64; 2]) -> TestServer {
    let server = TestServer::start(config).await;
    let mut http = Http::connect(server.addr()).await;
    let columns = json!([{"name": "id", "type": "int8"}]);
    let tables = json!({"tables": [{"name": "t", "columns": columns, "primary_key": ["id"]}]});
    // Defined before the rows, so that what is held of them is not from before the definition.
    http.commit([&tables]).await;
    assert_eq!(http.put("/v1/queries/q", &json!({"query": {"table": "t"}})).await.status, 200);
    let inserts = ids.map(|id| json!({"ops": [{"insert": "t", "row": {"id": id}}]}));
    http.commit(&inserts).await;
    server
}

/// Subscribes; what is announced, and the commit version it is released at.
async fn subscribed(addr: SocketAddr, resume: Option<Json>) -> (Subscribed, u64) {
    let mut raw = Raw::hello(addr, Codec::Json, json!({})).await;
    let mut subscribe = json!({"sub": 1, "query": {"table": "t"}});
    if let Some(resume) = resume {
        subscribe["resume"] = resume;
    }
    raw.send(&json!({ "subscribe": subscribe })).await;
    let mut announced = None;
    loop {
        match raw.message().await {
            ServerMessage::Subscribed(subscribed) => announced = Some(subscribed),
            ServerMessage::Progress(progress) => {
                return (announced.expect("announced first"), progress.cv_min.0);
            }
            _ => {}
        }
    }
}

/// Follows the named query's event stream to its first release; whether it is resumed, and the release's id.
async fn events(addr: SocketAddr, last_event_id: Option<&str>) -> (bool, String) {
    let reading = async {
        let mut stream = TcpStream::connect(addr).await.expect("the server listens");
        let id = last_event_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!("GET /v1/queries/q/changes HTTP/1.1\r\nHost: {addr}\r\n{id}\r\n");
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        let mut resumed = None;
        let mut lines = BufReader::new(stream).lines();
        while let Some(line) = lines.next_line().await.expect("text") {
            if line.contains("\"subscribed\"") {
                resumed = Some(line.contains("\"resumed\":true"));
            }
            if let Some(id) = line.strip_prefix("id: ") {
                return (resumed.expect("announced first"), id.to_owned());
            }
        }
        panic!("the stream ended")
    };
    within("a release", reading).await
}

#[test]
fn resume_knows_its_history() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut durable = memory();
        durable.store.data_dir = folder.path().to_str().expect("UTF-8").to_owned();
        let server = serving(durable.clone(), [1, 2]).await;
        let stranger = serving(memory(), [3, 4]).await;
        let (held, cv) = subscribed(server.addr(), None).await;
        let (resumed, id) = events(server.addr(), None).await;
        assert_eq!((held.resumed, resumed), (false, false));
        assert!(held.epoch.0 < 1 << 53);
        let point = json!({"epoch": held.epoch, "cv": cv, "fp": held.fp});
        assert!(subscribed(server.addr(), Some(point.clone())).await.0.resumed);
        assert!(events(server.addr(), Some(&id)).await.0);

        let (other, _) = subscribed(stranger.addr(), Some(point.clone())).await;
        assert_eq!((other.resumed, other.fp), (false, held.fp), "the rows at {cv} are others");
        assert!(!events(stranger.addr(), Some(&id)).await.0);
        let (again, _) = subscribed(server.addr(), Some(json!({"epoch": 7, "cv": cv, "fp": held.fp}))).await;
        assert!(!again.resumed, "nobody was ever sent epoch 7");

        server.stop().await;
        let server = TestServer::start(durable).await;
        let (again, _) = subscribed(server.addr(), Some(point)).await;
        assert!(again.resumed && again.epoch > held.epoch && again.fp == held.fp);
        assert!(events(server.addr(), Some(&id)).await.0);
        server.stop().await;
        stranger.stop().await;
    });
}
