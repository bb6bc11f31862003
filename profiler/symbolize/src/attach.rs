//! Asks a HotSpot JVM to do a jcmd command, as `jcmd` does: through the socket `/tmp/.java_pidNSPID` in the JVM's own
//! mount namespace.
//!
//! A JVM opens the socket when it finds a file `.attach_pidNSPID` (its own or root's) on SIGQUIT
//! (attachListener_posix.cpp, JDK 17; JDK 25 still speaks version 1 of the protocol). SIGQUIT ends a process that
//! does not catch it, so [`jvm::readiness`] is asked right before, and the signal goes to a pidfd whose process was
//! checked: never to a reused pid. Everything has a deadline; this blocks and belongs on a thread of its own.

use super::identity::as_user;
use super::jvm::{self, Readiness};
use emberscope_target::open::{self, Refusal};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest answer that is read.
const MAX_ANSWER: u64 = 64 << 10;

/// How long a process may take to end after it closed its files: freeing a large heap takes a while.
const DYING: Duration = Duration::from_secs(1);

/// The JVM that is asked.
#[derive(Clone, Debug)]
pub struct Jvm {
    /// The process's directory: `/proc/PID`.
    pub process_dir: PathBuf,
    /// Process id in our namespace.
    pub pid: u32,
    /// Process id in its own namespace.
    pub nspid: u32,
    /// When it began, clock ticks since boot; 0 when not known.
    pub start_ticks: u64,
    /// Number of its effective user.
    pub uid: u32,
    /// Number of its effective group.
    pub gid: u32,
}

/// Why a JVM gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The JVM ended.
    #[error("the JVM ended")]
    Gone,
    /// The JVM cannot be asked now: SIGQUIT would end it.
    #[error("the JVM does not catch SIGQUIT: it is still starting, or runs with -Xrs")]
    NotReady,
    /// The JVM is stopped (SIGSTOP, a debugger).
    #[error("the JVM is stopped")]
    Stopped,
    /// The JVM will never answer; why.
    #[error("{0}")]
    Never(&'static str),
    /// The JVM did not answer in time; at what.
    #[error("the JVM did not answer in time ({0})")]
    Timeout(&'static str),
    /// The JVM closed the connection without a word: it wants another user than this.
    #[error("the JVM refused us (uid {0})")]
    Denied(u32),
    /// The JVM knows no such command.
    #[error("the JVM has no {0}")]
    UnknownCommand(String),
    /// Where the JVM would write or where its socket is supposed to be is something else.
    #[error("{0}: {1}")]
    Unsafe(&'static str, &'static str),
    /// The JVM answered with an error: its first line.
    #[error("the JVM answered: {0}")]
    Failed(String),
    /// A system call failed; which.
    #[error("{0}: {1}")]
    System(&'static str, ErrorKind),
}

impl AskError {
    /// Stable short name, for metrics.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::NotReady => "not_ready",
            Self::Stopped => "stopped",
            Self::Never(_) => "never",
            Self::Timeout(_) => "timeout",
            Self::Denied(_) => "denied",
            Self::UnknownCommand(_) => "unknown_command",
            Self::Unsafe(..) => "unsafe",
            Self::Failed(_) => "failed",
            Self::System(..) => "system",
        }
    }
    /// Whether asking again is of no use.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Never(_) | Self::UnknownCommand(_))
    }
}

/// What a JVM answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the JVM said, cleaned and cut.
    pub text: String,
    /// The signal was needed to make it open its socket.
    pub signalled: bool,
}

