//! What Spark's own web servers tell: a driver's `/api/v1/applications`, a standalone Worker's `/json/`.
//!
//! Asked only at addresses where the process itself listens in this daemon's network namespace, and only
//! at its UI's ports: a GET at an RPC port would write a warning into the driver's log. No redirects, no
//! proxy, one second, a bounded body. Runs on the discovery thread.

use super::RestApp;
use crate::identity::MAX_VALUE;
use crate::text::{clean, cut};
use emberscope_model::scrub;
use emberscope_target::spark_words::MAX_SCRUBBED;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Time for one request, connect to last byte. A driver's first answer may take longer (it loads its
/// JSON servlet then); the next attempt gets it.
pub const TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of a body; a Worker with a hundred executors of long class paths says a megabyte.
pub const MAX_BODY: u64 = 2 << 20;
/// Applications kept of one answer.
pub const MAX_APPS: usize = 256;
/// Spark tries spark.ui.port (4040) and, with spark.port.maxRetries, the 16 after it.
const UI_PORTS: std::ops::RangeInclusive<u16> = 4040..=4056;
/// Requests at one process in one round.
const MAX_PORTS: usize = 4;

/// Which server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// A driver's UI.
    Driver,
    /// A standalone Worker's UI.
    Worker,
}

#[derive(Deserialize)]
struct Application {
    id: String,
    name: String,
    #[serde(default)]
    attempts: Vec<Attempt>,
}

#[derive(Deserialize)]
struct Attempt {
    #[serde(default, rename = "sparkUser")]
    spark_user: String,
}

#[derive(Deserialize)]
struct WorkerState {
    #[serde(default)]
    executors: Vec<WorkerExecutor>,
}

#[derive(Deserialize)]
struct WorkerExecutor {
    appid: String,
    appdesc: AppDescription,
}

#[derive(Deserialize)]
struct AppDescription {
    name: String,
    #[serde(default)]
    user: String,
}

/// Asks the likely sockets of `listening`; the first useful answer counts. None: nothing listens where such a server would.
pub fn ask(server: Server, listening: &[SocketAddr], ui_port: Option<u16>) -> Option<Vec<RestApp>> {
    let likely = |port: u16| match (server, ui_port) {
        (Server::Driver, _) => is_driver_ui(ui_port, port),
        (Server::Worker, Some(told)) => (told..=told.saturating_add(16)).contains(&port),
        (Server::Worker, None) => (8081..=8097).contains(&port),
    };
    let mut ports = listening.iter().filter(|a| likely(a.port())).take(MAX_PORTS).peekable();
    ports.peek()?;
    Some(ports.map(|a| ask_at(server, reachable(*a))).find(|apps| !apps.is_empty()).unwrap_or_default())
}

/// Whether a driver's pages may be at `port`; `told` is the one that its command line names.
pub fn is_driver_ui(told: Option<u16>, port: u16) -> bool {
    told.is_some_and(|told| (told..=told.saturating_add(16)).contains(&port)) || UI_PORTS.contains(&port)
}

