//! The only place that knows every stage: joins the rooms, starts the threads, stops them.
//!
//! The calling thread samples (`worker`); HTTP runs on two threads of a tokio runtime beside it. They
//! share the store, the metrics and a status value, nothing else.

mod archive;
mod between;
mod closing;
mod derived;
mod doors;
mod event_logs;
mod far_logs;
mod health;
mod heap;
mod idle;
mod lifecycle;
mod named;
mod pace;
mod pushers;
mod pythons;
mod record;
mod relabels;
mod runtimes;
mod serving;
mod settings;
mod shares;
mod spark_words;
mod stacks;
mod tables;
mod wait_reasons;
mod waits;
mod watchdog;
mod worker;

pub use lifecycle::Lifecycle;

pub use archive::{Answers, ServeArchive, serve_archive, serve_store};
use emberscope_aggregate::{ClockReading, InternLimits, Interner, Windows};
use emberscope_capture::{Capture, CaptureError, HostFeatures};
use emberscope_config::{DaemonConfig, SelectError};
use emberscope_cpython::CPython;
use emberscope_hotspot::HotSpot;
use emberscope_model::LostCounts;
use emberscope_process::threads::{Limits, Threads};
use emberscope_process::{KeepError, NamesConfig, Places, Registry, RegistryConfig, SparkNames};
use emberscope_runtime::{Readers, Runtimes};
use emberscope_serve::{Metrics, Queries, ServeError, ServeState};
use emberscope_store::{DiskStore, DiskStoreError, Store, StoreError};
use emberscope_supervise::Panicked;
use emberscope_supervise::rights;
use emberscope_symbolize::Symbolizer;
pub use far_logs::{FarLog, FarLogError, FarLogs};
use health::{Health, Shared};
use pace::Pace;
use pythons::Pythons;
pub use record::record;
use runtimes::Processes;
pub use settings::prices;
use stacks::StackCache;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
pub use tables::Maps;
use tables::Tables;
use worker::Worker;

