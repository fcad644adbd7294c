//! Lost, refused, silent and misbehaving connections.

use crate::server::{Peer, issues, start, welcome, within};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tidegate_client::{
    Client, ClientOptions, ConnectError, Query, Status, View,
    transport::{Frame, memory::MemoryServer},
};
use tokio::time::Instant;

/// A client with one live view that shows issue 1.
async fn live(options: ClientOptions) -> (Client, MemoryServer, Peer, View) {
    let (client, mut server) = start(options);
    let mut view = client.open(Query::sql("select"));
    let (mut peer, _) = welcome(&mut server).await;
    peer.receive().await;
    peer.subscribed(1, 1, &issues(), false).await;
    peer.batch(1, 1, 0, 10, json!([["+", 0, 1, [1, "a"]]])).await;
    peer.progress(10).await;
    within(view.next()).await.expect("the snapshot");
    (client, server, peer, view)
}

/// Waits for the state between two connections; returns the wait and why.
async fn waiting(client: &Client) -> (Duration, ConnectError) {
    let mut status = client.status_changes();
    let waiting = within(status.wait_for(|status| matches!(status, Status::Waiting { .. }))).await;
    match &*waiting.expect("the client runs") {
        Status::Waiting { retry_in, error, .. } => (*retry_in, error.clone()),
        other => unreachable!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconnect_keeps_the_old_result_and_resumes() {
    let (client, mut server, peer, mut view) = live(ClientOptions::default()).await;
    let before = view.rows();
    drop(peer);
    let (_, error) = waiting(&client).await;
    assert!(matches!(error, ConnectError::ServerClosed), "{error:?}");
    assert!(view.rows().ptr_eq(&before));
    let (mut peer, _) = welcome(&mut server).await;
    let fp = issues().fingerprint(b"").to_string();
    assert_eq!(peer.receive().await["subscribe"]["resume"], json!({"epoch": 1, "cv": 10, "fp": fp}));
    // Refused: the snapshot comes in whole, and only then is there another result.
    peer.subscribed(1, 2, &issues(), false).await;
    peer.progress(11).await;
    peer.batch(1, 2, 0, 12, json!([["+", 0, 1, [1, "a"]], ["+", 0, 1, [2, "b"]]])).await;
    peer.progress(12).await;
    let update = within(view.next()).await.expect("the difference");
    let added = json!({"op": "add", "row": {"id": 2, "title": "b"}});
    assert_eq!(update.to_json(), json!({"cv": 12, "changes": [added]}));
    assert!(Arc::ptr_eq(update.rows.get(0).expect("row"), before.get(0).expect("row")));
}

#[tokio::test(start_paused = true)]
async fn goaway_says_when_to_come_back() {
    let (client, mut server, mut peer, _view) = live(ClientOptions::default()).await;
    let sent_away = Instant::now();
    let goaway = json!({"code": "shutting_down", "message": "bye", "retry_after_ms": 20_000});
    peer.send(json!({"goaway": goaway})).await;
    peer.closed().await;
    let (wait, error) = waiting(&client).await;
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    assert!(wait >= Duration::from_secs(20) && wait <= Duration::from_secs(25), "{wait:?}");
    welcome(&mut server).await;
    assert!(sent_away.elapsed() >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_violation_costs_the_connection_and_not_the_result() {
    let (client, mut server, mut peer, view) = live(ClientOptions::default()).await;
    peer.batch(1, 1, 5, 11, json!([])).await;
    peer.closed().await;
    let (_, error) = waiting(&client).await;
    assert!(
        matches!(&error, ConnectError::Violation(violation) if violation.invariant() == "seq_is_gapless"),
        "{error:?}"
    );
    assert_eq!(view.rows().len(), 1);
    let (mut peer, _) = welcome(&mut server).await;
    assert_eq!(peer.receive().await["subscribe"]["resume"]["cv"], 10);
    // Bytes that are no message are one too.
    peer.0.send_frame(Frame::Binary(vec![0xc1].into())).await;
    peer.closed().await;
    let (_, error) = waiting(&client).await;
    assert!(matches!(error, ConnectError::Violation(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn backoff_is_jittered_and_bounded() {
    let options = ClientOptions::default()
        .backoff_initial(Duration::from_millis(100))
        .backoff_max(Duration::from_secs(2));
    let (client, server) = start(options);
    drop(server);
    let mut status = client.status_changes();
    let mut waits = Vec::new();
    while waits.len() < 30 {
        within(status.changed()).await.expect("the client runs");
        if let Status::Waiting { retry_in, failures, .. } = &*status.borrow_and_update() {
            waits.push(*retry_in);
            assert_eq!(*failures as usize, waits.len());
        }
    }
    for (index, wait) in waits.iter().enumerate() {
        let whole = Duration::from_millis(100 << index.min(10)).min(Duration::from_secs(2));
        assert!(*wait >= whole / 2 && *wait <= whole, "wait {index}: {wait:?}");
    }
    let late: std::collections::HashSet<_> = waits[10..].iter().collect();
    assert!(late.len() > 10, "jitter draws them apart: {waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_left() {
    let options =
        ClientOptions::default().ping_interval(Duration::from_secs(5)).idle_timeout(Duration::from_secs(12));
    let (client, mut server, mut peer, _view) = live(options).await;
    // An answered ping keeps the connection.
    for _ in 0..5 {
        assert_eq!(peer.receive().await, json!({"ping": {"t": null}}));
        peer.send(json!({"pong": {"t": null}})).await;
    }
    let silent_since = Instant::now();
    peer.closed().await;
    let (_, error) = waiting(&client).await;
    assert!(matches!(error, ConnectError::Silent), "{error:?}");
    let silence = silent_since.elapsed();
    assert!(silence >= Duration::from_secs(12) && silence < Duration::from_secs(15), "{silence:?}");
    welcome(&mut server).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_welcomes_is_left() {
    let (client, mut server) = start(ClientOptions::default().connect_timeout(Duration::from_secs(3)));
    let connection = within(server.accept()).await.expect("a connection");
    let error = within(client.connected()).await.expect_err("no welcome");
    assert!(matches!(error, ConnectError::Silent), "{error:?}");
    drop(connection);
}

#[tokio::test(start_paused = true)]
async fn every_connection_asks_for_a_token() {
    let asked = Arc::new(AtomicUsize::new(0));
    let options = ClientOptions::default().token({
        let asked = Arc::clone(&asked);
        move || {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            async move { Some(format!("token-{number}")) }
        }
    });
    let (client, mut server) = start(options);
    let (mut peer, hello) = welcome(&mut server).await;
    assert_eq!(hello["hello"]["token"], "token-0");
    within(client.connected()).await.expect("welcomed");
    client.authenticate("fresh");
    assert_eq!(peer.receive().await, json!({"auth": {"token": "fresh"}}));
    peer.send(json!({"error": {"code": "unauthenticated", "message": "expired"}})).await;
    peer.closed().await;
    let (_, hello) = welcome(&mut server).await;
    assert_eq!(hello["hello"]["token"], "token-1");
}

#[tokio::test(start_paused = true)]
async fn progress_is_acknowledged_at_a_bounded_rate() {
    let (_client, _server, mut peer, _view) = live(ClientOptions::default()).await;
    for cv in 11..=50 {
        peer.progress(cv).await;
    }
    let mut acks = Vec::new();
    while acks.last() != Some(&50) {
        match within(peer.0.receive()).await.expect("open") {
            tidegate_wire::protocol::ClientMessage::Ack(ack) => acks.push(ack.cv.0),
            other => panic!("{other:?}"),
        }
    }
    assert!(acks.len() <= 2, "{acks:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_ends_everything() {
    let (client, mut server, mut peer, mut view) = live(ClientOptions::default()).await;
    client.close().await;
    peer.closed().await;
    assert!(within(view.next()).await.is_none());
    assert_eq!(view.rows().len(), 1);
    assert!(matches!(client.status(), Status::Closed));
    assert!(within(server.accept()).await.is_none(), "the connection task is gone");
    // So does dropping the last handle.
    let (client, mut server, mut peer, view) = live(ClientOptions::default()).await;
    drop(client);
    assert_eq!(view.rows().len(), 1);
    drop(view);
    peer.closed().await;
    assert!(within(server.accept()).await.is_none());
}
