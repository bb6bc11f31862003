//! A fake /proc in a temporary directory, and processes recorded from real Spark.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// Clock ticks that the machine of the recordings had been up when the first of the recorded processes started.
const RECORDED_UP: u64 = 116_000;

/// A directory that looks like /proc.
pub struct FakeProc {
    dir: tempfile::TempDir,
}

/// A process in a fake /proc.
pub struct FakeProcess {
    dir: PathBuf,
}

impl Default for FakeProc {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeProc {
    /// An empty directory, with two users in its passwd.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("passwd"), "root:x:0:0::/root:/bin/sh\nana:x:1000:6::/home/ana:/bin/sh\n")
            .unwrap();
        Self { dir }
    }
    /// The directory, in place of `/proc`.
    pub fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }
    /// The list of users, in place of `/etc/passwd`.
    pub fn passwd(&self) -> PathBuf {
        self.dir.path().join("passwd")
    }
    /// Adds or replaces a process that has only `stat`.
    pub fn process(&self, pid: u32, ppid: u32, comm: &str, start: u64) -> FakeProcess {
        self.remove(pid);
        let dir = self.dir.path().join(pid.to_string());
        fs::create_dir(&dir).unwrap();
        let process = FakeProcess { dir };
        process.file("stat", &stat_line(pid, comm, ppid, start))
    }
    /// Takes a process away.
    pub fn remove(&self, pid: u32) {
        let _ = fs::remove_dir_all(self.dir.path().join(pid.to_string()));
    }
    /// Adds a recorded process, under the pids and start time that it had.
    pub fn recorded(&self, name: &str) -> u32 {
        let json = fixture(name);
        let number = |key: &str| json[key].as_u64().unwrap();
        let text = |key: &str| json[key].as_str().unwrap().to_owned();
        let list = |key: &str| -> Vec<String> {
            json[key].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect()
        };
        let pid = number("pid") as u32;
        // The machine of the recordings had been up for longer than this one may be: nothing starts after now.
        let start = number("start_ticks").saturating_sub(RECORDED_UP);
        self.process(pid, number("ppid") as u32, &text("comm"), start)
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
}

impl FakeProcess {
    /// Writes a file of the process.
    pub fn file(&self, name: &str, bytes: &[u8]) -> Self {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        Self { dir: self.dir.clone() }
    }
    /// Writes the command line, as bytes.
    pub fn cmdline(&self, bytes: &[u8]) -> Self {
        self.file("cmdline", bytes)
    }
    /// Writes the command line, as words with a NUL behind each.
    pub fn words<S: AsRef<str>>(&self, words: &[S]) -> Self {
        self.file("cmdline", with_nuls(words).as_bytes())
    }
    /// Writes the environment, `KEY=value` with a NUL behind each.
    pub fn environ<S: AsRef<str>>(&self, items: &[S]) -> Self {
        self.file("environ", with_nuls(items).as_bytes())
    }
    /// Makes a link of the process, `exe` say.
    pub fn link(&self, name: &str, target: &str) -> Self {
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
pub fn stat_line(pid: u32, comm: &str, ppid: u32, start: u64) -> Vec<u8> {
    let middle = "0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0";
    format!("{pid} ({comm}) S {ppid} {middle} {start} 1000 20 18446744073709551615\n").into_bytes()
}

/// A recorded process (of real Spark: 3.5.9; local, local-cluster, standalone; host names, paths and secrets replaced).
pub fn fixture(name: &str) -> serde_json::Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../process/src/fixtures")
        .join(format!("{name}.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
