//! `GET /v1/queries/{name}/rows`: a named query's current result.

use super::{
    error::ApiError,
    named_query::QueryString,
    query_string::Members,
    request::{Name, RowFormat, row_format},
    with_cv,
};
use crate::state::Shared;
use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use serde_json::json;
use std::sync::Arc;
use tidegate_replica::handle::Rows;
use tidegate_wire::protocol::ErrorCode;

/// See the module's description.
pub async fn get(
    State(shared): State<Arc<Shared>>,
    Name(name): Name,
    Extension(members): Extension<Members>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let format = row_format(&headers)?;
    let replica = shared.replica()?.clone();
    let query = QueryString::parse(members)?.prepare(&replica, name)?;
    let answer = tokio::task::spawn_blocking(move || replica.rows(&query).map(|rows| write(format, &rows)));
    match answer.await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(ApiError::new(ErrorCode::Internal, "computing the rows failed; see the server's log")),
    }
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
            (RowFormat::Json, "application/json", r#"{"cv":4,"rows":[{"b":1,"a":"x\ny"},{"b":2,"a":null}]}"#),
            (RowFormat::Ndjson, "application/x-ndjson", "{\"b\":1,\"a\":\"x\\ny\"}\n{\"b\":2,\"a\":null}\n"),
        ] {
            let response = write(format, &rows);
            assert_eq!(response.headers()["tidegate-cv"], "4");
            assert_eq!(response.headers()[CONTENT_TYPE], content_type);
            let bytes = response.into_body().collect().await.expect("a body").to_bytes();
            assert_eq!(std::str::from_utf8(&bytes).expect("UTF-8"), body);
        }
    }
}
