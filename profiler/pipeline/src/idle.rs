//! Samples of a pool thread that waits for its next task: they are not the last task's.
//!
//! In: the rows of one window, as their stacks get names. Out: the labels without the task where the stack
//! says for certain that it is over. One set for each, so that rows can be compared by address.

use emberscope_model::{LabelKey, LabelRewrite, LabelSet, Stack};
use emberscope_process::threads::{Occupation, occupation, without_task};
use std::sync::Arc;

/// Labels without a task, by those with it.
#[derive(Debug, Default)]
pub struct Idle(LabelRewrite);

impl Idle {
    /// Takes the task from the labels if the stack says that it is over; gives the labels with it then.
    pub fn strip(&mut self, stack: &Stack, labels: &mut Arc<LabelSet>) -> Option<Arc<LabelSet>> {
        let of_pool = labels.get(LabelKey::ThreadClass) == emberscope_model::ThreadClass::Task.slug();
        if !of_pool || labels.get(LabelKey::Stage).is_empty() || occupation(stack) != Occupation::Idle {
            return None;
        }
        // Tasks of one process have the same labels without theirs.
        let bare = self.0.of(labels, |labels| Some(Arc::new(without_task(labels))))?;
        Some(std::mem::replace(labels, bare))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::{Frame, FrameKind, LabelSetBuilder, StackEnd, ThreadClass};

    #[test]
    fn two_tasks_that_are_over_have_the_same_labels() {
        let stack = |names: &[&str]| {
            let frame = |name: &&str| Arc::new(Frame::new(FrameKind::JavaCompiled, *name, ""));
            Stack { frames: names.iter().map(frame).collect(), end: StackEnd::Root }
        };
        let pool = "java.util.concurrent.ThreadPoolExecutor.";
        let waits = stack(&[&format!("{pool}runWorker"), &format!("{pool}getTask")]);
        let works =
            stack(&[&format!("{pool}runWorker"), "org.apache.spark.executor.Executor$TaskRunner.run"]);
        let of = |class: ThreadClass, task: &str| {
            let set = LabelSetBuilder::new().set(LabelKey::App, "a").set(LabelKey::ThreadClass, class.slug());
            Arc::new(set.set(LabelKey::Stage, task).set(LabelKey::Task, task).build())
        };
        let mut idle = Idle::default();
        let mut after = |stack: &Stack, labels: Arc<LabelSet>| {
            let (mut labels, before) = (labels.clone(), labels);
            let with_task = idle.strip(stack, &mut labels);
            assert_eq!(with_task, (labels != before).then_some(before));
            labels
        };
        let (one, two) =
            (after(&waits, of(ThreadClass::Task, "1")), after(&waits, of(ThreadClass::Task, "2")));
        assert!(Arc::ptr_eq(&one, &two) && *one == *of(ThreadClass::Task, ""));
        assert_eq!(after(&works, of(ThreadClass::Task, "1")), of(ThreadClass::Task, "1"));
        let feeder = of(ThreadClass::Python, "1");
        assert_eq!(after(&waits, feeder.clone()), feeder, "a pool of its own");
    }
}
