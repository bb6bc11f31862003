//! The attackers' share of the CPUs: a control group of their own, as systemd makes one for each user (user.slice) beside its
//! services (system.slice), YARN and Kubernetes one for each container. Without it a user's 16,000 threads take the CPUs of
//! every other process alike, whatever the daemon does.
//!
//! In: nothing. Out: a group below the root, of version 1's `cpu` controller or of version 2 where that has it; None elsewhere,
//! and then the attackers run beside all others.

use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// The group, and how one gets into it and back.
pub struct Slice {
    dir: PathBuf,
    home: PathBuf,
    /// The file that takes who is to be in a group: threads in version 1, processes in version 2.
    list: &'static str,
}

impl Slice {
    /// Made below the root.
    pub fn new() -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        // `N:controllers:path`, cgroups(7).
        let path = |wanted: &str| {
            own.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|name| name == wanted).then(|| path.trim_start_matches('/'))
            })
        };
        let (root, list, path) = match path("cpu") {
            Some(path) => (Path::new("/sys/fs/cgroup/cpu"), "tasks", path),
            None => (Path::new("/sys/fs/cgroup"), "cgroup.procs", path("")?),
        };
        if list == "cgroup.procs" {
            std::fs::write(root.join("cgroup.subtree_control"), "+cpu").ok()?;
        }
        let dir = root.join("emberscope-attackers");
        std::fs::create_dir_all(&dir).ok()?;
        let there = dir.join(if list == "tasks" { "cpu.shares" } else { "cpu.weight" }).exists();
        there.then(|| Self { dir, home: root.join(path), list })
    }

    /// What `start` starts is in the group.
    pub fn with<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        enter(&self.dir.join(self.list))?;
        let started = start();
        enter(&self.home.join(self.list))?;
        started
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        // Not while any is left in it.
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// Who writes, by 0.
fn enter(list: &Path) -> Result<()> {
    std::fs::write(list, "0").with_context(|| format!("writing {}", list.display()))
}
