//! The server's doors: what the settings say of them, and serving until the end is asked for.
//!
//! In: settings, the state to answer from. Out: answered requests. The daemon and `emberscope serve` share it.

use super::serving;
use crate::Lifecycle;
use emberscope_config::{DaemonConfig, FilePath};
use emberscope_serve::{Doors, Files, ServeConfig, ServeState, StatusFn, TlsFiles};
use serde_json::{Map, Value};
use std::mem::take;
use std::sync::Arc;

/// What a daemon's settings say of its server.
pub(super) fn of(config: &DaemonConfig) -> ServeConfig {
    let path = |file: &Option<FilePath>| file.as_ref().map(|file| file.get().to_owned());
    ServeConfig {
        listen: *config.listen.get(),
        socket: config.socket.get().map(ToOwned::to_owned),
        health: config.health_listen.as_ref().map(|listen| *listen.get()),
        token_file: path(&config.token_file),
        read_token_file: path(&config.read_token_file),
        metrics_token_file: path(&config.metrics_token_file),
        own_dir: config.data_dir.get().to_owned(),
        open_loopback: config.open_loopback,
        tls: path(&config.tls_cert).zip(path(&config.tls_key)).map(|(cert, key)| TlsFiles { cert, key }),
    }
}

/// Serves until the end is asked for; the Unix socket's file goes with it.
pub(super) async fn answer(mut doors: Doors, mut state: ServeState, life: Lifecycle) {
    doors.announce();
    let (status, access) = (Arc::clone(&state.status), doors.status());
    let both: StatusFn = Arc::new(move || {
        // Before the first window the daemon says nothing of itself, and nothing is no object.
        let mut status = match status() {
            Value::Object(status) => status,
            Value::Null => Map::new(),
            other => Map::from_iter([("daemon".to_owned(), other)]),
        };
        status.insert("access".to_owned(), access());
        Value::Object(status)
    });
    state.status = both;
    let metrics = Arc::clone(&state.metrics);
    tokio::spawn(Files::of(&doors, Arc::clone(&metrics)).watch());
    let health = take(&mut doors.health);
    if !health.is_empty() {
        let router = emberscope_serve::health_router(state.clone(), doors.access.clone());
        let (metrics, ends) = (Arc::clone(&metrics), life.clone());
        tokio::spawn(
            async move { emberscope_serve::serve_all(health, router, metrics, ends.stopped()).await },
        );
    }
    let beat = tokio::spawn(serving::beat());
    let calls = emberscope_serve::pyroscope::router(Arc::clone(&state.store), state.spark.clone());
    let router = emberscope_serve::router(state, doors.access.clone(), calls);
    emberscope_serve::serve_all(take(&mut doors.listeners), router, metrics, life.stopped()).await;
    beat.abort();
}
