//! The HTTP API, and the way in to WebSockets.

pub mod allowed_hosts;
pub mod assets;
pub mod changes;
pub mod commits;
pub mod connections;
pub mod encoding;
pub mod error;
pub mod explain;
pub mod idempotency;
pub mod lines;
pub mod listener;
pub mod named_query;
pub mod operations;
pub mod queries;
pub mod query_string;
pub mod refusal;
pub mod request;
pub mod rows;
pub mod source;
pub mod sql;

use crate::{socket, state::Shared};
use allowed_hosts::AllowedHosts;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{any, get, post},
};
use error::ApiError;
use std::sync::Arc;
use tidegate_wire::{model::Cv, protocol::ErrorCode};

/// Carries the commit version a read stands at, or a write led to.
const CV_HEADER: HeaderName = HeaderName::from_static("tidegate-cv");

/// All routes, for requests that address the server by a name of its own.
///
/// Every call says which members of a query string it takes. Those of pages are the pages' own, and those of `/v1/sync`
/// are for whatever stands between client and server: a browser can tell it nothing else.
pub fn router(shared: Arc<Shared>, hosts: AllowedHosts) -> Router {
    let takes = |members: &'static [&'static str]| from_fn_with_state(members, query_string::read);
    let within_a_time_limit = Router::new()
        .route("/healthz", get(operations::healthz))
        .route("/readyz", get(operations::readyz))
        .route("/metrics", get(operations::metrics))
        .route("/openapi.json", get(assets::openapi))
        .route("/v1/status", get(operations::status))
        .route("/v1/connections", get(connections::list))
        .route("/v1/check", get(operations::check).post(operations::check))
        .route("/v1/sql", post(sql::post))
        .route("/v1/explain", post(explain::post))
        .route("/v1/queries", get(queries::list))
        .route("/v1/queries/{name}", get(queries::read).put(queries::put).delete(queries::delete))
        .layer(takes(&[]))
        .route("/v1/queries/{name}/rows", get(rows::get).layer(takes(&["args"])))
        .route("/v1/queries/{name}/explain", get(explain::get).layer(takes(&["args", "analyze"])))
        .route("/", get(assets::index))
        .route("/console", get(assets::console))
        .route("/{file}", get(assets::file))
        .layer(from_fn_with_state(Arc::clone(&shared), time_limit));
    let streaming = Router::new()
        .route("/v1/sync", any(socket::upgrade))
        .route("/v1/commits", post(commits::post).layer(takes(&[])))
        .route("/v1/queries/{name}/changes", get(changes::get).layer(takes(&["args", "since"])));
    within_a_time_limit
        .merge(streaming)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&shared), common_headers))
        .layer(from_fn_with_state(Arc::new(hosts), allowed_hosts::refuse_others))
        .with_state(shared)
}

async fn not_found(request: Request) -> ApiError {
    ApiError::new(
        ErrorCode::BadMessage,
        format!("there is nothing at {}; see /openapi.json", request.uri().path()),
    )
    .with_status(StatusCode::NOT_FOUND)
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::new(
        ErrorCode::BadMessage,
        format!("{} does not take {}", request.uri().path(), request.method()),
    )
    .with_status(StatusCode::METHOD_NOT_ALLOWED)
}

async fn time_limit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let limit = shared.config.server.request_timeout_ms;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_elapsed) => ApiError::new(
            ErrorCode::NotReady,
            format!("the request took longer than {} ms (server.request_timeout_ms)", limit.as_millis()),
        )
        .into_response(),
    }
}

/// Adds the newest commit version where a handler gave none, and lets pages of any origin read.
///
/// Reading is open to pages of other origins, as there is no cookie or other ambient authority that such a page could
/// borrow. Writing is not ([`refuse_foreign_origin`]): a page a developer happens to visit must not be able to write to
/// the server on that developer's own machine.
async fn common_headers(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/v1/");
    let is_preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if is_preflight {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        response
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("tidegate-cv"));
    if is_api
        && !headers.contains_key(CV_HEADER)
        && let Ok(replica) = shared.replica()
    {
        headers.insert(CV_HEADER, HeaderValue::from(replica.cv().0));
    }
    response
}

/// Puts the commit version an answer stands at on it.
fn with_cv(cv: Cv, mut response: Response) -> Response {
    response.headers_mut().insert(CV_HEADER, HeaderValue::from(cv.0));
    response
}

/// Refuses a write that a page of another origin makes in a browser.
///
/// # Errors
/// `forbidden`.
fn refuse_foreign_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, rest)| rest);
    if authority.is_some() && authority == host {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::Forbidden,
        "pages of another origin may read but not write over HTTP; write through a WebSocket or your own backend",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_server_itself_may_write() {
        let check = |origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:7300"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            refuse_foreign_origin(&headers).is_ok()
        };
        assert!(check(None), "not a browser");
        assert!(check(Some("http://127.0.0.1:7300")));
        assert!(!check(Some("http://evil.example")));
        assert!(!check(Some("null")));
    }
}
