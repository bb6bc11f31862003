//! Whether a thread that has a task's name still runs the task, by its stack.
//!
//! Up to Spark 4.1 a thread of the pool keeps the last task's name while it waits for the next. Its stack
//! then is `ThreadPoolExecutor.runWorker` > `getTask` > ..., and nothing of a task: `runWorker` calls
//! `getTask` between two tasks only (java.util.concurrent, JDK 8 to 25). `runWorker` itself stays interpreted for
//! long, and interpreted frames have no names: few of them below `getTask` can only be the pool's own. Only what is
//! certain counts: a stack that is cut, or other frames there, leave the sample with its task.

use emberscope_model::{Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, Stack};
use std::sync::Arc;

const RUN_WORKER: &str = "java.util.concurrent.ThreadPoolExecutor.runWorker";
/// What a worker of a pool runs in, from the thread's start on; `runWith` from JDK 21 on.
const POOL: [&str; 4] = [
    "java.lang.Thread.run",
    "java.lang.Thread.runWith",
    "java.util.concurrent.ThreadPoolExecutor$Worker.run",
    RUN_WORKER,
];
/// What `runWorker` calls when it has nothing to run: waits for the next, or ends.
const BETWEEN: [&str; 2] = [
    "java.util.concurrent.ThreadPoolExecutor.getTask",
    "java.util.concurrent.ThreadPoolExecutor.processWorkerExit",
];
const TASK: &str = "org.apache.spark.executor.Executor$TaskRunner.run";

/// What a stack says of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupation {
    /// The task is over: the thread waits for the next, or ends.
    Idle,
    /// The thread runs a task.
    Task,
    /// The stack is cut or its frames have no names: the thread's name is to be believed.
    CannotTell,
}

/// Reads the stack of a thread that has a task's name.
pub fn occupation(stack: &Stack) -> Occupation {
    if stack.frames.iter().any(|frame| is_java(frame, TASK)) {
        return Occupation::Task;
    }
    if stack.truncated() {
        return Occupation::CannotTell;
    }
    let between = |frame: &Arc<Frame>| BETWEEN.iter().any(|name| is_java(frame, name));
    let below = stack.frames.iter().position(between).and_then(|at| stack.frames.get(..at));
    match below {
        Some(below) if is_pool(below) => Occupation::Idle,
        _ => Occupation::CannotTell,
    }
}

/// The frames of a pool's worker and no others, from the root on: some interpreted, so without a name.
fn is_pool(frames: &[Arc<Frame>]) -> bool {
    let interpreted = |frame: &Frame| frame.kind == FrameKind::Stub && &*frame.name == "Interpreter";
    let java =
        frames.iter().filter(|f| interpreted(f) || !matches!(f.kind, FrameKind::Native | FrameKind::Stub));
    let mut count = 0;
    for frame in java {
        count += 1;
        if !interpreted(frame) && !POOL.iter().any(|name| is_java(frame, name)) {
            return false;
        }
    }
    (1..=POOL.len()).contains(&count)
}

pub(super) fn is_java(frame: &Frame, name: &str) -> bool {
    use FrameKind::{JavaCompiled, JavaInlined, JavaInterpreted};
    matches!(frame.kind, JavaCompiled | JavaInlined | JavaInterpreted) && &*frame.name == name
}

