//! Reads tokens and the certificate again when they change.
//!
//! In: [`Doors`]' files. Out: what holds from then on; a file that is no good leaves what held before, and is told in
//! the log, the status and a metric. Looks each minute, and at once at SIGHUP.

use super::config::Access;
use super::doors::Doors;
use super::guard::{Again, Guard};
use super::metrics::Metrics;
use super::tls::Certificate;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often it is looked: cert-manager and their like renew days ahead.
const EVERY: Duration = Duration::from_secs(60);

/// The files of a server that may change while it runs: tokens and the certificate.
pub struct Files {
    guard: Option<Arc<Guard>>,
    certificate: Option<Arc<Certificate>>,
    metrics: Arc<Metrics>,
}

impl Files {
    /// The files of these doors.
    pub fn of(doors: &Doors, metrics: Arc<Metrics>) -> Self {
        let guard = match &doors.access {
            Access::Guarded(guard) => Some(Arc::clone(guard)),
            Access::LocalHostOnly => None,
        };
        Self { guard, certificate: doors.certificate.clone(), metrics }
    }

    /// Reads the files again that changed, now.
    pub fn look(&self) {
        if let Some(guard) = &self.guard {
            for (what, path, again) in guard.read_again() {
                self.tell(what, path, &again);
            }
        }
        if let Some(certificate) = &self.certificate {
            self.tell("tls-cert", &certificate.files().cert, &certificate.read_again());
        }
    }

    fn tell(&self, what: &str, path: &Path, again: &Again) {
        let failing = self.metrics.http.file_failing.with_label_values(&[what]);
        match again {
            Again::Same => {}
            Again::Read => {
                failing.set(0);
                tracing::info!(file = %path.display(), "{what} changed and was read");
            }
            Again::Bad(reason) => {
                failing.set(1);
                tracing::warn!(file = %path.display(), reason, "{what} changed and is no good: the one before holds");
            }
        }
    }

    /// Looks every minute from now on, and at each SIGHUP.
    pub async fn watch(self) {
        let mut hangup = signal(SignalKind::hangup()).ok();
        loop {
            let told = async {
                match &mut hangup {
                    Some(hangup) => {
                        hangup.recv().await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = told => tracing::info!("SIGHUP: looking at tokens and the certificate"),
            }
            // Small files, but a disk may be slow.
            tokio::task::block_in_place(|| self.look());
        }
    }
}
