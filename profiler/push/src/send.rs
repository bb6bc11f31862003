//! One request to the server: Connect's unary call, or OTLP's, over HTTP/1.1.
//!
//! In: an encoded request. Out: whether it was taken, will never be, or is to be tried again. Limits: [`TIMEOUT`], and
//! what is read of an answer.

use super::{Protocol, PushConfig};
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceResponse;
use prost::Message;
use std::time::Duration;

/// Longest that a request takes.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read: an error is a sentence.
const MAX_ANSWER: u64 = 16 << 10;

/// What became of a request.
#[derive(Debug)]
pub enum Sent {
    /// The server has it.
    Taken,
    /// The server has it, but for so many of its profiles; why.
    Partly {
        /// Profiles that will not be taken.
        refused: u64,
        /// The server's sentence.
        says: String,
    },
    /// The server will not take it however often it is sent; why.
    Refused(String),
    /// Nobody answered, or not now; why.
    Later(String),
}

/// A client of one server.
pub struct Sender {
    protocol: Protocol,
    agent: ureq::Agent,
    url: String,
    tenant: Option<String>,
}

impl Sender {
    /// A client of this server. Nothing is sent yet.
    pub fn new(config: PushConfig) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("emberscope/", env!("CARGO_PKG_VERSION")))
            .build();
        let path = match config.protocol {
            Protocol::Pyroscope => "push.v1.PusherService/Push",
            Protocol::Otlp => "v1development/profiles",
        };
        let url = format!("{}/{path}", config.url.trim_end_matches('/'));
        Self { protocol: config.protocol, agent: agent.into(), url, tenant: config.tenant }
    }

    /// Sends one request, and waits for the answer.
    pub fn send(&mut self, request: &[u8]) -> Sent {
        let headers = match self.protocol {
            Protocol::Pyroscope => [("content-type", "application/proto"), ("connect-protocol-version", "1")],
            Protocol::Otlp => [("content-type", "application/x-protobuf"), ("content-encoding", "gzip")],
        };
        let call = self.agent.post(&self.url);
        let mut call = headers.into_iter().fold(call, |call, (name, value)| call.header(name, value));
        if let Some(tenant) = &self.tenant {
            call = call.header("x-scope-orgid", tenant);
        }
        let mut answer = match call.send(request) {
            Ok(answer) => answer,
            Err(error) => return Sent::Later(error.to_string()),
        };
        let status = answer.status().as_u16();
        if status == 200 && self.protocol == Protocol::Pyroscope {
            return Sent::Taken;
        }
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().unwrap_or_default();
        if status == 200 {
            return otlp_answer(&body);
        }
        let says = format!("HTTP {status}: {}", sentence(&String::from_utf8_lossy(&body)));
        match status {
            // OTLP lets a client repeat 429, 502, 503 and 504 alone.
            408 | 500 | 501 | 505..=599 if self.protocol == Protocol::Otlp => Sent::Refused(says),
            // 429 (resource_exhausted) is also what a server says of a tenant over its rate.
            408 | 429 | 500..=599 => Sent::Later(says),
            _ => Sent::Refused(says),
        }
    }
}

/// An OTLP receiver may take a part. An answer that is no message of its is an answer of somebody else's: the request was taken.
pub fn otlp_answer(body: &[u8]) -> Sent {
    let partly = ExportProfilesServiceResponse::decode(body).ok().and_then(|answer| answer.partial_success);
    let refused = partly.as_ref().and_then(|partly| u64::try_from(partly.rejected_profiles).ok());
    match (partly, refused) {
        (Some(partly), Some(refused)) if refused > 0 => {
            Sent::Partly { refused, says: sentence(&partly.error_message) }
        }
        _ => Sent::Taken,
    }
}

fn sentence(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}
