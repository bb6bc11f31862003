//! Bounds: queries at once, their time, slow and many connections, shutdown.

use super::*;
use crate::connection::HEADER_TIME;
use crate::crowd::MAX_LOOPBACK;
use crate::serve;
use crate::unread::Unread;
use crate::{Rendered, Size};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

#[tokio::test]
async fn queries_beyond_the_limit_are_told_to_come_back() {
    let store = Arc::new(three_windows());
    let mut state = state(FakeStore::default());
    state.store = store.clone();
    state.queries = Queries::new(1, Duration::from_millis(50), 20 * SECOND);
    let app = router(state, Access::LocalHostOnly, Router::new());
    let (held, release) = hold(store);
    held.recv().unwrap();
    let first = tokio::spawn(send(app.clone(), request("GET", "/api/v1/apps")));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let second = send(app.clone(), request("GET", "/api/v1/executors")).await;
    second.refused(503, "busy", None);
    assert_eq!(second.header("retry-after"), "2");
    assert_eq!(send(app.clone(), request("GET", "/healthz")).await.status, 200);
    drop(release);
    assert_eq!(first.await.unwrap().status, 200);
    assert_eq!(send(app, request("GET", "/api/v1/apps")).await.status, 200);
}

#[tokio::test]
async fn an_equal_question_has_the_answer_of_the_one_under_way() {
    let store = Arc::new(three_windows());
    let mut state = state(FakeStore::default());
    state.store = store.clone();
    state.queries = Queries::new(1, Duration::from_millis(50), 20 * SECOND);
    let app = router(state, Access::LocalHostOnly, Router::new());
    let (held, release) = hold(store);
    held.recv().unwrap();
    let asked = || tokio::spawn(send(app.clone(), request("GET", "/api/v1/top?limit=5")));
    // The first one leaves; the two that joined it have its answer, and no place of their own.
    let [first, second, third] = [asked(), asked(), asked()];
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.abort();
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(release);
    let (second, third) = (second.await.unwrap(), third.await.unwrap());
    assert_eq!((second.status.as_u16(), third.status.as_u16()), (200, 200), "{}", third.text());
    assert_eq!(second.text(), third.text());
}

/// Keeps every query waiting, from a thread of its own, until the sender is dropped.
fn hold(store: Arc<FakeStore>) -> (mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (tell, held) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _hold = store.hold.lock().unwrap();
        tell.send(()).unwrap();
        let _ = released.recv();
    });
    (held, release)
}

#[tokio::test]
async fn a_query_that_takes_too_long_keeps_its_place_until_it_ends() {
    let store = Arc::new(three_windows());
    let mut state = state(FakeStore::default());
    state.store = store.clone();
    state.queries = Queries::new(1, Duration::from_millis(50), Duration::from_millis(50));
    let app = router(state, Access::LocalHostOnly, Router::new());
    let (held, release) = hold(store);
    held.recv().unwrap();
    send(app.clone(), request("GET", "/api/v1/apps")).await.refused(504, "query_timeout", None);
    send(app, request("GET", "/api/v1/apps")).await.refused(503, "busy", None);
    drop(release);
}

#[tokio::test]
async fn trees_that_wait_leave_a_place_for_what_is_short() {
    let queries = Queries::new(2, 20 * SECOND, 20 * SECOND);
    let ran = Arc::new(AtomicUsize::new(0));
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let tree = || {
        let (queries, ran, released) = (queries.clone(), ran.clone(), released.clone());
        let work = move || {
            ran.fetch_add(1, Ordering::SeqCst);
            let _ = released.lock().unwrap().recv();
            Ok(Rendered::default())
        };
        tokio::spawn(async move { queries.run(Size::Tree, work).await })
    };
    let trees = [tree(), tree(), tree()];
    while ran.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Ends though three trees were asked for before.
    assert_eq!(queries.run(Size::Sums, || Ok(Rendered::default())).await.status(), 200);
    assert_eq!(ran.load(Ordering::SeqCst), 1, "trees come one after the other");
    drop(release);
    for tree in trees {
        assert_eq!(tree.await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn answers_that_nobody_reads_have_a_limit() {
    let mut state = state(three_windows());
    state.queries = Queries::new(1, Duration::from_millis(50), 20 * SECOND);
    state.queries.unread = Unread::new(1);
    let app = router(state, Access::LocalHostOnly, Router::new());
    let unread = app.clone().oneshot(request("GET", "/api/v1/apps")).await.unwrap();
    let message = send(app.clone(), request("GET", "/api/v1/apps")).await.refused(503, "busy", None);
    assert!(message.contains("wait to be read"), "{message}");
    drop(unread);
    assert_eq!(send(app, request("GET", "/api/v1/apps")).await.status, 200);
}

#[tokio::test]
async fn one_slow_reader_does_not_stop_the_others() {
    let mut state = state(three_windows());
    state.queries = Queries::new(1, Duration::from_millis(50), 20 * SECOND);
    let app = router(state, Access::LocalHostOnly, Router::new());
    let unread = app.clone().oneshot(request("GET", "/api/v1/apps")).await.unwrap();
    assert_eq!(send(app, request("GET", "/api/v1/apps")).await.status, 200);
    drop(unread);
}

struct Running {
    address: SocketAddr,
    metrics: Arc<Metrics>,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

async fn start() -> Running {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let state = state(three_windows());
    let metrics = state.metrics.clone();
    let app = router(state, Access::LocalHostOnly, Router::new());
    let (stop, stopped) = oneshot::channel();
    let shutdown = async { drop(stopped.await) };
    let task = tokio::spawn(serve(listener, app, metrics.clone(), shutdown));
    Running { address, metrics, stop, task }
}

async fn ask(stream: &mut TcpStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut out = String::new();
    stream.read_to_string(&mut out).await.unwrap();
    out
}

#[tokio::test]
async fn over_a_socket() {
    let running = start().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let text = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = ask(&mut stream, text).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let answer = ask(&mut stream, "NONSENSE\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    running.stop.send(()).unwrap();
    tokio::time::timeout(5 * SECOND, running.task).await.expect("stops at once").unwrap();
    assert!(TcpStream::connect(running.address).await.is_err());
}

#[tokio::test]
async fn a_new_connection_takes_the_place_of_the_longest_idle() {
    let running = start().await;
    let mut open = Vec::new();
    for _ in 0..MAX_LOOPBACK {
        open.push(TcpStream::connect(running.address).await.unwrap());
    }
    let text = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut one_more = TcpStream::connect(running.address).await.unwrap();
    assert!(ask(&mut one_more, text).await.starts_with("HTTP/1.1 200"));
    let read = tokio::time::timeout(5 * SECOND, open[0].read(&mut [0; 1])).await.expect("closed at once");
    assert_eq!(read.unwrap_or(0), 0);
    assert_eq!(running.metrics.http.evicted.get(), 1);
    assert_eq!(running.metrics.http.refused.get(), 0);
    drop(open);
    let ended = async {
        while running.metrics.http.connections.get() > 0 {
            tokio::time::sleep(SECOND / 20).await;
        }
    };
    tokio::time::timeout(20 * SECOND, ended).await.expect("they end");
    let mut again = TcpStream::connect(running.address).await.unwrap();
    assert!(ask(&mut again, text).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_is_cut_off() {
    let running = start().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let begun = tokio::time::Instant::now();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut out = Vec::new();
    let _ = stream.read_to_end(&mut out).await;
    let took = begun.elapsed();
    assert!(took >= HEADER_TIME / 2 && took <= HEADER_TIME * 2, "{took:?}");
    assert!(!out.starts_with(b"HTTP/1.1 200"));
}
