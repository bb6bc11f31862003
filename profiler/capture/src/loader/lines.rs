//! The object without the lines of its instructions, of which aya keeps copies for as long as programs may be loaded: for each
//! program those of all functions that it calls, nearly as much memory as the instructions.
//!
//! In: the object, and what loads it. Out: what came of that. A program that the verifier refuses is shown to it once more with
//! lines, which it then names.

use crate::error::CaptureError;
use object::{Object as _, ObjectSection as _};

/// Place of `line_info_len` in the header of `.BTF.ext` (`struct btf_ext_header`, tools/lib/bpf/libbpf_internal.h of Linux).
const LENGTH: usize = 20;

/// Loads it without lines where that can be.
///
/// # Errors
/// What `load` fails with.
pub(super) fn spared<T>(
    object: &[u8],
    load: impl Fn(&[u8]) -> Result<T, CaptureError>,
) -> Result<T, CaptureError> {
    match without(object).map(|bare| load(&bare)) {
        None | Some(Err(CaptureError::Refused { .. })) => load(object),
        Some(other) => other,
    }
}

/// The same object without lines; None: it has no such section.
fn without(object: &[u8]) -> Option<Vec<u8>> {
    let at = section(object)?.checked_add(LENGTH)?;
    let mut bare = object.to_vec();
    bare.get_mut(at..at + size_of::<u32>())?.fill(0);
    Some(bare)
}

/// Where `.BTF.ext` begins in the file.
fn section(object: &[u8]) -> Option<usize> {
    let (at, _) = object::File::parse(object).ok()?.section_by_name(".BTF.ext")?.file_range()?;
    at.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::OBJECT;
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn only_lines_go_and_they_come_back_where_the_verifier_refuses() {
        let Some(at) = section(OBJECT) else {
            assert!(OBJECT.is_empty(), "an object has functions");
            return;
        };
        let lines = |object: &[u8]| object[at + LENGTH..][..4].iter().any(|byte| *byte != 0);
        let seen = RefCell::new(Vec::new());
        let refused = spared(OBJECT, |object| {
            seen.borrow_mut()
                .push((lines(object), object.iter().zip(OBJECT).filter(|(a, b)| a != b).count()));
            Err::<(), _>(CaptureError::Refused {
                kernel: String::new(),
                program: String::new(),
                source: std::io::Error::other("no"),
                log_tail: String::new(),
            })
        });
        assert!(refused.is_err());
        let seen = seen.into_inner();
        assert!(matches!(seen[..], [(false, 1..=4), (true, 0)]), "{seen:?}");
        assert!(spared(OBJECT, |object| Ok(!lines(object))).is_ok_and(|bare| bare));
        assert!(spared(b"no ELF", |object| Ok(object == b"no ELF")).is_ok_and(|same| same));
    }
}
