//! Names that a program gave its threads to do harm.

use super::*;

impl Case<'_> {
    pub(super) fn bad_names_are_bounded_and_escaped(&self) -> Result<()> {
        ensure!(self.daemon.get("/readyz")?.status == 200);
        // What a thread claims beyond its process's limit is one line, and what was not heard of is another.
        let answer = self.daemon.json(&format!("/api/v1/ledger?{}&by=stage", self.query()))?;
        let lines = rows(&answer, "ledger")?;
        let stages: BTreeSet<_> = lines.iter().filter_map(|line| line["labels"]["stage"].as_str()).collect();
        let claimed =
            stages.iter().filter(|stage| stage.parse::<u64>().is_ok_and(|id| id >= 900_000)).count();
        println!("{claimed} of {CLAIMED} claimed stages have a line of their own");
        let rest = stages.contains("other") || stages.contains("unknown");
        ensure!(claimed > 0 && claimed < CLAIMED && rest, "{claimed} stages have a line, the rest: {rest}");
        let strange = |stage: &&&str| {
            !stage.bytes().all(|b| b.is_ascii_digit()) && !["unknown", "other", ""].contains(*stage)
        };
        ensure!(stages.iter().find(strange).is_none(), "{:?}", stages.iter().find(strange));
        // Threads are told apart by labels from closed lists and numbers, in every format and on every page.
        for sample in samples(self.daemon, &format!("{}&role=executor", self.query()))? {
            ensure!(!sample.stack.contains(|c: char| c.is_control()), "{:?}", sample.stack);
            let index = sample.text("task_index").unwrap_or("0");
            ensure!(
                index.parse::<u64>().is_ok() || ["unknown", "other"].contains(&index),
                "task_index {index:?}"
            );
        }
        for path in ["/api/v1/status", "/metrics", "/api/v1/labels/thread_class/values"] {
            let body = self.daemon.get(path)?.body;
            ensure!(!body.contains(|c: char| c.is_control() && c != '\n'), "{path} has control characters");
            ensure!(
                !body.contains(&"x".repeat(1_000)) && !body.contains(&"9".repeat(1_000)),
                "{path} has a long name"
            );
        }
        let log = std::fs::read_to_string(self.daemon.log())?;
        ensure!(!log.contains("panicked") && !log.contains("\u{1b}[31mred"), "{log}");
        ensure!(
            log.lines()
                .all(|line| line.len() < 4_000 && !line.starts_with("break") && !line.starts_with("fact"))
        );
        Ok(())
    }
}
