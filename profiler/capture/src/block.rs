//! Requests of disks: a source on the tracepoints where they go out and come back.
//!
//! The records' form is checked against tracefs before it is believed, as the programs read them by fixed places.

use super::error::CaptureError;
use super::features::HostFeatures;
use super::source::SourceState;
use super::tracepoints::{Tracepoint, TracepointSource, too_old, tracefs};
use aya::Ebpf;
use emberscope_model::SampleKind;
use std::borrow::Cow;

/// The programs, and their tracepoints. What comes back is watched first.
const PROGRAMS: [(&str, &str); 2] =
    [("block_complete", "block_rq_complete"), ("block_issue", "block_rq_issue")];
const GROUP: &str = "block";
/// Where the programs read what both records have: field, offset, bytes.
const FIELDS: [(&str, u32, u32); 3] = [("dev", 8, 4), ("sector", 16, 8), ("nr_sector", 24, 4)];

/// Loads the programs, where this host has what they need. The source is on no CPU yet; a sample stands for `every` requests.
///
/// # Errors
/// Those of [`TracepointSource::load`].
pub(super) fn source(
    ebpf: &mut Ebpf,
    (features, programs): (&HostFeatures, &mut Vec<&'static str>),
    every: u64,
) -> Result<TracepointSource, CaptureError> {
    let lacks = too_old(features).map(Cow::Borrowed).or_else(|| other_form().map(Cow::Owned));
    let point = |(program, name): (&'static str, &str)| Tracepoint {
        program,
        group: GROUP.into(),
        name: name.into(),
    };
    let of = SourceState { kind: SampleKind::BlockIo, event: None, every, cpus: 0 };
    TracepointSource::load(ebpf, (features, programs), of, PROGRAMS.map(point).into(), lacks)
}

/// Why the records cannot be read.
fn other_form() -> Option<String> {
    let events = match tracefs() {
        Ok(events) => events,
        Err(why) => return Some(why),
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
    let format = tracefs().ok()?.join(GROUP).join("block_rq_issue/format");
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
