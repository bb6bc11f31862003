//! Connect's unary transport: one POST in, one answer out, in raw protobuf or JSON.
//!
//! In: `Content-Type: application/proto` or `application/json`, identity or gzip, at most
//! [`MAX_REQUEST`] bytes once unpacked. Out: the same content type, gzip when the client takes it and
//! it pays. `Connect-Timeout-Ms` is kept, within [`MAX_TIME`]. Errors are [`CallError`]s. Streaming,
//! gRPC and gRPC-Web are not spoken; Grafana does not need them.

use super::error::{CallError, Code};
use crate::unread::{self, Held, Unread};
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use emberscope_model::{Waits, sampling_error};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Serialize, de::DeserializeOwned};
use std::io::{Read, Write};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Largest request, packed or unpacked. The largest that Grafana sends is a selector of a few
/// kilobytes.
pub const MAX_REQUEST: usize = 1 << 20;
/// Longest time a call may take, whatever the client allows: Grafana's own limit is 30 s.
pub const MAX_TIME: Duration = Duration::from_secs(60);
/// Answers smaller than this are not packed.
const GZIP_FROM: usize = 1024;
/// Calls worked on at once, most of which make a call tree; more wait for their turn, within their time.
const MAX_PARALLEL: usize = 2;

static TURNS: Semaphore = Semaphore::const_new(MAX_PARALLEL);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Proto,
    Json,
}

impl Codec {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        match value.split(';').next()?.trim().to_ascii_lowercase().as_str() {
            "application/proto" => Some(Self::Proto),
            "application/json" => Some(Self::Json),
            _ => None,
        }
    }
    const fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Proto => "application/proto",
            Self::Json => "application/json",
        })
    }
    fn decode<T: prost::Message + Default + DeserializeOwned>(self, body: &[u8]) -> Result<T, CallError> {
        match self {
            Self::Proto => T::decode(body)
                .map_err(|e| CallError::invalid(format!("the body is not the protobuf message: {e}"))),
            Self::Json if body.is_empty() => Ok(T::default()),
            Self::Json => serde_json::from_slice(body)
                .map_err(|e| CallError::invalid(format!("the body is not the JSON message: {e}"))),
        }
    }
    fn encode<T: prost::Message + Serialize>(self, message: &T) -> Result<Vec<u8>, CallError> {
        match self {
            Self::Proto => Ok(message.encode_to_vec()),
            Self::Json => {
                serde_json::to_vec(message).map_err(|e| CallError::new(Code::Internal, e.to_string()))
            }
        }
    }
}

/// Answers with an error. The body is read first: a server that answers and closes before it has
/// leaves some clients with a broken connection instead of the answer.
pub async fn refuse(request: Request, error: CallError) -> Response {
    // What is wrong with the body does not matter any more.
    let _ = tokio::time::timeout(MAX_TIME, axum::body::to_bytes(request.into_body(), MAX_REQUEST)).await;
    error.into_response()
}

/// An answer, and the samples it rests on, which its headers tell: the messages have no place for them.
pub struct Sampled<Res> {
    /// The message that is the answer.
    pub message: Res,
    /// How many samples the answer rests on; None where it is not about samples.
    pub samples: Option<u64>,
}

/// Answers one call with `work`, which runs on a thread of its own.
pub async fn unary<Req, Res, F>(request: Request, work: F) -> Response
where
    Req: prost::Message + Default + DeserializeOwned + Send + 'static,
    Res: prost::Message + Serialize + Send + 'static,
    F: FnOnce(Req) -> Result<Res, CallError> + Send + 'static,
{
    sampled(request, |r| work(r).map(|message| Sampled { message, samples: None })).await
}

/// As [`unary`], of an answer about samples.
pub async fn sampled<Req, Res, F>(request: Request, work: F) -> Response
where
    Req: prost::Message + Default + DeserializeOwned + Send + 'static,
    Res: prost::Message + Serialize + Send + 'static,
    F: FnOnce(Req) -> Result<Sampled<Res>, CallError> + Send + 'static,
{
    let (parts, body) = request.into_parts();
    let Some(codec) = Codec::of(&parts.headers) else {
        let accept = [("accept-post", "application/proto, application/json")];
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, accept).into_response();
    };
    let gzip = accepts_gzip(&parts.headers);
    match answer(&parts.headers, body, codec, work).await {
        Ok(Done { body, samples, held }) => {
            let mut response = pack(codec, body, gzip, held);
            response.headers_mut().extend(samples.map(basis).unwrap_or_default());
            response
        }
        Err(error) => error.into_response(),
    }
}

/// A call's answer, and its part of the limit for answers that are not read yet.
struct Done {
    body: Vec<u8>,
    samples: Option<u64>,
    held: Held,
}

