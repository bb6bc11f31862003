//! A FUSE mount whose server stops answering, under a library, under a process's arguments, under an executor's class
//! path, under a JVM's memory.
//!
//! Two kinds. Any user can mount through fusermount3; the kernel then shows the files to him alone, root left out
//! (fuse_allow_current_process, fs/fuse/dir.c), but whoever reads his memory waits for his server. An administrator's
//! (s3fs, gcsfuse, `allow_other`) is seen by everybody. Root makes both here, with the same options, since /dev/fuse is
//! not there for fusermount3 in every container; the server runs as the attacker.

use super::attacks::{Attack, mount_point, wait};
use super::host::{ATTACKER, Host};
use crate::bench::row::Row;
use crate::launch::{Daemon, Running};
use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mount point; dropped, the mount is gone. Its server ends before, which frees all that wait for it (the connection
/// is aborted when its device is closed: fuse_dev_release, fs/fuse/dev.c).
pub struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(&self.0).output();
    }
}

/// Mounts, and waits until the server answers.
fn mount(host: &Host, kind: &str) -> Result<(Running, Mount)> {
    let dir = mount_point(host, kind)?;
    let (library, jar) = (host.program("library")?, jar(host)?);
    let mut command = Command::new(host.program("fuse")?);
    command.arg(kind).arg(&dir).arg(&library).arg(&jar).arg(ATTACKER.to_string());
    let mut server = host.begin(&mut command)?;
    wait(&mut server, "mounted")?;
    Ok((server, Mount(dir)))
}

/// A jar with nothing in it but a file that nobody asks for: an empty zip is not one for Java.
fn jar(host: &Host) -> Result<PathBuf> {
    let jar = host.dir.join("extra.jar");
    let output = Command::new(host.kit.jdk.home.join("bin/jar"))
        .args(["--create", "--file"])
        .arg(&jar)
        .arg("-C")
        .arg(&host.dir)
        .arg("hostile.h")
        .output();
    let made = output.as_ref().is_ok_and(|output| output.status.success());
    if !made {
        std::fs::write(&jar, vec![0; 4096]).with_context(|| format!("writing {}", jar.display()))?;
    }
    Ok(jar)
}

fn start(host: &Host, kind: &str) -> Result<Attack> {
    let (server, mount) = mount(host, kind)?;
    let mut neighbours = host.attack(&host.program("onfuse")?, &[path(&mount)])?;
    wait(&mut neighbours, "library")?;
    wait(&mut neighbours, "arguments")?;
    server.signal(Signal::USR1);
    // The server is dropped first: what waits for it cannot be killed before.
    Ok(Attack { running: vec![server, neighbours], mounts: vec![mount], ..Attack::default() })
}

/// As any user can.
pub fn of_user(host: &Host, _: &Daemon) -> Result<Attack> {
    start(host, "user")
}

/// As an administrator does.
pub fn of_admin(host: &Host, _: &Daemon) -> Result<Attack> {
    start(host, "admin")
}

/// JVMs that lie, one about a page that nobody ever gets.
pub fn jvm_lies(host: &Host, _: &Daemon) -> Result<Attack> {
    let (server, mount) = mount(host, "user")?;
    let words = [host.libjvm().display().to_string(), format!("{}/args", path(&mount))];
    let mut liars = host.attack(&host.program("jvmlies")?, &words)?;
    wait(&mut liars, "processes")?;
    // Time to open the file; its pages are nobody's yet.
    std::thread::sleep(std::time::Duration::from_secs(2));
    server.signal(Signal::USR1);
    Ok(Attack { running: vec![server, liars], mounts: vec![mount], ..Attack::default() })
}

/// A second job, one of whose executors has a jar of a dead mount on its class path.
pub fn class_path(host: &Host, _: &Daemon) -> Result<Attack> {
    let (server, mount) = mount(host, "admin")?;
    let extra = format!("{}/extra.jar", path(&mount));
    let conf = [("spark.executor.extraClassPath", extra.as_str())];
    let (job, executors) = host.victim("class-path", "local-cluster[1,1,1024]", &conf)?;
    let Some(executor) = executors.first().copied() else { bail!("the second job has no executor") };
    server.signal(Signal::USR1);
    let check = Box::new(move |daemon: &Daemon, (from, until): (u64, u64)| {
        let query = format!("pid={executor}&from={from}&until={until}&format=json");
        let answer = daemon.json(&format!("/api/v1/flamegraph?{query}"))?;
        let figure = |name: &str| answer["quality"][name].as_u64().unwrap_or(0) as usize;
        let (all, unnamed) = (figure("frames"), figure("unnamed_frames"));
        let what = "class-path: frames of its executor that have a name";
        Ok(vec![Row::share(what, all.saturating_sub(unnamed), 95.0, all)])
    });
    Ok(Attack {
        running: vec![server],
        mounts: vec![mount],
        job: Some(job),
        executors,
        check: Some(check),
        ..Attack::default()
    })
}

fn path(Mount(dir): &Mount) -> String {
    let dir: &Path = dir;
    dir.display().to_string()
}
