//! Thread ids of another PID namespace as ours: a process's directory in /proc in, a map out.

use emberscope_model::Tid;
use emberscope_target::open::{self, Refusal};
use std::collections::HashMap;
use std::path::Path;

/// Threads of one process that are looked at.
const MAX_TASKS: usize = 32_768;

/// The threads of a process: id in its own PID namespace -> id here.
///
/// # Errors
/// [`Refusal::ProcessGone`]: the process ended. [`Refusal::Unreadable`]: its status cannot be read.
pub fn by_own_id(process_dir: &Path) -> Result<HashMap<u32, Tid>, Refusal> {
    let nested = own_id(process_dir)?.is_some_and(|ids| ids.1 > 1);
    let tasks = std::fs::read_dir(process_dir.join("task")).map_err(|_| Refusal::ProcessGone)?;
    let mut all = HashMap::new();
    for task in tasks.take(MAX_TASKS).flatten() {
        let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if nested {
            // One that ended meanwhile is left out.
            if let Ok(Some((own, _))) = own_id(&task.path()) {
                all.insert(own, tid);
            }
        } else {
            all.insert(tid, tid);
        }
    }
    Ok(all)
}

/// The id in the innermost namespace, and the number of namespaces that see the task: `NSpid` in its
/// status (proc_pid_status(5), Linux 4.1).
fn own_id(dir: &Path) -> Result<Option<(u32, usize)>, Refusal> {
    let status = open::read_bounded(&dir.join("status"), 64 << 10)?;
    let status = String::from_utf8_lossy(&status);
    let ids: Vec<u32> = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .map(|ids| ids.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect())
        .unwrap_or_default();
    Ok(ids.last().map(|own| (*own, ids.len())))
}

/// Bytes of a thread's name that the kernel keeps (`TASK_COMM_LEN`, include/linux/sched.h, less the zero).
const COMM_BYTES: usize = 15;

/// Whether what the kernel calls a thread bears all of `name` out: a longer one than the kernel keeps is never sure. A
/// JVM gives the kernel the first 15 bytes when a thread starts and when it renames itself
/// (`os::set_native_thread_name`, os_linux.cpp, JDK 8 to 25); only its main thread keeps the name of the program.
pub fn kernel_agrees(process_dir: &Path, tid: Tid, name: &str) -> bool {
    let comm = |dir: &Path| open::read_bounded(&dir.join("comm"), 64).unwrap_or_default();
    let own = comm(&process_dir.join("task").join(tid.to_string()));
    if name == "main" && !own.is_empty() && own == comm(process_dir) {
        return true;
    }
    let name = modified_utf8(name);
    // One of 15 bytes may go on.
    !name.is_empty() && name.len() < COMM_BYTES && own.strip_suffix(b"\n") == Some(name.as_slice())
}

/// Whether the kernel's name is `name` as far as the kernel keeps it.
#[cfg(test)]
pub fn begins_alike(process_dir: &Path, tid: Tid, name: &str) -> bool {
    let own = std::fs::read(process_dir.join("task").join(tid.to_string()).join("comm")).unwrap_or_default();
    let name = modified_utf8(name);
    own.strip_suffix(b"\n") == Some(name.get(..COMM_BYTES).unwrap_or(&name))
}

/// As the JVM writes text for C: characters beyond the first 65,536 as two surrogates of three bytes each
/// (utf8.cpp).
fn modified_utf8(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        let mut units = [0; 2];
        match c.encode_utf16(&mut units) {
            [_] => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            pair => bytes.extend(pair.iter().flat_map(|unit| {
                [0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3f) as u8, 0x80 | (unit & 0x3f) as u8]
            })),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_are_the_same() {
        let all = by_own_id(Path::new("/proc/self")).unwrap();
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(all.get(&me), Some(&me));
        assert!(by_own_id(Path::new("/proc/4194305")).is_err());
    }

    #[test]
    fn another_namespaces() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, ids: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("status"), format!("Name:\tjava\nNSpid:\t{ids}\n")).unwrap();
            std::fs::write(path.join("comm"), "Executor task l\n").unwrap();
        };
        write("", "4000\t17\t1");
        write("task/4000", "4000\t17\t1");
        write("task/4021", "4021\t38\t22");
        let all = by_own_id(dir.path()).unwrap();
        assert_eq!(all, HashMap::from([(1, 4000), (22, 4021)]));
        // What comes behind the first 15 bytes has no witness.
        for name in ["Executor task launch worker for task 1", "Executor task l", "Executor heartbeat"] {
            assert!(!kernel_agrees(dir.path(), 4021, name));
        }
        assert!(!kernel_agrees(dir.path(), 4021, ""));
        std::fs::write(dir.path().join("comm"), "java\n").unwrap();
        std::fs::write(dir.path().join("task/4000/comm"), "java\n").unwrap();
        assert!(kernel_agrees(dir.path(), 4000, "main") && !kernel_agrees(dir.path(), 4021, "main"));
        std::fs::write(dir.path().join("task/4000/comm"), b"fire \xed\xa0\xbd\xed\xb4\xa5 up\n").unwrap();
        assert!(kernel_agrees(dir.path(), 4000, "fire \u{1f525} up"));
        assert!(!kernel_agrees(dir.path(), 4000, "fire \u{1f525} upward"));
    }
}
