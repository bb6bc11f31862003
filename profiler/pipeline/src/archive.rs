//! An archive beside the pipeline, or in its place: what copies to one tells how it goes, and `serve` answers from one,
//! or from the store of a daemon that does not run.
//!
//! In: the archive's room. Out: its figures in the status and the metrics. Nothing here samples.

use super::{LAST_ANSWERS, PipelineError, doors};
use crate::Lifecycle;
use emberscope_archive::{
    ArchiveUsage, Archiver, ArchiverConfig, NodeState, Reader, ReaderConfig, ReaderUsage,
};
use emberscope_model::WallTime;
use emberscope_serve::{
    Doors, Metrics, Prices, Queries, ReadyFn, ServeConfig, ServeState, StatusFn, raise_to,
};
use emberscope_store::{AnswerLimits, DiskStore, ShelfStore, Store};
use emberscope_supervise::rights;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often figures become metrics.
const TELL: Duration = Duration::from_secs(1);

/// Longest for one look at an archive's lists.
const STUCK: Duration = Duration::from_secs(300);

/// What `emberscope serve` is told to do.
#[derive(Clone, Debug)]
pub struct ServeArchive {
    /// Where the archive is, and how much of it is kept here.
    pub reader: ReaderConfig,
    /// How it answers.
    pub answers: Answers,
    /// Length of the windows in the archive.
    pub window: Duration,
}

/// How a server without a daemon answers.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Address, socket, tokens and certificate of the server.
    pub listen: ServeConfig,
    /// What hours of cores and memory cost.
    pub prices: Prices,
}

/// Starts to copy a store while it is written.
///
/// # Errors
/// [`PipelineError::Archive`]: the URL cannot be one of an archive, or there is no thread.
pub(super) fn copy(store: &Path, node: &str, url: &str) -> Result<Archiver, PipelineError> {
    Ok(Archiver::start(ArchiverConfig::new(store, node, url))?)
}

/// Brings the figures to the metrics.
pub(super) async fn tell(watch: impl Fn() -> ArchiveUsage, metrics: Arc<Metrics>) {
    loop {
        let (usage, m) = (watch(), &metrics.archiving);
        raise_to(&m.blocks, usage.blocks);
        raise_to(&m.pieces, usage.pieces);
        raise_to(&m.bytes, usage.bytes);
        raise_to(&m.missed, usage.missed);
        m.waiting.set(i64::try_from(usage.waiting).unwrap_or(i64::MAX));
        m.behind.set(usage.behind_seconds);
        m.failing.set(i64::from(usage.failing.is_some()));
        m.clock_ahead.set(usage.clock_ahead_ms.map_or(0.0, |ms| ms as f64 / 1e3));
        for (what, count) in &usage.errors {
            raise_to(&m.errors.with_label_values(&[what]), *count);
        }
        tokio::time::sleep(TELL).await;
    }
}

/// What the status says of copying.
pub(super) fn copying(usage: &ArchiveUsage) -> Value {
    let errors = usage.errors.iter().map(|(what, count)| ((*what).to_owned(), (*count).into()));
    json!({
        "url": usage.url,
        "blocks": usage.blocks,
        "pieces": usage.pieces,
        "bytes": usage.bytes,
        "waiting_blocks": usage.waiting,
        "missed_blocks": usage.missed,
        "behind_seconds": usage.behind_seconds,
        "failing": usage.failing,
        "clock_ahead_seconds": usage.clock_ahead_ms.map(|ms| ms as f64 / 1e3),
        "heartbeat_failing": usage.heartbeat_failing,
        "errors": errors.collect::<Map<_, _>>(),
    })
}

fn reading(usage: &ReaderUsage) -> Value {
    let aside = usage.set_aside_names.iter().map(|(name, says)| json!({ "name": name, "says": says }));
    let nodes = NodeState::ALL.into_iter().zip(usage.nodes);
    let unwell = usage.unwell.iter().map(|(node, state, last)| {
        json!({ "node": node, "state": state.slug(), "last_heartbeat": last.to_string() })
    });
    json!({
        "url": usage.url,
        "hours": usage.hours,
        "list_age_seconds": usage.list_age_seconds,
        "list_failures": usage.list_failures,
        "failing": usage.failing,
        "cached_blocks": usage.cached_blocks,
        "cached_bytes": usage.cached_bytes,
        "memory_bytes": usage.memory_bytes,
        "fetched_files": usage.fetched,
        "fetched_bytes": usage.fetched_bytes,
        "evicted_blocks": usage.evicted,
        "set_aside": usage.set_aside,
        "set_aside_names": aside.collect::<Vec<_>>(),
        "nodes": nodes.map(|(state, count)| (state.slug().to_owned(), count.into())).collect::<Map<_, _>>(),
        "nodes_unwell": unwell.collect::<Vec<_>>(),
    })
}

