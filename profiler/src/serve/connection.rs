//! The accept loop: connections in, each with limits, until told to stop.
//!
//! In: a bound socket and the router. Out: answered connections. Limits, against clients that are slow or
//! many: [`MAX_CONNECTIONS`] at once (more are closed at once and counted), [`HEADER_TIME`] for a request's
//! head and between requests, [`STALL`] for a reader that takes nothing, [`LIFE`] for a connection as a
//! whole (it is then closed after the request under way, at most [`GRACE`] later).

use super::metrics::Metrics;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Connections at once. A page and a dashboard use some ten each; an idle one takes some 10 KiB.
pub const MAX_CONNECTIONS: usize = 256;
/// Time for a request's head, and between two requests.
pub const HEADER_TIME: Duration = Duration::from_secs(15);
/// Longest that a client may leave an answer unread (TCP_USER_TIMEOUT, tcp(7)).
pub const STALL: Duration = Duration::from_secs(20);
/// Longest life of a connection.
pub const LIFE: Duration = Duration::from_secs(120);
/// What a request under way gets when its connection's life ends, or the server's.
pub const GRACE: Duration = Duration::from_secs(20);
/// Write buffer and longest request head, in bytes.
const BUFFER: usize = 64 * 1024;

/// Serves until `shutdown` is done; then lets requests under way finish, for `GRACE` at most.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    metrics: Arc<Metrics>,
    shutdown: impl Future<Output = ()>,
) {
    let (stop, stopped) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = shutdown.as_mut() => break,
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => {
                metrics.http_connections.set(open.len() as i64);
                continue;
            }
        };
        match accepted {
            Ok(_) if open.len() >= MAX_CONNECTIONS => metrics.http_connections_refused.inc(),
            Ok((stream, _)) => {
                open.spawn(connection(stream, router.clone(), stopped.clone()));
                metrics.http_connections.set(open.len() as i64);
            }
            Err(error) => {
                // Out of descriptors or the like: wait rather than spin.
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
    drop(listener);
    // A send fails only when no connection is left to hear it.
    let _ = stop.send(true);
    let _ = tokio::time::timeout(GRACE, async { while open.join_next().await.is_some() {} }).await;
    metrics.http_connections.set(0);
}

async fn connection(stream: TcpStream, router: Router, mut stopped: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, STALL.as_millis() as u32);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => Some(ended),
        _ = stopped.wait_for(|stop| *stop) => None,
        () = tokio::time::sleep(LIFE) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            served.as_mut().graceful_shutdown();
            match tokio::time::timeout(GRACE, served).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
