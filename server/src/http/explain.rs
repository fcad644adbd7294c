//! How a query is maintained: `GET /v1/queries/{name}/explain` of a named one, `POST /v1/explain` of any.

use super::{
    error::ApiError,
    named_query::QueryString,
    query_string::Members,
    request::{Name, json_body},
};
use crate::{codes::check_args, state::Shared};
use axum::{Extension, Json, body::Body, extract::State, http::HeaderMap};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tidegate_replica::handle::{PreparedQuery, QueryRequest, QuerySource, Replica};
use tidegate_wire::{maps_only::MapsOnly, protocol::ErrorCode};

/// The body of a `POST`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Asked {
    query: Option<Value>,
    sql: Option<String>,
    #[serde(default)]
    args: Map<String, Value>,
    #[serde(default)]
    analyze: bool,
}

impl<'de> Deserialize<'de> for Asked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(MapsOnly(deserializer))
    }
}

/// A named query's plan.
pub async fn get(
    State(shared): State<Arc<Shared>>,
    Name(name): Name,
    Extension(members): Extension<Members>,
) -> Result<Json<Value>, ApiError> {
    let replica = shared.replica()?.clone();
    let asked = QueryString::parse(members)?;
    let query = asked.prepare(&replica, name)?;
    plan(replica, query, asked.analyze).await
}

/// The plan of the query in the body.
pub async fn post(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let replica = shared.replica()?.clone();
    let asked: Asked = json_body(&headers, body, shared.config.limits.request_bytes_max).await?;
    check_args(asked.args.keys()).map_err(|(code, text)| ApiError::new(code, text))?;
    let source = QuerySource::one_of(asked.query, asked.sql)
        .ok_or_else(|| ApiError::new(ErrorCode::BadMessage, "give exactly one of query and sql"))?;
    let query = replica.prepare(&QueryRequest { source, args: asked.args }, &Map::new())?;
    plan(replica, query, asked.analyze).await
}

async fn plan(replica: Replica, query: PreparedQuery, analyze: bool) -> Result<Json<Value>, ApiError> {
    let plan = tokio::task::spawn_blocking(move || replica.explain(&query, analyze)).await;
    let plan =
        plan.map_err(|_| ApiError::new(ErrorCode::Internal, "explaining failed; see the server's log"))?;
    Ok(Json(json!({ "plan": plan? })))
}
