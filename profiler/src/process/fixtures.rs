//! Test support: a fake proc root in a temporary directory, and processes recorded from real Spark
//! (3.5.9; local, local-cluster, standalone; host names, paths and secrets replaced) in `fixtures/`.

use super::facts::ProcessFacts;
use super::identity::{Identity, identify};
use super::procfs::{ProcRoot, ReadError};
use super::users::Users;
use crate::model::Pid;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// A directory that looks like /proc.
pub(crate) struct FakeProc {
    dir: tempfile::TempDir,
}

/// One process in it.
pub(crate) struct FakeProcess {
    dir: PathBuf,
}

impl FakeProc {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("passwd"), "root:x:0:0::/root:/bin/sh\nana:x:1000:6::/home/ana:/bin/sh\n")
            .unwrap();
        Self { dir }
    }
    pub(crate) fn root(&self) -> ProcRoot {
        ProcRoot::new(self.dir.path())
    }
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }
    pub(crate) fn passwd(&self) -> PathBuf {
        self.dir.path().join("passwd")
    }
    /// Adds or replaces a process that has only `stat`.
    pub(crate) fn process(&self, pid: Pid, ppid: Pid, comm: &str, start: u64) -> FakeProcess {
        self.remove(pid);
        let dir = self.dir.path().join(pid.to_string());
        fs::create_dir(&dir).unwrap();
        let process = FakeProcess { dir };
        process.file("stat", &stat_line(pid, comm, ppid, start))
    }
    pub(crate) fn remove(&self, pid: Pid) {
        let _ = fs::remove_dir_all(self.dir.path().join(pid.to_string()));
    }
    /// Adds a recorded process, under the pids and start time that it had.
    pub(crate) fn recorded(&self, name: &str) -> Pid {
        let json = fixture(name);
        let number = |key: &str| json[key].as_u64().unwrap();
        let text = |key: &str| json[key].as_str().unwrap().to_owned();
        let list = |key: &str| -> Vec<String> {
            json[key].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect()
        };
        let pid = number("pid") as Pid;
        self.process(pid, number("ppid") as Pid, &text("comm"), number("start_ticks"))
            .words(&list("words"))
            .environ(&list("environ"))
            .file("cgroup", (list("cgroup").join("\n") + "\n").as_bytes())
            .file(
                "status",
                format!("Uid:\t1000\t1000\t1000\t1000\nGid:\t6\t6\t6\t6\nNSpid:\t{pid}\n").as_bytes(),
            )
            .file(
                "maps",
                if json["libjvm"] == true {
                    b"7f00-7f01 r-xp 0 0 0 /jdk/lib/server/libjvm.so\n"
                } else {
                    b""
                },
            )
            .link("exe", &text("exe"))
            .link("cwd", &text("cwd"));
        pid
    }
    pub(crate) fn facts(&self, pid: Pid) -> Result<ProcessFacts, ReadError> {
        ProcessFacts::read(&self.root(), &mut Users::new(self.passwd()), pid)
    }
}

impl FakeProcess {
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> Self {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        Self { dir: self.dir.clone() }
    }
    pub(crate) fn cmdline(&self, bytes: &[u8]) -> Self {
        self.file("cmdline", bytes)
    }
    pub(crate) fn words<S: AsRef<str>>(&self, words: &[S]) -> Self {
        self.file("cmdline", with_nuls(words).as_bytes())
    }
    pub(crate) fn environ<S: AsRef<str>>(&self, items: &[S]) -> Self {
        self.file("environ", with_nuls(items).as_bytes())
    }
    pub(crate) fn link(&self, name: &str, target: &str) -> Self {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
        Self { dir: self.dir.clone() }
    }
}

fn with_nuls<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|w| format!("{}\0", w.as_ref())).collect()
}

/// A line as the kernel writes /proc/PID/stat (fs/proc/array.c).
pub(crate) fn stat_line(pid: Pid, comm: &str, ppid: Pid, start: u64) -> Vec<u8> {
    let middle = "0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0";
    format!("{pid} ({comm}) S {ppid} {middle} {start} 1000 20 18446744073709551615\n").into_bytes()
}

fn fixture(name: &str) -> serde_json::Value {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/process/fixtures").join(format!("{name}.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The words of a recorded process.
pub(crate) fn fixture_words(name: &str) -> Vec<String> {
    fixture(name)["words"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect()
}

/// Facts of a recorded process, read through a fake proc root.
pub(crate) fn recorded(name: &str) -> ProcessFacts {
    let fake = FakeProc::new();
    let pid = fake.recorded(name);
    fake.facts(pid).unwrap()
}

/// Facts of a process with these words and variables.
pub(crate) fn facts_of(words: &[&str], environ: &[&str]) -> ProcessFacts {
    let comm = words.first().map_or("x", |w| w.rsplit('/').next().unwrap());
    let fake = FakeProc::new();
    fake.process(77, 1, comm, 100).words(words).environ(environ);
    fake.facts(77).unwrap()
}

/// The identity of a process with these words and variables.
pub(crate) fn identity_of(words: &[&str], environ: &[&str]) -> Identity {
    identify(&facts_of(words, environ))
}