/// Whether the archive could be read, and what was seen of it last.
#[derive(Debug, Default)]
struct Seen {
    ready: Option<Result<(), String>>,
    usage: ReaderUsage,
}

/// Answers from an archive until the end is asked for. Whether the archive answers is shown by `/readyz`: an archive
/// that is away is no error.
///
/// # Errors
/// [`PipelineError::Serve`]: the server's address, tokens or certificate. [`PipelineError::Archive`]: the archive's
/// URL, or the cache's directory. [`PipelineError::Runtime`], [`PipelineError::Metrics`]. Nothing was answered then.
pub fn serve_archive(config: ServeArchive, life: Lifecycle) -> Result<(), PipelineError> {
    let answering = Answering::begin(&config.answers)?;
    let (url, refresh) = (config.reader.url.clone(), config.reader.refresh);
    let reader = Reader::open(config.reader)?;
    let store = Arc::new(ShelfStore::new(reader, config.window, AnswerLimits::default()));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (watched, told, shown) = (store.clone(), answering.metrics.clone(), seen.clone());
    // Lists are kept fresh though nobody asks, on a thread that may wait for the archive.
    let watcher = emberscope_supervise::spawn("watch", STUCK, move |beat| {
        loop {
            // After a panic what was seen before stays.
            let _ = beat.work(|| {
                let ready = watched.shelf().probe().map_err(|error| error.to_string());
                let usage = watched.shelf().reading();
                tell_reading(&usage, &told);
                *lock(&shown) = Seen { ready: Some(ready), usage };
            });
            std::thread::sleep(refresh);
        }
    });
    watcher.map_err(PipelineError::Runtime)?;
    let (is_ready, status) = (seen.clone(), seen);
    let ready: ReadyFn = Arc::new(move || {
        let waits = || Err("The archive's list of hours is being read.".to_owned());
        lock(&is_ready).ready.clone().unwrap_or_else(waits)
    });
    let status: StatusFn = Arc::new(move || json!({ "archive": reading(&lock(&status).usage) }));
    answering.run(store, url, status, ready, life);
    Ok(())
}

/// Answers from the store of a daemon that does not run until the end is asked for.
///
/// # Errors
/// [`PipelineError::Serve`]: the server's address, tokens or certificate. [`PipelineError::Runtime`],
/// [`PipelineError::Metrics`]. Nothing was answered then.
pub fn serve_store(
    store: DiskStore,
    dir: &Path,
    answers: &Answers,
    life: Lifecycle,
) -> Result<(), PipelineError> {
    let answering = Answering::begin(answers)?;
    // What the store holds is told beside it.
    let status: StatusFn = Arc::new(|| json!({}));
    answering.run(Arc::new(store), dir.display().to_string(), status, Arc::new(|| Ok(())), life);
    Ok(())
}

/// A server that is about to answer.
struct Answering {
    runtime: tokio::runtime::Runtime,
    doors: Doors,
    metrics: Arc<Metrics>,
    prices: Prices,
}

impl Answering {
    fn begin(Answers { listen, prices }: &Answers) -> Result<Self, PipelineError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(6)
            .thread_name("http")
            .on_thread_start(|| rights::keep_only("http"))
            .enable_all()
            .build()
            .map_err(PipelineError::Runtime)?;
        let doors = runtime.block_on(listen.open())?;
        let metrics = Metrics::new(env!("CARGO_PKG_VERSION"));
        let metrics = Arc::new(metrics.map_err(|e| PipelineError::Metrics(e.to_string()))?);
        Ok(Self { runtime, doors, metrics, prices: *prices })
    }

    fn run(self, store: Arc<dyn Store>, from: String, status: StatusFn, ready: ReadyFn, life: Lifecycle) {
        let Self { runtime, doors, metrics, prices } = self;
        let state = ServeState {
            store,
            status,
            metrics,
            ready,
            node: from.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            queries: Queries::default(),
            spark: None,
            prices,
        };
        tracing::info!(from, since = %WallTime::now(), "answering");
        life.ready();
        runtime.block_on(doors::answer(doors, state, life));
        runtime.shutdown_timeout(LAST_ANSWERS);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // One value, written as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell_reading(usage: &ReaderUsage, metrics: &Metrics) {
    let m = &metrics.reading;
    raise_to(&m.files, usage.fetched);
    raise_to(&m.bytes, usage.fetched_bytes);
    raise_to(&m.evicted, usage.evicted);
    raise_to(&m.set_aside, usage.set_aside);
    raise_to(&m.list_failures, usage.list_failures);
    m.cached_bytes.set(i64::try_from(usage.cached_bytes).unwrap_or(i64::MAX));
    for (state, count) in NodeState::ALL.into_iter().zip(usage.nodes) {
        m.nodes.with_label_values(&[state.slug()]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}
