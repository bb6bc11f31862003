//! Whether a stack reaches the function that its thread was started with.
//!
//! In: a stack's frames, root first, native ones named. Above a thread's start function lies only the C library's
//! code that calls it, which keeps no frame pointer on most distributions: the walk stops there as if it were
//! cut, though nothing of the program is missing.

use emberscope_model::Frame;

/// Functions that are handed to pthread_create: HotSpot's for all of its threads (os_linux.cpp, `java_start` up to
/// JDK 9), and the launcher's for `main` (java_md.c).
const STARTS: [&str; 4] = ["thread_native_entry", "java_start", "ThreadJavaMain", "JavaMain"];

/// The caller of every goroutine's first function, which is never called itself (src/runtime/asm_amd64.s); Go's linker
/// does not mark it as the end in its unwind information.
const GOROUTINE: [&str; 2] = ["runtime.goexit", "runtime.goexit.abi0"];

/// Whether the first frame, or the second below one of the C library's, is a thread's start function; None: it has no name yet.
pub fn is_first(first: Option<&Frame>, second: Option<&Frame>) -> bool {
    let Some(first) = first else { return false };
    GOROUTINE.contains(&&*first.name) || is_start(first) || (is_libc(first) && second.is_some_and(is_start))
}

fn is_start(frame: &Frame) -> bool {
    let function = frame.name.split('(').next().unwrap_or_default();
    STARTS.contains(&function) && (&*frame.module == "libjvm.so" || &*frame.module == "libjli.so")
}

fn is_libc(frame: &Frame) -> bool {
    let module = &*frame.module;
    module.starts_with("libc.") || module.starts_with("libpthread") || module.starts_with("ld-musl")
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_model::FrameKind;

    #[test]
    fn what_a_thread_was_started_with() {
        let start = ("thread_native_entry(Thread*)", "libjvm.so");
        let libc = ("libc.so.6+0x8a1f4", "libc.so.6");
        for (frames, first) in [
            (vec![libc, start, ("Thread::call_run()", "libjvm.so")], true),
            (vec![start], true),
            (vec![("start_thread", "libc.so.6"), ("JavaMain", "libjli.so")], true),
            (vec![libc, libc, start], false),
            (vec![("thread_native_entry(Thread*)", "liba.so")], false),
            (vec![("runtime.goexit.abi0", "kubelet"), ("main.work", "kubelet")], true),
            (vec![("main.work", "kubelet"), ("runtime.goexit", "kubelet")], false),
            (vec![("x", "liba.so"), start], false),
            (vec![libc], false),
            (vec![], false),
        ] {
            let named: Vec<Frame> =
                frames.iter().map(|(name, module)| Frame::new(FrameKind::Native, *name, *module)).collect();
            assert_eq!(is_first(named.first(), named.get(1)), first, "{frames:?}");
        }
    }
}
