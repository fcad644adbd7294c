//! What every HTTP request is asked, whichever call it is for: by which name it addresses the server, and what its query
//! string holds.

use serde_json::Value;
use std::net::SocketAddr;
use tidegate_server::{Config, RunningServer, Server};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

async fn server(allowed_hosts: &[&str]) -> RunningServer {
    let mut config = Config::default();
    config.server.addr = "127.0.0.1:0".to_owned();
    config.server.allowed_hosts = allowed_hosts.iter().map(|&name| name.to_owned()).collect();
    config.store.data_dir = String::new();
    Server::start(config).await.expect("starts")
}

/// Sends a request and reads the answer's status and, of an error, code and message.
async fn ask(addr: SocketAddr, request_line: &str, headers: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(addr).await.expect("connects");
    let request = format!("{request_line} HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    // An event stream has no end, and neither has a WebSocket: what comes first is enough.
    while !answer.windows(4).any(|window| window == b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut answer).await.expect("an answer"), 0, "{request_line}");
    }
    let status = String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok());
    let status: u16 = status.expect("a status");
    if status >= 400 {
        stream.read_to_end(&mut answer).await.expect("the rest");
    }
    let answer = String::from_utf8(answer).expect("text");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    let error = serde_json::from_str::<Value>(body).unwrap_or_default();
    let text = |name: &str| error["error"][name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("message"))
}

const UPGRADE: &str = "connection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const CLOSE: &str = "connection: close\r\ncontent-length: 0\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_a_foreign_name_is_refused_whatever_it_asks_for() {
    for names in [&[][..], &["app.example"]] {
        let server = server(names).await;
        let port = server.addr.port();
        for (request_line, headers) in [
            ("GET /", CLOSE),
            ("GET /metrics", CLOSE),
            ("GET /v1/status", CLOSE),
            ("POST /v1/sql", CLOSE),
            ("POST /v1/commits", CLOSE),
            ("PUT /v1/queries/q", CLOSE),
            ("OPTIONS /v1/sql", CLOSE),
            ("GET /nowhere", CLOSE),
            ("GET /v1/sync", UPGRADE),
        ] {
            let host = format!("evil.example:{port}");
            let headers = format!("{headers}host: {host}\r\norigin: http://{host}\r\n");
            let (status, code, message) = ask(server.addr, request_line, &headers).await;
            assert_eq!((status, code.as_str()), (403, "forbidden"), "{request_line}");
            assert!(message.contains(&host) && message.contains("server.allowed_hosts"), "{message}");
        }
        for request_line in ["GET /healthz", "GET /readyz"] {
            let (status, ..) = ask(server.addr, request_line, &format!("{CLOSE}host: 10.1.2.3\r\n")).await;
            assert_eq!(status, 200, "{request_line}");
        }
        for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
            let (status, ..) = ask(server.addr, "GET /v1/status", &format!("{CLOSE}host: {host}\r\n")).await;
            assert_eq!(status, 200, "{host}");
            let (status, ..) = ask(server.addr, "GET /v1/sync", &format!("{UPGRADE}host: {host}\r\n")).await;
            assert_eq!(status, 101, "{host}");
        }
        let named = ask(server.addr, "GET /v1/status", &format!("{CLOSE}host: App.Example:443\r\n")).await;
        assert_eq!(named.0, if names.is_empty() { 403 } else { 200 });
        server.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_refuses_members_of_the_query_string_that_it_does_not_take() {
    let server = server(&[]).await;
    let description: Value =
        serde_json::from_str(include_str!("../assets/openapi.json")).expect("the API's description");
    let headers = format!("{CLOSE}host: {}\r\n", server.addr);
    for (path, methods) in description["paths"].as_object().expect("paths") {
        for (method, call) in methods.as_object().expect("methods") {
            let at = format!("{} {}", method.to_uppercase(), path.replace("{name}", "q"));
            let (status, code, message) = ask(server.addr, &format!("{at}?nonsense=1"), &headers).await;
            let refused = message.contains("\"nonsense\"");
            if ["/", "/console", "/v1/sync"].contains(&path.as_str()) {
                assert!(!refused, "{at}");
                continue;
            }
            assert_eq!((status, code.as_str(), refused), (400, "bad_message", true), "{at}: {message}");
            let parameters = call["parameters"].as_array().cloned().unwrap_or_default();
            for parameter in parameters.iter().filter(|parameter| parameter["in"] == "query") {
                let name = parameter["name"].as_str().expect("a name");
                assert!(message.contains(name), "{at} takes {name}: {message}");
                let (.., answer) = ask(server.addr, &format!("{at}?{name}="), &headers).await;
                assert!(!answer.contains("query string"), "{at} takes {name}: {answer}");
            }
        }
    }
    server.shutdown().await;
}
