//! Which processes here have web servers that tell of applications' stages and tasks: drivers of a known
//! application, and history servers. Published at each tick for whoever asks them ([`SparkNames`]).
//!
//! [`SparkNames`]: crate::SparkNames

use super::Registry;
use super::entry::Entry;
use crate::discovery::{Candidate, Place, Places, Tells};
use emberscope_model::{ProcessKey, Role};

impl Registry {
    /// Where Spark can be asked about its applications; a handle that stays true.
    pub fn places(&self) -> Places {
        self.places.clone()
    }

    pub(super) fn publish_places(&self) {
        let places = self.entries.iter().filter_map(|(key, entry)| self.place(*key, entry)).collect();
        self.places.publish(places);
    }

    /// A driver tells of the application that it is believed to be of. A history server that is a service of the
    /// cluster tells of any; another user's of that user's applications alone, as far as this node saw them.
    fn place(&self, key: ProcessKey, entry: &Entry) -> Option<Place> {
        let uid = entry.process.uid;
        let tells = match entry.settled.role {
            _ if entry.process.exited || !entry.judged => return None,
            Role::Driver if entry.settled.is_driver_jvm() => Tells::App(entry.settled.app.clone()?),
            Role::HistoryServer if self.is_cluster_user(entry) => Tells::History,
            Role::HistoryServer => {
                let own = self.claims.owners().filter(|(_, owner)| *owner == uid);
                let mut apps: Vec<String> = own.map(|(app, _)| app.clone()).collect();
                apps.sort_unstable();
                Tells::HistoryOf(apps)
            }
            _ => return None,
        };
        let process = Candidate { key, netns: entry.netns.clone(), uid };
        Some(Place { process, tells, ui_port: entry.own.ui_port })
    }
}
