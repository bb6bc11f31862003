//! A real S3-compatible server: versitygw (Apache-2.0), over a directory, on a free port of loopback.
//!
//! Go builds it from the module that tests/s3-server pins, once; its build cache makes the next build a matter of
//! seconds. It is strict: signatures, checksums and headers are looked at as Amazon's are. Dropped, it ends.

use super::Running;
use super::port::free_port;
use super::storage::{Environment, Storage, environment};
use crate::places;
use crate::setup::go;
use anyhow::{Context as _, Result, bail};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub(super) const ACCESS: &str = "emberscope";
pub(super) const SECRET: &str = "not-a-secret";
/// The bucket that is there.
pub const BUCKET: &str = "profiles";

/// The server.
pub struct S3 {
    running: Option<Running>,
    binary: PathBuf,
    dir: PathBuf,
    port: u16,
}

/// Builds the server. The inner error says why it cannot be built here.
pub fn build() -> Result<Result<PathBuf, String>> {
    Ok(go_build("s3-server", "github.com/versity/versitygw/cmd/versitygw"))
}

/// Builds a program of the module tests/s3-server.
pub(super) fn go_build(name: &str, package: &str) -> Result<PathBuf, String> {
    let target = places::target().join(name);
    let run = go::command()
        .args(["build", "-ldflags", "-s -w", "-o"])
        .arg(&target)
        .arg(package)
        .current_dir(places::workspace().join("tests/s3-server"))
        .output();
    match run {
        Ok(out) if out.status.success() => Ok(target),
        // A compiler that is too old or a module that cannot be had says so.
        Ok(out) => Err(format!("{name} cannot be built: {}", String::from_utf8_lossy(&out.stderr).trim())),
        Err(error) => Err(format!("no go command: {error}")),
    }
}

/// Waits until a server listens.
pub(super) fn listening(running: &mut Running, address: &str) -> Result<()> {
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        if running.ended()?.is_some() || begun.elapsed() > Duration::from_secs(60) {
            bail!("nothing listens on {address}\n{}", crate::step::tail(running.log(), 20));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

impl S3 {
    /// Starts one whose objects are files in `dir`.
    pub fn start(binary: &Path, dir: &Path) -> Result<Self> {
        for name in ["objects", "metadata"] {
            let path = dir.join(name).join(BUCKET);
            std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        }
        let users = dir.join("iam");
        std::fs::create_dir_all(&users).with_context(|| format!("creating {}", users.display()))?;
        let mut server =
            Self { running: None, binary: binary.to_owned(), dir: dir.to_owned(), port: free_port()? };
        server.begin()?;
        Ok(server)
    }

    /// Where its objects are, as files.
    pub fn files(&self) -> PathBuf {
        self.dir.join("objects").join(BUCKET)
    }

    /// Where it listens.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// An address in the bucket: a path that begins with `/`, or a query.
    pub fn address(&self, below: &str) -> String {
        format!("http://127.0.0.1:{}/{BUCKET}{below}", self.port)
    }

    /// Does something with the key of the bucket's owner.
    pub fn as_root<T>(&self, run: impl FnOnce(&str, &str) -> T) -> T {
        run(ACCESS, SECRET)
    }

    /// Makes a user, who may do nothing until a policy says so.
    pub fn add_user(&self, user: &str, secret: &str) -> Result<()> {
        let mut command = Command::new(&self.binary);
        command.args(["admin", "--access", ACCESS, "--secret", SECRET, "--endpoint-url"]);
        command.arg(format!("http://127.0.0.1:{}", self.port));
        command.args(["create-user", "--access", user, "--secret", secret, "--role", "user"]);
        let out = command.output().context("starting versitygw")?;
        if !out.status.success() {
            bail!("making the user {user}: {}", String::from_utf8_lossy(&out.stderr).trim());
        }
        Ok(())
    }

    /// What the environment of a client with the owner's name and this secret needs.
    fn environment_with(&self, secret: &str) -> Environment {
        self.environment_of(ACCESS, secret)
    }

    /// What the environment of a client with this key needs.
    pub fn environment_of(&self, user: &str, secret: &str) -> Environment {
        environment([
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ACCESS_KEY_ID", user.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", secret.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ])
    }
}

impl Storage for S3 {
    fn url(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    fn environment(&self) -> Environment {
        self.environment_with(SECRET)
    }

    fn refused(&self) -> (Environment, &'static str) {
        (self.environment_with("wrong"), "AWS_ACCESS_KEY_ID")
    }

    fn end(&mut self) {
        self.running = None;
    }

    fn begin(&mut self) -> Result<()> {
        let address = format!("127.0.0.1:{}", self.port);
        let mut command = Command::new(&self.binary);
        command.args(["--quiet", "--keep-alive", "--port", &address, "--iam-dir"]).arg(self.dir.join("iam"));
        command.args(["posix", "--sidecar"]);
        command.arg(self.dir.join("metadata")).arg(self.dir.join("objects"));
        command.env("ROOT_ACCESS_KEY", ACCESS).env("ROOT_SECRET_KEY", SECRET);
        let log = self.dir.join("server.log");
        let mut running = Running::start("the S3 server", &mut command, &log)?;
        listening(&mut running, &address)?;
        self.running = Some(running);
        Ok(())
    }
}
