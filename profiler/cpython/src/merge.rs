//! Native and Python frames in one stack.
//!
//! In: a stack as the walker sent it: native frames, then the ranges of the eval loop, then the thread's chain of Python
//! frames, all innermost first. Out: one stack, in which each native frame of the eval loop is replaced by the Python
//! frames that it stands for. Both are paired from the root: at the innermost end the interpreter's account lags
//! behind (an eval frame whose function is not yet, or no longer, in the chain stays a native one). Where one of the
//! two was cut they are paired from the innermost on, and what the chain has beyond lies below the last native frame.

use profiler_ebpf::{PythonFrameTag, UserFrame};
use std::ops::Range;

/// The merged stack. `rooted`: the native frames reach the thread's first.
pub fn merge(user: &[UserFrame], rooted: bool) -> Vec<UserFrame> {
    let tag =
        |frame: &UserFrame| (!frame.is_native()).then(|| PythonFrameTag::from_number(frame.kind)).flatten();
    let of = |wanted: PythonFrameTag| user.iter().filter(move |frame| tag(frame) == Some(wanted));
    let native: Vec<UserFrame> = user.iter().filter(|frame| frame.is_native()).copied().collect();
    let ranges: Vec<Range<u64>> = of(PythonFrameTag::EvalRange)
        .map(|range| range.value..range.value.saturating_add(range.cookie.into()))
        .collect();
    let chain: Vec<UserFrame> = user
        .iter()
        .filter(|frame| matches!(tag(frame), Some(PythonFrameTag::Function | PythonFrameTag::Entry)))
        .copied()
        .collect();
    let whole = rooted && of(PythonFrameTag::Root).next().is_some();
    let is_eval = |frame: &UserFrame| {
        let back = frame.flags & UserFrame::FLAG_RETURN_ADDRESS != 0;
        let address = frame.value.saturating_sub(back.into());
        ranges.iter().any(|range| range.contains(&address))
    };
    let groups: Vec<&[UserFrame]> =
        chain.split_inclusive(|frame| frame.kind == PythonFrameTag::Entry as u8).collect();
    let evals = native.iter().filter(|frame| is_eval(frame)).count();
    let paired = evals.min(groups.len());
    // Which of either come first: from the root on all that are left over are the innermost.
    let (mut skipped_evals, first_group) =
        if whole { (evals - paired, groups.len() - paired) } else { (0, 0) };
    let (early, rest) = groups.split_at_checked(first_group).unwrap_or_default();
    let mut rest = rest.iter();
    let mut merged = Vec::with_capacity(user.len());
    let mut early = early.concat();
    for frame in &native {
        if !is_eval(frame) {
            merged.push(*frame);
        } else if skipped_evals > 0 {
            skipped_evals -= 1;
            merged.push(*frame);
        } else if let Some(group) = rest.next() {
            // Groups without an eval frame: nothing tells what lies between them and the next one.
            merged.append(&mut early);
            merged.extend_from_slice(group);
        } else {
            merged.push(*frame);
        }
    }
    merged.append(&mut early);
    merged.extend(rest.copied().flatten());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_ebpf::RuntimeId;
    use proptest::prelude::*;

    /// `e`: the eval loop; other small letters: native; capitals: Python, the last of a group followed by `.`; `^`: the
    /// chain's end.
    fn stack(text: &str) -> Vec<UserFrame> {
        let python = |kind: PythonFrameTag, value, cookie| UserFrame {
            value,
            cookie,
            kind: kind as u8,
            runtime: RuntimeId::CPYTHON.0,
            ..UserFrame::default()
        };
        let mut frames: Vec<UserFrame> = Vec::new();
        for c in text.chars() {
            match c {
                '.' => frames.last_mut().unwrap().kind = PythonFrameTag::Entry as u8,
                '^' => frames.push(python(PythonFrameTag::Root, 0, 0)),
                '|' => frames.push(python(PythonFrameTag::EvalRange, 'e'.into(), 1)),
                'A'..='Z' => frames.push(python(PythonFrameTag::Function, c.into(), 0)),
                // The first is where it was interrupted, the others return there.
                _ => {
                    let back = !frames.is_empty();
                    let flags = if back { UserFrame::FLAG_RETURN_ADDRESS } else { 0 };
                    frames.push(UserFrame {
                        value: u64::from(c) + u64::from(back),
                        flags,
                        ..UserFrame::default()
                    });
                }
            }
        }
        frames
    }

    fn merged(text: &str, rooted: bool) -> String {
        let back = |f: &UserFrame| u64::from(f.flags & UserFrame::FLAG_RETURN_ADDRESS != 0);
        let char = |f: UserFrame| char::from_u32((f.value - back(&f)) as u32).unwrap();
        merge(&stack(text), rooted).into_iter().map(char).collect()
    }

    #[test]
    fn each_eval_frame_becomes_its_functions() {
        assert_eq!(merged("eaebm|A.B.^", true), "AaBbm");
        assert_eq!(merged("naeben|ABC.D.^", true), "naABCbDn");
        assert_eq!(merged("nm|^", true), "nm", "no Python in this thread");
        assert_eq!(merged("nem", true), "nem", "none is known");
    }

    #[test]
    fn what_is_left_over_is_innermost() {
        assert_eq!(merged("eaebm|B.^", true), "eaBbm");
        assert_eq!(merged("aebm|A.B.^", true), "aABbm");
        assert_eq!(merged("ab|A.B.^", true), "abAB", "no eval frame at all");
    }

    #[test]
    fn a_cut_stack_is_paired_from_the_innermost_and_keeps_the_chain() {
        assert_eq!(merged("eae|A.B.C.D.^", false), "AaBCD");
        assert_eq!(merged("eaebem|A.B", true), "AaBbem", "the chain was cut");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_made(text in "[a-h]{0,12}\\|{0,2}([A-Z]\\.?){0,12}\\^?", rooted: bool) {
            let frames = merged(&text, rooted);
            let count = |text: &str| {
                let mut all: Vec<char> = text.chars().filter(char::is_ascii_uppercase).collect();
                all.sort();
                all
            };
            prop_assert_eq!(count(&frames), count(&text));
            let in_order: String = frames.chars().filter(char::is_ascii_uppercase).collect();
            let told: String = text.chars().filter(char::is_ascii_uppercase).collect();
            prop_assert_eq!(in_order, told);
            prop_assert!(frames.chars().filter(|c| *c != 'e').filter(char::is_ascii_lowercase)
                .eq(text.chars().filter(|c| *c != 'e').filter(char::is_ascii_lowercase)));
        }
    }
}
