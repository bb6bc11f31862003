//! Where Spark can be asked about an application: the servers that were configured, and those that the
//! registry found on this node.
//!
//! In: what the registry publishes at its tick. Out: base URLs, worked out from the listening sockets at
//! the moment of asking. Only processes in the daemon's own network namespace count: in another one an
//! address (169.254.169.254, say) may be anybody's, and asked from here it would be somebody else's.

use crate::discovery::{Candidate, listens_at, own_netns, rest};
use crate::procfs::ProcRoot;
use emberscope_model::{Excess, ProcessKey, SparkUrl, Tenant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Web servers published at once: far more drivers than a node runs. Users share them where there are more.
pub const MAX_PLACES: usize = 256;
/// Servers configured at most.
pub const MAX_URLS: usize = 8;
/// Servers of one kind asked about one application.
const MAX_ASKED: usize = 2;
/// Sockets of one process that are asked.
const MAX_SOCKETS: usize = 4;
/// Where a history server listens unless told (spark.history.ui.port), and the ports it tries then.
const HISTORY_PORTS: std::ops::RangeInclusive<u16> = 18080..=18096;

/// What a process on this node can tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tells {
    /// A driver: of its own application.
    App(String),
    /// A history server that is a service of the cluster: of any.
    History,
    /// Another user's history server: of that user's applications, sorted.
    HistoryOf(Vec<String>),
}

/// A process with a web server of Spark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The process with the web server.
    pub process: Candidate,
    /// What its server tells of.
    pub tells: Tells,
    /// The server's port, where the process's command line tells.
    pub ui_port: Option<u16>,
}

/// The places on this node as the registry knows them; a handle that both sides hold.
#[derive(Clone, Debug, Default)]
pub struct Places(Arc<Mutex<Arc<[Place]>>>);

impl Places {
    /// Replaces the places, if anything changed.
    pub(crate) fn publish(&self, mut places: Vec<Place>) {
        if places.len() > MAX_PLACES {
            // Of the users who have most of them the youngest go: anybody can start processes that look like drivers.
            let tenant = |place: &Place| Tenant { spark: true, uid: place.process.uid, group: 0 };
            let mut excess = Excess::over(MAX_PLACES, places.iter().map(|place| (tenant(place), 1)));
            places.sort_by_key(|place| Reverse(place.process.key.start_ticks));
            places.retain(|place| !excess.take(&tenant(place), 1));
        }
        places.sort_by_key(|place| place.process.key);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if **held != *places {
            *held = places.into();
        }
    }

    /// Applications whose drivers are on this node, each once.
    fn apps_of_drivers(&self) -> BTreeSet<String> {
        let all = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let app = |place: &Place| match &place.tells {
            Tells::App(app) => Some(app.clone()),
            Tells::History | Tells::HistoryOf(_) => None,
        };
        all.iter().filter_map(app).collect()
    }

    /// Applications whose drivers are on this node, each with the user id of its oldest driver.
    pub fn users_of_drivers(&self) -> BTreeMap<String, u32> {
        let user = |app: String| Some((app.clone(), self.of(&app).first()?.process.uid));
        self.apps_of_drivers().into_iter().filter_map(user).collect()
    }

    /// Who may know an application: its driver, the oldest first, then history servers, the youngest first.
    pub fn of(&self, app: &str) -> Vec<Place> {
        let all = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let some = |wanted: &dyn Fn(&Tells) -> bool| -> Vec<Place> {
            let mut found: Vec<&Place> = all.iter().filter(|place| wanted(&place.tells)).collect();
            found.sort_by_key(|place| match place.tells {
                Tells::App(_) => place.process.key.start_ticks,
                Tells::History | Tells::HistoryOf(_) => u64::MAX - place.process.key.start_ticks,
            });
            found.into_iter().take(MAX_ASKED).cloned().collect()
        };
        let mut places = some(&|tells| matches!(tells, Tells::App(id) if id == app));
        places.extend(some(&|tells| match tells {
            Tells::History => true,
            Tells::HistoryOf(apps) => apps.binary_search_by(|known| known.as_str().cmp(app)).is_ok(),
            Tells::App(_) => false,
        }));
        places
    }
}

impl Place {
    /// What people call the place: `driver 4711`.
    pub fn name(&self) -> String {
        let ProcessKey { pid, .. } = self.process.key;
        match self.tells {
            Tells::App(_) => format!("driver {pid}"),
            Tells::History | Tells::HistoryOf(_) => format!("history server {pid}"),
        }
    }

