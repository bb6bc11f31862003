//! The files that wait to be read, and which processes wait for each: bounded in bytes over all processes, by fair shares
//! ([`Excess`]). What gives way comes again with the next look at its process.

use emberscope_model::{Excess, Pid, Tenant};
use emberscope_target::maps::Backing;
use emberscope_unwind::table::{Inode, Wanted};
use std::collections::HashMap;

/// Bytes of what waits, estimated: some 8,000 files. A node's processes have a few thousand different ones.
pub const MAX_BYTES: usize = 4 << 20;
/// Bytes of a file without its path: itself, its process's directory, and its places here and in its lane.
const FILE_BYTES: usize = 400;
/// Bytes of a process that waits for a file: a number, in a vector that doubles.
const PID_BYTES: usize = 8;

struct Entry {
    pids: Vec<Pid>,
    bytes: usize,
}

impl Entry {
    /// Whose share it takes: Spark's, if one of its processes is.
    fn payer(&self, tenant: impl Fn(Pid) -> Tenant) -> Tenant {
        self.pids.iter().map(|pid| tenant(*pid)).max().unwrap_or_default()
    }
}

/// Files that wait to be read or are read now, with the processes that wait for each.
pub struct Waiting {
    files: HashMap<Inode, Entry>,
    bytes: usize,
    limit: usize,
    /// Files that gave way, since the start.
    pub given_up: u64,
}

impl Waiting {
    /// Nothing waits; so many bytes may.
    pub fn new(limit: usize) -> Self {
        Self { files: HashMap::new(), bytes: 0, limit, given_up: 0 }
    }

    /// How many files wait.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The processes that wait for a file.
    pub fn pids(&self, inode: &Inode) -> &[Pid] {
        self.files.get(inode).map(|file| file.pids.as_slice()).unwrap_or_default()
    }

    /// A process waits for a file, too. False: the file does not wait yet.
    pub fn join(&mut self, inode: &Inode, pid: Pid) -> bool {
        let Some(file) = self.files.get_mut(inode) else { return false };
        if !file.pids.contains(&pid) {
            file.pids.push(pid);
            self.bytes += PID_BYTES;
        }
        true
    }

    /// A process waits for a file that did not wait before.
    pub fn add(&mut self, file: &Wanted, pid: Pid) {
        let path = match &file.mapping.backing {
            Backing::File { path, .. } => path.as_os_str().len(),
            Backing::Anonymous | Backing::Special(_) | Backing::Vdso => 0,
        };
        let bytes = FILE_BYTES + path;
        self.bytes += bytes + PID_BYTES;
        self.files.insert(file.inode.clone(), Entry { pids: vec![pid], bytes });
    }

    /// A file does not wait any more: the processes that waited for it.
    pub fn take(&mut self, inode: &Inode) -> Vec<Pid> {
        let Some(Entry { pids, bytes }) = self.files.remove(inode) else { return Vec::new() };
        self.bytes = self.bytes.saturating_sub(bytes + pids.len() * PID_BYTES);
        pids
    }

    /// Whether more waits than may.
    pub fn is_full(&self) -> bool {
        self.bytes > self.limit
    }

    /// Makes room of what is over its tenant's share, an eighth of all: files, of those that are listed and in that order, then
    /// places of processes that wait for others' files. The answer: the files that gave way.
    pub fn make_room(&mut self, order: Vec<Inode>, tenant: impl Fn(Pid) -> Tenant) -> Vec<Inode> {
        let tenant = &tenant;
        let held = self.files.values().flat_map(|file| {
            let places = file.pids.iter().map(move |pid| (tenant(*pid), PID_BYTES));
            std::iter::once((file.payer(tenant), file.bytes)).chain(places)
        });
        let mut excess = Excess::over(self.limit - self.limit / 8, held);
        let mut gone = Vec::new();
        for inode in order {
            let Some(file) = self.files.get(&inode) else { continue };
            if excess.take(&file.payer(tenant), file.bytes) {
                self.take(&inode);
                gone.push(inode);
            }
        }
        for file in self.files.values_mut() {
            file.pids.retain(|pid| !excess.take(&tenant(*pid), PID_BYTES));
        }
        self.bytes = self.files.values().map(|file| file.bytes + file.pids.len() * PID_BYTES).sum();
        self.given_up += gone.len() as u64;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_target::maps;

    fn file(path: &str, inode: u64) -> Wanted {
        let line = format!("1000-2000 r-xp 00000000 fe:00 {inode} {path}\n");
        let mapping = maps::with(line.as_bytes(), |_| true).next().unwrap();
        let inode = Inode::of(&mapping).unwrap();
        Wanted { dir: "/proc/7".into(), mapping, inode }
    }

    /// Process 1 is Spark's, 2 another user's, and 3 and above a flooder's.
    fn tenant(pid: Pid) -> Tenant {
        Tenant { spark: pid == 1, uid: pid.min(3), group: 0 }
    }

    #[test]
    fn a_flooder_of_files_loses_his_own() {
        let mut waiting = Waiting::new(64 << 10);
        let (sparks, light) = (file("/opt/libjvm.so", 1), file("/usr/lib/libc.so", 2));
        waiting.add(&sparks, 1);
        waiting.add(&light, 2);
        let path = format!("/{}", "x".repeat(2000));
        let mut order = vec![sparks.inode.clone(), light.inode.clone()];
        for inode in 3..1000 {
            let file = file(&path, inode);
            waiting.add(&file, 3);
            order.push(file.inode);
            if waiting.is_full() {
                let gone = waiting.make_room(order.clone(), tenant);
                assert!(!gone.is_empty() && !waiting.is_full());
                order.retain(|inode| !gone.contains(inode));
            }
        }
        assert!(waiting.len() < 30, "{} files with a path of 2,000 bytes each", waiting.len());
        assert_eq!((waiting.pids(&sparks.inode), waiting.pids(&light.inode)), (&[1][..], &[2][..]));
        assert_eq!(waiting.given_up, 999 - waiting.len() as u64);
        for inode in order {
            waiting.take(&inode);
        }
        assert_eq!((waiting.len(), waiting.bytes), (0, 0));
    }

    #[test]
    fn who_waits_for_others_files_pays_for_his_places() {
        let mut waiting = Waiting::new(8 << 10);
        let sparks = file("/opt/libjvm.so", 1);
        assert!(!waiting.join(&sparks.inode, 1));
        waiting.add(&sparks, 1);
        for pid in 3..5000 {
            assert!(waiting.join(&sparks.inode, pid) && waiting.join(&sparks.inode, pid));
            if waiting.is_full() {
                assert!(waiting.make_room(vec![sparks.inode.clone()], tenant).is_empty());
                assert!(!waiting.is_full());
            }
        }
        let pids = waiting.take(&sparks.inode);
        assert!(pids.contains(&1) && pids.len() <= 1024);
    }
}
