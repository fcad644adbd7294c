//! Parts of requests, with errors in the API's own form.

use super::error::ApiError;
use axum::{
    body::Body,
    extract::{FromRequestParts, Path, rejection::PathRejection},
    http::{
        HeaderMap, StatusCode,
        header::{ACCEPT, CONTENT_ENCODING},
        request::Parts,
    },
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use tidegate_wire::{codec::decode_json, protocol::ErrorCode};

/// Reads a JSON body of bounded size, whatever its content type says.
///
/// # Errors
/// `message_too_large`, or `bad_message` for what is encoded, not JSON, or not a `T`.
pub async fn json_body<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
) -> Result<T, ApiError> {
    if headers.get(CONTENT_ENCODING).is_some_and(|it| !it.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let error = ApiError::new(ErrorCode::BadMessage, "the body of this call may not be encoded");
        return Err(error.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let collected = Limited::new(body, bytes_max).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            let text = format!("the body may have {bytes_max} bytes (limits.request_bytes_max)");
            ApiError::new(ErrorCode::MessageTooLarge, text)
        } else {
            ApiError::new(ErrorCode::BadMessage, format!("the body ended early: {error}"))
        }
    })?;
    decode_json(&collected.to_bytes())
        .map_err(|error| ApiError::new(ErrorCode::BadMessage, error.to_string()))
}

/// The name in a path, `/v1/queries/{name}`.
pub struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let name: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        match name {
            Ok(Path(name)) => Ok(Self(name)),
            Err(rejection) => Err(ApiError::new(ErrorCode::BadMessage, rejection.body_text())),
        }
    }
}

/// The `args` parameter: a JSON object, or nothing.
///
/// # Errors
/// `bad_args` when it is something else.
pub fn arguments(text: Option<&str>) -> Result<Map<String, Json>, ApiError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Map::new()) };
    decode_json(text.as_bytes()).map_err(|error| {
        ApiError::new(
            ErrorCode::BadArgs,
            format!("args must be a JSON object of values by parameter: {error}"),
        )
    })
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// One object with all rows.
    Json,
    /// One row a line.
    Ndjson,
}

/// The format a client accepts and likes best; JSON when it says nothing.
///
/// # Errors
/// 406 when it accepts neither.
pub fn row_format(headers: &HeaderMap) -> Result<RowFormat, ApiError> {
    let mut best: Option<(f32, RowFormat)> = None;
    let mut said = false;
    for value in headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for range in value.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            said = true;
            let mut parts = range.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/x-ndjson" | "application/jsonl" => RowFormat::Ndjson,
                "application/json" | "application/*" | "*/*" => RowFormat::Json,
                _ => continue,
            };
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
            if quality > 0.0 && best.is_none_or(|(other, _)| quality > other) {
                best = Some((quality, format));
            }
        }
    }
    match best {
        Some((_, format)) => Ok(format),
        None if !said => Ok(RowFormat::Json),
        None => {
            Err(ApiError::new(ErrorCode::BadMessage, "rows come as application/json or application/x-ndjson")
                .with_status(StatusCode::NOT_ACCEPTABLE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use serde_json::json;

    #[test]
    fn the_format_follows_accept() {
        let format = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            row_format(&headers).map_err(|error| error.status.as_u16())
        };
        assert_eq!(row_format(&HeaderMap::new()), Ok(RowFormat::Json));
        assert_eq!(format("*/*"), Ok(RowFormat::Json));
        assert_eq!(format("application/x-ndjson"), Ok(RowFormat::Ndjson));
        assert_eq!(
            format("text/html, application/json;q=0.5, application/x-ndjson;q=0.9"),
            Ok(RowFormat::Ndjson)
        );
        assert_eq!(format("application/x-ndjson, */*;q=0.8"), Ok(RowFormat::Ndjson));
        assert_eq!(format("application/x-ndjson;q=0, application/json"), Ok(RowFormat::Json));
        assert_eq!(format("text/html"), Err(406));
    }

    #[test]
    fn args_are_an_object() {
        assert_eq!(arguments(None), Ok(Map::new()));
        assert_eq!(arguments(Some("")), Ok(Map::new()));
        assert_eq!(arguments(Some(r#"{"p":1}"#)), Ok(Map::from_iter([("p".to_owned(), json!(1))])));
        for text in ["[1]", "{", "1"] {
            assert_eq!(arguments(Some(text)).expect_err("refused").code, ErrorCode::BadArgs, "{text}");
        }
    }

    #[tokio::test]
    async fn bodies_are_bounded_and_must_be_json() {
        let plain = HeaderMap::new();
        let read = async |text: &'static str| {
            json_body::<Json>(&plain, Body::from(text), 8).await.map_err(|error| error.code)
        };
        assert_eq!(read("{\"a\":1}").await, Ok(json!({"a": 1})));
        assert_eq!(read("{\"a\":12345}").await, Err(ErrorCode::MessageTooLarge));
        assert_eq!(read("{").await, Err(ErrorCode::BadMessage));
        let bytes = Body::from(vec![b'"', 0xff, b'"']);
        assert_eq!(
            json_body::<Json>(&plain, bytes, 8).await.map_err(|error| error.code),
            Err(ErrorCode::BadMessage)
        );
        for (encoding, is_taken) in [("gzip", false), ("br", false), ("identity", true)] {
            let headers = HeaderMap::from_iter([(CONTENT_ENCODING, encoding.parse().expect("a value"))]);
            assert_eq!(json_body::<Json>(&headers, Body::from("1"), 8).await.is_ok(), is_taken, "{encoding}");
        }
    }
}