    /// Where the server can be asked: its listening sockets that are likely its pages.
    ///
    /// # Errors
    /// The rest of a sentence that begins with [`Self::name`]: the process is in a network of its own, has ended,
    /// listens nowhere, or not where pages are looked for.
    pub fn urls(&self, root: &ProcRoot) -> Result<Vec<SparkUrl>, &'static str> {
        let own = own_netns(root);
        if own.is_empty() || self.process.netns != own {
            return Err("is in a network of its own (a container): name a history server with spark-url");
        }
        let listening = listens_at(root, &self.process);
        if listening.is_empty() {
            return Err("has ended, or listens nowhere");
        }
        let likely = self.likely(&listening);
        if likely.is_empty() {
            return Err("shows no pages at the ports where they are looked for");
        }
        let url = |address: &SocketAddr| format!("http://{}", rest::reachable(*address)).parse().ok();
        Ok(likely.iter().filter_map(url).collect())
    }

    /// The sockets that are the server's pages. A GET at an RPC port would write a warning into its log.
    fn likely(&self, listening: &[SocketAddr]) -> Vec<SocketAddr> {
        let told = |port: u16| self.ui_port.is_some_and(|told| port >= told && port - told <= 16);
        let is_likely = |port: u16| match self.tells {
            Tells::App(_) => rest::is_driver_ui(self.ui_port, port),
            // It listens for nothing else, so a single socket is its pages.
            Tells::History | Tells::HistoryOf(_) => {
                told(port) || HISTORY_PORTS.contains(&port) || listening.len() == 1
            }
        };
        listening.iter().filter(|a| is_likely(a.port())).take(MAX_SOCKETS).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn place(pid: u32, start_ticks: u64, tells: Tells, ui_port: Option<u16>) -> Place {
        let uid = rustix::process::geteuid().as_raw();
        let process = Candidate { key: ProcessKey { pid, start_ticks }, netns: "net:[1]".into(), uid };
        Place { process, tells, ui_port }
    }

    #[test]
    fn the_driver_is_asked_before_history_servers_and_others_not_at_all() {
        let places = Places::default();
        let app = |id: &str| Tells::App(id.to_owned());
        places.publish(vec![
            place(1, 10, Tells::History, None),
            place(2, 20, app("app-1"), None),
            place(3, 30, app("app-1"), None),
            place(4, 40, app("app-2"), None),
            place(5, 50, Tells::HistoryOf(vec!["app-3".into(), "app-4".into()]), None),
        ]);
        let pids = |app| places.of(app).iter().map(|p| p.process.key.pid).collect::<Vec<_>>();
        assert_eq!(places.apps_of_drivers().into_iter().collect::<Vec<_>>(), ["app-1", "app-2"]);
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(
            places.users_of_drivers().into_iter().collect::<Vec<_>>(),
            ["app-1", "app-2"].map(|app| (app.to_owned(), own))
        );
        assert_eq!(pids("app-1"), [2, 3, 1]);
        assert_eq!(pids("app-4"), [5, 1], "its own user's");
        assert_eq!(pids("app-9"), [1]);
        places.publish((0..1000).map(|pid| place(pid, 1, Tells::History, None)).collect());
        assert_eq!(places.of("x").len(), MAX_ASKED);
        assert_eq!(places.0.lock().unwrap().len(), MAX_PLACES);
    }

    #[test]
    fn a_user_with_many_processes_hides_nobody_elses_driver() {
        let places = Places::default();
        let of = |uid: u32, pid: u32, app: String| {
            let made = place(pid, u64::from(pid), Tells::App(app), None);
            Place { process: Candidate { uid, ..made.process }, ..made }
        };
        let mut all: Vec<Place> = (0..2000).map(|pid| of(666, pid, format!("aaa-{pid}"))).collect();
        all.push(of(185, 9000, "app-1".to_owned()));
        places.publish(all);
        let held = places.users_of_drivers();
        assert_eq!((held.len(), held.get("app-1")), (MAX_PLACES, Some(&185)));
        assert!(held.contains_key("aaa-0") && !held.contains_key("aaa-1999"), "the oldest of a user stay");
    }

    #[test]
    fn only_pages_are_asked() {
        let all = |ports: &[u16]| -> Vec<SocketAddr> {
            ports.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port))).collect()
        };
        let ports = |place: &Place, listening: &[u16]| -> Vec<u16> {
            place.likely(&all(listening)).iter().map(SocketAddr::port).collect()
        };
        let driver = |ui_port| place(1, 1, Tells::App("a".into()), ui_port);
        assert_eq!(ports(&driver(None), &[7078, 4041, 39000]), [4041]);
        assert_eq!(ports(&driver(Some(5000)), &[7078, 5001, 39000]), [5001]);
        assert_eq!(ports(&driver(None), &[39000]), [0; 0]);
        let history = |ui_port| place(1, 1, Tells::History, ui_port);
        assert_eq!(ports(&history(None), &[18080, 9999]), [18080]);
        assert_eq!(ports(&history(None), &[9999]), [9999]);
        assert_eq!(ports(&history(Some(8888)), &[8888, 9999]), [8888]);
    }

    #[test]
    fn a_place_is_asked_where_it_listens_in_our_own_network() {
        let root = ProcRoot::new("/proc");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let pid = std::process::id();
        let stat = crate::stat::read_stat(&root, pid).unwrap();
        let mut place = place(pid, stat.start_ticks, Tells::History, Some(port));
        assert!(place.urls(&root).unwrap_err().contains("network of its own"));
        place.process.netns = own_netns(&root);
        let urls = place.urls(&root).unwrap();
        assert!(urls.contains(&format!("http://127.0.0.1:{port}").parse().unwrap()), "{urls:?}");
        place.process.key.start_ticks += 1;
        assert!(place.urls(&root).unwrap_err().contains("ended"));
    }
}
