//! `GET /v1/connections`: the connections with how far each is, those furthest behind first.

use super::error::ApiError;
use crate::{hub::ConnectionView, state::Shared};
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_wire::{codec::Codec, model::Cv};

/// Most connections that are listed; `total` tells how many there are.
const LISTED_MAX: usize = 200;

/// See the module's description.
pub async fn list(State(shared): State<Arc<Shared>>) -> Result<Json<Value>, ApiError> {
    let replica = shared.replica()?;
    let listed = shared.hub.furthest_behind(LISTED_MAX);
    let ids: Vec<_> = listed.iter().map(|view| view.conn).collect();
    let subscriptions = replica.subscriptions_of(&ids);
    // Read after the positions, so that no lag is below nothing.
    let status = replica.status();
    let reached = status.workers.iter().map(|worker| worker.cv).min().unwrap_or(status.cv);
    let connections: Vec<_> = listed
        .iter()
        .zip(subscriptions)
        .map(|(view, subscriptions)| describe(view, subscriptions, status.cv, reached))
        .collect();
    Ok(Json(json!({ "cv": status.cv, "total": shared.hub.connections(), "connections": connections })))
}

fn describe(view: &ConnectionView, subscriptions: usize, newest: Cv, reached: Cv) -> Value {
    json!({
        "conn": view.conn.0.to_string(),
        "client_id": view.client_id,
        "codec": match view.codec {
            Codec::MessagePack => "msgpack",
            Codec::Json => "json",
        },
        "subscriptions": subscriptions,
        "connected_seconds": view.since.elapsed().as_secs(),
        "released_cv": view.position.released,
        "lag_commits": lag(view.position.due, newest, reached),
        "outbox_bytes": view.position.bytes,
    })
}

/// How many commits a client may not have seen: from the first release of a change that is due to it on. A client to which none is due
/// has all that concerns it up to where the workers are.
fn lag(due: Option<Cv>, newest: Cv, reached: Cv) -> u64 {
    match due {
        Some(due) => (newest.0 + 1).saturating_sub(due.0),
        None => newest.0.saturating_sub(reached.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_begins_at_the_first_release_that_is_due() {
        assert_eq!(lag(None, Cv(9), Cv(9)), 0, "idle, however long ago it was released anything");
        assert_eq!(lag(None, Cv(9), Cv(7)), 2, "the workers are behind");
        assert_eq!(lag(Some(Cv(9)), Cv(9), Cv(9)), 1);
        assert_eq!(lag(Some(Cv(4)), Cv(9), Cv(9)), 6);
    }
}
