//! `/v1/queries`: named queries.

use super::{
    error::ApiError,
    refuse_foreign_origin,
    request::{Name, json_body},
};
use crate::{codes::check_args, state::Shared};
use axum::{Json, body::Body, extract::State, http::HeaderMap};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tidegate_replica::handle::{LiveQuery, NamedQuery, QuerySource, QueryStatus};
use tidegate_wire::{maps_only::MapsOnly, model::ColumnType, protocol::ErrorCode};

/// Longest name, bytes.
const NAME_BYTES_MAX: usize = 256;

/// The body of a `PUT`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Definition {
    query: Option<Value>,
    sql: Option<String>,
    #[serde(default)]
    args: BTreeMap<String, String>,
    #[serde(default)]
    pin: bool,
    idle_ttl_ms: Option<u64>,
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(MapsOnly(deserializer))
    }
}

/// Most live shapes that are listed; `live_total` tells how many there are.
const LIVE_LISTED_MAX: usize = 100;

/// All named queries, and the shapes that are live, named or not.
pub async fn list(State(shared): State<Arc<Shared>>) -> Result<Json<Value>, ApiError> {
    let replica = shared.replica()?;
    let queries: Vec<_> = replica.queries().iter().map(|(query, status)| describe(query, status)).collect();
    let (live, live_total) = replica.live_queries(LIVE_LISTED_MAX);
    let live: Vec<_> = live.iter().map(describe_live).collect();
    Ok(Json(json!({ "queries": queries, "live": live, "live_total": live_total })))
}

/// One named query.
pub async fn read(State(shared): State<Arc<Shared>>, Name(name): Name) -> Result<Json<Value>, ApiError> {
    let replica = shared.replica()?;
    let (query, status) = replica.query(&name).ok_or_else(|| replica.unknown_query(&name))?;
    Ok(Json(describe(&query, &status)))
}

/// Registers or replaces a named query.
pub async fn put(
    State(shared): State<Arc<Shared>>,
    Name(name): Name,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    refuse_foreign_origin(&headers)?;
    let replica = shared.replica()?;
    let definition: Definition = json_body(&headers, body, shared.config.limits.request_bytes_max).await?;
    let query = named(name, definition)?;
    let name = query.name.clone();
    let fault = replica.put_query(query).await?;
    let (query, mut status) = replica.query(&name).ok_or_else(|| replica.unknown_query(&name))?;
    if let Some(fault) = fault {
        status.fault = Some(fault.message);
    }
    Ok(Json(describe(&query, &status)))
}

/// Removes a named query.
pub async fn delete(
    State(shared): State<Arc<Shared>>,
    Name(name): Name,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    refuse_foreign_origin(&headers)?;
    let replica = shared.replica()?;
    if replica.delete_query(&name).await {
        return Ok(Json(json!({ "name": name, "deleted": true })));
    }
    if replica.snapshot().view(&name).is_some() {
        let message = format!("{name} is a materialized view; `drop materialized view {name}` ends it");
        return Err(ApiError::new(ErrorCode::Conflict, message));
    }
    Err(replica.unknown_query(&name).into())
}

fn named(name: String, definition: Definition) -> Result<NamedQuery, ApiError> {
    let refuse = |code, text: String| Err(ApiError::new(code, text));
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
        return refuse(
            ErrorCode::BadMessage,
            format!("a name has 1 to {NAME_BYTES_MAX} bytes, none of them 0"),
        );
    }
    let Some(source) = QuerySource::one_of(definition.query, definition.sql) else {
        return refuse(ErrorCode::BadMessage, "give exactly one of query and sql".to_owned());
    };
    check_args(definition.args.keys()).map_err(|(code, text)| ApiError::new(code, text))?;
    let mut args = BTreeMap::new();
    for (parameter, ty) in definition.args {
        match ColumnType::from_name(&ty) {
            Some(ty) => args.insert(parameter, ty),
            None => {
                return refuse(
                    ErrorCode::BadArgs,
                    format!("parameter {parameter} has the unknown type {ty}"),
                );
            }
        };
    }
    Ok(NamedQuery { name, source, args, pin: definition.pin, idle_ttl_ms: definition.idle_ttl_ms })
}

fn describe(query: &NamedQuery, status: &QueryStatus) -> Value {
    let mut out = json!({
        "name": query.name,
        "shape": (status.query != 0).then_some(status.query),
        "args": query.args,
        "pin": query.pin,
        "idle_ttl_ms": query.idle_ttl_ms,
        "rows": status.rows,
        "bindings": status.bindings,
        "subscribers": status.subscribers,
        "last_advance_us": status.last_advance_us,
        "fault": status.fault,
    });
    match &query.source {
        QuerySource::Query(query) => out["query"] = query.clone(),
        QuerySource::Sql(sql) => out["sql"] = sql.as_str().into(),
        QuerySource::Name(_) => {}
    }
    out
}

fn describe_live(live: &LiveQuery) -> Value {
    json!({
        "shape": live.status.query,
        "plan": live.plan,
        "worker": live.worker,
        "rows": live.status.rows,
        "bindings": live.status.bindings,
        "subscribers": live.status.subscribers,
        "last_advance_us": live.status.last_advance_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: Value) -> Result<NamedQuery, ErrorCode> {
        let definition = serde_json::from_value(body).map_err(|_| ErrorCode::BadMessage)?;
        named("q".to_owned(), definition).map_err(|error| error.code)
    }

    #[test]
    fn a_definition_is_described_as_it_was_given() {
        let query = parse(json!({"query": {"table": "t"}, "args": {"p": "bigint"}, "idle_ttl_ms": 5}))
            .expect("taken");
        let described = describe(&query, &QueryStatus { rows: 3, ..QueryStatus::default() });
        assert_eq!(described["query"], json!({"table": "t"}));
        assert_eq!(described["args"], json!({"p": "int8"}));
        assert_eq!((&described["rows"], &described["idle_ttl_ms"]), (&json!(3), &json!(5)));
    }

    #[test]
    fn wrong_definitions_are_refused() {
        for (body, code) in [
            (json!({}), ErrorCode::BadMessage),
            (json!([{"table": "t"}]), ErrorCode::BadMessage),
            (json!({"query": {}, "sql": "x"}), ErrorCode::BadMessage),
            (json!({"query": {}, "pinned": true}), ErrorCode::BadMessage),
            (json!({"query": {}, "args": {"p": "money"}}), ErrorCode::BadArgs),
            (json!({"query": {}, "args": {"auth.sub": "text"}}), ErrorCode::Forbidden),
        ] {
            assert_eq!(parse(body.clone()), Err(code), "{body}");
        }
    }
}
