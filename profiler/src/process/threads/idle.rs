//! Whether a thread that has a task's name still runs the task, by its stack.
//!
//! Up to Spark 4.1 a thread of the pool keeps the last task's name while it waits for the next. Its stack
//! then is `ThreadPoolExecutor.runWorker` > `getTask` > ..., and nothing of a task: `runWorker` calls
//! `getTask` between two tasks only (java.util.concurrent, JDK 8 to 25). Only what is certain counts: a
//! stack that is cut, or frames without names (the interpreter's) where the two should be, leave the
//! sample with its task.

use crate::model::{Frame, FrameKind, LabelKey, LabelSet, LabelSetBuilder, Stack};

const RUN_WORKER: &str = "java.util.concurrent.ThreadPoolExecutor.runWorker";
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
    /// It runs a task.
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
    let mut calls = stack.frames.iter().zip(stack.frames.iter().skip(1));
    let idle = calls.any(|(caller, callee)| {
        is_java(caller, RUN_WORKER) && BETWEEN.iter().any(|name| is_java(callee, name))
    });
    if idle { Occupation::Idle } else { Occupation::CannotTell }
}

fn is_java(frame: &Frame, name: &str) -> bool {
    use FrameKind::{JavaCompiled, JavaInlined, JavaInterpreted};
    matches!(frame.kind, JavaCompiled | JavaInlined | JavaInterpreted) && &*frame.name == name
}

/// The labels without stage and task. The thread's class stays.
pub fn without_task(labels: &LabelSet) -> LabelSet {
    let of_task = |key: &&LabelKey| key.is_of_thread() && **key != LabelKey::ThreadClass;
    let keys = LabelKey::ALL.iter().filter(of_task);
    keys.fold(LabelSetBuilder::from_set(labels), |set, key| set.set(*key, "")).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{StackEnd, UnknownReason};
    use std::sync::Arc;

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
            frames(&[java(START), interpreter(), java(BETWEEN[0]), java(POLL)]),
            frames(&[java(START), java(RUN_WORKER), interpreter(), java(BETWEEN[0])]),
            frames(&[java(START), java(RUN_WORKER), unknown(), java(BETWEEN[0])]),
            frames(&[java(START), java(RUN_WORKER), interpreter(), java(POLL)]),
            stack(&[START, RUN_WORKER, POLL]),
            stack(&[START, BETWEEN[0], RUN_WORKER]),
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