async fn answer<Req, Res, F>(
    headers: &HeaderMap,
    body: Body,
    codec: Codec,
    work: F,
) -> Result<Done, CallError>
where
    Req: prost::Message + Default + DeserializeOwned + Send + 'static,
    Res: prost::Message + Serialize + Send + 'static,
    F: FnOnce(Req) -> Result<Sampled<Res>, CallError> + Send + 'static,
{
    check_version(headers)?;
    let time = time_limit(headers)?;
    let late = || CallError::new(Code::DeadlineExceeded, format!("no answer within {} ms", time.as_millis()));
    // A request that promises too much is refused unread.
    if body.size_hint().lower() > MAX_REQUEST as u64 {
        return Err(too_large());
    }
    let run = async move {
        let body = axum::body::to_bytes(body, MAX_REQUEST).await.map_err(|_| too_large())?;
        let body = unpack(headers, body)?;
        let request = codec.decode::<Req>(&body)?;
        let work = move || {
            let Sampled { message, samples } = work(request)?;
            Ok((codec.encode(&message)?, samples))
        };
        let ((body, samples), _turn) = in_turn(work).await?;
        let held = Unread::shared().hold(body.len()).await;
        Ok(Done { body, samples, held })
    };
    if time.is_zero() {
        return Err(late());
    }
    tokio::time::timeout(time, run).await.map_err(|_| late())?
}

/// Runs `work` on a thread of its own when its turn has come. The turn is kept until it ends, though the client may
/// have left meanwhile; it is told so then, and ends at the next block of the store.
async fn in_turn<T, F>(work: F) -> Result<(T, SemaphorePermit<'static>), CallError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, CallError> + Send + 'static,
{
    let turn = TURNS.acquire().await.map_err(|e| CallError::new(Code::Internal, e.to_string()))?;
    let waits = Waits::default();
    let wanted = waits.wanted();
    tokio::task::spawn_blocking(move || wanted.run(work).map(|done| (done, turn)))
        .await
        .unwrap_or_else(|e| Err(CallError::new(Code::Internal, format!("the query failed: {e}"))))
}

/// Answers a `GET` in plain JSON, with the same limits and errors as a call.
pub async fn plain_json<F>(work: F) -> Response
where
    F: FnOnce() -> Result<serde_json::Value, CallError> + Send + 'static,
{
    let run = async {
        let (body, _turn) = in_turn(move || work().map(|value| value.to_string().into_bytes())).await?;
        let held = Unread::shared().hold(body.len()).await;
        Ok((body, held))
    };
    let late =
        || CallError::new(Code::DeadlineExceeded, format!("no answer within {} s", MAX_TIME.as_secs()));
    match tokio::time::timeout(MAX_TIME, run).await.map_err(|_| late()).flatten() {
        Ok((body, held)) => pack(Codec::Json, body, false, held),
        Err(error) => error.into_response(),
    }
}

/// How many samples, and how sure a sum over them is.
fn basis(samples: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-emberscope-samples", HeaderValue::from(samples));
    let error = sampling_error(samples).map(|error| HeaderValue::try_from(format!("{error:.4}")));
    if let Some(Ok(error)) = error {
        headers.insert("x-emberscope-sampling-error", error);
    }
    headers
}

fn check_version(headers: &HeaderMap) -> Result<(), CallError> {
    match headers.get("connect-protocol-version") {
        None => Ok(()),
        Some(v) if v == "1" => Ok(()),
        Some(v) => Err(CallError::invalid(format!("Connect-Protocol-Version is {v:?}, must be \"1\""))),
    }
}

fn time_limit(headers: &HeaderMap) -> Result<Duration, CallError> {
    let Some(value) = headers.get("connect-timeout-ms") else { return Ok(MAX_TIME) };
    // The specification allows at most ten digits.
    let ms = value.to_str().ok().filter(|v| v.len() <= 10).and_then(|v| v.parse::<u64>().ok());
    let ms = ms.ok_or_else(|| CallError::invalid("Connect-Timeout-Ms must be at most ten digits"))?;
    Ok(Duration::from_millis(ms).min(MAX_TIME))
}

fn too_large() -> CallError {
    CallError::new(Code::ResourceExhausted, format!("the request is larger than {MAX_REQUEST} bytes"))
}

fn unpack(headers: &HeaderMap, body: Bytes) -> Result<Bytes, CallError> {
    let Some(encoding) = headers.get(header::CONTENT_ENCODING) else { return Ok(body) };
    match encoding.to_str().map(str::to_ascii_lowercase).as_deref() {
        Ok("identity" | "") => Ok(body),
        Ok("gzip") => {
            let mut out = Vec::new();
            GzDecoder::new(body.as_ref())
                .take(MAX_REQUEST as u64 + 1)
                .read_to_end(&mut out)
                .map_err(|e| CallError::invalid(format!("the body is not gzip: {e}")))?;
            if out.len() > MAX_REQUEST { Err(too_large()) } else { Ok(out.into()) }
        }
        _ => Err(CallError::unimplemented(format!(
            "Content-Encoding {encoding:?} is not known: the server takes gzip and identity"
        ))),
    }
}

/// `gzip` is listed, and not with `q=0`.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .any(|item| {
            let mut parts = item.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused = parts.any(|p| matches!(p, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
            name.eq_ignore_ascii_case("gzip") && !refused
        })
}

fn pack(codec: Codec, body: Vec<u8>, gzip: bool, held: Held) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, codec.content_type());
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if gzip && body.len() >= GZIP_FROM {
        let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
        // Writing to a Vec does not fail; if it did, the plain body is as good an answer.
        if encoder.write_all(&body).is_ok()
            && let Ok(packed) = encoder.finish()
        {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            return (headers, unread::body(packed.into(), held)).into_response();
        }
    }
    (headers, unread::body(body.into(), held)).into_response()
}
