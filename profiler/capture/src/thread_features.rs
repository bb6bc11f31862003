//! What can be known of threads on this host, in sentences: their names, their accounts, and how all are listed.

use super::features::{Finding, FindingState, HostFeatures};
use super::workers;

impl HostFeatures {
    /// What can be known of threads.
    pub(super) fn threads(&self) -> [Finding; 6] {
        let finding = |name, value: Result<(), String>, good: &str, bad: &dyn Fn(String) -> String| Finding {
            name,
            state: if value.is_ok() { FindingState::Good } else { FindingState::Degraded },
            value: if value.is_ok() { "yes" } else { "no" }.to_owned(),
            sentence: value.map_or_else(bad, |()| good.to_owned()),
        };
        let missing = self.offsets.accounts.missing();
        let accounts = if missing.is_empty() { Ok(()) } else { Err(missing.join(", ")) };
        let quotas = self.offsets.throttle.map(|_| ()).ok_or_else(String::new);
        [
            finding(
                "uprobes",
                self.uprobes.clone(),
                "The names of a JVM's threads, and so stages and tasks, are seen as they are given.",
                &|why| {
                    format!(
                        "The names of a JVM's threads are not seen ({why}): no sample has a stage or task; a \
                         kernel with CONFIG_UPROBE_EVENTS and CONFIG_BPF_EVENTS and the capabilities of the unit fix it."
                    )
                },
            ),
            finding(
                "thread_accounts",
                accounts,
                "What each task used is read from the kernel's own accounts.",
                &|missing| {
                    format!(
                        "This kernel's type information lacks fields of a thread's accounts ({missing}): they are 0 \
                         in the ledger, and without sum_exec_runtime there is none for tasks; CONFIG_DEBUG_INFO_BTF, \
                         CONFIG_SCHED_INFO and CONFIG_TASK_IO_ACCOUNTING bring them."
                    )
                },
            ),
            finding(
                "task_iterator",
                self.task_iterator.clone(),
                "The kernel lists all threads with their accounts.",
                &|why| {
                    format!(
                        "Threads' accounts are read from /proc ({why}): some 60 us of CPU a thread and window instead of \
                         two, of 4096 threads at most; Linux 5.8 with CONFIG_DEBUG_INFO_BTF fixes it."
                    )
                },
            ),
            finding(
                "python_workers",
                workers::lacks(self),
                "Python workers have the task that they work for, and how long tasks wait for them is measured.",
                &|missing| {
                    format!(
                        "Python workers have no task, and how long tasks wait for Python is not known (missing: \
                         {missing}); a kernel with CONFIG_BPF_EVENTS and CONFIG_DEBUG_INFO_BTF fixes it."
                    )
                },
            ),
            finding(
                "socket_sends",
                workers::lacks_sends(self),
                "What reaches a busy Python worker is seen as it is sent, over TCP and Unix sockets.",
                &|tcp| {
                    format!(
                        "The tracepoint sock:sock_send_length is missing: what reaches a busy Python worker over a Unix \
                         socket is not seen ({tcp}), and its task is `unknown` until one of the two waits for the \
                         other, as is what it cleans up after a task; Linux 6.3 with CONFIG_DEBUG_INFO_BTF fixes it."
                    )
                },
            ),
            finding(
                "cpu_quotas",
                quotas,
                "How long a cgroup's quota of CPU time kept tasks from running is told apart from waiting for a CPU.",
                &|_| {
                    "Tasks that a cgroup's quota of CPU time keeps from running wait for a CPU, as far as is known; Linux \
                     6.6 with CONFIG_DEBUG_INFO_BTF and CONFIG_CFS_BANDWIDTH fixes it."
                        .to_owned()
                },
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::tests::bare;
    use super::*;

    #[test]
    fn a_kernel_that_tells_little_says_what_is_lost_by_it() {
        let findings = bare().threads();
        assert!(findings.iter().all(|f| f.state == FindingState::Degraded && f.value == "no"));
        let [uprobes, accounts, iterator, workers, sends, quotas] = &findings;
        assert!(
            uprobes.sentence.contains("(no such file)") && uprobes.sentence.contains("CONFIG_UPROBE_EVENTS")
        );
        assert!(accounts.sentence.contains("sum_exec_runtime, run_delay, utime"));
        assert!(iterator.sentence.contains("4096 threads"));
        assert!(
            workers.sentence.contains("sched:sched_waking") && sends.sentence.contains("sock_send_length")
        );
        assert!(quotas.sentence.contains("CONFIG_CFS_BANDWIDTH"));
    }
}
