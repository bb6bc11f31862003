//! Judges stacks against those that a program told.
//!
//! A stack is equal when its Java methods, outermost first, inlined ones included, are those of a stack told (or
//! what the program's way of matching allows). Frames that were interrupted themselves and say that they rest on
//! borrowed debug info are left out of it and counted apart: another figure judges these. What the program does to tell, and other threads of
//! its JVM, are no part of it.

use super::stack::{Frame, Stack};
use std::collections::BTreeMap;

/// Threads of the JVM's own, by their class.
const JVM_CLASSES: [&str; 3] = ["gc", "jit", "vm"];

/// The carrier's method that calls what a virtual thread runs.
const CARRIES: &str = "jdk.internal.vm.Continuation.run";

/// How stacks match, and the stacks that were told.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Outermost first, folded.
    pub stacks: Vec<Vec<String>>,
    /// A sample's stack may go on in methods of the JDK.
    pub jdk: bool,
    /// It may end early: frames come and go all the time.
    pub prefix: bool,
    /// A carrier thread's frames come before.
    pub tail: bool,
    /// Of a virtual thread's frames those that are frozen, not on the stack, may lack: the outermost.
    pub gap: bool,
}

/// What a stack is.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Frame by frame as told.
    Equal,
    /// The same but for what was borrowed at the leaf.
    Borrowed,
    /// The program telling its stack, or another thread.
    Another,
    /// Cut before any frame that would say whose it is.
    Nobodys,
    /// Not as told: the first difference.
    Different(String),
}

/// Whether a method is the program's: of a class outside all packages.
fn is_own(name: &str) -> bool {
    name.matches('.').count() == 1
}

fn is_jdk(name: &str) -> bool {
    ["java.", "jdk.", "sun.", "com.sun."].iter().any(|package| name.starts_with(package))
}

impl Truth {
    /// Judges one stack.
    pub fn judge(&self, stack: &Stack) -> Verdict {
        let java = stack.java();
        if stack.label("thread_class").is_some_and(|class| JVM_CLASSES.contains(&class))
            || java.iter().any(|frame| frame.name == "Oracle.note" || frame.name == "Oracle.fact")
            // Where it is interpreted, asking whether to tell takes a percent. Compiled it would hide what was borrowed.
            || java.last().is_some_and(|leaf| leaf.name == "Oracle.due" && leaf.kind == "java-interpreted")
        {
            return Verdict::Another;
        }
        if !java.iter().any(|frame| is_own(&frame.name)) {
            // Code of the JIT that nothing names may be the program's.
            let nameless = stack.user().any(Frame::is_nameless_java);
            let code = nameless || stack.user().any(|frame| frame.is_java() || frame.kind == "stub");
            return match (stack.is_rooted(), code) {
                (true, _) if !nameless => Verdict::Another,
                (true, _) => Verdict::Different("whole, and no frame of the program has a name".to_owned()),
                (false, true) => Verdict::Different(format!("cut before any own frame: {}", end_of(stack))),
                (false, false) => Verdict::Nobodys,
            };
        }
        let whole: Vec<&str> = java.iter().map(|frame| frame.name.as_str()).collect();
        if self.stacks.iter().any(|told| self.fits(&whole, told, self.prefix)) {
            return Verdict::Equal;
        }
        let exact = java.iter().rposition(|frame| !(frame.approximate && frame.kind == "java-inlined"));
        let base = exact.map_or(&[][..], |last| whole.get(..=last).unwrap_or_default());
        // An answer marks a method in all places when it is borrowed in one; a frame that called has its own.
        if stack.user().next_back().is_some_and(|leaf| leaf.is_java() && leaf.approximate)
            && self.stacks.iter().any(|told| self.fits(base, told, true))
        {
            return Verdict::Borrowed;
        }
        Verdict::Different(self.difference(stack, &java, &whole))
    }

    /// Whether names are a carrier's frames and then the innermost ones of a stack told.
    fn fits_with_gap(names: &[&str], told: &[String]) -> bool {
        let same = names.iter().rev().zip(told.iter().rev()).take_while(|(name, told)| *name == told).count();
        let carrier = names.get(..names.len() - same).unwrap_or_default();
        same > 1 && carrier.iter().all(|name| is_jdk(name)) && carrier.contains(&CARRIES)
    }

