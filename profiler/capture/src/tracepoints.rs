//! Tracepoints whose programs sample: a [`Source`] of one of them or several, attached while any CPU is watched.
//!
//! A tracepoint's program runs wherever the tracepoint is met, so that it is attached once for the whole machine.

use super::error::CaptureError;
use super::features::HostFeatures;
use super::loader;
use super::source::{Source, SourceState};
use aya::Ebpf;
use aya::programs::TracePoint;
use aya::programs::trace_point::TracePointLinkId;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where tracefs is, the first that is there.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A program, and the tracepoint that it is for.
pub(super) struct Tracepoint {
    pub program: &'static str,
    pub group: Box<str>,
    pub name: Box<str>,
}

/// A source whose samples are taken at tracepoints.
pub(super) struct TracepointSource {
    /// What is sampled, but for the CPUs.
    of: SourceState,
    /// In the order in which they are attached.
    points: Vec<Tracepoint>,
    lacks: Option<Cow<'static, str>>,
    cpus: BTreeSet<u32>,
    links: Vec<(&'static str, TracePointLinkId)>,
}

impl TracepointSource {
    /// Loads the programs, unless this host `lacks` something. The source is on no CPU yet.
    ///
    /// # Errors
    /// [`CaptureError::Refused`], [`CaptureError::Program`] or [`CaptureError::Missing`]: a program cannot be loaded.
    pub(super) fn load(
        ebpf: &mut Ebpf,
        (features, programs): (&HostFeatures, &mut Vec<&'static str>),
        of: SourceState,
        points: Vec<Tracepoint>,
        lacks: Option<Cow<'static, str>>,
    ) -> Result<Self, CaptureError> {
        for name in points.iter().filter(|_| lacks.is_none()).map(|point| point.program) {
            let program: &mut TracePoint = loader::program(ebpf, name)?;
            program.load().map_err(|e| CaptureError::load(&features.kernel, name, e))?;
            programs.push(name);
        }
        Ok(Self { of, points, lacks, cpus: BTreeSet::new(), links: Vec::new() })
    }

    /// Puts the programs on the tracepoints, or takes them off.
    fn set(&mut self, ebpf: &mut Ebpf) -> Result<(), CaptureError> {
        if self.cpus.is_empty() {
            for (name, link) in self.links.drain(..) {
                let program: &mut TracePoint = loader::program(ebpf, name)?;
                program.detach(link).map_err(|e| CaptureError::attach(name, e))?;
            }
        } else if self.links.is_empty() {
            for Tracepoint { program: name, group, name: point } in &self.points {
                let program: &mut TracePoint = loader::program(ebpf, name)?;
                let link = program.attach(group, point).map_err(|e| CaptureError::attach(name, e))?;
                self.links.push((name, link));
            }
        }
        Ok(())
    }
}

impl Source for TracepointSource {
    fn state(&self) -> SourceState {
        SourceState { cpus: self.cpus.len(), ..self.of.clone() }
    }

    fn lacks(&self, _host: &HostFeatures) -> Option<Cow<'static, str>> {
        self.lacks.clone()
    }

    fn attach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<bool, CaptureError> {
        self.cpus.insert(cpu);
        self.set(ebpf).map(|()| true)
    }

    fn detach(&mut self, ebpf: &mut Ebpf, cpu: u32) -> Result<(), CaptureError> {
        self.cpus.remove(&cpu);
        self.set(ebpf)
    }
}

/// What a kernel lacks that is too old for walks from a tracepoint.
pub(super) fn too_old(features: &HostFeatures) -> Option<&'static str> {
    let needed = features.task_pt_regs && features.bpf_loop;
    (!needed).then_some("bpf_task_pt_regs and bpf_loop: Linux 5.17 with CONFIG_DEBUG_INFO_BTF brings them")
}

/// Where tracefs has its events; else what is to be done.
pub(super) fn tracefs() -> Result<PathBuf, String> {
    let events =
        TRACEFS.into_iter().map(|root| Path::new(root).join("events")).find(|events| events.is_dir());
    events.ok_or_else(|| format!("there is no tracefs: mount it at {}", TRACEFS[0]))
}
