//! The daemon's whole router over a store of known rows, for tests of what it serves: Grafana's calls and the page, and
//! all of it once more below a path, as behind a proxy.

use crate::FakeStore;
use anyhow::{Context, Result};
use axum::Router;
use emberscope_serve::{Access, Metrics, Queries, ServeState, pyroscope, router};
use std::sync::Arc;

/// Where everything is served once more.
pub const BEHIND_A_PROXY: &str = "/behind/a/proxy";

/// What is served.
pub struct Server {
    /// The rows.
    pub store: FakeStore,
    /// Who may ask.
    pub access: Access,
    /// The node's name.
    pub node: &'static str,
    /// Counts what happens.
    pub metrics: Arc<Metrics>,
}

impl Server {
    /// A server for this machine, of a node `n1`.
    pub fn of(store: FakeStore) -> Result<Self> {
        let metrics = Arc::new(Metrics::new("test")?);
        Ok(Self { store, access: Access::LocalHostOnly, node: "n1", metrics })
    }

    /// Serves on a free port of loopback, which is the answer, with the daemon's own limits of connections; ends with
    /// the process.
    pub fn start(self) -> Result<u16> {
        let Self { store, access, node, metrics } = self;
        let store: Arc<FakeStore> = Arc::new(store);
        let state = ServeState {
            store: store.clone(),
            status: Arc::new(|| serde_json::json!({})),
            metrics: metrics.clone(),
            ready: Arc::new(|| Ok(())),
            node: node.into(),
            version: "test".into(),
            queries: Queries::default(),
            spark: None,
            prices: Default::default(),
        };
        let whole = || router(state.clone(), access.clone(), pyroscope::router(store.clone(), None));
        let app = Router::new().nest_service(BEHIND_A_PROXY, whole()).fallback_service(whole());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || -> Result<()> {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(
                async {
                    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
                    sender.send(listener.local_addr()?.port())?;
                    emberscope_serve::serve(listener, app, metrics, std::future::pending()).await;
                    Ok(())
                },
            )
        });
        receiver.recv().context("the server did not start")
    }
}
