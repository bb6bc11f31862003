//! Errors of the Connect protocol: a code, its HTTP status, and a JSON body `{"code","message"}`.
//!
//! The codes and statuses are those of the protocol's specification (connectrpc.com, "Error codes").
//! Only the codes that a query can end with are here. Messages may quote what the client sent: they
//! leave as JSON text, never as HTML.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use emberscope_store::StoreError;

/// What went wrong, in the protocol's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The request is wrong.
    InvalidArgument,
    /// Who asks did not say who they are, or not rightly.
    Unauthenticated,
    /// Who asks may not do that.
    PermissionDenied,
    /// This server does not do that.
    Unimplemented,
    /// The answer would be larger than the limit.
    ResourceExhausted,
    /// The answer took longer than the client, or the server, allows.
    DeadlineExceeded,
    /// Something failed here.
    Internal,
}

impl Code {
    /// The code's name in the body.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::Unauthenticated => "unauthenticated",
            Self::PermissionDenied => "permission_denied",
            Self::Unimplemented => "unimplemented",
            Self::ResourceExhausted => "resource_exhausted",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Internal => "internal",
        }
    }
    /// The HTTP status that goes with it.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// An error of a call: a code and a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", code.name())]
pub struct CallError {
    /// What went wrong, in the protocol's words.
    pub code: Code,
    /// What is wrong, and what to do, in a sentence.
    pub message: String,
}

impl CallError {
    /// An error with a code and a sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
    /// The error of a request that is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }
    /// The error of a request for what this server does not do.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, message)
    }
}

impl From<StoreError> for CallError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::TooLarge { .. } | StoreError::TooMuch { .. } => {
                Self::new(Code::ResourceExhausted, error.to_string())
            }
            StoreError::TooLong { .. } => Self::new(Code::DeadlineExceeded, error.to_string()),
            StoreError::WithoutStacks | StoreError::OfWhichApp { .. } => {
                Self::new(Code::InvalidArgument, error.to_string())
            }
            StoreError::Unreadable { .. } | StoreError::Unwanted | StoreError::Away { .. } => {
                Self::new(Code::Internal, error.to_string())
            }
        }
    }
}

impl IntoResponse for CallError {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "code": self.code.name(), "message": self.message });
        let json = HeaderValue::from_static("application/json");
        let mut response =
            (self.code.status(), [(header::CONTENT_TYPE, json)], body.to_string()).into_response();
        if self.code == Code::Unauthenticated {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// What the gate before the router refused, in the protocol's words; None: the path is no call's.
pub fn refused(path: &str, status: StatusCode, message: &str) -> Option<CallError> {
    // `.../package.v1.NameService/Method`
    let service = path.rsplit('/').nth(1)?;
    if !(service.contains('.') && service.ends_with("Service")) {
        return None;
    }
    let code = match status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::PAYLOAD_TOO_LARGE => Code::ResourceExhausted,
        status if status.is_client_error() => Code::InvalidArgument,
        _ => Code::Internal,
    };
    Some(CallError::new(code, message))
}
