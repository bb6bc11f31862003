//! The doors, opened: TLS with a certificate that changes, and the Unix socket.

use super::*;
use crate::{Doors, Files, ServeConfig, TlsFiles, serve_all};
use rcgen::generate_simple_self_signed;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// Writes a certificate of its own and its key. Out: the certificate.
fn certificate(dir: &Path) -> CertificateDer<'static> {
    let made = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    put(&dir.join("tls.crt"), &made.cert.pem(), 0o644);
    put(&dir.join("tls.key"), &made.signing_key.serialize_pem(), 0o600);
    made.cert.der().clone()
}

fn put(path: &Path, text: &str, mode: u32) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::set_permissions(&new, PermissionsExt::from_mode(mode)).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn config(dir: &Path) -> ServeConfig {
    ServeConfig { listen: "127.0.0.1:0".parse().unwrap(), own_dir: dir.to_owned(), ..ServeConfig::default() }
}

fn start(doors: &mut Doors) -> Arc<Metrics> {
    let state = state(three_windows());
    let metrics = state.metrics.clone();
    let app = router(state, doors.access.clone(), Router::new());
    let listeners = std::mem::take(&mut doors.listeners);
    tokio::spawn(serve_all(listeners, app, metrics.clone(), std::future::pending()));
    metrics
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut out = Vec::new();
    // A server that ends without close_notify is no error here.
    let _ = stream.read_to_end(&mut out).await;
    String::from_utf8(out).unwrap()
}

/// Asks by TLS, trusting one certificate. None: another was shown.
async fn ask_trusting(cert: &CertificateDer<'static>, doors: &Doors, path: &str) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(doors.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    Some(ask(stream, path).await)
}

#[tokio::test]
async fn a_certificate_that_changes_is_shown_and_a_bad_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let first = certificate(dir.path());
    let files = TlsFiles { cert: dir.path().join("tls.crt"), key: dir.path().join("tls.key") };
    let mut doors = ServeConfig { tls: Some(files), ..config(dir.path()) }.open().await.unwrap();
    let metrics = start(&mut doors);
    let watched = Files::of(&doors, metrics.clone());
    let failing = || metrics.http.file_failing.with_label_values(&["tls-cert"]).get();
    assert!(ask_trusting(&first, &doors, "/healthz").await.unwrap().starts_with("HTTP/1.1 200"));
    assert!(ask_trusting(&first, &doors, "/api/v1/apps").await.unwrap().starts_with("HTTP/1.1 401"));
    // A key that goes with another certificate, as between two renames.
    let other = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    put(&dir.path().join("tls.key"), &other.signing_key.serialize_pem(), 0o600);
    watched.look();
    assert_eq!(failing(), 1);
    let status = doors.status()();
    assert!(status["files"][1]["failing"].as_str().unwrap().contains("tls.crt"), "{status}");
    assert!(ask_trusting(&first, &doors, "/healthz").await.is_some(), "the one before holds");
    let second = certificate(dir.path());
    watched.look();
    assert_eq!(failing(), 0);
    assert!(ask_trusting(&first, &doors, "/healthz").await.is_none());
    assert!(ask_trusting(&second, &doors, "/healthz").await.is_some());
}

#[tokio::test]
async fn a_key_that_others_may_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    certificate(dir.path());
    let files = TlsFiles { cert: dir.path().join("tls.crt"), key: dir.path().join("tls.key") };
    std::fs::set_permissions(&files.key, PermissionsExt::from_mode(0o644)).unwrap();
    let error = ServeConfig { tls: Some(files), ..config(dir.path()) }.open().await.unwrap_err().to_string();
    assert!(error.contains("tls.key") && error.contains("chmod 600"), "{error}");
}

#[tokio::test]
async fn the_unix_socket_asks_for_no_token_and_loopback_does() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("x.sock");
    let config = ServeConfig { socket: Some(socket.clone()), ..config(dir.path()) };
    let mut doors = config.open().await.unwrap();
    start(&mut doors);
    let by_socket = ask(UnixStream::connect(&socket).await.unwrap(), "/api/v1/apps").await;
    assert!(by_socket.starts_with("HTTP/1.1 200"), "{by_socket}");
    let by_tcp = ask(TcpStream::connect(doors.address).await.unwrap(), "/api/v1/apps").await;
    assert!(by_tcp.starts_with("HTTP/1.1 401"), "{by_tcp}");
    // The token that was made at the start opens it.
    let token = std::fs::read_to_string(dir.path().join("token")).unwrap();
    assert_eq!(token.trim().len(), 64);
    let status = doors.status()();
    assert_eq!((&status["open_loopback"], &status["tls"]), (&json!(false), &json!(false)), "{status}");
    drop(doors);
    assert!(!socket.exists());
}
