//! Who may ask a daemon that was told nothing of it: root and its group by the Unix socket, a token over TCP, and nobody
//! else; `emberscope url`; sockets of a service manager.
//!
//! As root, with another user made by setpriv(1). The daemon is the real one; nothing is sampled for long.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{copy_program, free_port, is_root, ran, required, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(180);

/// A daemon as it is by default, but for its directories and its port. Dropped, it is killed.
struct Closed {
    child: Child,
    dir: PathBuf,
    port: u16,
}

impl Drop for Closed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Closed {
    fn words(dir: &Path, port: u16) -> Vec<String> {
        let mut words = vec![dir.join("emberscope").display().to_string(), "daemon".to_owned()];
        words.extend(["--data-dir".to_owned(), dir.join("data").display().to_string()]);
        words.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
        words.extend(["--socket".to_owned(), dir.join("run/emberscope.sock").display().to_string()]);
        words
    }

    fn start(dir: &Path) -> Result<Self> {
        let port = free_port()?;
        let words = Self::words(dir, port);
        let log = File::create(dir.join("log"))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut daemon = Self { child: command.spawn()?, dir: dir.to_owned(), port };
        daemon.wait()?;
        Ok(daemon)
    }

    fn wait(&mut self) -> Result<()> {
        let begun = Instant::now();
        while !self.get("/readyz", &[]).is_ok_and(|(status, ..)| status == 200) {
            let log = || std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            ensure!(self.child.try_wait()?.is_none(), "the daemon ended: {}", log());
            ensure!(begun.elapsed() < SOON, "the daemon is not ready: {}", log());
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Status, `Set-Cookie` and body of a GET over TCP.
    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<(u16, String, String)> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(0)
            .build()
            .into();
        let mut request = agent.get(format!("http://127.0.0.1:{}{path}", self.port));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut answer = request.call()?;
        let cookie = answer.headers().get("set-cookie").and_then(|value| value.to_str().ok());
        let cookie = cookie.unwrap_or_default().to_owned();
        Ok((answer.status().as_u16(), cookie, answer.body_mut().read_to_string()?))
    }

    fn ask(&self, prefix: &[&str], words: &[&str]) -> Result<emberscope_tests::Ran> {
        let binary = self.dir.join("emberscope").display().to_string();
        let url = format!("unix:{}", self.dir.join("run/emberscope.sock").display());
        ran([prefix, &[binary.as_str()], words, &["--url", url.as_str()]].concat())
    }

    fn kill(&mut self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).context("pid 0")?;
        kill_process(pid, signal)?;
        self.child.wait()?;
        Ok(())
    }
}

/// A directory that every user can get at, with the program in it; None after saying that `test` is skipped.
fn place(test: &str) -> Result<Option<tempfile::TempDir>> {
    let Some(binary) = required(test, "EMBERSCOPE_BIN") else { return Ok(None) };
    if !is_root() {
        skip(test, "the daemon wants root, and another user is made from it");
        return Ok(None);
    }
    if ran(["setpriv", "--version"])?.code != 0 {
        skip(test, "there is no setpriv (package util-linux)");
        return Ok(None);
    }
    let dir = tempfile::tempdir()?;
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755))?;
    copy_program(Path::new(&binary), &dir.path().join("emberscope"))?;
    Ok(Some(dir))
}

const NOBODY: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
/// The user alone: the group is root's still.
const HALF: [&str; 4] = ["setpriv", "--reuid", "65534", "--clear-groups"];

