//! A server to play: shorthands over the memory transport.

use serde_json::{Value as Json, json};
use std::time::Duration;
use tidegate_client::{
    Client, ClientOptions,
    transport::memory::{self, MemoryConnection, MemoryServer},
};
use tidegate_wire::{
    model::Layout,
    protocol::{ClientMessage, ServerMessage},
};
use tokio::time::timeout;

/// How long anything may take; on the paused clock no time passes really.
const PATIENCE: Duration = Duration::from_secs(600);

/// `issues(id, title)`, ordered by id.
pub(crate) fn issues() -> Layout {
    let layout = json!({
        "tables": [{"name": "issues", "key": [0],
            "columns": [{"name": "id", "type": "int8"}, {"name": "title", "type": "text"}]}],
        "places": [{"parent": null, "as": null, "table": 0, "columns": [0, 1], "on": [],
            "order": [[0, "asc", "nulls last"]], "one": false}]});
    serde_json::from_value(layout).expect("a layout")
}

/// A client's own row of mutations.
pub(crate) fn own() -> Layout {
    let layout = json!({
        "tables": [{"name": "tidegate_client_mutations", "key": [0], "columns": [
            {"name": "client_id", "type": "text"}, {"name": "last_mutation_id", "type": "int8"}]}],
        "places": [{"parent": null, "as": null, "table": 0, "columns": [0, 1], "on": [],
            "order": [[0, "asc", "nulls last"]], "one": false}]});
    serde_json::from_value(layout).expect("a layout")
}

/// A client without a connection yet, and the server it will connect to.
pub(crate) fn start(options: ClientOptions) -> (Client, MemoryServer) {
    let (transport, server) = memory::pair();
    let client = Client::start("http://test", options, transport.shared()).expect("an address");
    (client, server)
}

/// The next connection, welcomed, with its hello.
pub(crate) async fn welcome(server: &mut MemoryServer) -> (Peer, Json) {
    let connection = within(server.accept()).await.expect("a connection");
    let mut peer = Peer(connection);
    let hello = peer.receive().await;
    assert!(hello.get("hello").is_some(), "{hello}");
    let welcome = json!({"protocol": 1, "server": "test", "conn": "1", "cv": 1, "limits": {}});
    peer.send(json!({"welcome": welcome})).await;
    (peer, hello)
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it happens in time")
}

/// The server's end of a connection.
pub(crate) struct Peer(pub(crate) MemoryConnection);

impl Peer {
    pub(crate) async fn send(&self, message: Json) {
        let message: ServerMessage = serde_json::from_value(message).expect("a server message");
        self.0.send(&message).await;
    }

    /// The client's next message that is not an `ack`.
    pub(crate) async fn receive(&mut self) -> Json {
        loop {
            let message = within(self.0.receive()).await.expect("the connection is open");
            if !matches!(message, ClientMessage::Ack(_)) {
                return serde_json::to_value(message).expect("serializes");
            }
        }
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn closed(&mut self) {
        while within(self.0.receive()).await.is_some() {}
    }

    pub(crate) async fn subscribed(&self, sub: u64, epoch: u64, layout: &Layout, resumed: bool) {
        let Layout { tables, places } = layout;
        let fp = layout.fingerprint(b"");
        let subscribed = json!({"sub": sub, "epoch": epoch, "fp": fp, "tables": tables, "places": places,
            "resumed": resumed});
        self.send(json!({"subscribed": subscribed})).await;
    }

    pub(crate) async fn batch(&self, sub: u64, epoch: u64, seq: u64, cv: u64, ops: Json) {
        let layout = if sub == 0 { own() } else { issues() };
        let fp = layout.fingerprint(b"");
        self.send(json!({"batch": {"sub": sub, "epoch": epoch, "seq": seq, "cv": cv, "fp": fp, "ops": ops}}))
            .await;
    }

    pub(crate) async fn progress(&self, cv: u64) {
        self.send(json!({"progress": {"cv_min": cv}})).await;
    }
}
