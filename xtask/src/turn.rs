//! Work whose turn is after all other work on the machine, or before it (sched(7)).

// For sched_setscheduler.
#![allow(unsafe_code)]

/// Does the work in a thread of its own that, as all programs which it starts, has the CPU when nobody else wants it
/// (SCHED_IDLE). Where the kernel refuses, it is done like other work.
pub fn idle<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    by(libc::SCHED_IDLE, 0, work)
}

/// Does the work in a thread of its own that has the CPU as soon as it wants it (SCHED_FIFO): short work that has to be done at
/// its time, however many others run. It takes a right (CAP_SYS_NICE); where the kernel refuses, it is done like other work.
pub fn first<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    by(libc::SCHED_FIFO, 1, work)
}

fn by<T: Send>(policy: i32, sched_priority: i32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let priority = libc::sched_param { sched_priority };
            // SAFETY: the pointer is valid during the call; 0 is the calling thread.
            unsafe { libc::sched_setscheduler(0, policy, &priority) };
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
