//! Checks of the kernel and of our rights.
//!
//! In: what the kernel side found by asking the kernel ([`HostFeatures`]), and a root directory with /proc
//! below it (`/`, or a fake one in tests) for what is no business of the kernel side: whether the
//! processes that the kernel names are those that we see, and may read. Files are the kernel's own; each
//! is read up to [`LIMIT`] bytes.

use super::Finding;
use emberscope_capture::{FindingState, HostFeatures};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file read, /proc/self/mountinfo, has some 10 KB on a host with many containers.
const LIMIT: u64 = 1 << 20;
/// CAP_DAC_READ_SEARCH: include/uapi/linux/capability.h.
const DAC_READ_SEARCH: u32 = 2;
/// The link of the initial PID namespace: PROC_PID_INIT_INO, include/linux/proc_ns.h.
const INITIAL_PID_NS: &str = "pid:[4026531836]";

/// What the kernel side found, as findings.
pub fn kernel_side(host: &HostFeatures) -> Vec<Finding> {
    let mut findings = vec![Finding::ok("kernel", format!("Linux {}", host.kernel))];
    findings.extend(host.findings().into_iter().map(Finding::from));
    findings
}

impl From<emberscope_capture::Finding> for Finding {
    fn from(from: emberscope_capture::Finding) -> Self {
        let check = from.name.replace('_', " ");
        let sentence = from.sentence.trim_end_matches('.');
        let found = match from.value.as_str() {
            "" | "yes" => sentence.to_owned(),
            value => format!("{sentence} ({value})"),
        };
        match from.state {
            FindingState::Good => Self::ok(check, found),
            FindingState::Degraded => Self::limited(check, from.value, sentence),
            FindingState::Fatal => Self::missing(check, from.value, sentence),
        }
    }
}

/// Findings of what the daemon would see around it: the PID namespace, other users' files, cgroups.
pub fn surroundings(root: &Path) -> Vec<Finding> {
    let host = Host { root: root.to_owned() };
    vec![host.pid_namespace(), host.files(), host.cgroups()]
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

    fn pid_namespace(&self) -> Finding {
        let check = "pid namespace";
        match std::fs::read_link(self.root.join("proc/self/ns/pid")) {
            Ok(link) if link.as_os_str() == INITIAL_PID_NS => Finding::ok(check, "The initial one"),
            Ok(_) => Finding::missing(
                check,
                "A container's: the kernel's process ids cannot be matched to /proc",
                "share the host's: hostPID: true in Kubernetes, --pid=host in Docker and Podman",
            ),
            Err(error) => Finding::missing(check, format!("/proc/self/ns/pid: {error}"), "mount /proc"),
        }
    }

    fn files(&self) -> Finding {
        let status = self.read("proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let set = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        if set.is_some_and(|set| set >> DAC_READ_SEARCH & 1 == 1) {
            return Finding::ok("files", "Other users' files can be read");
        }
        Finding::limited(
            "files",
            "Other users' libraries and perf maps may not be readable: their frames have no names",
            "give CAP_DAC_READ_SEARCH",
        )
    }

    fn cgroups(&self) -> Finding {
        let mounts = self.read("proc/self/mountinfo").unwrap_or_default();
        // The filesystem's type follows the separator " - " (proc_pid_mountinfo(5)).
        let has = |fs: &str| {
            let tails = mounts.lines().filter_map(|line| line.rsplit_once(" - "));
            tails.into_iter().any(|(_, tail)| tail.starts_with(fs))
        };
        match (has("cgroup2 "), has("cgroup ")) {
            (true, false) => Finding::ok("cgroups", "v2"),
            (true, true) => Finding::ok("cgroups", "v1 and v2"),
            (false, true) => Finding::ok("cgroups", "v1"),
            (false, false) => Finding::limited(
                "cgroups",
                "Not mounted: containers are recognized by their environment only",
                "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

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

    fn statuses(findings: &[Finding]) -> Vec<Status> {
        findings.iter().map(|finding| finding.status).collect()
    }

    #[test]
    fn good_surroundings_are_all_ok() {
        let files = [
            ("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
            ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ];
        let findings = surroundings(fake(&files, INITIAL_PID_NS).path());
        assert_eq!(statuses(&findings), [Status::Ok; 3], "{findings:#?}");
        assert_eq!(findings[2].found, "v2");
    }

    #[test]
    fn what_is_missing_is_told_with_the_mend() {
        let files = [("proc/self/status", "CapEff:\t0000000000000000\n")];
        let findings = surroundings(fake(&files, "pid:[4026532999]").path());
        assert_eq!(statuses(&findings), [Status::Missing, Status::Limited, Status::Limited]);
        assert!(findings.iter().all(|finding| finding.mend.is_some()));
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(surroundings(empty.path())[0].status, Status::Missing);
    }

    #[test]
    fn the_kernel_side_is_told_in_full() {
        let from = |state, value: &str| {
            let sentence = "No bpf_loop: Linux 5.17 fixes it.".to_owned();
            Finding::from(emberscope_capture::Finding {
                name: "bpf_loop",
                state,
                value: value.to_owned(),
                sentence,
            })
        };
        let good = from(FindingState::Good, "yes");
        assert_eq!(
            (good.check.as_str(), good.found.as_str()),
            ("bpf loop", "No bpf_loop: Linux 5.17 fixes it")
        );
        let less = from(FindingState::Degraded, "no");
        assert_eq!((less.status, less.found.as_str()), (Status::Limited, "no"));
        assert_eq!(less.mend.as_deref(), Some("No bpf_loop: Linux 5.17 fixes it"));
        assert_eq!(from(FindingState::Fatal, "no").status, Status::Missing);
        assert!(kernel_side(&HostFeatures::probe()).iter().any(|finding| finding.check == "capabilities"));
    }
}
