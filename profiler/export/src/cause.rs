//! The method that most of a difference comes from.
//!
//! In: aligned trees and what each side is multiplied by. Out: a method, or none. A table sorted by
//! methods' own time names leaves (a digest's inner loop, a stub), and one sorted by total time names
//! `Thread.run`. So: from the root, follow the callee that carries more than half of the whole
//! difference; of the methods on that way the last one that is somebody's code is the cause. None where
//! the right side does not take longer by more than the error, or that method has no time of its own: what it
//! only hands on to methods of somebody's is not its own, what libraries and the kernel do for it is.

use super::diff::Aligned;
use super::top::Cost;
use emberscope_model::{FrameKind, Node};

/// Packages that are everybody's: the JDK's and Scala's.
const LIBRARIES: [&str; 6] = ["java.", "javax.", "jdk.", "sun.", "com.sun.", "scala."];
/// Standard errors that a difference must exceed to be one: chance alone exceeds two in 5 of 100 cases.
pub const SIGNIFICANT: f64 = 2.0;

/// The error of a difference, or of a sum, of two independent figures. Not `hypot`: of all that is linked only that asks for
/// glibc 2.35, and RHEL 9 and Amazon Linux 2023 have 2.34.
pub fn error_of_both(left: f64, right: f64) -> f64 {
    (left.powi(2) + right.powi(2)).sqrt()
}

/// The method that a difference comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause<'a> {
    /// The frame's name: `a.b.C.m`.
    pub name: &'a str,
    /// Library, executable or kernel module.
    pub module: &'a str,
}

/// What both sides are multiplied by, the left one first.
struct Factors([f64; 2]);

impl Factors {
    /// The difference of scaled weights; None where it lies within the error. A weight w of n samples has the error
    /// w/sqrt(n).
    fn significant(&self, costs: [Cost; 2]) -> Option<f64> {
        let [left, right] = [0, 1].map(|side: usize| {
            let factor = self.0.get(side).copied().unwrap_or(1.0);
            costs.get(side).map_or((0.0, 0.0), |cost| {
                let weight = cost.weight as f64 * factor;
                (weight, weight / (cost.count.max(1) as f64).sqrt())
            })
        });
        let difference = right.0 - left.0;
        (difference > SIGNIFICANT * error_of_both(left.1, right.1)).then_some(difference)
    }
}

/// The method that most of a difference comes from; None where none is on the way, or chance may be all of it.
pub fn cause(trees: &Aligned, left_factor: f64, right_factor: f64) -> Option<Cause<'_>> {
    let factors = Factors([left_factor, right_factor]);
    let whole = factors.significant(totals(trees, 0, trees.right.nodes.first()?))?;
    let mut at = 0;
    let mut found = None;
    // Preorder: what carries more than half of the whole stands behind its caller, and it is one of its
    // caller's callees at most.
    for (id, node) in trees.right.nodes.iter().enumerate().skip(1) {
        if node.parent as usize != at {
            continue;
        }
        if factors.significant(totals(trees, id, node)).is_some_and(|difference| difference > whole / 2.0) {
            at = id;
            if is_somebodys(node) {
                found = Some((id, node));
            }
        }
    }
    let (id, node) = found?;
    factors.significant(own(trees, id))?;
    Some(Cause { name: &node.frame.name, module: &node.frame.module })
}

/// A node's whole time on both sides.
fn totals(trees: &Aligned, id: usize, right: &Node) -> [Cost; 2] {
    let total = |node: &Node| Cost { count: node.total_count, weight: node.total_weight };
    [trees.left.nodes.get(id).map(total).unwrap_or_default(), total(right)]
}

/// A method's own time on both sides, with that of libraries, native code and the kernel below it, as far as no method of
/// somebody's stands between.
fn own(trees: &Aligned, method: usize) -> [Cost; 2] {
    let mut sums = [Cost::default(); 2];
    let mut is_its = vec![false; trees.right.nodes.len()];
    for (id, node) in trees.right.nodes.iter().enumerate().skip(method) {
        let its = id == method
            || (!is_somebodys(node) && is_its.get(node.parent as usize).copied().unwrap_or(false));
        if !its {
            continue;
        }
        if let Some(mark) = is_its.get_mut(id) {
            *mark = true;
        }
        for (sum, node) in sums.iter_mut().zip([trees.left.nodes.get(id), Some(node)]) {
            sum.count = sum.count.saturating_add(node.map_or(0, |node| node.self_count));
            sum.weight = sum.weight.saturating_add(node.map_or(0, |node| node.self_weight));
        }
    }
    sums
}

/// Code that a person could change: Java and Python but for the libraries. Spark's own counts as somebody's in both.
fn is_somebodys(node: &Node) -> bool {
    use FrameKind::{JavaCompiled, JavaInlined, JavaInterpreted, Python};
    match node.frame.kind {
        JavaCompiled | JavaInlined | JavaInterpreted => {
            !LIBRARIES.iter().any(|library| node.frame.name.starts_with(library))
        }
        Python => !is_of_python_library(&node.frame.name),
        _ => false,
    }
}

