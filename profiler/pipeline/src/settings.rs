//! What each room is configured with: the daemon's configuration in, those of the rooms out.

use super::stacks::{Entry, StackToken};
use super::{GRACE, MAX_ROWS, PipelineError};
use emberscope_aggregate::WindowsConfig;
use emberscope_capture::CaptureConfig;
use emberscope_config::{DaemonConfig, FreeSpace, FsyncWhen, FullDisk, Price};
use emberscope_model::{
    Frame, LabelKey, LabelSetBuilder, ProcessKey, RunNames, StackEnd, Tenant, UnknownReason,
};
use emberscope_process::{AppFilter, ExecutorFilter, Fraction, Keep, RegistryConfig};
use emberscope_runtime::Readers;
use emberscope_serve::Prices;
use emberscope_store::{AnswerLimits, DiskStoreConfig, Fsync, KeepFree, RollUp, WhenFull};
use emberscope_symbolize::{PendingFrame, PendingStack, SymbolizerConfig, Target};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The configuration of the store in `dir`.
pub fn store(config: &DaemonConfig, dir: &Path) -> DiskStoreConfig {
    DiskStoreConfig {
        window_length: config.window.get().get(),
        memory_bytes: config.store_bytes.as_usize(),
        fsync: match config.fsync {
            FsyncWhen::Window => Fsync::Window,
            FsyncWhen::Never => Fsync::Never,
        },
        when_full: match config.when_full {
            FullDisk::Drop => WhenFull::DropOldest,
            FullDisk::Stop => WhenFull::Stop,
        },
        keep_free: keep_free(config.keep_free),
        retention_age: config.retention_age.get(),
        roll_ups: [(config.rollup_1m_age, 60), (config.rollup_10m_age, 600)]
            .into_iter()
            .filter(|(age, _)| !age.get().is_zero())
            .map(|(age, seconds)| RollUp { after: age.get(), window: Duration::from_secs(seconds) })
            .collect(),
        answers: AnswerLimits {
            nodes: *config.query_nodes.get() as usize,
            time: config.query_time.get(),
            bytes: config.query_bytes.0,
            ..AnswerLimits::default()
        },
        retention_bytes: config.retention_bytes.0,
        ..DiskStoreConfig::new(dir)
    }
}

/// How much of data-dir's file system stays free.
pub const fn keep_free(setting: FreeSpace) -> KeepFree {
    match setting {
        FreeSpace::Auto => KeepFree::Auto,
        FreeSpace::Bytes(bytes) => KeepFree::Bytes(bytes.0),
        FreeSpace::Percent(percent) => KeepFree::Percent(percent),
    }
}

/// What hours of cores and memory cost.
pub fn prices(core_hour: Option<&Price>, gib_hour: Option<&Price>) -> Prices {
    let price = |price: &Price| *price.get();
    Prices { core_hour: core_hour.map(price), gib_hour: gib_hour.map(price) }
}

/// The configuration of the registry of processes, without the runtimes' marks.
///
/// # Errors
/// [`PipelineError::Keep`]: a filter of applications or executors cannot be read. [`PipelineError::RunNames`]: the
/// expression cannot.
pub fn registry(config: &DaemonConfig, node: &str) -> Result<RegistryConfig, PipelineError> {
    let keep = Keep {
        apps: config.apps.get().parse::<AppFilter>()?,
        executors: config.executors.get().parse::<ExecutorFilter>()?,
        fraction: Fraction::new(*config.fraction.get())?,
    };
    let run_names = config.run_names.as_ref().map(|names| RunNames::new(names.get()));
    Ok(RegistryConfig {
        keep,
        run_names: run_names.transpose().map_err(PipelineError::RunNames)?.unwrap_or_default(),
        ask_drivers: config.ask_drivers,
        cluster_users: config.cluster_users.get().split(',').map(|name| name.trim().to_owned()).collect(),
        ..RegistryConfig::host(node)
    })
}

/// The configuration of the sampling programs.
pub fn capture(config: &DaemonConfig) -> CaptureConfig {
    CaptureConfig {
        hz: *config.hz.get(),
        others: config
            .events
            .get()
            .iter()
            .filter_map(|sampled| Some((sampled.kind, sampled.every?)))
            .collect(),
        named: config.events.named().to_vec(),
        pauses: config.pauses,
        ring_bytes: config.ring_bytes.as_ref().map(|size| u32::try_from(size.get().0).unwrap_or(u32::MAX)),
        ..CaptureConfig::default()
    }
}

/// The configuration of a node's windows.
pub fn windows(config: &DaemonConfig, node: &str) -> WindowsConfig<StackToken> {
    let labels = LabelSetBuilder::new().set(LabelKey::Node, node).build();
    WindowsConfig {
        length: config.window.get().get(),
        grace: GRACE,
        max_rows: MAX_ROWS,
        overflow_stack: overflow_stack(),
        overflow_labels: Arc::new(labels),
        tenant: |token| token.0.target.tenant,
        // 16 bytes a frame until the window closes: 64 MiB at most, and most stacks are one or two.
        cost: |token| 1 + token.0.pending.frames.len() / 64,
    }
}

/// The configuration of what names frames.
pub fn symbolizer(config: &DaemonConfig, readers: Readers) -> SymbolizerConfig {
    SymbolizerConfig {
        readers,
        ask_jvms: config.ask_jvms,
        ask_interval: config.ask_interval.get(),
        debuginfod: (
            config.debuginfod.as_ref().map(|urls| urls.get().to_vec()).unwrap_or_default(),
            config.data_dir.get().join("debuginfod"),
        ),
        ..SymbolizerConfig::default()
    }
}

/// The stack of samples that a full window can no longer tell apart.
fn overflow_stack() -> StackToken {
    let frame = Arc::new(Frame::unknown(UnknownReason::TableFull, ""));
    let nobody = ProcessKey { pid: 0, start_ticks: 0 };
    StackToken(Arc::new(Entry {
        target: Arc::new(Target { key: nobody, uid: 0, gid: 0, nspid: 0, tenant: Tenant::default() }),
        pending: PendingStack { frames: [PendingFrame::Named(frame)].into(), end: StackEnd::Unknown },
    }))
}
