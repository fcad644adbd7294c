//! `GET /v1/queries/{name}/rows`: a named query's current result.

use super::{
    error::ApiError,
    request::{Name, Parameters, RowFormat, arguments, row_format},
    with_cv,
};
use crate::{codes::check_request, state::Shared};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use serde::Deserialize;
use serde_json::{Map, json};
use std::sync::Arc;
use tidegate_replica::handle::{PreparedQuery, QueryRequest, QuerySource, Replica, Rows};
use tidegate_wire::protocol::ErrorCode;

/// The query string.
#[derive(Debug, Deserialize)]
pub struct Query {
    args: Option<String>,
}

/// See the module's description.
pub async fn get(
    State(shared): State<Arc<Shared>>,
    Name(name): Name,
    Parameters(parameters): Parameters<Query>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let format = row_format(&headers)?;
    let replica = shared.replica()?.clone();
    let query = prepare(&replica, name, parameters.args.as_deref())?;
    let answer = tokio::task::spawn_blocking(move || replica.rows(&query).map(|rows| write(format, &rows)));
    match answer.await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(ApiError::new(ErrorCode::Internal, "computing the rows failed; see the server's log")),
    }
}

/// A named query with arguments as they stand in a query string.
pub(super) fn prepare(
    replica: &Replica,
    name: String,
    args: Option<&str>,
) -> Result<PreparedQuery, ApiError> {
    let request = QueryRequest { source: QuerySource::Name(name), args: arguments(args)? };
    check_request(&request.source, request.args.keys()).map_err(|(code, text)| ApiError::new(code, text))?;
    Ok(replica.prepare(&request, &Map::new())?)
}

fn write(format: RowFormat, rows: &Rows) -> Response {
    let response = match format {
        RowFormat::Json => Json(json!({ "cv": rows.cv, "rows": rows.rows })).into_response(),
        RowFormat::Ndjson => {
            let mut text = String::new();
            for row in &rows.rows {
                text.push_str(&row.to_string());
                text.push('\n');
            }
            ([(CONTENT_TYPE, "application/x-ndjson")], text).into_response()
        }
    };
    with_cv(rows.cv, response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use tidegate_wire::model::Cv;

    #[tokio::test]
    async fn rows_are_written_in_both_formats() {
        let rows = Rows { cv: Cv(4), rows: vec![json!({"b": 1, "a": "x\ny"}), json!({"b": 2, "a": null})] };
        for (format, content_type, body) in [
            (RowFormat::Json, "application/json", r#"{"cv":4,"rows":[{"a":"x\ny","b":1},{"a":null,"b":2}]}"#),
            (RowFormat::Ndjson, "application/x-ndjson", "{\"a\":\"x\\ny\",\"b\":1}\n{\"a\":null,\"b\":2}\n"),
        ] {
            let response = write(format, &rows);
            assert_eq!(response.headers()["tidegate-cv"], "4");
            assert_eq!(response.headers()[CONTENT_TYPE], content_type);
            let bytes = response.into_body().collect().await.expect("a body").to_bytes();
            assert_eq!(std::str::from_utf8(&bytes).expect("UTF-8"), body);
        }
    }
}