#[test]
fn another_user_of_the_machine_is_refused() -> Result<()> {
    let Some(dir) = place("another_user_of_the_machine_is_refused")? else { return Ok(()) };
    let mut daemon = Closed::start(dir.path())?;
    let status = daemon.ask(&[], &["status"])?.good()?;
    ensure!(status.out.contains("open_loopback: false"), "{}", status.out);

    // By the socket: its directory is not theirs, and where that is open, the socket is not.
    for prefix in [&NOBODY[..], &HALF[..]] {
        daemon.ask(prefix, &["apps"])?.refused(1, &["emberscope.sock", "with sudo", "--token-file"])?;
    }
    std::fs::set_permissions(dir.path().join("run"), PermissionsExt::from_mode(0o755))?;
    for prefix in [&NOBODY[..], &HALF[..]] {
        daemon.ask(prefix, &["apps"])?.refused(1, &["emberscope.sock", "with sudo"])?;
    }
    // And where that is opened by mistake, the daemon asks the kernel who it is.
    let socket = dir.path().join("run/emberscope.sock");
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o666))?;
    for prefix in [&NOBODY[..], &HALF[..]] {
        daemon.ask(prefix, &["apps"])?.refused(1, &["User 65534 may not ask here", "sudo"])?;
    }

    // Over TCP, which any user reaches: 401 with the mend, and the token is not theirs to read.
    let (status, _, body) = daemon.get("/api/v1/apps", &[])?;
    ensure!(
        status == 401 && body.contains("emberscope url") && body.contains("data/token"),
        "{status} {body}"
    );
    for open in ["/healthz", "/readyz", "/metrics", "/"] {
        ensure!(daemon.get(open, &[])?.0 == 200, "{open}");
    }
    let token = dir.path().join("data/token").display().to_string();
    for prefix in [&NOBODY[..], &HALF[..]] {
        ensure!(
            ran(prefix.iter().copied().chain(["cat", token.as_str()]))?.code != 0,
            "{prefix:?} reads the token"
        );
    }
    let bearer = format!("Bearer {}", std::fs::read_to_string(&token)?.trim());
    ensure!(daemon.get("/api/v1/apps", &[("authorization", &bearer)])?.0 == 200);
    let tcp = format!("http://127.0.0.1:{}", daemon.port);
    let binary = dir.path().join("emberscope").display().to_string();
    ran([binary.as_str(), "status", "--url", &tcp])?.refused(1, &["emberscope url", "--token-file"])?;
    ran([binary.as_str(), "status", "--url", &tcp, "--token-file", &token])?.good()?;

    // A second daemon is told, and the first does not mind.
    let other = free_port()?;
    let mut words = Closed::words(dir.path(), other);
    words[3] = dir.path().join("other").display().to_string();
    words.extend(["--log", "error"].map(str::to_owned));
    ran(words)?.refused(1, &["another daemon answers at", "emberscope.sock", "--socket"])?;

    // What a killed one leaves behind is in nobody's way.
    daemon.kill(Signal::KILL)?;
    ensure!(socket.exists());
    drop(daemon);
    let mut daemon = Closed::start(dir.path())?;
    daemon.ask(&[], &["status"])?.good()?;
    daemon.kill(Signal::TERM)?;
    ensure!(!socket.exists(), "the socket is there after an end in order");
    Ok(())
}

#[test]
fn a_link_logs_a_browser_in_once() -> Result<()> {
    let Some(dir) = place("a_link_logs_a_browser_in_once")? else { return Ok(()) };
    let daemon = Closed::start(dir.path())?;
    let link = daemon.ask(&[], &["url"])?.good()?.out;
    let origin = format!("http://127.0.0.1:{}", daemon.port);
    let path = link.trim().strip_prefix(&origin).with_context(|| format!("{link} is not at {origin}"))?;
    let (status, cookie, _) = daemon.get(path, &[])?;
    ensure!(status == 303 && cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap_or_default();
    ensure!(daemon.get("/api/v1/apps", &[("cookie", cookie)])?.0 == 200);
    ensure!(daemon.get("/api/v1/apps", &[("cookie", cookie), ("sec-fetch-site", "same-site")])?.0 == 403);
    let (status, _, body) = daemon.get(path, &[])?;
    ensure!(status == 401 && body.contains("emberscope url"), "{status} {body}");
    daemon.ask(&NOBODY, &["url"])?.refused(1, &["emberscope.sock"])?;
    Ok(())
}

/// Hands standard input and output over as systemd does, and becomes the daemon.
const ACTIVATE: &str = "import os, sys
for fd in (0, 1):
    os.dup2(fd, fd + 3)
os.dup2(os.open('/dev/null', os.O_RDWR), 0)
os.dup2(2, 1)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2', LISTEN_FDNAMES='http:socket')
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn a_port_that_the_service_manager_holds_outlives_the_daemon() -> Result<()> {
    let test = "a_port_that_the_service_manager_holds_outlives_the_daemon";
    let Some(dir) = place(test)? else { return Ok(()) };
    if Command::new("python3").arg("--version").output().is_err() {
        skip(test, "there is no python3");
        return Ok(());
    }
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let port = tcp.local_addr()?.port();
    std::fs::create_dir(dir.path().join("run"))?;
    let unix = UnixListener::bind(dir.path().join("run/emberscope.sock"))?;
    let start = || -> Result<Closed> {
        // The address of its own settings is not bound.
        let words = Closed::words(dir.path(), 1);
        let mut command = Command::new("python3");
        command.args(["-c", ACTIVATE]).args(words).stdin(OwnedFd::from(tcp.try_clone()?));
        command.stdout(OwnedFd::from(unix.try_clone()?)).stderr(File::create(dir.path().join("log"))?);
        Ok(Closed { child: command.spawn()?, dir: dir.path().to_owned(), port })
    };
    let mut first = start()?;
    first.wait()?;
    first.ask(&[], &["status"])?.good()?;
    ensure!(first.get("/api/v1/apps", &[])?.0 == 401);
    first.kill(Signal::KILL)?;
    // Nobody else can take the port meanwhile, and who asks waits.
    ensure!(TcpListener::bind(("127.0.0.1", port)).is_err());
    let mut waiting = TcpStream::connect(("127.0.0.1", port))?;
    waiting.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut second = start()?;
    waiting.set_read_timeout(Some(SOON))?;
    let mut answer = String::new();
    waiting.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    second.wait()?;
    second.kill(Signal::TERM)?;
    ensure!(dir.path().join("run/emberscope.sock").exists(), "the manager's socket is not ours to remove");
    Ok(())
}