/// The labels without stage and task. The thread's class stays, and why it waited.
pub fn without_task(labels: &LabelSet) -> LabelSet {
    let kept = [LabelKey::ThreadClass, LabelKey::Wait, LabelKey::Event];
    let of_task = |key: &&LabelKey| key.is_of_thread() && !kept.contains(key);
    let keys = LabelKey::ALL.iter().filter(of_task);
    keys.fold(LabelSetBuilder::from_set(labels), |set, key| set.set(*key, "")).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{StackEnd, UnknownReason};

    const POLL: &str = "java.util.concurrent.SynchronousQueue.poll";
    const START: &str = "java.lang.Thread.run";

    fn java(name: &str) -> Arc<Frame> {
        Arc::new(Frame::new(FrameKind::JavaCompiled, name, ""))
    }
    fn stack(names: &[&str]) -> Stack {
        Stack { frames: names.iter().map(|n| java(n)).collect(), end: StackEnd::Root }
    }

    #[test]
    fn between_two_tasks() {
        assert_eq!(occupation(&stack(&[START, RUN_WORKER, BETWEEN[0], POLL])), Occupation::Idle);
        assert_eq!(occupation(&stack(&[START, RUN_WORKER, BETWEEN[1]])), Occupation::Idle);
        let mut deep = stack(&[START, RUN_WORKER, BETWEEN[0], POLL]);
        let kernel = Arc::new(Frame::new(FrameKind::Kernel, "futex_wait", ""));
        deep.frames = deep.frames.iter().cloned().chain([kernel]).collect();
        assert_eq!(occupation(&deep), Occupation::Idle);
        // As it is on most executors: the loop is interpreted, what it calls is compiled.
        let interpreter = || Arc::new(Frame::new(FrameKind::Stub, "Interpreter", ""));
        let start = || Arc::new(Frame::new(FrameKind::Native, "thread_native_entry", "libjvm.so"));
        let frames = vec![start(), interpreter(), interpreter(), java(RUN_WORKER), java(BETWEEN[0])];
        assert_eq!(occupation(&Stack { frames: frames.into(), end: StackEnd::Root }), Occupation::Idle);
        let frames = vec![start(), interpreter(), interpreter(), interpreter(), java(BETWEEN[0])];
        assert_eq!(occupation(&Stack { frames: frames.into(), end: StackEnd::Root }), Occupation::Idle);
    }

    #[test]
    fn in_a_task() {
        let other_pool = [START, RUN_WORKER, TASK, "a.B.c", POLL];
        assert_eq!(occupation(&stack(&other_pool)), Occupation::Task);
        // A stack that is cut below the task is still the task's.
        let cut = Stack { end: StackEnd::DepthLimit, ..stack(&[TASK, "a.B.c"]) };
        assert_eq!(occupation(&cut), Occupation::Task);
        // Nothing that a task may do makes it look idle.
        assert_eq!(occupation(&stack(&[START, RUN_WORKER, TASK, RUN_WORKER, BETWEEN[0]])), Occupation::Task);
    }

    #[test]
    fn what_is_not_certain_stays() {
        let interpreter = || Arc::new(Frame::new(FrameKind::Stub, "Interpreter", ""));
        let unknown = || Arc::new(Frame::unknown(UnknownReason::NotInPerfMap, ""));
        let frames = |frames: &[Arc<Frame>]| Stack { frames: frames.into(), end: StackEnd::Root };
        for unsure in [
            frames(&[]),
            // A task may have begun there, and have a pool of its own.
            frames(&[vec![java(START)], vec![interpreter(); 4], vec![java(BETWEEN[0])]].concat()),
            frames(&[java(START), java(RUN_WORKER), java("a.B.c"), interpreter(), java(BETWEEN[0])]),
            frames(&[java(BETWEEN[0])]),
            frames(&[java(START), java(RUN_WORKER), unknown(), java(BETWEEN[0])]),
            frames(&[java(START), java(RUN_WORKER), interpreter(), java(POLL)]),
            stack(&[START, RUN_WORKER, POLL]),
            Stack { end: StackEnd::NoFramePointer, ..stack(&[RUN_WORKER, BETWEEN[0], POLL]) },
        ] {
            assert_eq!(occupation(&unsure), Occupation::CannotTell, "{unsure:?}");
        }
        // A native symbol of that name is no Java frame.
        let native = Arc::new(Frame::new(FrameKind::Native, BETWEEN[0], "lib.so"));
        assert_eq!(occupation(&frames(&[java(RUN_WORKER), native])), Occupation::CannotTell);
    }

    #[test]
    fn the_class_stays_when_the_task_goes() {
        let labels = LabelSetBuilder::new()
            .set(LabelKey::App, "a")
            .set(LabelKey::Stage, "3")
            .set(LabelKey::StageAttempt, "0")
            .set(LabelKey::TaskIndex, "1")
            .set(LabelKey::TaskAttempt, "0")
            .set(LabelKey::Task, "7")
            .set(LabelKey::ThreadClass, "task")
            .set(LabelKey::Pid, "9")
            .build();
        let rest = without_task(&labels);
        let all: Vec<(&str, &str)> = rest.iter().map(|(k, v)| (k.name(), &**v)).collect();
        assert_eq!(all, [("app", "a"), ("thread_class", "task"), ("pid", "9")]);
    }
}
