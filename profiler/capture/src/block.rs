//! Requests of disks: a [`Source`] on the tracepoints where they go out and come back.
//!
//! The records' form is checked against tracefs before it is believed, as the programs read them by fixed places.

use super::error::CaptureError;
use super::features::HostFeatures;
use super::loader;
use super::named::{old, tracefs};
use super::source::{Source, SourceState};
use aya::Ebpf;
use aya::programs::TracePoint;
use aya::programs::trace_point::TracePointLinkId;
use emberscope_model::SampleKind;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The programs, and their tracepoints. What comes back is watched first.
const PROGRAMS: [(&str, &str); 2] =
    [("block_complete", "block_rq_complete"), ("block_issue", "block_rq_issue")];
const GROUP: &str = "block";
/// Where the programs read what both records have: field, offset, bytes.
const FIELDS: [(&str, u32, u32); 3] = [("dev", 8, 4), ("sector", 16, 8), ("nr_sector", 24, 4)];

/// The tracepoints, which are the whole machine's: attached while there is a CPU to watch.
pub(super) struct BlockSource {
    every: u64,
    lacks: Option<Cow<'static, str>>,
    cpus: BTreeSet<u32>,
    links: Vec<(&'static str, TracePointLinkId)>,
}

impl BlockSource {
    /// Loads the programs, where this host has what they need. The source is on no CPU yet; a sample stands for `every`
    /// requests.
    ///
    /// # Errors
    /// [`CaptureError::Refused`], [`CaptureError::Program`] or [`CaptureError::Missing`]: a program cannot be loaded.
    pub(super) fn load(
        ebpf: &mut Ebpf,
        every: u64,
        features: &HostFeatures,
        programs: &mut Vec<&'static str>,
    ) -> Result<Self, CaptureError> {
        let lacks = old(features).or_else(|| other_form().map(Cow::Owned));
        for (name, _) in PROGRAMS.into_iter().filter(|_| lacks.is_none()) {
            let program: &mut TracePoint = loader::program(ebpf, name)?;
            program.load().map_err(|e| CaptureError::load(&features.kernel, name, e))?;
            programs.push(name);
        }
        Ok(Self { every, lacks, cpus: BTreeSet::new(), links: Vec::new() })
    }

    /// Puts the programs on the tracepoints, or takes them off.
    fn set(&mut self, ebpf: &mut Ebpf) -> Result<(), CaptureError> {
        if self.cpus.is_empty() {
            for (name, link) in self.links.drain(..) {
                let program: &mut TracePoint = loader::program(ebpf, name)?;
                program.detach(link).map_err(|e| CaptureError::attach(name, e))?;
            }
        } else if self.links.is_empty() {
            for (name, tracepoint) in PROGRAMS {
                let program: &mut TracePoint = loader::program(ebpf, name)?;
                let link = program.attach(GROUP, tracepoint).map_err(|e| CaptureError::attach(name, e))?;
                self.links.push((name, link));
            }
        }
        Ok(())
    }
}

/// Why the records cannot be read.
fn other_form() -> Option<String> {
    let Some(events) = tracefs() else {
        return Some("there is no tracefs: mount it at /sys/kernel/tracing".to_owned());
    };
    PROGRAMS.into_iter().find_map(|(_, tracepoint)| {
        let path = events.join(GROUP).join(tracepoint).join("format");
        let Ok(format) = std::fs::read_to_string(&path) else {
            return Some(format!("there is no {}: CONFIG_BLOCK and CONFIG_TRACING bring it", path.display()));
        };
        let known = FIELDS.into_iter().all(|(field, at, bytes)| place(&format, field) == Some((at, bytes)));
        (!known || place(&format, "rwbs").is_none())
            .then(|| format!("{} has another form than this version reads: please report it", path.display()))
    })
}

/// Where `rwbs` is in the records of requests that go out.
pub(super) fn rwbs_at() -> Option<u32> {
    let format = tracefs()?.join(GROUP).join("block_rq_issue/format");
    place(&std::fs::read_to_string(format).ok()?, "rwbs").map(|(at, _)| at)
}

/// Offset and bytes of a field, by the text that tracefs has of a tracepoint's record:
/// `field:sector_t sector; offset:16; size:8; signed:0;`.
fn place(format: &str, field: &str) -> Option<(u32, u32)> {
    let of = |line: &str| {
        let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
        let name = declared.split('[').next()?.rsplit([' ', '*']).next()?;
        let number = |key: &str| {
            let part = rest.split(';').find_map(|part| part.trim().strip_prefix(key))?;
            part.parse::<u32>().ok()
        };
        (name == field).then_some((number("offset:")?, number("size:")?))
    };
    format.lines().find_map(of)
}

impl Source for BlockSource {
    fn state(&self) -> SourceState {
        SourceState { kind: SampleKind::BlockIo, event: None, every: self.every, cpus: self.cpus.len() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_tracefs_says() {
        // Linux 6.18, cut.
        let format = "name: block_rq_issue\nID: 1226\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
                      \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
                      \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
                      \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
                      \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n";
        assert!(FIELDS.into_iter().all(|(field, at, bytes)| place(format, field) == Some((at, bytes))));
        assert_eq!(place(format, "rwbs"), Some((34, 10)));
        assert_eq!((place(format, "sect"), place("", "dev"), place("field:dev", "dev")), (None, None, None));
        assert_eq!(place("field:dev_t dev;\toffset:x;\tsize:4;", "dev"), None);
    }
}
