//! What the discovery thread is asked, and what it answers.

use super::Server;
use crate::identity::DriverAddress;
use emberscope_model::ProcessKey;

/// A process whose sockets are looked at: one that may be a driver, or a client of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The process, by its pid and start.
    pub key: ProcessKey,
    /// Its network namespace, as /proc/PID/ns/net reads.
    pub netns: String,
    /// Its user's number: a socket that another user made is not believed to be its own.
    pub uid: u32,
}

/// An application as a web server told it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RestApp {
    /// Application id: `app-20261122081530-0007`, `local-1795334400000`.
    pub id: String,
    /// Application name, as the program chose it.
    pub name: String,
    /// Spark's user, as the server says.
    pub user: String,
}

/// A question that the discovery thread answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Who listens where this application's executors were told that their driver is?
    DriverAt {
        /// Id of the application.
        app: String,
        /// The executor's user's number.
        uid: u32,
        /// The executor that says so.
        teller: ProcessKey,
        /// Where the executor was told that its driver listens.
        at: DriverAddress,
        /// The executor's network namespace.
        netns: String,
        /// Processes that may be the driver; at most [`super::MAX_CANDIDATES`], the likeliest first.
        candidates: Vec<Candidate>,
    },
    /// Which applications does this web server tell of?
    Rest {
        /// The process whose web server it is.
        process: Candidate,
        /// The kind of server.
        server: Server,
        /// Its UI's port, where the process's command line tells.
        ui_port: Option<u16>,
    },
    /// Which processes have a connection to this server of Spark Connect?
    Clients {
        /// The driver that serves.
        server: Candidate,
        /// Where its clients connect to.
        port: u16,
        /// Processes that may be clients; at most [`super::MAX_CLIENTS`].
        candidates: Vec<Candidate>,
    },
}

/// What came of a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The driver of an application; None when none of the candidates is it.
    DriverAt {
        /// Id of the application.
        app: String,
        /// The executor that said where.
        teller: ProcessKey,
        /// The driver of that application.
        driver: Option<ProcessKey>,
    },
    /// Applications of a web server; empty when it did not say, None when none listens yet.
    Rest {
        /// The process that was asked.
        key: ProcessKey,
        /// The kind of server.
        server: Server,
        /// Applications that the server told of.
        apps: Option<Vec<RestApp>>,
    },
    /// The clients of a server; None when nobody looked.
    Clients {
        /// The driver that serves.
        server: ProcessKey,
        /// Those of the candidates that are connected.
        clients: Option<Vec<ProcessKey>>,
    },
}

impl Question {
    /// The number of the user whose process the question is about.
    pub fn uid(&self) -> u32 {
        match self {
            Self::DriverAt { uid, .. } => *uid,
            Self::Rest { process, .. } => process.uid,
            Self::Clients { server, .. } => server.uid,
        }
    }

    /// The answer when nobody said anything.
    pub(super) fn unanswered(&self) -> Answer {
        match self {
            Self::DriverAt { app, teller, .. } => {
                Answer::DriverAt { app: app.clone(), teller: *teller, driver: None }
            }
            Self::Rest { process, server, .. } => {
                Answer::Rest { key: process.key, server: *server, apps: Some(Vec::new()) }
            }
            Self::Clients { server, .. } => Answer::Clients { server: server.key, clients: None },
        }
    }
}
