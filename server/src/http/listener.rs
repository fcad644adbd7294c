//! Accepts connections and serves HTTP/1.1 on them. Written out rather than left to `axum::serve`, which sets no time
//! limit on a request's head: a peer that connects and says nothing would hold its socket for ever.

use super::refusal::Refusing;
use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{convert::Infallible, io, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;

/// Most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Pause after a failed accept, which is a lack of file descriptors more often than not.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts until `stop`; then finishes the requests under way.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    header_timeout: Duration,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connection(stream, router.clone(), header_timeout, stop.clone());
                tasks.spawn(connection);
            }
            Err(error) => {
                if !is_of_one_connection(&error) {
                    tracing::warn!(%error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn connection(stream: TcpStream, router: Router, header_timeout: Duration, stop: CancellationToken) {
    // Small frames must not wait for the acknowledgement of earlier ones.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let service = tower::service_fn(move |request: hyper::Request<Incoming>| {
        let router = router.clone();
        async move { Ok::<_, Infallible>(infallible(router.oneshot(request.map(Body::new)).await)) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(header_timeout).max_buf_size(HEAD_BYTES_MAX);
    let connection = builder
        .serve_connection(TokioIo::new(Refusing::new(stream)), TowerToHyperService::new(service))
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

fn infallible<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// Errors that concern only the connection that was about to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
