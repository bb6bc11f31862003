//! The method that most of a difference comes from.
//!
//! In: aligned trees and what each side is multiplied by. Out: a method, or none. A table sorted by
//! methods' own time names leaves (a digest's inner loop, a stub), and one sorted by total time names
//! `Thread.run`. So: from the root, follow the callee that carries more than half of the whole
//! difference; of the methods on that way the last one that is somebody's code is the cause. None where
//! the right side does not take longer, or no such method is on the way.

use super::diff::Aligned;
use emberscope_model::{FrameKind, Node};

/// Packages that are everybody's: the JDK's and Scala's.
const LIBRARIES: [&str; 6] = ["java.", "javax.", "jdk.", "sun.", "com.sun.", "scala."];

/// The method that a difference comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause<'a> {
    /// The frame's name: `a.b.C.m`.
    pub name: &'a str,
    /// Library, executable or kernel module.
    pub module: &'a str,
}

/// The method that most of a difference comes from; None where none is on the way.
pub fn cause(trees: &Aligned, left_factor: f64, right_factor: f64) -> Option<Cause<'_>> {
    let left = |id: usize| trees.left.nodes.get(id).map_or(0.0, |node| node.total_weight as f64);
    let difference =
        |id: usize, right: &Node| right.total_weight as f64 * right_factor - left(id) * left_factor;
    let whole = difference(0, trees.right.nodes.first()?);
    if whole <= 0.0 {
        return None;
    }
    let mut at = 0;
    let mut found = None;
    // Preorder: what carries more than half of the whole stands behind its caller, and it is one of its
    // caller's callees at most.
    for (id, node) in trees.right.nodes.iter().enumerate().skip(1) {
        if node.parent as usize == at && difference(id, node) > whole / 2.0 {
            at = id;
            if is_somebodys(node) {
                found = Some(Cause { name: &node.frame.name, module: &node.frame.module });
            }
        }
    }
    found
}

/// Code that a person could change: Java and Python but for the libraries.
fn is_somebodys(node: &Node) -> bool {
    use FrameKind::{JavaCompiled, JavaInlined, JavaInterpreted, Python};
    match node.frame.kind {
        JavaCompiled | JavaInlined | JavaInterpreted => {
            !LIBRARIES.iter().any(|library| node.frame.name.starts_with(library))
        }
        Python => true,
        _ => false,
    }
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
    fn where_it_branches_the_caller_is_the_cause() {
        let usual: Stack<'_> = (&[RUN, WORK], 10);
        let (a, b): (Stack<'_>, Stack<'_>) =
            ((&[RUN, WORK, SLOW, (J, "Job.a")], 10), (&[RUN, WORK, SLOW, (J, "Job.b")], 10));
        assert_eq!(found(&[usual], &[usual, a, b]).as_deref(), Some("Job.slow"));
    }

    #[test]
    fn there_need_not_be_one() {
        let usual: Stack<'_> = (&[RUN, WORK], 10);
        assert_eq!(found(&[usual], &[usual]), None);
        assert_eq!(found(&[usual, (&[RUN, SLOW], 5)], &[usual]), None, "the right side takes less");
        assert_eq!(found(&[], &[(&[(N, "start_thread")], 3)]), None);
    }
}
