//! Sockets that the service manager opened for us: socket activation (sd_listen_fds(3)).
//!
//! In: `$LISTEN_PID`, `$LISTEN_FDS` and `$LISTEN_FDNAMES`. Out: listening sockets, TCP and Unix. The manager keeps them
//! while the daemon restarts, so that nobody else can take the port meanwhile.
#![allow(unsafe_code)]

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, sockopt};
use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first descriptor (SD_LISTEN_FDS_START).
const FIRST: RawFd = 3;
/// Most sockets that are taken: there are three kinds, and a manager may open two of one, for IPv4 and IPv6.
const MAX: usize = 16;
/// The name of what serves health alone (`FileDescriptorName=` of the socket unit).
const HEALTH: &str = "health";

/// What was opened for us.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Sockets for HTTP over TCP.
    pub tcp: Vec<TcpListener>,
    /// Sockets for health alone.
    pub health: Vec<TcpListener>,
    /// Unix sockets, for the command line.
    pub unix: Vec<UnixListener>,
}

static TAKEN: AtomicBool = AtomicBool::new(false);

/// What the environment says: how many sockets there are, and their names.
fn announced(us: u32, get: impl Fn(&str) -> Option<String>) -> (usize, Vec<String>) {
    let number = |name: &str| get(name).and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(us) {
        return (0, Vec::new());
    }
    let count = number("LISTEN_FDS").map_or(0, |count| (count as usize).min(MAX));
    let names = get("LISTEN_FDNAMES").unwrap_or_default();
    (count, names.split(':').map(str::to_owned).collect())
}

impl Inherited {
    /// Takes the sockets; the second call finds none.
    ///
    /// # Errors
    /// A sentence: `LISTEN_FDS` names a file that is not open, does not listen, or is no socket of TCP or Unix.
    pub fn take() -> Result<Self, String> {
        let mut all = Self::default();
        let (count, names) = announced(std::process::id(), |name| std::env::var(name).ok());
        if count == 0 || TAKEN.swap(true, Ordering::Relaxed) {
            return Ok(all);
        }
        for (index, fd) in (FIRST..).take(count).enumerate() {
            // SAFETY: fcntl(F_GETFD) only looks; a number that is no open file is EBADF.
            if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
                return Err(format!("LISTEN_FDS names file {fd}, which is not open"));
            }
            // SAFETY: the file is open, and LISTEN_PID says that it was opened for this very process to take, which
            // nothing else here does: this is reached once.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            all.add(fd, names.get(index).map_or("", String::as_str))?;
        }
        Ok(all)
    }

    fn add(&mut self, fd: OwnedFd, name: &str) -> Result<(), String> {
        let failed = |error: rustix::io::Errno| format!("socket {name:?} of the service manager: {error}");
        fcntl_setfd(&fd, FdFlags::CLOEXEC).map_err(failed)?;
        if !sockopt::socket_acceptconn(&fd).map_err(failed)? {
            return Err(format!("socket {name:?} of the service manager does not listen: no Accept=yes"));
        }
        match sockopt::socket_domain(&fd).map_err(failed)? {
            AddressFamily::UNIX => self.unix.push(fd.into()),
            AddressFamily::INET | AddressFamily::INET6 if name == HEALTH => self.health.push(fd.into()),
            AddressFamily::INET | AddressFamily::INET6 => self.tcp.push(fd.into()),
            other => return Err(format!("socket {name:?} of the service manager is of family {other:?}")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_is_taken() {
        let with = |pid: &str, count: &str, names: &str| {
            let (pid, count, names) = (pid.to_owned(), count.to_owned(), names.to_owned());
            announced(7, move |name| match name {
                "LISTEN_PID" => Some(pid.clone()),
                "LISTEN_FDS" => Some(count.clone()),
                _ => Some(names.clone()),
            })
        };
        assert_eq!(with("7", "2", "http:health"), (2, vec!["http".to_owned(), "health".to_owned()]));
        for (pid, count) in [("8", "2"), ("", "2"), ("7", "x"), ("7", "-1"), ("7", "0")] {
            assert_eq!(with(pid, count, "").0, 0, "{pid} {count}");
        }
        assert_eq!(with("7", "4000000000", "").0, MAX);
        assert_eq!(announced(7, |_| None).0, 0);
    }

    #[test]
    fn kinds_are_told_by_the_socket_and_its_name() {
        let mut all = Inherited::default();
        let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
        all.add(tcp(), "emberscope.socket").unwrap();
        all.add(tcp(), "health").unwrap();
        let dir = tempfile::tempdir().unwrap();
        all.add(UnixListener::bind(dir.path().join("s")).unwrap().into(), "").unwrap();
        assert_eq!((all.tcp.len(), all.health.len(), all.unix.len()), (1, 1, 1));
        let one = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(all.add(one.into(), "udp").is_err());
    }
}
