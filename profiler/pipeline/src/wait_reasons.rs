//! Why threads waited: the label `wait` of the rows of one window, as their stacks get names.

use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelRewrite, LabelSet, LabelSetBuilder, Stack, WaitReason,
};
use emberscope_process::threads::wait_reason;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kernel's function that switches tasks (kernel/sched/core.c): at the leaf's side of it is only what takes the stack.
const SWITCHES: &str = "__schedule";

/// A wait's frames, root first, without those of the switch and of what takes the stack there.
pub fn up_to_the_switch(frames: &[Arc<Frame>]) -> &[Arc<Frame>] {
    let switches = |frame: &Arc<Frame>| frame.kind == FrameKind::Kernel && &*frame.name == SWITCHES;
    let at = frames.iter().rposition(switches).unwrap_or(frames.len());
    frames.get(..at).unwrap_or_default()
}

/// Labels with a reason, by the reason and those without. One set for each, so that rows can be compared by address.
#[derive(Debug, Default)]
pub struct Reasons(BTreeMap<WaitReason, LabelRewrite>);

impl Reasons {
    /// Puts into the labels why a thread with this stack waited.
    pub fn tell(&mut self, stack: &Stack, labels: &mut Arc<LabelSet>) {
        let reason = wait_reason(stack);
        let told = |labels: &Arc<LabelSet>| {
            Some(Arc::new(LabelSetBuilder::from_set(labels).set(LabelKey::Wait, reason.slug()).build()))
        };
        if let Some(one) = self.0.entry(reason).or_default().of(labels, told) {
            *labels = one;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::StackEnd;

    fn frames(names: &[&str]) -> Vec<Arc<Frame>> {
        names.iter().map(|name| Arc::new(Frame::new(FrameKind::Kernel, *name, ""))).collect()
    }

    #[test]
    fn the_switch_is_no_part_of_a_wait() {
        let of = |names: &[&str]| up_to_the_switch(&frames(names)).len();
        assert_eq!(of(&["do_futex", "schedule", "__schedule", "bpf_trace_run4", "bpf_prog_1_off_cpu"]), 2);
        assert_eq!((of(&["do_futex"]), of(&["__schedule"]), of(&[])), (1, 0, 0));
        let java = [Arc::new(Frame::new(FrameKind::JavaCompiled, SWITCHES, ""))];
        assert_eq!(up_to_the_switch(&java).len(), 1);
    }

    #[test]
    fn rows_of_one_reason_have_one_set() {
        let labels =
            || Arc::new(LabelSetBuilder::new().set(LabelKey::App, "a").set(LabelKey::Task, "7").build());
        let stack = |name: &str| Stack { frames: frames(&[name]).into(), end: StackEnd::Root };
        let mut reasons = Reasons::default();
        let mut told = |name: &str, labels: &Arc<LabelSet>| {
            let mut labels = labels.clone();
            reasons.tell(&stack(name), &mut labels);
            labels
        };
        let (one, other) = (labels(), labels());
        let (sleep, again) = (told("do_nanosleep", &one), told("hrtimer_nanosleep", &other));
        assert!(Arc::ptr_eq(&sleep, &again) && sleep.get(LabelKey::Wait) == "sleep");
        assert_eq!(told("tcp_recvmsg", &one).get(LabelKey::Wait), "network");
        assert_eq!((sleep.get(LabelKey::Task), one.get(LabelKey::Wait)), ("7", ""));
    }
}
