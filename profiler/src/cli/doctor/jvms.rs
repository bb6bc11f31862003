//! Which JVMs run here, and how their stacks and the names of their code can be had.
//!
//! In: /proc, and whether this kernel walks by the JVM's own tables. Out: a finding for each JVM. What a JVM's files say is read through /proc/PID/root with
//! openat2, inside its own tree, regular files only, up to [`LIMIT`] bytes; a process that dies meanwhile
//! is left out. At most [`SHOWN`] JVMs are listed, the rest counted.

use super::Finding;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a file that are read: maps of a large JVM have some 300 KB.
const LIMIT: u64 = 1 << 20;
/// JVMs that are listed.
const SHOWN: usize = 32;
/// First JDK with `Compiler.perfmap` (JDK-8254723).
const PERFMAP_JDK: u32 = 17;

/// Looks at all processes: a finding for each JVM.
pub fn check(proc: &Path, walks: bool) -> Vec<Finding> {
    let mut pids: Vec<u32> = std::fs::read_dir(proc)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    pids.sort_unstable();
    let mut jvms = pids.into_iter().filter_map(|pid| Jvm::read(proc, pid));
    let mut findings: Vec<Finding> = jvms.by_ref().take(SHOWN).map(|jvm| jvm.finding(walks)).collect();
    let more = jvms.count();
    if more > 0 {
        findings.push(Finding::ok("JVMs", format!("{more} more")));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("JVMs", "none running that can be inspected"));
    }
    findings
}

/// What decides how a JVM's names can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Jvm {
    pid: u32,
    /// Text of `JAVA_VERSION`; empty when the JDK's `release` file does not tell.
    version: String,
    /// Whether it handles SIGQUIT, and was not told to refuse to be attached to.
    can_ask: bool,
    /// Whether its `/tmp/perf-PID.map` is there.
    has_map: bool,
    frame_pointers: bool,
    /// OpenJ9 has a libjvm.so too; its own library is mapped beside it.
    open_j9: bool,
}

impl Jvm {
    /// None: no JVM, or gone, or not ours to read.
    fn read(proc: &Path, pid: u32) -> Option<Self> {
        let dir = proc.join(pid.to_string());
        let text = |name: &str| read_limited(File::open(dir.join(name)).ok()?);
        let maps = text("maps")?;
        let libjvm = maps.lines().find(|line| line.ends_with("/libjvm.so"))?;
        let libjvm = PathBuf::from(&libjvm[libjvm.find('/')?..]);
        let (status, command) = (text("status")?, text("cmdline")?);
        let flag = |flag: &str| command.split('\0').any(|word| word == flag);
        let root = dir.join("root");
        // Its own pid inside its pid namespace is the last of NSpid (proc(5)).
        let inner =
            field(&status, "NSpid:").and_then(|pids| pids.split_whitespace().last()).unwrap_or_default();
        let map = format!("/tmp/perf-{inner}.map");
        Some(Self {
            pid,
            version: version(&root, &libjvm).unwrap_or_default(),
            can_ask: handles_sigquit(&status) && !flag("-XX:+DisableAttachMechanism"),
            has_map: open_inside(&root, Path::new(&map)).is_some(),
            frame_pointers: flag("-XX:+PreserveFramePointer"),
            open_j9: maps.contains("/libj9vm"),
        })
    }

    fn finding(&self, walks: bool) -> Finding {
        let check = format!("JVM {}", self.pid);
        let jdk = if self.version.is_empty() {
            "JDK of unknown version".to_owned()
        } else {
            format!("JDK {}", self.version)
        };
        if walks && !self.open_j9 {
            return Finding::ok(check, format!("{jdk}; whole stacks and names, from its own memory"));
        }
        let askable = major(&self.version).is_some_and(|major| major >= PERFMAP_JDK);
        let (names, mend) = match (askable && self.can_ask, self.has_map) {
            (true, _) => ("names from a perf map on request", None),
            (_, true) => ("names from the existing perf map, as far as it goes", None),
            (_, false) if !askable => (
                "no names of compiled code: it has no Compiler.perfmap and there is no perf map",
                Some("move it to JDK 17 or newer, or have an agent write /tmp/perf-PID.map"),
            ),
            _ => (
                "no names of compiled code: it refuses attach requests",
                Some("start it without -Xrs and -XX:+DisableAttachMechanism"),
            ),
        };
        let stacks = match self.frame_pointers {
            true => "whole stacks",
            false => "stacks end at compiled code without a frame pointer",
        };
        let found = format!("{jdk}; {names}; {stacks}");
        let pointers = (!self.frame_pointers).then_some("start it with -XX:+PreserveFramePointer");
        let mends: Vec<&str> = mend.into_iter().chain(pointers).collect();
        if mends.is_empty() {
            Finding::ok(check, found)
        } else {
            Finding::limited(check, found, mends.join("; "))
        }
    }
}

/// A line of /proc/PID/status, without its name.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// SIGQUIT is signal 3: bit 2 of the set. Without a handler (`-Xrs`) it would kill.
fn handles_sigquit(status: &str) -> bool {
    field(status, "SigCgt:")
        .and_then(|set| u64::from_str_radix(set, 16).ok())
        .is_some_and(|set| set >> 2 & 1 == 1)
}

/// `1.8.0_402` is 8, `17.0.15` is 17, `25-ea` is 25.
fn major(version: &str) -> Option<u32> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().ok());
    match numbers.next()?? {
        1 => numbers.next()?,
        major => Some(major),
    }
}

