//! The pages the server shows, built into the binary.

use super::{error::ApiError, request::Name};
use crate::state::{Page, Shared};
use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use std::sync::Arc;
use tidegate_wire::protocol::ErrorCode;

macro_rules! assets {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$( ($name, include_bytes!(concat!("../../assets/", $folder, "/", $name)).as_slice()) ),*]
    };
}

/// File names with their contents.
type Files = &'static [(&'static str, &'static [u8])];

const CONSOLE: Files = assets!("console": "index.html", "console.css", "console.js");
const BOARD: Files = assets!("demo": "index.html", "demo.css", "demo.js");
const OPENAPI: &[u8] = include_bytes!("../../assets/openapi.json");

fn files(page: Page) -> Files {
    match page {
        Page::Console => CONSOLE,
        Page::Board => BOARD,
    }
}

/// `GET /console`: the console, whatever page `/` shows.
pub async fn console() -> Result<Response, ApiError> {
    serve(CONSOLE, "index.html")
}

/// `GET /`.
pub async fn index(State(shared): State<Arc<Shared>>) -> Result<Response, ApiError> {
    serve(files(shared.page), "index.html")
}

/// The files beside it, and the console's.
pub async fn file(State(shared): State<Arc<Shared>>, Name(name): Name) -> Result<Response, ApiError> {
    let page = files(shared.page);
    let is_the_pages = page.iter().any(|(known, _)| *known == name);
    serve(if is_the_pages { page } else { CONSOLE }, &name)
}

/// The API's description.
pub async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

fn serve(files: Files, name: &str) -> Result<Response, ApiError> {
    let (_, content) = files.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        ApiError::new(ErrorCode::BadMessage, format!("there is nothing at /{name}; see /openapi.json"))
            .with_status(StatusCode::NOT_FOUND)
    })?;
    let headers = [(header::CONTENT_TYPE, content_type(name)), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, *content).into_response())
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_fitting_types() {
        for page in [Page::Console, Page::Board] {
            for (name, _) in files(page) {
                let response = serve(files(page), name).expect("there");
                assert_ne!(response.headers()[header::CONTENT_TYPE], "application/octet-stream", "{name}");
            }
        }
        assert_eq!(serve(CONSOLE, "../Cargo.toml").expect_err("not there").status, StatusCode::NOT_FOUND);
    }

    #[test]
    fn the_description_names_every_route() {
        let description: serde_json::Value = serde_json::from_slice(OPENAPI).expect("JSON");
        let paths = description["paths"].as_object().expect("paths");
        for path in [
            "/healthz",
            "/readyz",
            "/metrics",
            "/openapi.json",
            "/v1/status",
            "/v1/connections",
            "/v1/check",
            "/v1/commits",
            "/v1/queries",
            "/v1/queries/{name}",
            "/v1/queries/{name}/rows",
            "/v1/queries/{name}/explain",
            "/v1/queries/{name}/changes",
            "/v1/sync",
            "/",
            "/console",
        ] {
            assert!(paths.contains_key(path), "{path}");
        }
    }
}
