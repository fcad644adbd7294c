//! `POST /v1/sql`: statements in SQL, answered once.

use super::{error::ApiError, refuse_foreign_origin, request::json_body, with_cv};
use crate::{codes::check_args, state::Shared};
use axum::{
    Json,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Instant};
use tidegate_replica::handle::{StatementAnswer, StatementsError};
use tidegate_wire::protocol::ErrorCode;

/// The body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statements {
    sql: String,
    #[serde(default)]
    args: Map<String, Value>,
}

/// See the module's description.
pub async fn post(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    refuse_foreign_origin(&headers)?;
    let replica = shared.replica()?.clone();
    let Statements { sql, args } = json_body(&headers, body, shared.config.limits.request_bytes_max).await?;
    check_args(args.keys()).map_err(|(code, text)| ApiError::new(code, text))?;
    let rows_max = shared.config.limits.sql_rows_max;
    let arrived_at = Instant::now();
    let answer = tokio::task::spawn_blocking(move || {
        let answer = replica.sql(&sql, &args, &Map::new(), rows_max);
        let (Ok(done) | Err(StatementsError { before: done, .. })) = &answer;
        // At once: what was written is on its way to clients.
        if done.results.iter().any(|result| result.affected.is_some()) {
            shared.hub.arrivals.note(done.cv, 1, arrived_at);
        }
        answer
    });
    match answer.await {
        Ok(Ok(answer)) => {
            let body = json!({"cv": answer.cv, "results": results(answer.results)});
            Ok(with_cv(answer.cv, Json(body).into_response()))
        }
        Ok(Err(StatementsError { error, before })) => {
            let refused = ApiError::from(error);
            let stands = !before.results.is_empty();
            Err(if stands { refused.with_results(before.cv, results(before.results)) } else { refused })
        }
        Err(_) => Err(ApiError::new(ErrorCode::Internal, "answering failed; see the server's log")),
    }
}

/// What statements answered, each as an object.
fn results(answers: Vec<StatementAnswer>) -> Vec<Value> {
    let results = answers.into_iter().map(|StatementAnswer { command, rows, affected }| {
        let mut result = Map::new();
        result.insert("command".to_owned(), json!(command));
        if let Some(table) = rows {
            let columns = table.columns.iter().map(|(name, ty)| json!({"name": name, "type": ty}));
            result.insert("columns".to_owned(), columns.collect());
            result.insert("rows".to_owned(), json!(table.rows));
        }
        if let Some(affected) = affected {
            result.insert("affected".to_owned(), json!(affected));
        }
        Value::Object(result)
    });
    results.collect()
}
