//! Error answers: `{"error":{"code","message"}}` with a fitting status.

use crate::codes;
use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};
use tidegate_replica::query::QueryError;
use tidegate_wire::{model::Cv, protocol::ErrorCode};

/// An error answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// The protocol's code.
    pub code: ErrorCode,
    /// What is at fault and what to do.
    pub message: String,
    /// The status; by default the one that goes with the code.
    pub status: StatusCode,
    /// Further members of `error`.
    pub details: Map<String, Value>,
    /// The commit version that the answer stands at, when it is not the newest.
    pub cv: Option<Cv>,
}

impl ApiError {
    /// An error with the status of its code.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(code.http_status()).expect("codes have valid statuses");
        Self { code, message: message.into(), status, details: Map::new(), cv: None }
    }

    /// With another status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// A refused body of commits: how many were applied, the last one's version, and the line at fault.
    #[must_use]
    pub fn with_progress(mut self, applied: u64, cv: Cv, line: u64) -> Self {
        self.details.insert("applied".to_owned(), applied.into());
        self.details.insert("cv".to_owned(), cv.0.into());
        self.details.insert("line".to_owned(), line.into());
        self.cv = Some(cv);
        self
    }

    /// A statement that failed behind others: what those answered, which stands, and the commit version they led to.
    #[must_use]
    pub fn with_results(mut self, cv: Cv, results: Vec<Value>) -> Self {
        self.details.insert("cv".to_owned(), cv.0.into());
        self.details.insert("results".to_owned(), results.into());
        self.cv = Some(cv);
        self
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.code.name().into());
        error.insert("message".to_owned(), self.message.as_str().into());
        error.extend(self.details.clone());
        json!({ "error": error })
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        Self::new(codes::query_error(error.kind), error.message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert("retry-after", axum::http::HeaderValue::from_static("1"));
        }
        match self.cv {
            Some(cv) => super::with_cv(cv, response),
            None => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_code_and_message_and_details() {
        let error = ApiError::new(ErrorCode::Conflict, "row exists").with_progress(3, Cv(9), 5);
        assert_eq!(error.status, StatusCode::CONFLICT);
        assert_eq!(
            error.body(),
            json!({"error": {"code": "conflict", "message": "row exists", "applied": 3, "cv": 9, "line": 5}})
        );
    }

    #[test]
    fn every_code_has_a_valid_error_status() {
        for code in ErrorCode::ALL {
            let status = ApiError::new(*code, "").status;
            assert!(status.is_client_error() || status.is_server_error(), "{code}");
        }
    }
}
