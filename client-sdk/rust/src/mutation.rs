//! Mutations: their operations and their outcome.

use crate::{client::Handle, error::MutationError};
use serde_json::Value as Json;
use std::sync::Arc;
use tidegate_wire::model::{
    Cv, GivenRow,
    commit::{Delete, Insert, RowOp, Update},
};
use tokio::sync::oneshot;

/// A mutation that was queued. Dropping the handle does not take it back.
#[derive(Debug)]
pub struct MutationHandle {
    handle: Arc<Handle>,
    ticket: u64,
    outcome: oneshot::Receiver<Result<Cv, MutationError>>,
}

impl MutationHandle {
    pub(crate) fn new(
        handle: Arc<Handle>,
        ticket: u64,
        outcome: oneshot::Receiver<Result<Cv, MutationError>>,
    ) -> Self {
        Self { handle, ticket, outcome }
    }

    /// The mutation's id with the server, while it waits and has one.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        self.handle.0.core.lock().state.mutation_id(self.ticket)
    }

    /// Waits until the mutation shows in the views; returns the commit version of that release.
    ///
    /// # Errors
    /// When the server refuses it (nothing of it was applied then), or the client is closed before the outcome is
    /// known.
    pub async fn confirmed(self) -> Result<Cv, MutationError> {
        self.outcome.await.unwrap_or(Err(MutationError::Closed))
    }
}

/// A new row.
///
/// # Panics
/// When `row` is not a JSON object.
#[must_use]
pub fn insert(table: impl Into<String>, row: Json) -> RowOp {
    RowOp::Insert(Insert { insert: table.into(), row: object(row) })
}

/// New values for columns of an existing row.
///
/// # Panics
/// When `key` or `set` is not a JSON object.
#[must_use]
pub fn update(table: impl Into<String>, key: Json, set: Json) -> RowOp {
    RowOp::Update(Update { update: table.into(), key: object(key), set: object(set) })
}

/// The end of an existing row.
///
/// # Panics
/// When `key` is not a JSON object.
#[must_use]
pub fn delete(table: impl Into<String>, key: Json) -> RowOp {
    RowOp::Delete(Delete { delete: table.into(), key: object(key) })
}

fn object(json: Json) -> GivenRow {
    match json {
        Json::Object(object) => object.into(),
        other => panic!("{other} is not an object"),
    }
}