/// How long a window waits for samples that are still on their way.
const GRACE: Duration = Duration::from_secs(1);
/// Rows of an open window with all their detail: 64 cores sampled for ten seconds, all different.
const MAX_ROWS: usize = 65_536;
/// How long requests under way may take once the end was asked for.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Why sampling or answering cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The kernel side cannot start, or cannot go on.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The server's address, tokens or certificate.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A filter of what to keep cannot be read.
    #[error(transparent)]
    Keep(#[from] KeepError),
    /// The expression of what names of runs have in common.
    #[error("run-names: {0}")]
    RunNames(String),
    /// The choice of a recording fits nothing.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The answer of a recording is too large.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store on disk cannot be opened.
    #[error(transparent)]
    DiskStore(#[from] DiskStoreError),
    /// The archive's URL, or the cache's directory.
    #[error(transparent)]
    Archive(#[from] emberscope_archive::RemoteError),
    /// A metric was declared twice.
    #[error("the metrics cannot be set up: {0}")]
    Metrics(String),
    /// A defect: the cause is in the log.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// No thread or event queue for the server.
    #[error("cannot start the HTTP server's threads: {0}")]
    Runtime(std::io::Error),
}

/// Samples and answers until the end is asked for.
///
/// # Errors
/// Before anything is sampled: [`PipelineError::Runtime`], [`PipelineError::Serve`], [`PipelineError::DiskStore`],
/// [`PipelineError::Keep`], [`PipelineError::Metrics`], [`PipelineError::Capture`], [`PipelineError::Archive`]. Later
/// [`PipelineError::Capture`] or [`PipelineError::Panicked`]: sampling cannot go on. All closed windows are stored
/// then.
pub fn run_daemon(config: DaemonConfig, life: Lifecycle) -> Result<(), PipelineError> {
    heap::settle();
    // What can be refused at once is: the address, the token, what to keep; then the kernel.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .thread_name("http")
        .on_thread_start(|| rights::keep_only("http"))
        .enable_all()
        .build()
        .map_err(PipelineError::Runtime)?;
    let doors = runtime.block_on(doors::of(&config).open())?;
    let store_dir = config.data_dir.get().join("store");
    let store: Arc<dyn Store> = Arc::new(DiskStore::open(settings::store(&config, &store_dir))?);
    let joined = join(&config, Arc::clone(&store), Some(config.data_dir.get()))?;
    let ready = Arc::new(AtomicBool::new(false));
    let names = NamesConfig {
        urls: config.spark_url.as_ref().map(|urls| urls.get().to_vec()).unwrap_or_default(),
        ask_found: config.ask_drivers,
    };
    // A thread of its own: it ends before the store does, wherever it is.
    let archiver = match &config.archive {
        Some(url) => Some(archive::copy(&store_dir, &joined.node, url.get())?),
        None => None,
    };
    if let Some(archiver) = &archiver {
        runtime.spawn(archive::tell(archiver.watch(), Arc::clone(&joined.metrics)));
    }
    let copying = archiver.as_ref().map(|archiver| archiver.watch());
    let places = joined.places.clone();
    let names = Arc::new(SparkNames::new(names, joined.places));
    // It ends before the store does, as the archiver does.
    let recording =
        spark_words::keep(&config, &store, &names, places, &life).map_err(PipelineError::Runtime)?;
    let (shared, is_ready) = (joined.shared, Arc::clone(&ready));
    let state = ServeState {
        store: Arc::clone(&store),
        status: Arc::new(move || {
            let mut status = shared.status();
            if let (Some(watch), Some(status)) = (&copying, status.as_object_mut()) {
                status.insert("archive".to_owned(), archive::copying(&watch()));
            }
            status
        }),
        metrics: Arc::clone(&joined.metrics),
        ready: Arc::new(move || match is_ready.load(Ordering::Relaxed) {
            true => Ok(()),
            false => {
                Err("The daemon is reading the node's processes; sampling is about to begin.".to_owned())
            }
        }),
        node: joined.node,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        queries: Queries::default(),
        spark: Some(names),
        prices: prices(config.price_core_hour.as_ref(), config.price_gib_hour.as_ref()),
    };
    runtime.spawn(doors::answer(doors, state, life.clone()));
    tracing::info!(hz = config.hz.get(), "sampling");
    ready.store(true, Ordering::Relaxed);
    life.ready();
    watchdog::start(life.clone()).map_err(PipelineError::Runtime)?;
    rights::set_aside();
    rights::hurry();
    let ended = joined.worker.run(|| life.is_stopping());
    life.stop();
    drop(archiver);
    if let Some(recording) = recording {
        let _ = recording.join();
    }
    runtime.shutdown_timeout(LAST_ANSWERS);
    ended
}

/// The rooms, joined but not yet running.
struct Joined {
    worker: Worker,
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
    node: String,
    places: Places,
}

fn join(
    config: &DaemonConfig,
    store: Arc<dyn Store>,
    data_dir: Option<&Path>,
) -> Result<Joined, PipelineError> {
    let node = match &config.node {
        Some(name) => name.get().to_owned(),
        None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    let registry = settings::registry(config, &node)?;
    let features = HostFeatures::probe();
    let metrics =
        Arc::new(Metrics::new(env!("CARGO_PKG_VERSION")).map_err(|e| PipelineError::Metrics(e.to_string()))?);
    let shared = Arc::new(Shared::default());
    // All runtimes that there are.
    let runtimes = Runtimes::new(vec![Box::new(HotSpot::default()), Box::new(CPython::default())]);
    let mut registry = Registry::new(RegistryConfig { marks: runtimes.marks(), ..registry });
    // First the programs, then the scan: what starts meanwhile comes as an event.
    let mut capture = Capture::start(&settings::capture(config), &features)?;
    for lacking in capture.lacking() {
        tracing::warn!(event = lacking.name(), lacks = %lacking.what, "cannot be sampled here: all else is");
    }
    let tables = capture.take_tables();
    let unwind_dir = data_dir.map(|dir| dir.join("unwind"));
    let mut tables = Tables::start(tables, unwind_dir.as_deref()).map_err(PipelineError::Runtime)?;
    let started = ClockReading::take();
    let processes = registry.scan();
    tables.begin(&registry);
    tracing::info!(processes, cpus = capture.cpus(), kernel = %features.kernel, "read the node");
    let interner = Interner::new(InternLimits::default());
    let health = Health::new(Arc::clone(&metrics), Arc::clone(&shared), &features, *config.hz.get());
    let readers = Readers::new(runtimes);
    let symbolizer = Symbolizer::new(settings::symbolizer(config, readers.clone()));
    let pushers = pushers::start(config, data_dir).map_err(PipelineError::Runtime)?;
    // Whatever begins from here on is watched from its beginning.
    let threads = Threads::new(Limits::default(), started.monotonic_ns);
    let places = registry.places();
    let worker = Worker {
        lost: LostCounts::default(),
        capture,
        registry,
        symbolizer,
        windows: Windows::new(settings::windows(config, &node), ClockReading::take()),
        stacks: StackCache::default(),
        interner,
        store,
        closing: closing::Closing::default(),
        health,
        relabels: relabels::Relabels::default(),
        jvms: HashMap::new(),
        mid_window: worker::Ticks::default(),
        window_end: worker::Ticks::default(),
        threads,
        runtimes: Processes::new(readers),
        pythons: Pythons::default(),
        pace: Pace::new(),
        tables,
        shares: shares::Shares::default(),
        waits: waits::OpenWaits::default(),
        named: named::Named::new(config.events.named()),
        between: between::Between::default(),
        trim: heap::Trim::soon(),
        pushers,
    };
    Ok(Joined { worker, metrics, shared, node, places })
}
