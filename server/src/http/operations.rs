//! What operators and their tools ask: health, readiness, metrics, status, check.

use super::{error::ApiError, refuse_foreign_origin};
use crate::{metrics as server_metrics, state::Shared};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_replica::handle::Status;
use tidegate_wire::protocol::ErrorCode;

/// The process is alive.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server is caught up and serving.
pub async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    match unready(&shared) {
        None => "ready\n".into_response(),
        Some(error) => error.into_response(),
    }
}

/// Why the server is not ready, if it is not.
fn unready(shared: &Shared) -> Option<ApiError> {
    if shared.is_stopping() {
        return Some(ApiError::new(ErrorCode::ShuttingDown, "the server is shutting down"));
    }
    let status = match shared.replica() {
        Ok(replica) => replica.status(),
        Err(error) => return Some(error),
    };
    lagging(&status, shared.config.workers.queue_max).map(|text| ApiError::new(ErrorCode::NotReady, text))
}

/// A worker whose queue is full holds back the log: the server still answers, but with old data.
fn lagging(status: &Status, queue_max: usize) -> Option<String> {
    let worker = status.workers.iter().find(|worker| worker.queue >= queue_max)?;
    Some(format!(
        "worker {} is behind: it has reached commit version {} of {} and its queue is full",
        worker.worker, worker.cv, status.cv
    ))
}

/// Prometheus text.
pub async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    if let Ok(replica) = shared.replica() {
        server_metrics::observe(&replica.status(), shared.hub.connections(), shared.hub.outbox_bytes());
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], shared.prometheus.render()).into_response()
}

/// Positions, queues and counts.
pub async fn status(State(shared): State<Arc<Shared>>) -> Result<Json<Value>, ApiError> {
    let status = shared.replica()?.status();
    let reason = unready(&shared).map(|error| error.message);
    Ok(Json(json!({
        "server": crate::SERVER,
        "ready": reason.is_none(),
        "reason": reason,
        "cv": status.cv,
        "source": { "url": shared.config.source.url, "lag_seconds": 0 },
        "uptime_seconds": shared.started_at.elapsed().as_secs(),
        "connections": shared.hub.connections(),
        "subscriptions": status.subscriptions,
        "queries": status.families,
        "bindings": status.bindings,
        "workers": status.workers,
        "drain_queue": status.drain_queue,
        "outbox_bytes": shared.hub.outbox_bytes(),
        "tables": status.table_rows.iter().map(|(name, rows)| json!({"name": name, "rows": rows})).collect::<Vec<_>>(),
        "store_bytes": status.store_bytes,
        "log_bytes": status.log_bytes,
        "memory_bytes": server_metrics::memory_bytes(),
    })))
}

/// Compares every maintained result with the query run from scratch.
pub async fn check(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<Response, ApiError> {
    // It changes nothing, but costs as much as running every query again.
    refuse_foreign_origin(&headers)?;
    let replica = shared.replica()?.clone();
    match tokio::task::spawn_blocking(move || replica.check()).await {
        Ok(report) => Ok((StatusCode::OK, Json(report)).into_response()),
        Err(_) => Err(ApiError::new(ErrorCode::Internal, "the check failed; see the server's log")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_replica::handle::WorkerStatus;
    use tidegate_wire::model::Cv;

    #[test]
    fn a_full_worker_queue_is_named_as_the_reason() {
        let worker = |queue| WorkerStatus { worker: 3, cv: Cv(5), queue, families: 1 };
        let status = |queue| Status { cv: Cv(9), workers: vec![worker(queue)], ..Status::default() };
        assert_eq!(lagging(&status(9), 10), None);
        let reason = lagging(&status(10), 10).expect("not ready");
        assert!(reason.contains("worker 3") && reason.contains("5 of 9"), "{reason}");
    }
}
