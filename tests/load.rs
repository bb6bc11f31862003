//! The server under 200 clients at once, over a store in memory: every answer is 200, while other clients never read
//! theirs and others hang up. Times are printed and not judged; `EMBERSCOPE_LOAD_SECONDS` says for how long (3).
//! The daemon as a whole, on real samples, is asked by `cargo xtask bench api`.

use anyhow::{Result, ensure};
use emberscope_model::LabelKey::{App, Executor, Role};
use emberscope_tests::{FakeStore, Server};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const CLIENTS: usize = 200;
const LARGE: &str = "/api/v1/flamegraph?format=json&from=1000&until=1010";
const ASKED: [&str; 5] = [
    "/api/v1/apps?from=1000&until=1010",
    LARGE,
    "/api/v1/top?from=1000&until=1010",
    "/api/v1/series?by=executor&from=1000&until=1010",
    "/healthz",
];

/// 60 different stacks of 20 frames: what an unoptimised build answers in some milliseconds.
fn store() -> FakeStore {
    let mut store = FakeStore::default();
    for stack in 0..60 {
        let frames: Vec<String> =
            (0..20).map(|depth| format!("org.example.Some{}.method{depth}", stack >> depth)).collect();
        let stack: &'static str = Box::leak(frames.join(";").into_boxed_str());
        store.add(1000, &[(App, "app-1"), (Role, "executor"), (Executor, "1")], stack, 1);
    }
    store
}

fn ask_and_leave(port: u16) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {LARGE} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    Ok(stream)
}

type Figures = (Vec<f64>, BTreeMap<String, u64>);

fn ask(port: u16, client: usize, until: Instant) -> Figures {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(120)))
        .proxy(None)
        .build()
        .into();
    let (mut seconds, mut errors) = Figures::default();
    for path in ASKED.iter().cycle().skip(client % ASKED.len()) {
        if Instant::now() >= until {
            break;
        }
        // One question that no other client asks: equal ones have one answer.
        let own = if path.contains("/top") { format!("&limit={}", client + 1) } else { String::new() };
        let begun = Instant::now();
        let answer =
            agent.get(format!("http://127.0.0.1:{port}{path}{own}")).call().and_then(|mut answer| {
                let body = answer.body_mut().with_config().limit(1 << 28).read_to_vec()?;
                Ok((answer.status().as_u16(), body.len()))
            });
        match answer {
            Ok((200, length)) if length > 0 => seconds.push(begun.elapsed().as_secs_f64()),
            Ok((status, length)) => {
                *errors.entry(format!("{status}, {length} bytes, {path}")).or_default() += 1
            }
            Err(error) => *errors.entry(format!("{error}, {path}")).or_default() += 1,
        }
    }
    (seconds, errors)
}

#[test]
fn two_hundred_clients_get_their_answers_beside_slow_and_dropped_ones() -> Result<()> {
    let length = std::env::var("EMBERSCOPE_LOAD_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    let server = Server::of(store())?;
    let metrics = server.metrics.clone();
    let port = server.start()?;
    let until = Instant::now() + Duration::from_secs(length);
    // Fewer than would fill the limit of unread answers: those who read go on at once.
    let unread: Vec<TcpStream> = (0..10).map(|_| ask_and_leave(port)).collect::<Result<_, _>>()?;
    let figures: Vec<Figures> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while Instant::now() < until {
                drop(ask_and_leave(port));
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let clients: Vec<_> =
            (0..CLIENTS).map(|client| scope.spawn(move || ask(port, client, until))).collect();
        clients.into_iter().filter_map(|client| client.join().ok()).collect()
    });
    assert_eq!(figures.len(), CLIENTS);
    let errors: Vec<_> = figures.iter().flat_map(|(_, errors)| errors).collect();
    ensure!(errors.is_empty(), "{errors:?}");
    let mut seconds: Vec<f64> = figures.into_iter().flat_map(|(seconds, _)| seconds).collect();
    seconds.sort_by(f64::total_cmp);
    ensure!(seconds.len() >= CLIENTS, "only {} answers", seconds.len());
    let at = |part: f64| seconds[((seconds.len() - 1) as f64 * part) as usize] * 1e3;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("?").trim();
    println!(
        "{} requests in {length} s, no error; p50 {:.0} ms, p99 {:.0} ms; peak {peak}, the clients' too",
        seconds.len(),
        at(0.5),
        at(0.99)
    );
    drop(unread);
    let (_, errors) = ask(port, 0, Instant::now() + Duration::from_millis(1));
    ensure!(errors.is_empty(), "afterwards: {errors:?}");
    assert_eq!(metrics.http.refused.get(), 0);
    Ok(())
}