/// Has `jvm` do `command`, within about `timeout` for each of its two halves.
///
/// # Errors
/// An [`AskError`]. A signal is sent only to a process that catches it; what was made in its /tmp is removed again.
pub fn ask(jvm: &Jvm, root: &OwnedFd, command: &str, timeout: Duration) -> Result<Answer, AskError> {
    let (stream, signalled) = match dial(jvm, root) {
        Ok(stream) => (stream, false),
        Err(Dial::NoListener) => (wake(jvm, root, timeout)?, true),
        Err(Dial::Failed(error)) => return Err(error),
    };
    match talk(stream, command, jvm.uid, timeout) {
        Ok(text) => Ok(Answer { text, signalled }),
        // It closed the connection by dying.
        Err(AskError::Denied(_)) if ends(jvm, DYING) => Err(AskError::Gone),
        Err(error) => Err(error),
    }
}

/// Whether a JVM ends within `time`. A killed process closes its files before it is a zombie (`do_exit`, Linux 6.18).
fn ends(jvm: &Jvm, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    loop {
        if !emberscope_target::same_process(&jvm.process_dir, jvm.start_ticks) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

enum Dial {
    NoListener,
    Failed(AskError),
}

/// Connects to the socket, when it is one and belongs to the JVM's user.
fn dial(jvm: &Jvm, root: &OwnedFd) -> Result<UnixStream, Dial> {
    let path = PathBuf::from(format!("tmp/.java_pid{}", jvm.nspid));
    let (handle, stat) = match open::look(root, &path) {
        Ok(found) => found,
        Err(Refusal::Missing) => return Err(Dial::NoListener),
        Err(refusal) => return Err(Dial::Failed(AskError::Unsafe("its attach socket", refusal.sentence()))),
    };
    let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
    if !is_socket || (stat.st_uid != jvm.uid && stat.st_uid != 0) {
        return Err(Dial::Failed(AskError::Unsafe("its attach socket", "it is no socket of the JVM's user")));
    }
    let system = |what| move |e: rustix::io::Errno| Dial::Failed(AskError::System(what, e.kind()));
    // Through the handle: the very socket that was looked at, whatever its path is now.
    let address =
        SocketAddrUnix::new(format!("/proc/self/fd/{}", handle.as_raw_fd())).map_err(system("address"))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(system("socket"))?;
    match as_user(jvm.uid, jvm.gid, || connect(&socket, &address)) {
        Ok(()) => Ok(UnixStream::from(socket)),
        // Left behind by a JVM that was killed.
        Err(rustix::io::Errno::CONNREFUSED) => Err(Dial::NoListener),
        // Its queue is full: it does not take connections.
        Err(rustix::io::Errno::AGAIN) => Err(Dial::Failed(AskError::Timeout("connecting"))),
        Err(other) => Err(system("connect")(other)),
    }
}

/// Makes the JVM open its socket.
fn wake(jvm: &Jvm, root: &OwnedFd, timeout: Duration) -> Result<UnixStream, AskError> {
    ready(jvm)?;
    let pid = i32::try_from(jvm.pid).ok().and_then(Pid::from_raw).ok_or(AskError::Gone)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| AskError::Gone)?;
    let trigger = Trigger::create(jvm, root)?;
    // Again, now that the pidfd holds the process: what was checked is what gets the signal.
    ready(jvm)?;
    as_user(jvm.uid, jvm.gid, || pidfd_send_signal(&pidfd, Signal::QUIT))
        .or_else(|_| pidfd_send_signal(&pidfd, Signal::QUIT))
        .map_err(|e| AskError::System("pidfd_send_signal", e.kind()))?;
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_millis(10);
    let result = loop {
        match dial(jvm, root) {
            Ok(stream) => break Ok(stream),
            Err(Dial::Failed(error)) => break Err(error),
            Err(Dial::NoListener) if !emberscope_target::same_process(&jvm.process_dir, jvm.start_ticks) => {
                break Err(AskError::Gone);
            }
            Err(Dial::NoListener) if Instant::now() >= deadline => {
                break Err(AskError::Timeout("opening its socket"));
            }
            Err(Dial::NoListener) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(200));
    };
    drop(trigger);
    result
}

fn ready(jvm: &Jvm) -> Result<(), AskError> {
    match jvm::readiness(&jvm.process_dir, jvm.start_ticks) {
        Readiness::Ready => Ok(()),
        Readiness::Gone => Err(AskError::Gone),
        Readiness::NotCatching => Err(AskError::NotReady),
        Readiness::Stopped => Err(AskError::Stopped),
        Readiness::NotHotSpot => Err(AskError::Never("not a HotSpot JVM")),
        Readiness::Disabled => Err(AskError::Never("the JVM runs with -XX:+DisableAttachMechanism")),
    }
}

/// The file `.attach_pidN`; it goes when this is dropped.
struct Trigger<'a> {
    jvm: &'a Jvm,
    root: &'a OwnedFd,
    path: PathBuf,
}

