//! `GET /v1/queries/{name}/explain`: how a named query is maintained.

use super::{error::ApiError, named_query::QueryString, query_string::Members, request::Name};
use crate::state::Shared;
use axum::{Extension, Json, extract::State};
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_wire::protocol::ErrorCode;

/// See the module's description.
pub async fn get(
    State(shared): State<Arc<Shared>>,
    Name(name): Name,
    Extension(members): Extension<Members>,
) -> Result<Json<Value>, ApiError> {
    let replica = shared.replica()?.clone();
    let asked = QueryString::parse(members)?;
    let query = asked.prepare(&replica, name)?;
    let plan = tokio::task::spawn_blocking(move || replica.explain(&query, asked.analyze)).await;
    let plan =
        plan.map_err(|_| ApiError::new(ErrorCode::Internal, "explaining failed; see the server's log"))?;
    Ok(Json(json!({ "plan": plan? })))
}
