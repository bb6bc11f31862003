//! Work that gives way to all other work on the machine (sched(7), SCHED_IDLE).

// For sched_setscheduler.
#![allow(unsafe_code)]

/// Does the work in a thread of its own that, as all programs which it starts, has the CPU when nobody else wants it.
/// Where the kernel refuses, it is done like other work.
pub fn idle<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let priority = libc::sched_param { sched_priority: 0 };
            // SAFETY: the pointer is valid during the call; 0 is the calling thread.
            unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &priority) };
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_it_starts_gives_way() {
        let cat = || std::process::Command::new("cat").arg("/proc/self/stat").output().unwrap().stdout;
        let text = super::idle(cat);
        // proc_pid_stat(5): field 41 is the policy; the command's name has no blank.
        assert_eq!(String::from_utf8_lossy(&text).split(' ').nth(40), Some("5"));
    }
}
