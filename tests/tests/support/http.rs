//! One HTTP connection, with every header and body a test may want to send.

use super::server::within;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// A connection that is kept for several requests.
pub(crate) struct Http {
    addr: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

/// What the server answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The header `tidegate-cv`.
    pub(crate) cv: Option<u64>,
    /// The body.
    pub(crate) body: Bytes,
}

/// The connection ended without an answer.
#[derive(Debug)]
pub(crate) struct NoAnswer;

impl Answer {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    /// The error's code; "" when there is none.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Http {
    /// Connects.
    ///
    /// # Panics
    /// When nobody listens.
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        Self::try_connect(addr).await.expect("the server listens")
    }

    /// Connects, if somebody listens.
    pub(crate) async fn try_connect(addr: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(addr).await.ok()?;
        stream.set_nodelay(true).ok()?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        Some(Self { addr, sender })
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn try_send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, NoAnswer> {
        let mut request = Request::builder().method(method).uri(path).header("host", self.addr.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let answer = within("an HTTP answer", async {
            self.sender.ready().await.map_err(|_| NoAnswer)?;
            let response = self.sender.send_request(request).await.map_err(|_| NoAnswer)?;
            let status = response.status().as_u16();
            let cv = response.headers().get("tidegate-cv");
            let cv = cv.and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
            let body = response.into_body().collect().await.map_err(|_| NoAnswer)?.to_bytes();
            Ok(Answer { status, cv, body })
        });
        answer.await
    }

    /// As [`Http::try_send`], on a new connection when the server has closed this one.
    ///
    /// # Panics
    /// When there is no answer.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        if self.sender.is_closed() {
            *self = Self::connect(self.addr).await;
        }
        self.try_send(method, path, headers, body).await.expect("an answer")
    }

    /// `GET`.
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    /// `PUT` with a JSON body.
    pub(crate) async fn put(&mut self, path: &str, body: &Json) -> Answer {
        self.send(Method::PUT, path, &[], body.to_string()).await
    }

    /// `POST /v1/commits`.
    pub(crate) async fn post_commits(&mut self, body: impl Into<Bytes>) -> Answer {
        self.send(Method::POST, "/v1/commits", &[], body).await
    }

    /// Commits that have to be taken; the last one's commit version.
    ///
    /// # Panics
    /// When one is refused.
    pub(crate) async fn commit<'a>(&mut self, lines: impl IntoIterator<Item = &'a Json>) -> u64 {
        let mut body = String::new();
        for line in lines {
            body.push_str(&line.to_string());
            body.push('\n');
        }
        let answer = self.post_commits(body).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        answer.json()["cv"].as_u64().expect("a cv")
    }

    /// `GET /v1/status`.
    pub(crate) async fn status(&mut self) -> Json {
        self.get("/v1/status").await.json()
    }
}
