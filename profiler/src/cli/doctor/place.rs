//! Checks of the daemon's own place: its data directory, its address and its socket.

use super::Finding;
use crate::cli::lock::{DataDirLock, Holder};
use emberscope_config::DaemonConfig;
use rustix::fs::{Access, access};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

/// Looks at the data directory, the address and the socket.
pub fn check(config: &DaemonConfig) -> Vec<Finding> {
    let dir = config.data_dir.get();
    let holder = DataDirLock::holder(dir).unwrap_or(Holder::Nobody);
    let mut findings = vec![data_dir(dir, holder), address(config, holder)];
    findings.extend(config.socket.get().map(socket));
    findings
}

fn data_dir(dir: &Path, holder: Holder) -> Finding {
    let check = "data directory";
    if let Holder::Daemon(pid) = holder {
        let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        return Finding::ok(check, format!("{}, used by a running daemon{pid}", dir.display()));
    }
    match makable(dir) {
        Ok(there) if there == dir => Finding::ok(check, format!("{} can be written", dir.display())),
        Ok(_) => Finding::ok(check, format!("{} can be made", dir.display())),
        Err(there) => Finding::limited(
            check,
            format!("{} cannot be written", there.display()),
            "run the daemon as root, or choose another directory with --data-dir",
        ),
    }
}

/// A directory that is not there yet can be made where its nearest ancestor can be written. Out: that ancestor, or the
/// directory itself where it is there.
fn makable(dir: &Path) -> Result<&Path, &Path> {
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    match access(there, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if there.is_dir() => Ok(there),
        _ => Err(there),
    }
}

/// A daemon does not start where it cannot make its socket.
fn socket(path: &Path) -> Finding {
    let check = "socket";
    match makable(path.parent().unwrap_or(path)) {
        Ok(_) => Finding::ok(check, format!("{} can be made", path.display())),
        Err(there) => Finding::limited(
            check,
            format!("{} cannot be written", there.display()),
            "run the daemon as root, or choose another --socket (none: the command line then needs a token)",
        ),
    }
}

fn address(config: &DaemonConfig, holder: Holder) -> Finding {
    let (check, listen) = ("address", &config.listen);
    match TcpListener::bind(listen.get()) {
        Ok(_) => Finding::ok(check, format!("{listen} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse && holder != Holder::Nobody => {
            Finding::ok(check, format!("{listen} is in use; a daemon is running"))
        }
        Err(error) => Finding::limited(
            check,
            format!("{listen}: {error}"),
            "stop the program that has the port, or choose another address with --listen",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use emberscope_config::Settings;

    #[test]
    fn a_place_is_free_taken_or_closed() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("data");
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = |listen: String| {
            DaemonConfig::from_settings(Settings {
                listen: listen.parse().ok(),
                data_dir: dir.to_str().and_then(|dir| dir.parse().ok()),
                socket: dir.join("run/socket").to_str().and_then(|path| path.parse().ok()),
                ..Settings::default()
            })
        };
        let free = check(&config("127.0.0.1:0".into()));
        assert!(free.iter().all(|finding| finding.status == Status::Ok), "{free:?}");
        assert!(free[0].found.ends_with("data can be made"));
        assert!(!dir.exists(), "a look must not make it");

        let busy = check(&config(taken.local_addr().unwrap().to_string()));
        assert_eq!(busy[1].status, Status::Limited);
        let lock = DataDirLock::take(&dir).unwrap();
        let running = check(&config(taken.local_addr().unwrap().to_string()));
        assert!(running.iter().all(|finding| finding.status == Status::Ok), "{running:?}");
        assert!(running[0].found.contains(&format!("pid {}", std::process::id())));
        drop(lock);

        assert_eq!(data_dir(Path::new("/proc/1/x"), Holder::Nobody).status, Status::Limited);
        assert_eq!(socket(Path::new("/proc/1/x/socket")).status, Status::Limited);
    }
}