/// Whether a Python function is a library's: those keep the way inside of the library (`frame.apply (pandas/core/frame.py)`),
/// a program's own files only their last part (`plus (job.py)`); what is in no file is the interpreter's.
fn is_of_python_library(name: &str) -> bool {
    let file = name.rsplit_once(" (").and_then(|(_, file)| file.strip_suffix(')')).unwrap_or_default();
    file.starts_with("<frozen ") || file.contains('/') && !file.starts_with("pyspark/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tree;
    use FrameKind::{JavaCompiled as J, Kernel as K, Native as N, Stub as S};

    type Stack<'a> = (&'a [(FrameKind, &'a str)], u64);

    fn found(left: &[Stack<'_>], right: &[Stack<'_>]) -> Option<String> {
        let trees = Aligned::new(&tree(left), &tree(right));
        cause(&trees, 1.0, 1.0).map(|cause| cause.name.to_owned())
    }

    const RUN: (FrameKind, &str) = (J, "java.lang.Thread.run");
    const WORK: (FrameKind, &str) = (J, "Job.work");
    const SLOW: (FrameKind, &str) = (J, "Job.slow");

    #[test]
    fn it_is_the_last_of_the_jobs_own_methods_on_the_way() {
        let usual: Stack<'_> = (&[RUN, WORK, (J, "Job.fast")], 10);
        let hot: Stack<'_> = (&[RUN, WORK, SLOW], 20);
        assert_eq!(found(&[usual], &[usual, hot]).as_deref(), Some("Job.slow"));
        // Its time is in what it calls.
        let digest: Stack<'_> =
            (&[RUN, WORK, SLOW, (J, "java.security.MessageDigest.update"), (S, "sha")], 20);
        assert_eq!(found(&[usual], &[usual, digest]).as_deref(), Some("Job.slow"));
        let fault: Stack<'_> = (&[RUN, WORK, SLOW, (K, "asm_exc_page_fault")], 20);
        assert_eq!(found(&[usual], &[usual, fault]).as_deref(), Some("Job.slow"));
        // By way of a library.
        let streams: Stack<'_> = (&[RUN, WORK, (J, "java.util.stream.X.each"), SLOW], 20);
        assert_eq!(found(&[usual], &[usual, streams]).as_deref(), Some("Job.slow"));
        // The same method, for longer, and nothing else.
        assert_eq!(
            found(&[(&[RUN, WORK, SLOW], 10)], &[(&[RUN, WORK, SLOW], 30)]).as_deref(),
            Some("Job.slow")
        );
    }

    #[test]
    fn in_python_it_is_a_function_of_the_program_or_of_pyspark() {
        use FrameKind::Python as P;
        let main: (FrameKind, &str) = (P, "main (pyspark/worker.py)");
        let usual: Stack<'_> = (&[main, (P, "load (pyspark/serializers.py)")], 10);
        let frames = (P, "Frame.apply (pandas/core/frame.py)");
        let slow: Stack<'_> = (&[main, (P, "score (job.py)"), frames, (N, "take")], 20);
        assert_eq!(found(&[usual], &[usual, slow]).as_deref(), Some("score (job.py)"));
        let cell: Stack<'_> = (&[main, (P, "<lambda> (<stdin>)"), (P, "dumps (json/__init__.py)")], 20);
        assert_eq!(found(&[usual], &[usual, cell]).as_deref(), Some("<lambda> (<stdin>)"));
        let more: Stack<'_> = (&[main, (P, "load (pyspark/serializers.py)")], 40);
        assert_eq!(found(&[usual], &[more]).as_deref(), Some("load (pyspark/serializers.py)"));
    }

    #[test]
    fn where_it_branches_the_caller_is_the_cause_if_it_has_time_of_its_own() {
        let usual: Stack<'_> = (&[RUN, WORK], 10);
        let (a, b): (Stack<'_>, Stack<'_>) =
            ((&[RUN, WORK, SLOW, (J, "Job.a")], 10), (&[RUN, WORK, SLOW, (J, "Job.b")], 10));
        let own: Stack<'_> = (&[RUN, WORK, SLOW], 9);
        assert_eq!(found(&[usual], &[usual, a, b, own]).as_deref(), Some("Job.slow"));
        let sorted: Stack<'_> = (&[RUN, WORK, SLOW, (J, "java.util.TimSort.sort")], 9);
        assert_eq!(found(&[usual], &[usual, a, b, sorted]).as_deref(), Some("Job.slow"));
        // A frame that only calls says nothing.
        assert_eq!(found(&[usual], &[usual, a, b]), None);
    }

    #[test]
    fn what_lies_within_the_error_has_no_cause() {
        let stack: &[(FrameKind, &str)] =
            &[RUN, (J, "org.apache.spark.executor.Executor$TaskRunner.run"), WORK];
        // 120 - 100 of 120 and 100 samples: the error is 14.8.
        assert_eq!(found(&[(stack, 100)], &[(stack, 120)]), None);
        assert_eq!(found(&[(stack, 100)], &[(stack, 160)]).as_deref(), Some("Job.work"));
        // The whole is significant (30 +- 11.4), what the method adds to it is not (20 +- 11.0).
        assert_eq!(found(&[(stack, 50)], &[(stack, 70), (&[(N, "gc")], 10)]), None);
        // Sides that were made equal differ by rounding.
        let trees = Aligned::new(&tree(&[(stack, 3)]), &tree(&[(stack, 10)]));
        assert_eq!(cause(&trees, 10.0 / 3.0, 1.0), None);
    }

    #[test]
    fn there_need_not_be_one() {
        let usual: Stack<'_> = (&[RUN, WORK], 10);
        assert_eq!(found(&[usual], &[usual]), None);
        assert_eq!(found(&[usual, (&[RUN, SLOW], 5)], &[usual]), None, "the right side takes less");
        assert_eq!(found(&[], &[(&[(N, "start_thread")], 3)]), None);
    }
}
