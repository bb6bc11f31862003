//! What speaks to clients of Google Cloud Storage: the S3 server behind a door (tests/s3-server/gs) that takes Google's
//! tokens, and hands them out as a machine's metadata server does.
//!
//! The client speaks Google's XML interface, which is S3's by Google's word; no server of a package registry has all that
//! is asked of it (fake-gcs-server 1.56 neither puts by XML nor in parts). Dropped, both end.

use super::port::free_port;
use super::s3::{ACCESS, BUCKET, SECRET, go_build, listening};
use super::storage::{Environment, Storage, environment};
use super::{Running, S3, s3};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The server and its door.
pub struct Gs {
    server: S3,
    door: Option<Running>,
    binary: PathBuf,
    dir: PathBuf,
    port: u16,
}

/// Builds the server and the door. The inner error says why they cannot be built here.
pub fn build() -> Result<Result<(PathBuf, PathBuf), String>> {
    let server = s3::build()?;
    Ok(server.and_then(|server| Ok((server, go_build("gs-door", "./gs")?))))
}

impl Gs {
    /// Starts both; objects are files in `dir`.
    pub fn start((server, door): &(PathBuf, PathBuf), dir: &Path) -> Result<Self> {
        let server = S3::start(server, dir)?;
        let mut all =
            Self { server, door: None, binary: door.clone(), dir: dir.to_owned(), port: free_port()? };
        all.open()?;
        Ok(all)
    }

    fn open(&mut self) -> Result<()> {
        let mut command = Command::new(&self.binary);
        command.arg(self.port.to_string()).arg(self.server.port().to_string());
        command.env("ROOT_ACCESS_KEY", ACCESS).env("ROOT_SECRET_KEY", SECRET);
        let mut door = Running::start("the door for Google's", &mut command, &self.dir.join("door.log"))?;
        listening(&mut door, &format!("127.0.0.1:{}", self.port))?;
        self.door = Some(door);
        Ok(())
    }
}

impl Storage for Gs {
    fn url(&self, prefix: &str) -> String {
        format!("gs://{BUCKET}/{prefix}")
    }

    fn environment(&self) -> Environment {
        let host = format!("127.0.0.1:{}", self.port);
        environment([("GOOGLE_BASE_URL", format!("http://{host}")), ("GCE_METADATA_HOST", host)])
    }

    fn refused(&self) -> (Environment, &'static str) {
        let mut environment = self.environment();
        environment.push(("GOOGLE_BEARER_TOKEN".to_owned(), "wrong".to_owned()));
        (environment, "GOOGLE_APPLICATION_CREDENTIALS")
    }

    fn end(&mut self) {
        self.door = None;
        self.server.end();
    }

    fn begin(&mut self) -> Result<()> {
        self.server.begin()?;
        self.open()
    }
}