/// From the JDK's `release` file: `HOME/lib/server/libjvm.so`, in JDK 8 `HOME/jre/lib/ARCH/server/libjvm.so`.
fn version(root: &Path, libjvm: &Path) -> Option<String> {
    let homes = libjvm.ancestors().skip(3).take(3);
    let text = homes.filter_map(|home| read_limited(open_inside(root, &home.join("release"))?)).next()?;
    let version = field(&text, "JAVA_VERSION=")?.trim_matches('"');
    Some(version.chars().take(32).collect())
}

/// Opens a regular file of a process's own tree for reading.
fn open_inside(root: &Path, path: &Path) -> Option<File> {
    let directory = openat2(
        CWD,
        root,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::empty(),
    );
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(directory.ok()?, path, flags, Mode::empty(), inside).ok()?;
    let regular = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::RegularFile;
    regular.then(|| file.into())
}

fn read_limited(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use std::os::unix::fs::symlink;

    fn fake(release: &str, command: &str, sigcgt: &str) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        let dir = proc.path().join("42");
        let home = dir.join("root/opt/jdk");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(dir.join("root/tmp")).unwrap();
        std::fs::write(home.join("release"), release).unwrap();
        let maps = "7f00-7f01 r-xp 00000000 fe:00 1 /usr/lib/libc.so.6\n7f02-7f03 r-xp 00000000 fe:00 2    /opt/jdk/lib/server/libjvm.so\n";
        std::fs::write(dir.join("maps"), maps).unwrap();
        std::fs::write(dir.join("status"), format!("NSpid:\t42\t7\nSigCgt:\t{sigcgt}\n")).unwrap();
        std::fs::write(dir.join("cmdline"), command).unwrap();
        std::fs::create_dir_all(proc.path().join("43")).unwrap();
        proc
    }

    const HANDLES: &str = "2000000181005ccf";

    #[test]
    fn a_jdk_17_with_frame_pointers_is_all_good() {
        let proc = fake("JAVA_VERSION=\"17.0.15\"\n", "java\0-XX:+PreserveFramePointer\0Main\0", HANDLES);
        let findings = check(proc.path(), false);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].check.as_str(), findings[0].status), ("JVM 42", Status::Ok));
        assert_eq!(findings[0].found, "JDK 17.0.15; names from a perf map on request; whole stacks");
    }

    #[test]
    fn where_the_kernel_walks_java_nothing_is_to_be_mended() {
        let proc = fake("JAVA_VERSION=\"1.8.0_402\"", "java\0", HANDLES);
        let found = check(proc.path(), true).remove(0);
        assert_eq!((found.status, found.mend), (Status::Ok, None));
        assert_eq!(found.found, "JDK 1.8.0_402; whole stacks and names, from its own memory");
        let maps = proc.path().join("42/maps");
        let text = std::fs::read_to_string(&maps).unwrap()
            + "7f04-7f05 r-xp 00000000 fe:00 3    /opt/jdk/lib/libj9vm29.so\n";
        std::fs::write(&maps, text).unwrap();
        let found = check(proc.path(), true).remove(0);
        assert!(found.found.contains("stacks end at compiled code"), "{}", found.found);
    }

    #[test]
    fn what_stands_in_the_way_is_told() {
        let found = |release: &str, command: &str, sigcgt: &str| {
            let proc = fake(release, command, sigcgt);
            check(proc.path(), false).remove(0)
        };
        let old = found("JAVA_VERSION=\"1.8.0_402\"", "java\0", HANDLES);
        assert!(old.found.contains("no Compiler.perfmap"), "{}", old.found);
        assert!(old.mend.unwrap().ends_with("start it with -XX:+PreserveFramePointer"));
        let shut = found("JAVA_VERSION=\"17.0.1\"", "java\0-XX:+DisableAttachMechanism\0", HANDLES);
        assert!(shut.found.contains("refuses attach requests"), "{}", shut.found);
        let deaf = found("JAVA_VERSION=\"17.0.1\"", "java\0", "0000000000000000");
        assert!(deaf.found.contains("refuses attach requests"), "{}", deaf.found);
        assert!(found("", "java\0", HANDLES).found.starts_with("JDK of unknown version"));
    }

    #[test]
    fn a_map_counts_only_when_it_is_a_file_of_the_target() {
        let proc = fake("JAVA_VERSION=\"11.0.2\"", "java\0", HANDLES);
        let map = proc.path().join("42/root/tmp/perf-7.map");
        symlink("/etc/hostname", &map).unwrap();
        assert!(check(proc.path(), false)[0].found.contains("no names"));
        std::fs::remove_file(&map).unwrap();
        rustix::fs::mknodat(CWD, &map, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(check(proc.path(), false)[0].found.contains("no names"));
        std::fs::remove_file(&map).unwrap();
        std::fs::write(&map, "").unwrap();
        assert!(check(proc.path(), false)[0].found.contains("from the existing perf map"));
    }

    #[test]
    fn versions_are_read() {
        let versions = [("1.8.0_402", 8), ("11", 11), ("17.0.15", 17), ("25-ea", 25)];
        assert!(versions.iter().all(|(text, want)| major(text) == Some(*want)));
        assert_eq!((major(""), major("x"), major("1")), (None, None, None));
    }
}
