//! The clients: some ask and read, some ask and never read, some ask and hang up. Each ends by itself: no wait is
//! longer than [`PATIENCE`].

use super::report::{Met, Routes};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is asked, in turn: a method, a path, a body.
const ASKED: [(&str, &str, &str); 10] = [
    ("GET", "/api/v1/apps", ""),
    ("GET", "/api/v1/executors", ""),
    ("GET", "/api/v1/stages?join=no", ""),
    ("GET", "/api/v1/top?limit=100", ""),
    ("GET", "/api/v1/flamegraph?format=json&max_nodes=5000", ""),
    ("GET", "/api/v1/flamegraph?format=folded", ""),
    ("GET", "/api/v1/series?by=process", ""),
    ("GET", "/api/v1/labels/process/values", ""),
    ("GET", "/metrics", ""),
    (
        "POST",
        "/querier.v1.QuerierService/SelectMergeStacktraces",
        r#"{"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{}","start":"1","end":"9999999999999"}"#,
    ),
];
/// What those who never read ask for, or hang up on.
const LARGE: &str = "/api/v1/flamegraph?format=json&lines=1";
/// Longest that one request is waited for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks one route after the other until the time is up. With `own` each client's questions are different from all
/// others'.
pub fn ask(url: &str, client: usize, own: bool, until: Instant, met: &Mutex<Routes>) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .proxy(None)
        .build()
        .into();
    let mut mine = Routes::new();
    for (method, path, body) in ASKED.iter().cycle().skip(client % ASKED.len()) {
        if Instant::now() >= until {
            break;
        }
        let begun = Instant::now();
        let mut target = format!("{url}{path}");
        if own && path.contains("/api/v1/") {
            // A pid that there is not: nothing is left out, and nobody else asks so.
            target.push_str(if path.contains('?') { "&" } else { "?" });
            target.push_str(&format!("query=%7Bpid!%3D%22none{client}%22%7D"));
        }
        let answer = match *method {
            "POST" => agent.post(target).header("Content-Type", "application/json").send(*body),
            _ => agent.get(target).call(),
        };
        let read = answer.and_then(|mut answer| {
            let bytes = answer.body_mut().with_config().limit(1 << 30).read_to_vec()?;
            Ok((answer.status().as_u16(), bytes.len()))
        });
        let route: &mut Met = mine.entry(path.split('?').next().unwrap_or(path)).or_default();
        match read {
            Ok((200, bytes)) => route.answered(begun.elapsed(), bytes as u64),
            Ok((status, _)) => route.failed(status.to_string()),
            Err(error) => route.failed(error.to_string()),
        }
    }
    let mut all = met.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (path, of) in mine {
        all.entry(path).or_default().add(of);
    }
}

fn large(address: SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    Ok(stream)
}

/// Asks and does not read; asks anew every 30 s, when the daemon has given the connection up.
pub fn never_read(address: SocketAddr, until: Instant) {
    while Instant::now() < until {
        let held = large(address);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(200));
        }
        drop(held);
    }
}

/// Asks and hangs up, five times a second.
pub fn hang_up(address: SocketAddr, until: Instant, count: &AtomicU64) {
    while Instant::now() < until {
        if large(address).is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
