//! When to stop, and telling the service manager how far we are.
//!
//! In: SIGTERM and SIGINT, or [`Lifecycle::stop`]. Out: a flag that threads wait on and tasks await, and
//! sd_notify(3) messages on `$NOTIFY_SOCKET`. The first signal asks for an orderly end; the second ends
//! the process at once, for a user who does not want to wait.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Exit code after a second signal: 128 + SIGINT, as shells report it.
const INTERRUPTED: i32 = 130;

/// A handle on the process's end; clones share it.
#[derive(Clone, Debug)]
pub struct Lifecycle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stopped: Mutex<bool>,
    woken: Condvar,
    tasks: watch::Sender<bool>,
    notify: Option<OsString>,
    watchdog: Option<Duration>,
}

impl Lifecycle {
    /// A handle that listens to no signals, and tells `notify` (the value of `$NOTIFY_SOCKET`).
    pub fn quiet(notify: Option<OsString>) -> Self {
        let inner = Inner {
            stopped: Mutex::new(false),
            woken: Condvar::new(),
            tasks: watch::Sender::new(false),
            notify,
            watchdog: None,
        };
        Self(Arc::new(inner))
    }

    /// A handle that SIGTERM and SIGINT stop. It tells `$NOTIFY_SOCKET`.
    ///
    /// # Errors
    /// There is no event queue (epoll(7)), no handler of signals, or no thread.
    pub fn install() -> io::Result<Self> {
        let mut life = Self::quiet(std::env::var_os("NOTIFY_SOCKET"));
        if let Some(inner) = Arc::get_mut(&mut life.0) {
            let variable = |name| std::env::var(name).ok();
            inner.watchdog = period(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"), std::process::id());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut term, mut int) = {
            let _inside = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        let ours = life.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            emberscope_supervise::rights::keep_only("signals");
            runtime.block_on(async {
                tokio::select! { _ = term.recv() => {} _ = int.recv() => {} }
                ours.stop();
                tokio::select! { _ = term.recv() => {} _ = int.recv() => {} }
                emberscope_supervise::quarantine::ends_in_order();
                std::process::exit(INTERRUPTED);
            });
        })?;
        Ok(life)
    }

    /// Asks for the end.
    pub fn stop(&self) {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.woken.notify_all();
        self.0.tasks.send_replace(true);
        self.tell("STOPPING=1");
    }

    /// Whether the end was asked for.
    pub fn is_stopping(&self) -> bool {
        *self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until the end is asked for, at most this long. True: it was.
    pub fn sleep(&self, at_most: Duration) -> bool {
        let until = Instant::now().checked_add(at_most);
        let mut stopped = self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            stopped = self.0.woken.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *stopped
    }

    /// Resolves when the end is asked for; at once when it was already.
    pub async fn stopped(&self) {
        // An error means that the sender is gone, and with it whoever could ask.
        let _ = self.0.tasks.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// Tells the service manager that the daemon samples and answers.
    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// In what time the service manager wants to hear [`Lifecycle::alive`]; None: it does not.
    pub fn watchdog(&self) -> Option<Duration> {
        self.0.watchdog
    }

    /// Tells the service manager that all is well.
    pub fn alive(&self) {
        if self.0.watchdog.is_some() {
            self.tell("WATCHDOG=1");
        }
    }

    /// Tells the service manager in a line what the daemon does, for `systemctl status`.
    pub fn status(&self, line: &str) {
        self.tell(&format!("STATUS={line}"));
    }

    fn tell(&self, message: &str) {
        let Some(address) = &self.0.notify else { return };
        let sent = address_of(address)
            .and_then(|address| UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address));
        if let Err(error) = sent {
            tracing::warn!(%error, message, "the service manager could not be told");
        }
    }
}

/// The period in `$WATCHDOG_USEC`, if it is meant for this process (sd_watchdog_enabled(3)).
fn period(microseconds: Option<String>, pid: Option<String>, own: u32) -> Option<Duration> {
    let ours = pid.is_none_or(|pid| pid.parse() == Ok(own));
    let period = microseconds?.parse().ok().filter(|us| *us > 0 && ours)?;
    Some(Duration::from_micros(period))
}

/// The address in `$NOTIFY_SOCKET`: a path, or after `@` an abstract name (sd_notify(3)).
fn address_of(text: &OsStr) -> io::Result<SocketAddr> {
    match text.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_wakes_threads_and_tasks() {
        let life = Lifecycle::quiet(None);
        assert!(!life.sleep(Duration::from_millis(1)));
        let (thread, task) = (life.clone(), life.clone());
        let thread = std::thread::spawn(move || thread.sleep(Duration::from_secs(60)));
        let task = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(task.stopped());
        });
        life.stop();
        assert!(thread.join().unwrap());
        task.join().unwrap();
        assert!(life.is_stopping() && life.sleep(Duration::MAX));
    }

    #[test]
    fn the_watchdog_is_this_process_s_or_nobody_s() {
        let period = |us: &str, pid: Option<&str>| period(Some(us.to_owned()), pid.map(str::to_owned), 7);
        assert_eq!(period("60000000", None), Some(Duration::from_secs(60)));
        assert_eq!(period("60000000", Some("7")), Some(Duration::from_secs(60)));
        for (us, pid) in [("60000000", Some("8")), ("0", None), ("x", None), ("60000000", Some("x"))] {
            assert_eq!(period(us, pid), None, "{us} {pid:?}");
        }
        assert_eq!(super::period(None, None, 7), None);
    }

    #[test]
    fn the_service_manager_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let abstract_name = format!("emberscope-test-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        for (name, socket) in
            [(path.into_os_string(), by_path), (format!("@{abstract_name}").into(), by_name)]
        {
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let life = Lifecycle::quiet(Some(name));
            life.ready();
            life.stop();
            let mut buffer = [0; 32];
            for want in ["READY=1", "STOPPING=1"] {
                let length = socket.recv(&mut buffer).unwrap();
                assert_eq!(&buffer[..length], want.as_bytes());
            }
        }
    }
}
