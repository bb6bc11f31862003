//! The accept loops: connections in, each with limits, until told to stop.
//!
//! In: bound sockets and the router. Out: answered connections, each request with its [`Peer`]. Limits, against clients
//! that are slow or many: how many connections there are ([`super::crowd`]), [`HEADER_TIME`] for a TLS handshake, for a
//! request's head and between requests, [`STALL`] for a reader that takes nothing, [`LIFE`] for a connection as a
//! whole (it is then closed after the request under way, at most [`GRACE`] later).

use super::crowd::{Busy, Crowd, Place};
use super::metrics::Metrics;
use super::peer::{Peer, Who};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

/// Time for a TLS handshake, for a request's head, and between two requests.
pub const HEADER_TIME: Duration = Duration::from_secs(15);
/// Longest that a client may leave an answer unread (TCP_USER_TIMEOUT, tcp(7)).
pub const STALL: Duration = Duration::from_secs(20);
/// Longest life of a connection.
pub const LIFE: Duration = Duration::from_secs(120);
/// What a request under way gets when its connection's life ends, or the server's.
pub const GRACE: Duration = Duration::from_secs(20);
/// Write buffer and longest request head, in bytes.
const BUFFER: usize = 64 * 1024;

/// A socket that listens.
pub enum Listener {
    /// HTTP in the clear.
    Tcp(TcpListener),
    /// HTTP under TLS.
    Tls(TcpListener, TlsAcceptor),
    /// HTTP over the Unix socket, for the command line.
    Unix(UnixListener),
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(listener) => f.debug_tuple("Tcp").field(listener).finish(),
            Self::Tls(listener, _) => f.debug_tuple("Tls").field(listener).finish(),
            Self::Unix(listener) => f.debug_tuple("Unix").field(listener).finish(),
        }
    }
}

enum Stream {
    Tcp(TcpStream),
    Tls(TcpStream, TlsAcceptor),
    Unix(UnixStream),
}

impl Listener {
    async fn accept(&self) -> std::io::Result<(Stream, Who, Peer)> {
        let tcp = |address: std::net::SocketAddr, tls| {
            let who = Who::at(address.ip());
            (who, Peer::Tcp { loopback: who == Who::Loopback, tls })
        };
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                let (who, peer) = tcp(address, false);
                (Stream::Tcp(stream), who, peer)
            }
            Self::Tls(listener, acceptor) => {
                let (stream, address) = listener.accept().await?;
                let (who, peer) = tcp(address, true);
                (Stream::Tls(stream, acceptor.clone()), who, peer)
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let cred = stream.peer_cred()?;
                (Stream::Unix(stream), Who::User(cred.uid()), Peer::unix(&cred))
            }
        })
    }
}

/// Serves one TCP socket in the clear until `shutdown` is done.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    metrics: Arc<Metrics>,
    shutdown: impl Future<Output = ()>,
) {
    serve_all(vec![Listener::Tcp(listener)], router, metrics, shutdown).await;
}

/// Serves until `shutdown` is done; then lets requests under way finish, for `GRACE` at most.
pub async fn serve_all(
    listeners: Vec<Listener>,
    router: Router,
    metrics: Arc<Metrics>,
    shutdown: impl Future<Output = ()>,
) {
    let (stop, stopped) = watch::channel(false);
    let crowd = Crowd::new(metrics);
    let mut loops = JoinSet::new();
    for listener in listeners {
        loops.spawn(accept(listener, router.clone(), Arc::clone(&crowd), stopped.clone()));
    }
    drop(stopped);
    shutdown.await;
    // A send fails only when no loop is left to hear it.
    let _ = stop.send(true);
    while loops.join_next().await.is_some() {}
}

/// Accepts the connections of one socket, until the server stops.
async fn accept(listener: Listener, router: Router, crowd: Arc<Crowd>, mut stopped: watch::Receiver<bool>) {
    let mut open = JoinSet::new();
    loop {
        // A panic of the loop costs nobody who is connected; the hook has logged it.
        let accepting = admit(&listener, &router, &crowd, &mut stopped, &mut open);
        if AssertUnwindSafe(accepting).catch_unwind().await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, async { while open.join_next().await.is_some() {} }).await;
}

/// Lets connections in until told to stop.
async fn admit(
    listener: &Listener,
    router: &Router,
    crowd: &Arc<Crowd>,
    stopped: &mut watch::Receiver<bool>,
    open: &mut JoinSet<()>,
) {
    loop {
        let told = stopped.clone();
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
        };
        match accepted {
            Ok((stream, who, peer)) => {
                if let Some(place) = crowd.admit(who) {
                    open.spawn(connection(stream, peer, router.clone(), place, told));
                }
            }
            Err(error) => {
                // Out of descriptors or the like: wait rather than spin.
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn connection(
    stream: Stream,
    peer: Peer,
    router: Router,
    place: Place,
    mut stopped: watch::Receiver<bool>,
) {
    let tcp = |stream: &TcpStream| {
        let _ = stream.set_nodelay(true);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, STALL.as_millis() as u32);
    };
    match stream {
        Stream::Tcp(stream) => {
            tcp(&stream);
            if speaks(stream.readable(), &place, &mut stopped).await {
                Box::pin(answer(stream, peer, router, place, stopped)).await;
            }
        }
        Stream::Unix(stream) => {
            if speaks(stream.readable(), &place, &mut stopped).await {
                Box::pin(answer(stream, peer, router, place, stopped)).await;
            }
        }
        Stream::Tls(stream, acceptor) => {
            tcp(&stream);
            // Who has no place any more gave way meanwhile.
            let shaken = tokio::select! {
                () = place.given_up() => return,
                shaken = tokio::time::timeout(HEADER_TIME, acceptor.accept(stream)) => shaken,
            };
            match shaken {
                Ok(Ok(stream)) => Box::pin(answer(stream, peer, router, place, stopped)).await,
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake"),
                Err(_) => tracing::debug!("TLS handshake took too long"),
            }
        }
    }
}

/// Waits until there is something to be read, as long as for a request's head. Buffers are made after that, 20 KB for each
/// connection: of those that only connect there may be hundreds. False: nothing comes, or it is time to go.
async fn speaks(
    readable: impl Future<Output = std::io::Result<()>>,
    place: &Place,
    stopped: &mut watch::Receiver<bool>,
) -> bool {
    tokio::select! {
        () = place.given_up() => false,
        _ = stopped.wait_for(|stop| *stop) => false,
        said = tokio::time::timeout(HEADER_TIME, readable) => matches!(said, Ok(Ok(()))),
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    place: Place,
    mut stopped: watch::Receiver<bool>,
) {
    let doing = place.activity();
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(Arc::clone(&doing));
        let (mut router, busy) = (router.clone(), Busy::new(&doing));
        async move {
            let response: Result<Response<Body>, Infallible> = router.call(request.map(Body::new)).await;
            response.map(|response| response.map(|body| busy.body(body)))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => Some(ended),
        () = place.given_up() => return,
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
