//! Whose a sample is: the labels of its thread, and its stack, whose frames have their names later.

use super::{Worker, quarantined};
use crate::runtimes;
use crate::stacks::{Entry, StackToken};
use emberscope_model::{LabelSet, RawPause, RawSample, Role, StackEnd};
use emberscope_process::Process;
use emberscope_process::identity::PythonSide;
use emberscope_process::threads::{Owner, OwnerKind};
use emberscope_supervise::{attempt, faults};
use emberscope_symbolize::{PendingFrame, PendingStack, Target};
use std::sync::Arc;

/// JVMs remembered for being asked between the ends of windows; over it only at the ends.
const MAX_JVMS: usize = 4096;

impl Worker {
    /// The labels and the stack of a sample; None: it is not kept.
    pub(in super::super) fn whose(&mut self, sample: &RawSample) -> Option<(Arc<LabelSet>, StackToken)> {
        let process = self.registry.get(sample.pid);
        if !process.kept {
            self.health.not_kept();
            return None;
        }
        self.tables.sampled(sample.pid, process.tenant);
        let (key, jvm, target) = (process.key, process.is_jvm(), target_of(process));
        let owner = owner_of(process);
        if sample.name_seq == 0 && self.threads.is_new(&owner, sample.tid) {
            // Born before the probe was there. It runs at this moment, so it is in /proc.
            if let Some(comm) = runtimes::comm(sample.pid, sample.tid) {
                self.threads.learn_comm(&owner, sample.tid, &comm);
            }
        }
        let labels = self.threads.labels(&owner, sample.tid, sample.name_seq);
        let (symbolizer, jvms, tables) = (&mut self.symbolizer, &mut self.jvms, &mut self.tables);
        let known = self.stacks.token(key, sample.stack, |raw| {
            let end = raw.end;
            tables.ran(key.pid, raw.user.iter().filter(|frame| frame.is_native()).map(|frame| frame.value));
            let pending = attempt(|| {
                faults::point("naming");
                symbolizer.begin(&target, raw)
            });
            // A file that cannot be read costs its stack, not the sampling.
            let pending = pending.unwrap_or_else(|_| unreadable(end));
            let entry = Entry { target: Arc::new(target), pending };
            if jvm && entry.pending.waits() && jvms.len() < MAX_JVMS {
                jvms.insert(key, entry.target.clone());
            }
            entry
        });
        let token = known.unwrap_or_else(|| self.stacks.lost_token(key, || Arc::new(target)));
        self.health.sample(sample.kind);
        Some((labels, token))
    }
}

impl Worker {
    /// A pause of a JVM is listed, with the labels of its process.
    pub(in super::super) fn pause(&mut self, pause: &RawPause) {
        let process = self.registry.get(pause.pid);
        if process.kept {
            let cause = self.runtimes.cause(process.key, pause.operation).unwrap_or_default();
            self.windows.pause((pause.began_ns, pause.ended_ns), &process.labels, cause);
        }
    }
}

/// A stack whose frames could not be read without a failure of ours.
fn unreadable(end: StackEnd) -> PendingStack {
    PendingStack { frames: [PendingFrame::Named(quarantined())].into(), end }
}

pub(super) fn owner_of(process: &Process) -> Owner<'_> {
    // These are JVMs before libjvm is mapped.
    let jvm = process.is_jvm() || matches!(process.role, Role::Executor | Role::Driver);
    let kind = match process.python {
        _ if jvm => OwnerKind::Jvm,
        Some(PythonSide::Daemon) => OwnerKind::Daemon,
        Some(PythonSide::Worker | PythonSide::Helper) => OwnerKind::Worker,
        Some(PythonSide::Driver) | None => OwnerKind::Other,
    };
    let (labels, role, tenant) = (&process.labels, process.role, process.tenant);
    Owner { pid: process.key.pid, labels, role, kind, tenant }
}

fn target_of(process: &Process) -> Target {
    Target {
        key: process.key,
        uid: process.uid,
        gid: process.gid,
        nspid: process.inner_pid,
        tenant: process.tenant,
    }
}
