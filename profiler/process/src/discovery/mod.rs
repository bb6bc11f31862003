//! Finding out what no command line tells: a driver's application id, and applications' names.
//!
//! In: questions of the registry, through a bounded channel that is never waited for. Out: answers, taken
//! at its next tick. One thread, because each question may take seconds (a resolver, a driver that loads
//! its servlets); it ends when the registry is dropped. [`names`] asks about stages and tasks, on a thread of its
//! own, and only when somebody wants to know.

mod clients;
mod driver_at;
mod names;
mod question;
mod rest;
mod sockets;

use super::identity::DriverAddress;
use super::procfs::ProcRoot;
pub use clients::MAX_CLIENTS;
use driver_at::{Asker, Resolver, listens_there};
use emberscope_model::ProcessKey;
#[cfg(debug_assertions)]
pub use names::fuzzed;
pub use names::{NamesConfig, NamesCounters, Place, Places, SparkNames, Tells};
pub use question::{Answer, Candidate, Question, RestApp};
pub use rest::Server;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Longest for one question: a resolver that waits for its servers, a driver that loads its servlets.
const STUCK: Duration = Duration::from_secs(120);
/// Questions that may wait; each is asked again later when there is no room.
pub const MAX_QUESTIONS: usize = 128;
/// JVMs looked at for one `--driver-url`.
pub const MAX_CANDIDATES: usize = 64;

/// The thread and the two channels.
#[derive(Debug)]
pub struct Discovery {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
}

impl Discovery {
    /// Starts the thread. Without one (no thread could be made) every question is refused.
    pub fn start(root: ProcRoot) -> Self {
        let (questions, inbox) = sync_channel(MAX_QUESTIONS);
        let (outbox, answers) = sync_channel(MAX_QUESTIONS);
        let started = emberscope_supervise::spawn("discovery", STUCK, move |beat| {
            let mut worker = Worker::new(root.clone());
            for question in &inbox {
                let answer = beat.work(|| worker.answer(&question));
                if outbox.send(answer.unwrap_or_else(|_| question.unanswered())).is_err() {
                    break;
                }
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "no discovery thread: drivers keep the application id 'unknown'");
        }
        Self { questions, answers }
    }

    /// Asks, if there is room; false: there is none, or no thread.
    pub fn ask(&self, question: Question) -> bool {
        match self.questions.try_send(question) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// The next answer, if there is one.
    pub fn next_answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

/// The discovery thread's own state.
#[derive(Debug)]
struct Worker {
    root: ProcRoot,
    own_netns: String,
    resolver: Resolver,
}

impl Worker {
    fn new(root: ProcRoot) -> Self {
        let own_netns = own_netns(&root);
        Self { root, own_netns, resolver: Resolver::default() }
    }

    fn answer(&mut self, question: &Question) -> Answer {
        match question {
            Question::DriverAt { app, teller, at, netns, candidates, .. } => {
                let driver = self.driver_at(at, netns, candidates);
                Answer::DriverAt { app: app.clone(), teller: *teller, driver }
            }
            Question::Rest { process, server, ui_port } => {
                // Another namespace's loopback is not ours: there is nobody to ask.
                let reachable = process.netns == self.own_netns;
                let ask = || rest::ask(*server, &listens_at(&self.root, process), *ui_port);
                let apps = if reachable { ask() } else { Some(Vec::new()) };
                Answer::Rest { key: process.key, server: *server, apps }
            }
            Question::Clients { server, port, candidates } => {
                let clients = clients::connected(&self.root, server, *port, candidates);
                Answer::Clients { server: server.key, clients: Some(clients) }
            }
        }
    }

    fn driver_at(&mut self, at: &DriverAddress, netns: &str, candidates: &[Candidate]) -> Option<ProcessKey> {
        let mut hosts = None;
        candidates.iter().take(MAX_CANDIDATES).find_map(|candidate| {
            let listening = listens_at(&self.root, candidate);
            if !listening.iter().any(|s| s.port() == at.port) {
                return None;
            }
            // The resolver is asked only when the port is there.
            let hosts = hosts.get_or_insert_with(|| self.resolver.addresses(&at.host));
            let there = listens_there(Asker { at, netns }, hosts, candidate, &listening, &self.own_netns);
            there.then_some(candidate.key)
        })
    }
}

/// Where a process listens; nowhere when its pid is another's by now.
fn listens_at(root: &ProcRoot, process: &Candidate) -> Vec<SocketAddr> {
    let found = sockets::listening(root, process.key.pid, process.uid);
    if same_process(root, process) { found } else { Vec::new() }
}

/// Whether a pid is still the process that it was: what was read before is that one's.
fn same_process(root: &ProcRoot, process: &Candidate) -> bool {
    let stat = super::stat::read_stat(root, process.key.pid);
    stat.is_ok_and(|stat| stat.start_ticks == process.key.start_ticks)
}

/// The daemon's own network namespace; empty when it cannot be read.
fn own_netns(root: &ProcRoot) -> String {
    let link = root.link(std::process::id(), "ns/net");
    link.map(|l| l.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A web server on loopback that gives one answer.
    pub(crate) fn serve_once(body: &'static str) -> (SocketAddr, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).unwrap();
        });
        (address, served)
    }

    fn this_process() -> Candidate {
        let root = ProcRoot::new("/proc");
        let pid = std::process::id();
        let stat = super::super::stat::read_stat(&root, pid).unwrap();
        let netns = root.link(pid, "ns/net").unwrap().to_string_lossy().into_owned();
        let uid = rustix::process::geteuid().as_raw();
        Candidate { key: ProcessKey { pid, start_ticks: stat.start_ticks }, netns, uid }
    }

    #[test]
    fn a_real_listener_is_the_driver_that_an_executor_means() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let me = this_process();
        let mut worker = Worker::new(ProcRoot::new("/proc"));
        let port = listener.local_addr().unwrap().port();
        let at = |host: &str, port| DriverAddress { host: host.into(), port };
        let candidates = [me.clone()];
        assert_eq!(worker.driver_at(&at("localhost", port), &me.netns, &candidates), Some(me.key));
        assert_eq!(worker.driver_at(&at("192.0.2.1", port), &me.netns, &candidates), None);
        let reused = Candidate { key: ProcessKey { start_ticks: 1, ..me.key }, ..me.clone() };
        assert_eq!(worker.driver_at(&at("localhost", port), &me.netns, &[reused]), None);
    }

    #[test]
    fn questions_are_answered_on_the_thread() {
        let (address, served) =
            serve_once(r#"[{"id":"local-1","name":"n","attempts":[{"sparkUser":"ana"}]}]"#);
        let discovery = Discovery::start(ProcRoot::new("/proc"));
        let me = this_process();
        // The server's socket is this process's own.
        let asked =
            Question::Rest { process: me.clone(), server: Server::Driver, ui_port: Some(address.port()) };
        assert!(discovery.ask(asked));
        let answer = discovery.answers.recv_timeout(std::time::Duration::from_secs(5)).unwrap();
        let app = RestApp { id: "local-1".into(), name: "n".into(), user: "ana".into() };
        assert_eq!(answer, Answer::Rest { key: me.key, server: Server::Driver, apps: Some(vec![app]) });
        served.join().unwrap();
    }

    #[test]
    fn a_full_channel_refuses_and_does_not_wait() {
        let (questions, _inbox) = sync_channel(1);
        let (_outbox, answers) = sync_channel(1);
        let discovery = Discovery { questions, answers };
        let question = Question::Rest { process: this_process(), server: Server::Worker, ui_port: None };
        assert!(discovery.ask(question.clone()));
        assert!(!discovery.ask(question));
    }
}