    /// Whether names are a stack told; with `early` a beginning of it that has a frame of the program's is enough.
    fn fits(&self, names: &[&str], told: &[String], early: bool) -> bool {
        if self.gap && Self::fits_with_gap(names, told) {
            return true;
        }
        let at = if self.tail {
            let first = told.first().map(String::as_str);
            let starts = names.iter().enumerate().filter(|(_, name)| Some(**name) == first).map(|(at, _)| at);
            // Below the carrier's own frames.
            let carried = |at: &usize| names.iter().take(*at).any(|name| *name == CARRIES);
            match starts.rev().find(carried) {
                Some(at) => at,
                None => return false,
            }
        } else {
            0
        };
        let names = names.get(at..).unwrap_or_default();
        let same = names.iter().zip(told).take_while(|(name, told)| *name == told).count();
        let own = names.iter().take(same).any(|name| is_own(name));
        let rest = names.get(same..).unwrap_or_default();
        let goes_on = rest.is_empty() || self.jdk && rest.iter().all(|name| is_jdk(name));
        own && goes_on && (same == told.len() || early)
    }

    /// What differs first from the stack told that is longest the same.
    fn difference(&self, stack: &Stack, java: &[&Frame], names: &[&str]) -> String {
        if self.tail {
            // The carrier's frames are not told: what follows them tells most.
            let own = names.iter().position(|name| is_own(name)).unwrap_or(names.len());
            let around = |from: usize, until: usize| {
                names.get(from..until.min(names.len())).unwrap_or_default().join(", ")
            };
            return format!(
                "after {}: own frames begin with {} and end with {}",
                around(own.saturating_sub(3), own),
                around(own, own + 2),
                around(names.len().saturating_sub(2), names.len())
            );
        }
        let none = Vec::new();
        let same =
            |told: &Vec<String>| names.iter().zip(told).take_while(|(name, told)| *name == told).count();
        let told = self.stacks.iter().max_by_key(|told| same(told)).unwrap_or(&none);
        if self.stacks.iter().any(|told| {
            names.len() < told.len() && told.iter().rev().zip(names.iter().rev()).all(|(a, b)| a == b)
        }) {
            return format!("cut: {}", end_of(stack));
        }
        if same(told) == 0 && !stack.is_rooted() {
            return format!("cut: {}", end_of(stack));
        }
        let at = same(told);
        let before = at.checked_sub(1).and_then(|at| names.get(at)).copied().unwrap_or("the root");
        let saw =
            java.get(at).map_or("nothing".to_owned(), |frame| format!("{} ({})", frame.name, frame.kind));
        let expected = told.get(at).map_or("nothing", String::as_str);
        format!("after {before}: seen {saw}, told {expected}")
    }
}

/// How a stack that was cut begins.
fn end_of(stack: &Stack) -> String {
    let first: Vec<String> =
        stack.user().take(2).map(|frame| format!("{} ({})", frame.name, frame.kind)).collect();
    format!("the outermost frames are {}", first.join(", "))
}

/// Verdicts, counted in samples.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Equal frame by frame.
    pub equal: usize,
    /// Equal but for what was borrowed at the leaf.
    pub borrowed: usize,
    /// By how they differ.
    pub different: BTreeMap<String, usize>,
    /// Cut before any frame that says whose.
    pub nobodys: usize,
}

impl Report {
    /// Adds stacks.
    pub fn add(&mut self, truth: &Truth, stacks: &[Stack]) {
        for stack in stacks {
            match truth.judge(stack) {
                Verdict::Equal => self.equal += stack.count,
                Verdict::Borrowed => self.borrowed += stack.count,
                Verdict::Another => {}
                Verdict::Nobodys => self.nobodys += stack.count,
                Verdict::Different(how) => *self.different.entry(how).or_default() += stack.count,
            }
        }
    }

    /// Samples judged.
    pub fn n(&self) -> usize {
        self.right() + self.different.values().sum::<usize>()
    }

    /// Samples that are as told, the borrowed part of a leaf left out.
    pub fn right(&self) -> usize {
        self.equal + self.borrowed
    }

