//! One request to the server: Connect's unary call over HTTP/1.1.
//!
//! In: an encoded request. Out: whether it was taken, will never be, or is to be tried again. Limits: [`TIMEOUT`], and
//! what is read of an answer.

use super::PushConfig;
use std::time::Duration;

/// Longest that a request takes.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read: an error is a sentence.
const MAX_ANSWER: u64 = 16 << 10;

/// What became of a request.
#[derive(Debug)]
pub enum Sent {
    /// It is there.
    Taken,
    /// It will not be taken however often it is sent; why.
    Refused(String),
    /// Nobody answered, or not now; why.
    Later(String),
}

/// Sends requests.
pub struct Sender {
    agent: ureq::Agent,
    url: String,
    tenant: Option<String>,
}

impl Sender {
    /// To a server.
    pub fn new(config: PushConfig) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("emberscope/", env!("CARGO_PKG_VERSION")))
            .build();
        let url = format!("{}/push.v1.PusherService/Push", config.url.trim_end_matches('/'));
        Self { agent: agent.into(), url, tenant: config.tenant }
    }

    /// Sends one.
    pub fn send(&mut self, request: &[u8]) -> Sent {
        let mut call = self
            .agent
            .post(&self.url)
            .header("content-type", "application/proto")
            .header("connect-protocol-version", "1");
        if let Some(tenant) = &self.tenant {
            call = call.header("x-scope-orgid", tenant);
        }
        let mut answer = match call.send(request) {
            Ok(answer) => answer,
            Err(error) => return Sent::Later(error.to_string()),
        };
        let status = answer.status().as_u16();
        if status == 200 {
            return Sent::Taken;
        }
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().unwrap_or_default();
        let says =
            String::from_utf8_lossy(&body).chars().filter(|c| !c.is_control()).take(300).collect::<String>();
        let says = format!("HTTP {status}: {says}");
        match status {
            // 429 (resource_exhausted) is also what a server says of a tenant over its rate.
            408 | 429 | 500..=599 => Sent::Later(says),
            _ => Sent::Refused(says),
        }
    }
}