/// The address at which a socket is asked: loopback for a wildcard.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        // A JVM's wildcard socket takes both families; one with IPv6 alone has no IPv4 loopback.
        IpAddr::V6(ip) if ip.is_unspecified() => {
            let both =
                std::fs::read("/proc/sys/net/ipv6/bindv6only").map_or(true, |b| b.first() != Some(&b'1'));
            if both { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) }
        }
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn ask_at(server: Server, address: SocketAddr) -> Vec<RestApp> {
    let path = match server {
        Server::Driver => "api/v1/applications",
        Server::Worker => "json/",
    };
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("emberscope/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let Ok(mut response) = agent.get(format!("http://{address}/{path}")).call() else { return Vec::new() };
    if response.status().as_u16() != 200 {
        return Vec::new();
    }
    match response.body_mut().with_config().limit(MAX_BODY).read_to_vec() {
        Ok(body) => parse(server, &body),
        Err(_) => Vec::new(),
    }
}

/// Reads a body; what is none of Spark's is no application.
pub(super) fn parse(server: Server, body: &[u8]) -> Vec<RestApp> {
    let text = |t: &str| clean(scrub(cut(t, MAX_SCRUBBED)).as_bytes(), MAX_VALUE);
    let app = |id: &str, name: &str, user: &str| RestApp { id: text(id), name: text(name), user: text(user) };
    let mut apps: Vec<RestApp> = match server {
        Server::Driver => serde_json::from_slice::<Vec<Application>>(body)
            .unwrap_or_default()
            .iter()
            .map(|a| app(&a.id, &a.name, a.attempts.last().map_or("", |t| &t.spark_user)))
            .collect(),
        Server::Worker => serde_json::from_slice::<WorkerState>(body)
            .map(|w| w.executors)
            .unwrap_or_default()
            .iter()
            .map(|e| app(&e.appid, &e.appdesc.name, &e.appdesc.user))
            .collect(),
    };
    apps.retain(|a| !a.id.is_empty());
    apps.sort();
    apps.dedup();
    apps.truncate(MAX_APPS);
    apps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::tests::serve_once;
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::Instant;

    // Recorded from Spark 3.5.9.
    const APPLICATIONS: &str = r#"[ {"id" : "app-20261121183613-0000", "name" : "daily sales é", "attempts" : [ {
        "startTime" : "2026-11-21T18:36:11.979GMT", "duration" : 28712, "sparkUser" : "ana", "completed" : false,
        "appSparkVersion" : "3.5.9", "endTimeEpoch" : -1 } ] } ]"#;
    const WORKER: &str = r#"{"id": "worker-1", "cores": 2, "executors": [{"id": 0, "memory": 512, "resources": {},
        "appid": "app-20261121183613-0000", "appdesc": {"name": "daily sales é", "cores": 0, "user": "ana"}}],
        "finishedexecutors": []}"#;

    fn expected() -> Vec<RestApp> {
        vec![RestApp {
            id: "app-20261121183613-0000".into(),
            name: "daily sales é".into(),
            user: "ana".into(),
        }]
    }

    #[test]
    fn recorded_answers() {
        assert_eq!(parse(Server::Driver, APPLICATIONS.as_bytes()), expected());
        assert_eq!(parse(Server::Worker, WORKER.as_bytes()), expected());
    }

    #[test]
    fn other_bodies_are_no_applications() {
        for body in
            ["", "<html>", "{}", "[]", "[{}]", "null", r#"[{"id":"","name":""}]"#, r#"[{"id":1,"name":2}]"#]
        {
            assert_eq!(parse(Server::Driver, body.as_bytes()), [], "{body}");
            assert_eq!(parse(Server::Worker, body.as_bytes()), [], "{body}");
        }
        let deep = "[".repeat(1 << 20);
        assert_eq!(parse(Server::Driver, deep.as_bytes()), []);
    }

    #[test]
    fn only_ui_ports_are_asked() {
        let (address, served) = serve_once(APPLICATIONS);
        assert_eq!(ask(Server::Driver, &[address], None), None, "an ephemeral port may be RPC");
        assert_eq!(ask(Server::Driver, &[address], Some(address.port())), Some(expected()));
        served.join().unwrap();
    }

    #[test]
    fn a_silent_server_costs_a_second() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let start = Instant::now();
        assert_eq!(ask_at(Server::Driver, listener.local_addr().unwrap()), []);
        assert!(start.elapsed() < TIMEOUT * 2, "{:?}", start.elapsed());
    }

    #[test]
    fn an_endless_body_and_a_redirect_are_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[");
            while stream.write_all(&[b' '; 65536]).is_ok() {}
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            );
        });
        assert_eq!(ask_at(Server::Driver, address), []);
        assert_eq!(ask_at(Server::Driver, address), []);
        server.join().unwrap();
    }
}
