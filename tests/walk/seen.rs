//! What was seen of a JVM.

use super::*;

/// What was seen of a JVM.
pub(super) struct Seen {
    /// Stacks with a Java leaf, with how many samples had each.
    pub(super) java: Vec<(RawStack, usize)>,
    /// Those that were in native code or the kernel below Java frames.
    pub(super) native: Vec<(RawStack, usize)>,
    /// Samples of all kinds.
    pub(super) samples: usize,
    pub(super) start: ThreadStart,
    /// Samples that were in native code or the kernel below Java frames; and those of them that are rooted.
    pub(super) below: (usize, usize),
    pub(super) before: KernelStats,
    pub(super) after: KernelStats,
}

impl Seen {
    pub(super) fn rooted(&self, stack: &RawStack) -> bool {
        self.start.is_reached(&stack.user)
    }
    pub(super) fn count(&self, which: impl Fn(&RawStack) -> bool) -> usize {
        self.java.iter().filter(|(stack, _)| which(stack)).map(|(_, count)| count).sum()
    }
    /// Prints how stacks ended, and what a sample cost.
    pub(super) fn print(&self, title: &str) {
        let all = self.count(|_| true);
        let rooted = self.count(|stack| self.rooted(stack));
        let (stats, before) = (&self.after, &self.before);
        let samples = (stats.samples - before.samples).max(1);
        let program = |stats: &KernelStats| {
            stats.programs.iter().find(|p| p.name == "sample").map(|p| (p.run_count, p.run_time_ns))
        };
        let (now, then) = (program(stats).unwrap_or_default(), program(before).unwrap_or_default());
        let idle = stats.idle - before.idle;
        println!(
            "{title}: {rooted} of {all} with a Java leaf reach the thread's entry ({:.2} %), of {} samples; \
             {} ns a run ({idle} of {} idle), {:.1} user frames and {:.1} reads a sample",
            100.0 * rooted as f64 / all.max(1) as f64,
            self.samples,
            (now.1 - then.1) / (now.0 - then.0).max(1),
            now.0 - then.0,
            (stats.user_frames - before.user_frames) as f64 / samples as f64,
            (stats.stack_reads - before.stack_reads) as f64 / samples as f64,
        );
        println!("    {} of {} with native code below Java do", self.below.1, self.below.0);
        let mut ends: BTreeMap<How, (usize, &RawStack)> = BTreeMap::new();
        for (stack, count) in &self.java {
            let kind = |frame: Option<&UserFrame>| frame.map_or(9, |f| f.kind);
            let key =
                (stack.end.slug(), self.rooted(stack), kind(stack.user.first()), kind(stack.user.last()));
            ends.entry(key).or_insert((0, stack)).0 += count;
        }
        for ((end, rooted, leaf, last), (count, stack)) in ends {
            println!("    {count:6} {end} rooted {rooted} leaf kind {leaf} last kind {last}");
            if !rooted {
                let shown = |f: &UserFrame| format!("{}:{:x}/{:x}/{}", f.kind, f.value, f.cookie, f.flags);
                let frames: Vec<String> = stack.user.iter().map(shown).collect();
                let tail = frames.len().saturating_sub(4);
                println!(
                    "           {} frames: {:?} ... {:?}",
                    frames.len(),
                    &frames[..frames.len().min(4)],
                    &frames[tail..]
                );
            }
        }
    }
}
