//! Which processes here have web servers that tell of applications' stages and tasks: drivers of a known
//! application, and history servers. Published at each tick for whoever asks them ([`SparkNames`]).
//!
//! [`SparkNames`]: crate::process::SparkNames

use super::Registry;
use super::entry::Entry;
use crate::model::{ProcessKey, Role};
use crate::process::discovery::{Candidate, Place, Places, Tells};

impl Registry {
    /// Where Spark can be asked about its applications; a handle that stays true.
    pub fn places(&self) -> Places {
        self.places.clone()
    }

    pub(super) fn publish_places(&self) {
        self.places.publish(self.entries.iter().filter_map(|(key, entry)| place(*key, entry)).collect());
    }
}

fn place(key: ProcessKey, entry: &Entry) -> Option<Place> {
    let tells = match entry.settled.role {
        _ if entry.process.exited => return None,
        Role::Driver if entry.settled.is_driver_jvm() => Tells::App(entry.settled.app.clone()?),
        Role::HistoryServer => Tells::History,
        _ => return None,
    };
    let process = Candidate { key, netns: entry.netns.clone() };
    Some(Place { process, tells, ui_port: entry.own.ui_port })
}
