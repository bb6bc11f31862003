//! Why threads waited: the labels `wait`, `lock` and `lock_owner` of the rows of one window, as their stacks get names.

use emberscope_model::{
    Frame, FrameKind, LabelKey, LabelRewrite, LabelSet, LabelSetBuilder, Stack, WaitReason,
};
use emberscope_process::plain_name;
use emberscope_process::threads::name::thread_or_pool;
use emberscope_process::threads::wait_reason;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kernel's function that switches tasks (kernel/sched/core.c): at the leaf's side of it is only what takes the stack.
const SWITCHES: &str = "__schedule";

/// A wait's frames, root first, without those of the switch and of what takes the stack there.
fn up_to_the_switch(frames: &[Arc<Frame>]) -> &[Arc<Frame>] {
    let switches = |frame: &Arc<Frame>| frame.kind == FrameKind::Kernel && &*frame.name == SWITCHES;
    let at = frames.iter().rposition(switches).unwrap_or(frames.len());
    frames.get(..at).unwrap_or_default()
}

/// A lock that a thread waited for, as the walk told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The class of its object; a frame without a name where that could not be read.
    class: Arc<Frame>,
    /// The thread that held it; None: none did by itself, or it could not be read.
    owner: Option<Arc<str>>,
}

/// A wait's frames as they are, root first, and the lock that stands between them: on the leaf's side of the user's half.
pub fn without_lock(frames: &[Arc<Frame>]) -> (Cow<'_, [Arc<Frame>]>, Option<Lock>) {
    let frames = up_to_the_switch(frames);
    let user = frames.iter().rposition(|frame| frame.kind != FrameKind::Kernel).map_or(0, |last| last + 1);
    let (user, kernel) = frames.split_at(user);
    let (rest, class, owner) = match user {
        // A class that could not be read has no kind; with an owner it is one all the same.
        [rest @ .., owner, class] if owner.kind == FrameKind::Label => {
            (rest, class, Some(owner.name.clone()))
        }
        [rest @ .., class] if class.kind == FrameKind::Class => (rest, class, None),
        _ => return (frames.into(), None),
    };
    ([rest, kernel].concat().into(), Some(Lock { class: class.clone(), owner }))
}

/// The owner's name where none was seen: none held the lock by itself, or its thread could not be read.
const NOT_SEEN: &str = "(not seen)";

/// Labels with a reason and a lock, by these and the labels without. One set for each, so that rows can be compared by address.
#[derive(Debug, Default)]
pub struct Reasons(BTreeMap<(WaitReason, Option<Told>), LabelRewrite>);

/// The values of the labels `lock` and `lock_owner`.
type Told = (Arc<str>, Arc<str>);

impl Reasons {
    /// Puts into the labels why a thread with this stack waited. Gives the frame for the lock's class, where it waited for a lock
    /// and that is known: the innermost of the stack, as of an allocation's.
    pub fn tell(
        &mut self,
        stack: &Stack,
        lock: Option<Lock>,
        labels: &mut Arc<LabelSet>,
    ) -> Option<Arc<Frame>> {
        let reason = wait_reason(stack);
        let lock = lock.filter(|_| reason == WaitReason::Lock);
        let told: Option<Told> = lock.as_ref().map(|Lock { class, owner }| {
            let owner = owner.as_ref().map_or(NOT_SEEN, |owner| thread_or_pool(owner));
            (plain_name(&class.name).into(), plain_name(owner).into())
        });
        let with = |labels: &Arc<LabelSet>| {
            let set = LabelSetBuilder::from_set(labels).set(LabelKey::Wait, reason.slug());
            let set = match &told {
                Some((class, owner)) => {
                    set.set(LabelKey::Lock, class.clone()).set(LabelKey::LockOwner, owner.clone())
                }
                None => set,
            };
            Some(Arc::new(set.build()))
        };
        if let Some(one) = self.0.entry((reason, told.clone())).or_default().of(labels, with) {
            *labels = one;
        }
        lock.map(|lock| lock.class)
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
            assert_eq!(reasons.tell(&stack(name), None, &mut labels), None);
            labels
        };
        let (one, other) = (labels(), labels());
        let (sleep, again) = (told("do_nanosleep", &one), told("hrtimer_nanosleep", &other));
        assert!(Arc::ptr_eq(&sleep, &again) && sleep.get(LabelKey::Wait) == "sleep");
        assert_eq!(told("tcp_recvmsg", &one).get(LabelKey::Wait), "network");
        assert_eq!((sleep.get(LabelKey::Task), one.get(LabelKey::Wait)), ("7", ""));
    }

    #[test]
    fn a_lock_is_its_class_and_who_holds_it() {
        let frame = |kind, name: &str| Arc::new(Frame::new(kind, name, ""));
        let java = || frame(FrameKind::JavaCompiled, "a.B.c");
        let (enter, futex) =
            (frame(FrameKind::Native, "ObjectMonitor::enter"), frame(FrameKind::Kernel, "futex_wait"));
        let class = frame(FrameKind::Class, "a.Cache");
        let owner = frame(FrameKind::Label, "Executor task launch worker for task 7");
        let walked =
            [java(), enter.clone(), owner, class.clone(), futex.clone(), frame(FrameKind::Kernel, SWITCHES)];
        let (frames, lock) = without_lock(&walked);
        assert_eq!(*frames, [java(), enter.clone(), futex.clone()]);
        let mut reasons = Reasons::default();
        let mut told = |frames: &[Arc<Frame>], lock| {
            let mut labels = Arc::new(LabelSetBuilder::new().set(LabelKey::Task, "7").build());
            let stack = Stack { frames: frames.into(), end: StackEnd::Root };
            let leaf = reasons.tell(&stack, lock, &mut labels);
            (leaf, [LabelKey::Lock, LabelKey::LockOwner].map(|key| labels.get(key).to_owned()))
        };
        let want = ["a.Cache", "Executor task launch worker"].map(str::to_owned);
        assert_eq!(told(&frames, lock), (Some(class.clone()), want.clone()));
        let idle = frame(FrameKind::Label, "Executor task idle worker#71");
        let lock = Lock { class: class.clone(), owner: Some(idle.name.clone()) };
        assert_eq!(told(&frames, Some(lock)).1, want, "its task was over when its name was read");
        let walked = [java(), enter, class.clone(), futex.clone()];
        let (same, unowned) = without_lock(&walked);
        assert_eq!(same, frames);
        assert_eq!(told(&same, unowned).1, ["a.Cache", NOT_SEEN].map(str::to_owned));
        // Parked for something else, whose object is no lock's.
        let walked = [java(), class, futex.clone()];
        let (frames, lock) = without_lock(&walked);
        assert!(lock.is_some());
        assert_eq!(told(&frames, lock), (None, [String::new(), String::new()]));
        let walked = [java(), futex];
        assert_eq!(without_lock(&walked), (walked.as_slice().into(), None));
    }
}
