//! Container ids in the lines of /proc/PID/cgroup.
//!
//! In: lines `id:controllers:path`, of cgroup v1, v2, or both at once. Out: the id of the innermost
//! container. Spellings: kubelet's cgroupfs driver (`/kubepods/burstable/pod<uid>/<64 hex>`) and systemd
//! driver (`/kubepods.slice/../cri-containerd-<64 hex>.scope`), with docker, crio, cri-containerd, libpod;
//! plain Docker (`/docker/<64 hex>`, `/system.slice/docker-<64 hex>.scope`); YARN
//! (`/hadoop-yarn/container_..`, yarn-default.xml: LinuxContainerExecutor with cgroups only).
//!
//! A path is the kernel's word, but systemd lets a user make cgroups of any name below his own `user@UID.service`
//! (org.freedesktop.systemd1 `Delegate=`): there neither a YARN container nor a pod is believed.

/// Longest container id: YARN's are some 45 characters, a runtime's 64.
const MAX_ID: usize = 80;

/// What a cgroup says of its container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupFacts {
    /// Id of the container; None outside one (or in one whose own cgroup namespace hides it).
    pub container: Option<String>,
    /// The container is a Kubernetes pod's.
    pub kubernetes: bool,
}

/// Reads the lines of a process's cgroup file.
pub fn parse(lines: &[String]) -> CgroupFacts {
    let mut facts = CgroupFacts::default();
    for line in lines {
        let Some(path) = line.splitn(3, ':').nth(2) else { continue };
        let delegated = is_delegated(path);
        facts.kubernetes |= !delegated
            && path.split('/').any(|part| part.starts_with("kubepods") || part.starts_with("kubelet"));
        if facts.container.is_none() {
            let found = path.rsplit('/').find_map(container_of);
            facts.container = found.filter(|id| !delegated || !is_yarn_container(id));
        }
    }
    facts
}

/// Whether a user may have made the path's last parts himself.
fn is_delegated(path: &str) -> bool {
    path.split('/').any(|part| part == "user.slice" || part.starts_with("user@"))
}

/// The container id in one part of a path.
fn container_of(part: &str) -> Option<String> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    if is_yarn_container(part) {
        return Some(part.to_owned());
    }
    // `<runtime>-<id>`: the id is what follows the last dash. containerd without systemd names
    // `<slice>:cri-containerd:<id>`.
    let id = part.rsplit(['-', ':']).next().unwrap_or(part);
    (id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_ascii_lowercase())
}

/// `container_[e<epoch>_]<timestamp>_<application>_<attempt>_<number>` (ContainerId.java).
pub fn is_yarn_container(text: &str) -> bool {
    yarn_application(text).is_some()
}

/// The application of a YARN container: `application_<timestamp>_<application>`.
pub fn yarn_application(container: &str) -> Option<String> {
    if container.len() > MAX_ID {
        return None;
    }
    let mut rest = container.strip_prefix("container_")?;
    if let Some(after) = rest.strip_prefix('e') {
        let (epoch, after) = after.split_once('_')?;
        digits(epoch)?;
        rest = after;
    }
    let mut parts = rest.split('_');
    let (timestamp, application) = (digits(parts.next()?)?, digits(parts.next()?)?);
    digits(parts.next()?)?;
    digits(parts.next()?)?;
    parts.next().is_none().then(|| format!("application_{timestamp}_{application}"))
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn container(path: &str) -> CgroupFacts {
        parse(&[format!("0::{path}")])
    }

    #[test]
    fn kubernetes_in_all_spellings() {
        let pod = "pod6e1c9a2c_1f5b_4f0e_9d56_0d4c3e6f1a2b";
        for path in [
            format!("/kubepods/burstable/pod6e1c9a2c-1f5b-4f0e-9d56-0d4c3e6f1a2b/{ID}"),
            format!(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-{pod}.slice/cri-containerd-{ID}.scope"
            ),
            format!("/kubepods.slice/kubepods-{pod}.slice/docker-{ID}.scope"),
            format!(
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-{pod}.slice/crio-{ID}.scope"
            ),
            format!("/kubepods.slice/kubepods-{pod}.slice/crio-{ID}.scope/container"),
            format!(
                "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-{pod}.slice/cri-containerd-{ID}.scope"
            ),
            format!("/system.slice/containerd.service/kubepods-burstable-{pod}.slice:cri-containerd:{ID}"),
        ] {
            let facts = container(&path);
            assert_eq!(facts.container.as_deref(), Some(ID), "{path}");
            assert!(facts.kubernetes, "{path}");
        }
    }

    #[test]
    fn plain_docker_and_podman() {
        for path in [
            format!("/docker/{ID}"),
            format!("/system.slice/docker-{ID}.scope"),
            format!("/machine.slice/libpod-{ID}.scope/container"),
        ] {
            assert_eq!(
                container(&path),
                CgroupFacts { container: Some(ID.into()), kubernetes: false },
                "{path}"
            );
        }
    }

    #[test]
    fn version_one_beside_version_two() {
        let lines = ["9:name=systemd:/".to_owned(), "4:memory:/docker/".to_owned() + ID, "0::/".to_owned()];
        assert_eq!(parse(&lines).container.as_deref(), Some(ID));
    }

    #[test]
    fn the_innermost_container_counts() {
        let inner = ID.replace('0', "f");
        assert_eq!(container(&format!("/docker/{ID}/docker/{inner}")).container, Some(inner));
    }

    #[test]
    fn yarn_containers() {
        let facts =
            parse(&["5:cpu,cpuacct:/hadoop-yarn/container_e17_1700000000000_0042_01_000003".to_owned()]);
        assert_eq!(facts.container.as_deref(), Some("container_e17_1700000000000_0042_01_000003"));
        assert_eq!(
            yarn_application("container_e17_1700000000000_0042_01_000003").as_deref(),
            Some("application_1700000000000_0042")
        );
        assert_eq!(
            yarn_application("container_1700000000000_0042_01_000003").as_deref(),
            Some("application_1700000000000_0042")
        );
        for bad in [
            "container_",
            "container_e_1_2_3_4",
            "container_1_2_3",
            "container_1_2_3_4_5",
            "container_x_2_3_4",
        ] {
            assert_eq!(yarn_application(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_a_user_may_have_made_is_no_pod_and_no_yarn_container() {
        let own = "/user.slice/user-1000.slice/user@1000.service";
        let yarn = container(&format!("{own}/hadoop-yarn/container_1700000000000_0042_01_000003"));
        assert_eq!(yarn, CgroupFacts::default());
        let pod = container(&format!("{own}/kubepods/burstable/pod1/{ID}"));
        assert_eq!(pod, CgroupFacts { container: Some(ID.into()), kubernetes: false });
    }

    #[test]
    fn nonsense_is_no_container() {
        for path in
            ["/", "", "/user.slice/user-1000.slice/session-3.scope", "/docker/", "/docker/0123", "///:::"]
        {
            assert_eq!(container(path), CgroupFacts::default(), "{path}");
        }
        assert_eq!(parse(&["".into(), ":".into(), "::".into(), "\u{fffd}".into()]), CgroupFacts::default());
        assert_eq!(container(&format!("/docker/{ID}0")).container, None);
    }
}
