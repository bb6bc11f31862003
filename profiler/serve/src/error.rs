//! What the HTTP API answers when it cannot answer: `{"error":{"code","message","parameter"}}`.
//!
//! In: what went wrong, as the handlers know it. Out: a response with the status, a stable code, one
//! sentence with the mend, and the parameter at fault (null when there is none). `choices` names what
//! there is instead, where that helps. Text from outside is cut by [`shown`] and escaped by the JSON
//! writer. [`always_json`] gives the same shape to errors that the frameworks make by themselves.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use emberscope_api::{Error, ErrorBody};
use emberscope_store::StoreError;
use serde_json::json;

/// An error of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status of the response.
    pub status: StatusCode,
    /// Stable name of what is wrong, for programs: `unknown_app`.
    pub code: &'static str,
    /// One sentence for people, with the mend.
    pub message: String,
    /// The parameter at fault; None: there is none.
    pub parameter: Option<String>,
    /// What could be given instead.
    pub choices: Vec<String>,
}

impl ApiError {
    /// An error of no parameter.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), parameter: None, choices: Vec::new() }
    }
    /// 400 `bad_parameter`: a parameter has a value that it cannot have.
    pub fn bad(parameter: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, "bad_parameter", message);
        Self { parameter: Some(parameter.into()), ..error }
    }
    /// 500 `internal`: a fault of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
    /// The error, naming the parameter at fault.
    pub fn of_parameter(self, parameter: impl Into<String>) -> Self {
        Self { parameter: Some(parameter.into()), ..self }
    }
    /// The error, naming what could be given instead.
    pub fn with_choices(self, choices: Vec<String>) -> Self {
        Self { choices, ..self }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let code = match error {
            StoreError::TooLarge { .. } | StoreError::TooMuch { .. } => "answer_too_large",
            StoreError::TooLong { .. } => {
                return Self::new(StatusCode::GATEWAY_TIMEOUT, "query_timeout", error.to_string());
            }
            StoreError::WithoutStacks => return Self::bad("operator", error.to_string()),
            StoreError::OfWhichApp { key } => return Self::bad(key.name(), error.to_string()),
            StoreError::Unreadable { .. } | StoreError::Unwanted => {
                return Self::internal(error.to_string());
            }
            StoreError::Away { says } => {
                return Self::new(StatusCode::SERVICE_UNAVAILABLE, "archive_unavailable", says);
            }
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, code, message, parameter, choices } = self;
        let error = ErrorBody { code: code.into(), message, parameter, choices };
        let body = json!(Error { error }).to_string();
        let mut response = (status, Body::from(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
            }
            _ => {}
        }
        response
    }
}

/// An error response that is not JSON gets the shape above.
pub fn always_json(response: Response) -> Response {
    let status = response.status();
    let json = response.headers().get(header::CONTENT_TYPE).is_some_and(|v| v == "application/json");
    if json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let code = match status {
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        s if s.is_client_error() => "bad_request",
        _ => "internal",
    };
    let reason = status.canonical_reason().unwrap_or("the request was refused");
    let mut out = ApiError::new(status, code, reason).into_response();
    for (name, value) in response.headers() {
        // `Allow`, `Accept-Post` and their like still hold; what described the old body does not.
        if ![header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CONTENT_ENCODING].contains(name) {
            out.headers_mut().insert(name.clone(), value.clone());
        }
    }
    out
}

/// Text from outside for use in a message: control characters escaped, at most 80 characters.
pub fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_odd_text_is_cut_and_escaped() {
        assert_eq!(shown("a\nb\u{1b}"), "a\\nb\\u{1b}");
        assert_eq!(shown(&"x".repeat(200)).chars().count(), 81);
        assert_eq!(shown(&"x".repeat(80)).chars().count(), 80);
    }

    #[test]
    fn foreign_errors_get_the_shape_and_keep_their_headers() {
        let mut response = StatusCode::METHOD_NOT_ALLOWED.into_response();
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET,HEAD"));
        let out = always_json(response);
        assert_eq!(out.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(out.headers()[header::ALLOW], "GET,HEAD");
        assert_eq!(out.headers()[header::CONTENT_TYPE], "application/json");
    }
}
