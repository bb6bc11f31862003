//! The daemon's whole router over a store in memory, and once more Pyroscope's calls below a path, as behind a
//! proxy.

use super::fake_store::FakeStore;
use anyhow::{Context, Result};
use emberscope::serve::{Access, Metrics, Queries, ServeState, pyroscope, router};
use emberscope::store::Store;
use std::sync::Arc;

/// Serves on a free port of loopback, which is the answer; ends with the process.
pub fn serve(store: FakeStore) -> Result<u16> {
    let store: Arc<dyn Store> = Arc::new(store);
    let state = ServeState {
        store: store.clone(),
        status: Arc::new(|| serde_json::json!({})),
        metrics: Arc::new(Metrics::new("test")?),
        ready: Arc::new(|| Ok(())),
        node: "n1".into(),
        version: "test".into(),
        queries: Queries::default(),
        spark: None,
    };
    let calls = axum::Router::new()
        .nest("/behind/a/proxy", pyroscope::router(store.clone()))
        .merge(pyroscope::router(store));
    let app = router(state, Access::LocalHostOnly, calls);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || -> Result<()> {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            sender.send(listener.local_addr()?.port())?;
            Ok(axum::serve(listener, app).await?)
        })
    });
    receiver.recv().context("the server did not start")
}
