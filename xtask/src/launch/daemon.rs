//! The daemon: started as root on a free port, asked over HTTP, stopped by SIGTERM. Its loopback is open: what asks here
//! need not be root, and there are many at a time; but for one that shall be as it is by default
//! ([`Daemon::start_guarded`]). Who may ask by default is tests/together/access.rs.

use super::door::Door;
use super::port::free_port;
use crate::{root, step};
use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The address that the daemon has unless told.
pub const DEFAULT_PORT: u16 = 4099;
/// How long it may take to load its programs and read /proc.
const READY_TIMEOUT: Duration = Duration::from_secs(180);
/// How long it may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(90);

/// A running daemon; dropped, it is stopped.
pub struct Daemon {
    child: Child,
    url: String,
    log: PathBuf,
    agent: ureq::Agent,
    /// What opens it; None: its loopback is open.
    token: Option<String>,
}

/// An answer of the daemon.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Header names in lower case, and their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Reply {
    /// The value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Daemon {
    /// Starts `binary daemon --data-dir DATA_DIR --listen 127.0.0.1:PORT ARGUMENTS` and waits until
    /// /readyz says 200. `port` None is any free one. Its output is `DATA_DIR.log`. It is stopped when the thread that
    /// calls this ends, however that ends.
    pub fn start(binary: &Path, data_dir: &Path, port: Option<u16>, arguments: &[&str]) -> Result<Self> {
        Self::run(binary, data_dir, port, arguments, true)
    }

    /// The same of one that asks for a token over TCP, as it does by default.
    pub fn start_guarded(binary: &Path, data_dir: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = root::command(binary, "profiling")?;
        command.arg("daemon").arg("--data-dir").arg(data_dir).args(socket(data_dir)).args(arguments);
        let door = Door::Guarded(data_dir.join("token"));
        let mut daemon = Self::begin(command, data_dir, free_port()?, true, &door)?;
        daemon.wait_ready()?;
        Ok(daemon)
    }

    /// The same with more in its environment.
    pub fn start_in(
        binary: &Path,
        data_dir: &Path,
        arguments: &[&str],
        environment: &[(String, String)],
    ) -> Result<Self> {
        let mut command = root::command(binary, "profiling")?;
        command.arg("daemon").arg("--data-dir").arg(data_dir).args(socket(data_dir)).args(arguments);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut daemon = Self::begin(command, data_dir, free_port()?, true, &Door::Open)?;
        daemon.wait_ready()?;
        Ok(daemon)
    }

    /// Starts `binary serve --store STORE --cache-dir CACHE_DIR`, and does not wait until it is ready: an archive may
    /// be away.
    pub fn serve(
        binary: &Path,
        cache_dir: &Path,
        store: &str,
        arguments: &[&str],
        environment: &[(String, String)],
    ) -> Result<Self> {
        let mut command = std::process::Command::new(binary);
        command.args(["serve", "--store", store, "--cache-dir"]).arg(cache_dir).args(arguments);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut server = Self::begin(command, cache_dir, free_port()?, true, &Door::Open)?;
        server.wait("/healthz")?;
        Ok(server)
    }

    /// Starts `binary serve --data-dir DATA_DIR` and waits until it is ready.
    pub fn serve_data_dir(binary: &Path, data_dir: &Path) -> Result<Self> {
        let mut command = std::process::Command::new(binary);
        command.args(["serve", "--data-dir"]).arg(data_dir);
        let mut server = Self::begin(command, data_dir, free_port()?, true, &Door::Open)?;
        server.wait_ready()?;
        Ok(server)
    }

    /// The same of one that may be [left](Self::leave).
    pub fn start_to_stay(binary: &Path, data_dir: &Path, port: Option<u16>) -> Result<Self> {
        Self::run(binary, data_dir, port, &[], false)
    }

    fn run(
        binary: &Path,
        data_dir: &Path,
        port: Option<u16>,
        arguments: &[&str],
        ends_with_us: bool,
    ) -> Result<Self> {
        let port = match port {
            Some(port) => port,
            None => free_port()?,
        };
        let mut command = root::command(binary, "profiling")?;
        command.arg("daemon").arg("--data-dir").arg(data_dir).args(socket(data_dir)).args(arguments);
        let mut daemon = Self::begin(command, data_dir, port, ends_with_us, &Door::Open)?;
        daemon.wait_ready()?;
        Ok(daemon)
    }

    fn begin(
        mut command: std::process::Command,
        data_dir: &Path,
        port: u16,
        ends_with_us: bool,
        door: &Door,
    ) -> Result<Self> {
        std::fs::create_dir_all(data_dir).with_context(|| format!("creating {}", data_dir.display()))?;
        let mut log = data_dir.as_os_str().to_owned();
        log.push(".log");
        let log = PathBuf::from(log);
        let output = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        let token = door.open(&mut command)?;
        // As under its unit: with it a panic reads the program's debug information, some 200 MB for a moment.
        command.env_remove("RUST_BACKTRACE");
        if ends_with_us {
            super::child::ends_with_us(&mut command, Signal::TERM);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("duplicating the log's handle")?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", step::shown(&command)))?;
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            // A proxy of the environment has no way to our loopback.
            .proxy(None)
            // The daemon closes a connection on which nothing is asked for a while.
            .max_idle_connections(0)
            .build()
            .into();
        Ok(Self { child, url: format!("http://127.0.0.1:{port}"), log, agent, token })
    }

    /// Waits until it answers for all that it can.
    pub fn wait_ready(&mut self) -> Result<()> {
        self.wait("/readyz")
    }

    fn wait(&mut self, path: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().context("waiting for the daemon")? {
                bail!("the daemon ended at its start ({status})\n{}", step::tail(&self.log, 30));
            }
            if self.get(path).is_ok_and(|reply| reply.status == 200) {
                return Ok(());
            }
            if begun.elapsed() > READY_TIMEOUT {
                bail!("the daemon is not ready after {READY_TIMEOUT:?}\n{}", step::tail(&self.log, 30));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What opens it, where it asks for a token.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The process that was started: the daemon, or sudo where we are not root.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file with its output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// GET of a path with its query; any status is an answer.
    pub fn get(&self, path: &str) -> Result<Reply> {
        let url = format!("{}{path}", self.url);
        let mut request = self.agent.get(&url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = request.call().with_context(|| format!("GET {url}"))?;
        let header = |(name, value): (&ureq::http::HeaderName, &ureq::http::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = response.headers().iter().map(header).collect();
        let status = response.status().as_u16();
        // Decoded once it is here: a slow reader's next question would find the connection closed.
        let body = response.body_mut().with_config().limit(512 << 20).read_to_vec();
        let body = body.with_context(|| format!("reading the answer of {url}"))?;
        Ok(Reply { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// GET that must be answered 200 with JSON.
    pub fn json(&self, path: &str) -> Result<serde_json::Value> {
        let reply = self.get(path)?;
        if reply.status != 200 {
            bail!("GET {}{path} was answered {}: {}", self.url, reply.status, reply.body);
        }
        serde_json::from_str(&reply.body).with_context(|| format!("GET {path} was not answered with JSON"))
    }

    /// What the status says of the JVM of this pid; null where it is not known, or none was looked at yet.
    pub fn jvm(&self, pid: u32) -> Result<serde_json::Value> {
        let status = self.json("/api/v1/status")?;
        let mut jvms = status["jvms"].as_array().into_iter().flatten();
        Ok(jvms.find(|jvm| jvm["pid"] == pid).cloned().unwrap_or_default())
    }

    /// Asks it to stop (SIGTERM) and waits; one that does not is killed, which is an error.
    pub fn stop(mut self) -> Result<ExitStatus> {
        match self.terminate()? {
            Some(status) => Ok(status),
            None => bail!("the daemon did not stop in {STOP_TIMEOUT:?}\n{}", step::tail(&self.log, 30)),
        }
    }

    fn terminate(&mut self) -> Result<Option<ExitStatus>> {
        root::signal(self.child.id(), Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.child.try_wait().context("waiting for the daemon")? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(None)
    }

    /// Leaves it running; its process id is the answer.
    pub fn leave(self) -> u32 {
        std::mem::ManuallyDrop::new(self).child.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // SIGTERM first: sudo passes it on, while SIGKILL would end sudo and leave the daemon.
        if !matches!(self.child.try_wait(), Ok(Some(_))) && !matches!(self.terminate(), Ok(Some(_))) {
            root::signal(self.child.id(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// A daemon's Unix socket, in its own directory; none where the path is too long for one (unix(7)).
fn socket(data_dir: &Path) -> [String; 2] {
    let path = data_dir.join("emberscope.sock").display().to_string();
    let fits = path.starts_with('/') && path.len() <= 107;
    ["--socket".to_owned(), if fits { path } else { "none".to_owned() }]
}
