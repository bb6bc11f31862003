//! The container image that `./x package` makes, run by podman with what the manifest of Kubernetes gives the pod and nothing
//! else: the host's processes, a root file system that cannot be written, its capabilities, the runtimes' filter of system
//! calls, its arguments, its limits, a network of its own. It samples, and answers a flame graph of a program of the host.

use super::deploy::{daemon_set, object};
use super::package::{VERSION, binary_or_skip, shared};
use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Ran, Running, is_root, ran, skip, wait_for};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::setup::{packaging, seccomp};

/// On a machine that does other things.
const SOON: Duration = Duration::from_secs(180);
const NAME: &str = "emberscope-image-test";

/// podman, with images and containers of its own, and the container that goes with it.
struct Podman {
    dir: PathBuf,
}

impl Podman {
    fn words(&self) -> Vec<String> {
        let dir = |name: &str| self.dir.join(name).display().to_string();
        let words = ["podman", "--root", &dir("root"), "--runroot", &dir("run"), "--storage-driver", "vfs"];
        let own = ["--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "none"];
        words.into_iter().chain(own).map(str::to_owned).collect()
    }

    fn ran(&self, words: &[&str]) -> Result<Ran> {
        ran(self.words().into_iter().chain(words.iter().map(|word| (*word).to_owned())))
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.ran(&["rm", "--force", "--time", "10", NAME]);
        let _ = self.ran(&["rmi", "--all", "--force"]);
    }
}

fn list(value: &Value) -> Result<Vec<String>> {
    let all = value.as_array().with_context(|| format!("no list: {value}"))?;
    all.iter().map(|word| Ok(word.as_str().context("no text")?.to_owned())).collect()
}

/// What podman is told of the pod: its rights, its limits, its volumes.
fn rights(pod: &Value, dir: &Path, filter: &Path) -> Result<Vec<String>> {
    let container = &pod["containers"][0];
    let security = &container["securityContext"];
    let text = |value: &Value| value.as_str().map(str::to_owned).with_context(|| format!("no text: {value}"));
    ensure!(pod["hostPID"] == true && security["readOnlyRootFilesystem"] == true, "{security}");
    ensure!(security["allowPrivilegeEscalation"] == false && security["privileged"] == false, "{security}");
    ensure!(security["seccompProfile"]["type"] == "RuntimeDefault", "{security}");
    ensure!(security["capabilities"]["drop"] == serde_json::json!(["ALL"]), "{security}");
    let memory = text(&container["resources"]["limits"]["memory"])?.replace("Mi", "m");
    let mut words = vec![
        "--pid=host".to_owned(),
        "--network=none".to_owned(),
        "--read-only".to_owned(),
        "--read-only-tmpfs=false".to_owned(),
        format!("--user={}:{}", security["runAsUser"], security["runAsGroup"]),
        "--cap-drop=all".to_owned(),
        format!("--cap-add={}", list(&security["capabilities"]["add"])?.join(",")),
        "--security-opt=no-new-privileges".to_owned(),
        format!("--security-opt=seccomp={}", filter.display()),
        format!("--memory={memory}"),
    ];
    // podman would raise them, which takes a right that not every machine's root has.
    words.extend(["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"].map(str::to_owned));
    for mount in container["volumeMounts"].as_array().context("no mounts")? {
        let name = text(&mount["name"])?;
        let mode = if mount["readOnly"] == true { "ro" } else { "rw" };
        words.push(format!("--volume={}:{}:{mode}", dir.join(name).display(), text(&mount["mountPath"])?));
    }
    for variable in container["env"].as_array().context("no environment")? {
        let value = variable["value"].as_str().unwrap_or("node-of-the-test");
        words.push(format!("--env={}={value}", text(&variable["name"])?));
    }
    Ok(words)
}

/// Files of the pod's volumes.
fn volumes(dir: &Path) -> Result<()> {
    let settings =
        object("ConfigMap")?["data"]["emberscope.toml"].as_str().context("no settings")?.to_owned();
    for name in ["data", "settings", "token"] {
        std::fs::create_dir(dir.join(name))?;
    }
    std::fs::write(dir.join("settings/emberscope.toml"), settings)?;
    let token = dir.join("token/token");
    std::fs::write(&token, "the-token-of-the-test\n")?;
    std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o400))?;
    Ok(())
}

