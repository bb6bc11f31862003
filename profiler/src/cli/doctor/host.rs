//! Checks of the kernel and of our rights.
//!
//! In: a root directory with /proc and /sys below it (`/`, or a fake one in tests). Out: findings. Files
//! are the kernel's own; each is read up to [`LIMIT`] bytes. What a file does not tell is said so.

use super::Finding;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file read, /proc/self/mountinfo, has some 10 KB on a host with many containers.
const LIMIT: u64 = 1 << 20;

/// Capability numbers: include/uapi/linux/capability.h.
const CAPS: [(u32, &str); 5] = [
    (39, "CAP_BPF"),
    (38, "CAP_PERFMON"),
    (19, "CAP_SYS_PTRACE"),
    (2, "CAP_DAC_READ_SEARCH"),
    (40, "CAP_CHECKPOINT_RESTORE"),
];
/// Stood for CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE before they were split off, and still does.
const SYS_ADMIN: u32 = 21;
/// Of the initial PID namespace: PROC_PID_INIT_INO, include/linux/proc_ns.h.
const INITIAL_PID_NS: &str = "pid:[4026531836]";

/// Looks at everything.
pub fn check(root: &Path) -> Vec<Finding> {
    let host = Host { root: root.to_owned() };
    let caps = host.capabilities();
    vec![
        host.kernel(),
        rights(caps),
        host.paranoid(caps),
        host.pid_namespace(),
        host.tracepoints(),
        host.types(),
        host.kernel_symbols(),
        host.cgroups(),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Caps(Option<u64>);

impl Caps {
    fn has(self, number: u32) -> bool {
        let bit = |number: u32| self.0.is_some_and(|set| set >> number & 1 == 1);
        bit(number) || (matches!(number, 38..=40) && bit(SYS_ADMIN))
    }
}

struct Host {
    root: PathBuf,
}

impl Host {
    fn read(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        File::open(self.root.join(path)).ok()?.take(LIMIT).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn word(&self, path: &str) -> Option<String> {
        self.read(path).map(|text| text.trim().to_owned())
    }

    fn kernel(&self) -> Finding {
        let release = self.word("proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) if (major, minor) < (5, 10) => Finding::limited(
                "kernel",
                format!("Linux {release}"),
                "nothing older than Linux 5.10 has been tried: move to a newer kernel",
            ),
            _ => Finding::ok("kernel", format!("Linux {release}")),
        }
    }

    fn capabilities(&self) -> Caps {
        let status = self.read("proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        Caps(line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()))
    }

    fn paranoid(&self, caps: Caps) -> Finding {
        let check = "perf_event_paranoid";
        let level = self.word("proc/sys/kernel/perf_event_paranoid");
        let found = level.as_deref().unwrap_or("not readable").to_owned();
        match level.and_then(|level| level.parse::<i32>().ok()) {
            None => Finding::missing(check, found, "this kernel has no perf events (CONFIG_PERF_EVENTS): use another"),
            Some(_) if caps.has(38) => Finding::ok(check, format!("{found}, which CAP_PERFMON overrides")),
            Some(level) if level > 0 => Finding::missing(
                check,
                format!("{found}: events of a whole CPU ask for CAP_PERFMON"),
                "run as root, or add CAP_PERFMON",
            ),
            Some(_) => Finding::ok(check, found),
        }
    }

    fn pid_namespace(&self) -> Finding {
        let check = "pid namespace";
        match std::fs::read_link(self.root.join("proc/self/ns/pid")) {
            Ok(link) if link.as_os_str() == INITIAL_PID_NS => Finding::ok(check, "the initial one"),
            Ok(_) => Finding::missing(
                check,
                "one of a container: the kernel's process ids cannot be matched to /proc",
                "share the host's: hostPID: true in Kubernetes, --pid=host in Docker and Podman",
            ),
            Err(error) => Finding::missing(check, format!("/proc/self/ns/pid: {error}"), "mount /proc"),
        }
    }

    fn tracepoints(&self) -> Finding {
        let check = "tracepoints";
        let places = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
        let found = places.iter().find(|at| self.word(&format!("{at}/events/sched/sched_process_exec/id")).is_some());
        match found {
            Some(at) => Finding::ok(check, format!("tracefs at /{at}")),
            None => Finding::missing(
                check,
                "tracefs is not mounted or not readable",
                "as root: mount -t tracefs tracefs /sys/kernel/tracing; in a container mount the host's",
            ),
        }
    }

    fn types(&self) -> Finding {
        if self.root.join("sys/kernel/btf/vmlinux").exists() {
            Finding::ok("kernel types", "BTF at /sys/kernel/btf/vmlinux")
        } else {
            Finding::limited(
                "kernel types",
                "no BTF: user stacks of samples inside the kernel and code mapped later are left out",
                "use a kernel with CONFIG_DEBUG_INFO_BTF=y",
            )
        }
    }

    /// The file tells more than the settings: what they let us see.
    fn kernel_symbols(&self) -> Finding {
        let check = "kernel symbols";
        let restrict = self.word("proc/sys/kernel/kptr_restrict").unwrap_or_else(|| "unknown".to_owned());
        let symbols = self.read("proc/kallsyms").unwrap_or_default();
        let mut addresses = symbols.lines().take(1000).filter_map(|line| line.split(' ').next());
        if addresses.any(|address| address.bytes().any(|digit| digit != b'0')) {
            return Finding::ok(check, format!("readable (kptr_restrict {restrict})"));
        }
        Finding::limited(
            check,
            format!("hidden (kptr_restrict {restrict}): kernel frames have no names"),
            "sysctl kernel.kptr_restrict=1, and CAP_SYSLOG or root for the daemon",
        )
    }

    fn cgroups(&self) -> Finding {
        let mounts = self.read("proc/self/mountinfo").unwrap_or_default();
        // mountinfo: the filesystem type follows the separator " - " (proc(5)).
        let has = |fs: &str| mounts.lines().any(|line| line.rsplit_once(" - ").is_some_and(|(_, tail)| tail.starts_with(fs)));
        let mode = match (has("cgroup2 "), has("cgroup ")) {
            (true, false) => "v2",
            (true, true) => "v1 and v2",
            (false, true) => "v1",
            (false, false) => {
                return Finding::limited(
                    "cgroups",
                    "not mounted: containers are told by the environment only",
                    "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
                );
            }
        };
        Finding::ok("cgroups", mode)
    }
}

fn rights(caps: Caps) -> Finding {
    let lacking = |among: &[(u32, &'static str)]| -> Vec<&'static str> {
        among.iter().filter(|(number, _)| !caps.has(*number)).map(|(_, name)| *name).collect()
    };
    let (load, read) = CAPS.split_at(2);
    let check = "capabilities";
    match (lacking(load), lacking(read)) {
        (none, nor) if none.is_empty() && nor.is_empty() => Finding::ok(check, "all that are used"),
        (none, rest) if none.is_empty() => Finding::limited(
            check,
            format!("no {}: processes of other users stay nameless", rest.join(", ")),
            "run as root, or add them",
        ),
        (load, rest) => Finding::missing(
            check,
            format!("no {}", [load, rest].concat().join(", ")),
            "run as root, or add them (systemd: AmbientCapabilities=)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    const ALL: &str = "Name:\tx\nCapEff:\t000001ffffffffff\n";

    fn fake(files: &[(&str, &str)], pid_ns: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
        std::os::unix::fs::symlink(pid_ns, root.path().join("proc/self/ns/pid")).unwrap();
        root
    }

    fn of<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
        findings.iter().find(|finding| finding.check == check).unwrap()
    }

    #[test]
    fn a_good_host_is_all_ok() {
        let root = fake(
            &[
                ("proc/self/status", ALL),
                ("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n"),
                ("proc/sys/kernel/perf_event_paranoid", "3\n"),
                ("proc/sys/kernel/kptr_restrict", "0\n"),
                ("proc/kallsyms", "ffffffff81000000 T _stext\n"),
                ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("sys/kernel/tracing/events/sched/sched_process_exec/id", "315\n"),
                ("sys/kernel/btf/vmlinux", ""),
            ],
            INITIAL_PID_NS,
        );
        let findings = check(root.path());
        assert!(findings.iter().all(|finding| finding.status == Status::Ok), "{findings:#?}");
        assert_eq!(of(&findings, "cgroups").found, "v2");
    }

    #[test]
    fn what_is_missing_is_told_with_the_mend() {
        let root = fake(
            &[
                ("proc/self/status", "CapEff:\t0000000000000000\n"),
                ("proc/sys/kernel/osrelease", "5.4.0\n"),
                ("proc/sys/kernel/perf_event_paranoid", "2\n"),
                ("proc/sys/kernel/kptr_restrict", "2\n"),
                ("proc/kallsyms", "0000000000000000 T _stext\n"),
            ],
            "pid:[4026532999]",
        );
        let findings = check(root.path());
        for name in ["capabilities", "perf_event_paranoid", "pid namespace", "tracepoints"] {
            assert_eq!(of(&findings, name).status, Status::Missing, "{name}");
        }
        for name in ["kernel", "kernel types", "kernel symbols", "cgroups"] {
            assert_eq!(of(&findings, name).status, Status::Limited, "{name}");
        }
        assert!(findings.iter().all(|finding| finding.mend.is_some()));
        assert!(of(&findings, "capabilities").found.starts_with("no CAP_BPF, CAP_PERFMON"));
    }

    #[test]
    fn the_old_capability_stands_for_the_new_ones() {
        let admin = Caps(Some(1 << SYS_ADMIN | 1 << 19 | 1 << 2));
        assert_eq!(rights(admin).status, Status::Ok);
        let load_only = rights(Caps(Some(1 << 39 | 1 << 38)));
        assert_eq!(load_only.status, Status::Limited);
        assert!(load_only.found.contains("CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE"));
        assert_eq!(rights(Caps(None)).status, Status::Missing);
    }

    #[test]
    fn an_empty_root_is_survived() {
        let root = tempfile::tempdir().unwrap();
        assert!(check(root.path()).iter().any(|finding| finding.status == Status::Missing));
    }
}
