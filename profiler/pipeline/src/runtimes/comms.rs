//! What the kernel calls threads: comm, cut to 15 bytes.

use emberscope_model::{Pid, Tid};
use std::path::Path;

/// Threads of one process whose comm is read.
const MAX_COMMS: usize = 32_768;

/// The comm of one thread; None: it is gone.
pub fn comm(pid: Pid, tid: Tid) -> Option<Vec<u8>> {
    read_comm(&Path::new("/proc").join(pid.to_string()).join("task").join(tid.to_string()))
}

/// The comm in a thread's directory, without its newline. At most 16 bytes (TASK_COMM_LEN), and no process chooses
/// how long reading it takes.
fn read_comm(thread: &Path) -> Option<Vec<u8>> {
    let mut comm = std::fs::read(thread.join("comm")).ok()?;
    comm.pop_if(|last| *last == b'\n');
    Some(comm)
}

/// The comm of every thread.
pub(super) fn comms(dir: &Path) -> Vec<(Tid, Vec<u8>)> {
    let tasks = std::fs::read_dir(dir.join("task")).into_iter().flatten().flatten();
    let comm = |entry: std::fs::DirEntry| {
        let tid = entry.file_name().to_str()?.parse().ok()?;
        Some((tid, read_comm(&entry.path())?))
    };
    tasks.take(MAX_COMMS).filter_map(comm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_comms_of_our_own_threads() {
        let name = "x (y) z";
        let (told, heard) = channel();
        let (go, wait) = channel::<()>();
        let thread = std::thread::Builder::new().name(name.into());
        let thread = thread.spawn(move || {
            told.send(rustix::thread::gettid().as_raw_nonzero().get() as Tid).unwrap();
            wait.recv().unwrap();
        });
        let tid = heard.recv().unwrap();
        let all = comms(Path::new("/proc/self"));
        assert_eq!(all.iter().find(|(t, _)| *t == tid).map(|(_, comm)| &comm[..]), Some(name.as_bytes()));
        go.send(()).unwrap();
        thread.unwrap().join().unwrap();
    }
}