#[test]
fn the_image_runs_with_the_manifests_rights() -> Result<()> {
    let test = "the_image_runs_with_the_manifests_rights";
    if !is_root() {
        skip(test, "containers with the host's processes need root");
        return Ok(());
    }
    let Some(binary) = binary_or_skip(test) else { return Ok(()) };
    let filter = match packaging::ensure_podman().and_then(|()| seccomp::ensure()) {
        Ok(filter) => filter,
        Err(error) => {
            skip(test, &format!("no podman, or no filter as runtimes have: {error:#}"));
            return Ok(());
        }
    };
    let dir = tempfile::tempdir()?;
    let packages = shared(&binary, VERSION)?;
    let podman = Podman { dir: dir.path().join("podman") };
    let archive = format!("oci-archive:{}", packages.image.display());
    podman.ran(&["pull", &archive])?.good()?;
    let image = format!("localhost/emberscope:{VERSION}");
    let loaded = podman.ran(&["image", "inspect", "--format", "{{.Digest}}", &image])?.good()?.out;
    assert_eq!(loaded.trim(), packages.digest, "what the chart names");
    what_is_inside(&podman, &image)?;

    volumes(dir.path())?;
    let pod = daemon_set()?;
    let mut words = vec!["run".to_owned(), "--detach".to_owned(), format!("--name={NAME}")];
    words.extend(rights(&pod, dir.path(), &filter)?);
    words.push(image);
    words.extend(
        list(&pod["containers"][0]["args"])?.into_iter().map(|word| word.replace("$(NODE_NAME)", "node")),
    );
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let started = podman.ran(&words)?;
    if started.code != 0 && started.err.to_lowercase().contains("cgroup") {
        skip(test, &format!("no container can be started here: {}", started.err.trim()));
        return Ok(());
    }
    started.good()?;

    // By its socket, from outside: in a system that is itself a chroot (./x fresh) runc cannot start a second program in it.
    let url = format!("unix:{}", dir.path().join("data/emberscope.sock").display());
    let ask = |words: &[&str]| ran([&[&*binary.to_string_lossy()], words, &["--url", &url]].concat());
    let mut busy = Command::new("sha256sum");
    let _busy = Running::start("a program of the host", busy.arg("/dev/zero"), &dir.path().join("busy.log"))?;
    let graph = wait_for("a flame graph of the host's program", SOON, || {
        let running = podman.ran(&["inspect", "--format", "{{.State.Running}}", NAME])?;
        ensure!(running.out.trim() == "true", "{:?}", podman.ran(&["logs", NAME])?);
        let asked = ask(&["flamegraph", "--process=sha256sum", "--from=-5m", "--format=svg"])?;
        Ok((asked.code == 0 && asked.out.contains("<svg")).then_some(asked.out))
    })?;
    ensure!(graph.contains("sha256"), "{graph}");
    rights_of(&podman)?;
    podman.ran(&["stop", "--time", "20", NAME])?.good()?;
    let code = podman.ran(&["inspect", "--format", "{{.State.ExitCode}}", NAME])?.good()?.out;
    assert_eq!(code.trim(), "0", "{:?}", podman.ran(&["logs", NAME])?);
    Ok(())
}

/// One layer, no shell, nothing that a package manager would know.
fn what_is_inside(podman: &Podman, image: &str) -> Result<()> {
    let dir = podman.ran(&["image", "mount", image])?.good()?.out.trim().to_owned();
    let files = ran(["find", &dir, "-type", "f", "-printf", "%P\n"])?.good()?.out;
    podman.ran(&["image", "unmount", image])?.good()?;
    for file in ["usr/bin/emberscope", "etc/ssl/certs/ca-certificates.crt", "etc/emberscope/emberscope.toml"]
    {
        ensure!(files.lines().any(|line| line == file), "{file} is not in {files}");
    }
    let known = |file: &&str| {
        ["usr/bin/emberscope", "etc/passwd", "etc/group", "etc/nsswitch.conf"].contains(file)
            || ["etc/emberscope/", "etc/ssl/certs/", "usr/share/doc/emberscope/", "lib/", "lib64/"]
                .iter()
                .any(|dir| file.starts_with(dir))
    };
    let other: Vec<_> = files.lines().filter(|file| !known(file)).collect();
    ensure!(other.is_empty() && !files.contains("bin/sh"), "{other:?}");
    let layers = podman.ran(&["image", "inspect", "--format", "{{len .RootFS.Layers}}", image])?.good()?.out;
    assert_eq!(layers.trim(), "1");
    Ok(())
}

/// The kernel's word on what the process has.
fn rights_of(podman: &Podman) -> Result<()> {
    let pid = podman.ran(&["inspect", "--format", "{{.State.Pid}}", NAME])?.good()?.out;
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()))?;
    ensure!(status.contains("\nNoNewPrivs:\t1\n") && status.contains("\nSeccomp:\t2\n"), "{status}");
    let bounding = status.lines().find_map(|line| line.strip_prefix("CapBnd:")).context("CapBnd")?;
    let bounding = u64::from_str_radix(bounding.trim(), 16)?.count_ones();
    let added = list(&daemon_set()?["containers"][0]["securityContext"]["capabilities"]["add"])?.len();
    assert_eq!(bounding as usize, added, "{status}");
    Ok(())
}
