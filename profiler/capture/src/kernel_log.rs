//! Log lines of the BPF side, into the daemon's own log.

use super::error::CaptureError;
use aya::Ebpf;
use aya_log::EbpfLogger;

/// Reads those lines; they are rare (the first loss on a CPU), so nothing waits for them.
pub(super) struct KernelLog(EbpfLogger<ToTracing>);

impl KernelLog {
    pub(super) fn new(ebpf: &mut Ebpf) -> Result<Self, CaptureError> {
        EbpfLogger::init_with_logger(ebpf, ToTracing)
            .map(Self)
            .map_err(|_| CaptureError::Missing { name: "AYA_LOGS" })
    }

    /// Passes on what has come.
    pub(super) fn flush(&mut self) {
        self.0.flush();
    }
}

struct ToTracing;

impl log::Log for ToTracing {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        let text = record.args();
        match record.level() {
            log::Level::Error => tracing::error!(target: "emberscope::bpf", "{text}"),
            log::Level::Warn => tracing::warn!(target: "emberscope::bpf", "{text}"),
            _ => tracing::info!(target: "emberscope::bpf", "{text}"),
        }
    }
    fn flush(&self) {}
}