    /// The most frequent differences.
    pub fn worst(&self, most: usize) -> Vec<(&str, usize)> {
        let mut all: Vec<(&str, usize)> = self.different.iter().map(|(how, n)| (how.as_str(), *n)).collect();
        all.sort_by_key(|(how, n)| (std::cmp::Reverse(*n), *how));
        all.truncate(most);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn stack(frames: &[(&str, &str)]) -> Stack {
        let frame = |(kind, name): &(&str, &str)| {
            let (kind, approximate) = kind.strip_suffix('?').map_or((*kind, false), |kind| (kind, true));
            Rc::new(Frame { kind: kind.to_owned(), name: (*name).to_owned(), line: 0, approximate })
        };
        Stack { frames: frames.iter().map(frame).collect(), labels: Vec::new(), count: 1 }
    }

    fn truth(names: &[&str]) -> Truth {
        Truth { stacks: vec![names.iter().map(|name| (*name).to_owned()).collect()], ..Truth::default() }
    }

    const ROOT: (&str, &str) = ("native", "thread_native_entry(Thread*)");
    const RUN: (&str, &str) = ("java-interpreted", "java.lang.Thread.run");

    #[test]
    fn frame_by_frame() {
        let t = truth(&["java.lang.Thread.run", "P.down", "P.leaf"]);
        let judge = |frames: &[(&str, &str)]| t.judge(&stack(frames));
        let (down, leaf) = (("java", "P.down"), ("java-inlined", "P.leaf"));
        assert_eq!(judge(&[ROOT, RUN, down, leaf]), Verdict::Equal);
        assert_eq!(judge(&[ROOT, RUN, down, leaf, ("kernel", "irq")]), Verdict::Equal);
        assert!(
            matches!(judge(&[ROOT, RUN, down]), Verdict::Different(how) if how == "after P.down: seen nothing, told P.leaf")
        );
        assert!(matches!(judge(&[down, leaf]), Verdict::Different(how) if how.starts_with("cut: ")));
        assert!(
            matches!(judge(&[("stub", "Interpreter")]), Verdict::Different(how) if how.starts_with("cut before"))
        );
        assert_eq!(judge(&[("native", "read")]), Verdict::Nobodys);
        assert_eq!(judge(&[ROOT, RUN, ("java", "java.lang.ref.Cleaner.run")]), Verdict::Another);
        assert!(matches!(judge(&[ROOT, RUN, ("unknown", "[unloaded]")]), Verdict::Different(_)));
        assert_eq!(judge(&[ROOT, RUN, down, leaf, ("java", "Oracle.note")]), Verdict::Another);
        // A wrong inlined frame is a difference, unless it says that it is borrowed.
        assert!(matches!(judge(&[ROOT, RUN, down, ("java-inlined", "P.other")]), Verdict::Different(_)));
        assert_eq!(judge(&[ROOT, RUN, down, ("java-inlined?", "P.other")]), Verdict::Borrowed);
        assert_eq!(judge(&[ROOT, RUN, ("java?", "P.down")]), Verdict::Borrowed);
        assert!(matches!(
            judge(&[ROOT, RUN, ("java", "P.x"), ("java-inlined?", "P.leaf")]),
            Verdict::Different(_)
        ));
        let called = [ROOT, RUN, down, ("java-inlined?", "P.other"), ("stub", "StubRoutines")];
        assert!(matches!(judge(&called), Verdict::Different(_)));
    }

    #[test]
    fn looser_ways() {
        let names = ["java.lang.Thread.run", "P.up", "P.throws"];
        let jdk = Truth { jdk: true, ..truth(&names) };
        let own = [ROOT, RUN, ("java", "P.up"), ("java", "P.throws"), ("java", "java.util.X.y")];
        assert_eq!(jdk.judge(&stack(&own)), Verdict::Equal);
        assert!(matches!(jdk.judge(&stack(&own[..3])), Verdict::Different(_)));
        let prefix = Truth { prefix: true, jdk: true, ..truth(&names) };
        assert_eq!(prefix.judge(&stack(&own[..3])), Verdict::Equal);
        let tail = Truth { tail: true, ..truth(&["jdk.internal.vm.Continuation.enter", "P.up"]) };
        let carried = [
            ROOT,
            ("java", "jdk.internal.vm.Continuation.run"),
            ("java", "jdk.internal.vm.Continuation.enter"),
            ("java", "P.up"),
        ];
        assert_eq!(tail.judge(&stack(&carried)), Verdict::Equal);
        assert!(matches!(tail.judge(&stack(&carried[2..])), Verdict::Different(_)));
        let told = ["jdk.internal.vm.Continuation.enter", "P.outer", "P.up", "P.leaf"];
        let thawed = [ROOT, carried[1], carried[3], ("java", "P.leaf")];
        let gap = Truth { tail: true, gap: true, ..truth(&told) };
        assert_eq!(gap.judge(&stack(&thawed)), Verdict::Equal);
        assert!(matches!(Truth { gap: false, ..gap }.judge(&stack(&thawed)), Verdict::Different(_)));
    }

    #[test]
    fn the_most_frequent_come_first() {
        let mut report = Report::default();
        let t = truth(&["java.lang.Thread.run", "P.leaf"]);
        let mut twice = stack(&[ROOT, RUN, ("java", "P.b")]);
        twice.count = 2;
        report
            .add(&t, &[stack(&[ROOT, RUN, ("java", "P.a")]), twice, stack(&[ROOT, RUN, ("java", "P.leaf")])]);
        assert_eq!((report.n(), report.right()), (4, 1));
        assert_eq!(report.worst(1), [("after java.lang.Thread.run: seen P.b (java), told P.leaf", 2)]);
    }
}