impl<'a> Trigger<'a> {
    fn create(jvm: &'a Jvm, root: &'a OwnedFd) -> Result<Self, AskError> {
        let path = PathBuf::from(format!("tmp/.attach_pid{}", jvm.nspid));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = as_user(jvm.uid, jvm.gid, || open::in_root(root, &path, flags, Mode::RUSR | Mode::WUSR));
        match made {
            Ok(_) => Ok(Self { jvm, root, path }),
            // Left by another tool that asks at this moment, or died while asking. It must be one that the
            // JVM accepts, else it would print a thread dump.
            Err(rustix::io::Errno::EXIST) => match open::regular_file(root, &path, jvm.uid) {
                Ok(_) => Ok(Self { jvm, root, path }),
                Err(refusal) => Err(AskError::Unsafe("its /tmp/.attach_pid file", refusal.sentence())),
            },
            Err(errno) => Err(AskError::System("creating its /tmp/.attach_pid file", errno.kind())),
        }
    }
}

impl Drop for Trigger<'_> {
    fn drop(&mut self) {
        let Self { jvm, root, path } = self;
        let _ = as_user(jvm.uid, jvm.gid, || open::remove_file(root, Path::new(path), jvm.uid));
    }
}

/// Version 1 of the protocol: version, command and three arguments, each ended by a zero byte; the answer
/// is a return code, a newline and text.
fn talk(mut stream: UnixStream, command: &str, uid: u32, timeout: Duration) -> Result<String, AskError> {
    let failed = |what| {
        move |e: std::io::Error| match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => AskError::Timeout(what),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => AskError::Denied(uid),
            kind => AskError::System(what, kind),
        }
    };
    let request = format!("1\0jcmd\0{command}\0\0\0");
    stream.set_nonblocking(false).map_err(failed("socket"))?;
    stream.set_write_timeout(Some(timeout)).map_err(failed("socket"))?;
    stream.write_all(request.as_bytes()).map_err(failed("asking"))?;
    let deadline = Instant::now() + timeout;
    let mut answer = Vec::new();
    let mut chunk = [0u8; 4096];
    while (answer.len() as u64) < MAX_ANSWER {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).map_err(failed("socket"))?;
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(chunk.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(failed("answering")(e)),
        }
        if Instant::now() >= deadline {
            return Err(AskError::Timeout("answering"));
        }
    }
    understand(&answer, command, uid)
}

fn understand(answer: &[u8], command: &str, uid: u32) -> Result<String, AskError> {
    if answer.is_empty() {
        return Err(AskError::Denied(uid));
    }
    let text = String::from_utf8_lossy(answer);
    let (code, text) = text.split_once('\n').unwrap_or((&text, ""));
    if code.trim() == "0" {
        return Ok(emberscope_target::text::bounded(text.trim().as_bytes(), 4096));
    }
    if text.contains("Unknown diagnostic command") {
        return Err(AskError::UnknownCommand(command.to_owned()));
    }
    let said = text.lines().find(|l| !l.trim().is_empty()).unwrap_or(code);
    Err(AskError::Failed(emberscope_target::text::bounded(said.trim().as_bytes(), 200)))
}

#[cfg(test)]
mod tests;
