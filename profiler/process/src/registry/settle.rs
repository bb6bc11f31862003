//! What processes learn from each other: applications from parents, from children (a Python that started
//! a driver), and names from the driver of the same application.

use super::entry::Entry;
use super::{Registry, Relabel};
use crate::identity::{Identity, Runtime, adopt_driver, with_parent};
use emberscope_model::{ProcessKey, Role};
use std::collections::HashMap;

/// Passes over all processes: as many as a family has generations, and one to see that all is quiet.
const MAX_PASSES: usize = 10;

/// What is known of an application.
#[derive(Clone, Debug)]
struct AppName {
    name: String,
    sure: bool,
    /// What it is a run of, as its driver's command line or environment says.
    run: Option<String>,
}

impl Registry {
    /// Settles every identity, and says whose labels changed.
    pub(super) fn settle_all(&mut self) -> Vec<Relabel> {
        let mut before = HashMap::new();
        self.judge();
        for _ in 0..MAX_PASSES {
            let names = self.app_names();
            let adopted = self.adopted();
            let changes: Vec<(ProcessKey, Identity)> = self
                .entries
                .iter()
                .map(|(key, entry)| (*key, entry, self.settle(entry, adopted.get(key), &names)))
                .filter(|(_, entry, settled)| *entry.settled != *settled)
                .map(|(key, _, settled)| (key, settled))
                .collect();
            if changes.is_empty() {
                break;
            }
            for (key, settled) in changes {
                if let Some(entry) = self.entries.get_mut(&key) {
                    let was = std::mem::replace(&mut *entry.settled, settled);
                    before.entry(key).or_insert(was);
                }
            }
        }
        self.entries.values_mut().for_each(|entry| entry.judged = true);
        self.asks.remember(self.entries.values());
        self.relabel(before)
    }

    fn relabel(&mut self, before: HashMap<ProcessKey, Identity>) -> Vec<Relabel> {
        let mut relabels = Vec::new();
        for (key, was) in before {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let from = entry.label(&self.config);
            // A driver that went on to another application: what it did before stays the former's.
            // One that never was the former's is put right.
            let same_app =
                was.app.is_none() || was.app == entry.settled.app || self.claims.disowns(key).is_some();
            // What a client had done for long before it connected is its own.
            let of_its_own = was.app.is_none() && entry.client_of.is_some_and(|of| of.late);
            if same_app && !of_its_own && from != entry.process.labels {
                relabels.push(Relabel { key, from, to: entry.process.labels.clone() });
            }
        }
        relabels.sort_by_key(|r| r.key);
        relabels
    }

    fn settle(&self, entry: &Entry, driver: Option<&Identity>, names: &HashMap<String, AppName>) -> Identity {
        let parent = entry.parent.and_then(|key| self.entries.get(&key)).map(|e| &*e.settled);
        let mut own = Identity::clone(&entry.own);
        apply_told(&mut own, entry);
        let disowned = self.claims.disowns(entry.process.key);
        if disowned.is_some() && own.app.as_deref() == disowned {
            own.disown();
        }
        let mut settled = with_parent(&own, parent);
        if let Some(driver) = driver {
            settled = adopt_driver(&settled, driver);
        }
        // Whoever told (a parent, a driver that ended) may be forgotten by now; what was told stays.
        let orphan = entry.parent.is_some() && parent.is_none() && settled.role != Role::Driver;
        let lost = settled.app.is_none() && entry.settled.app.is_some();
        let left = entry.client_of.is_some_and(|of| of.left);
        if (orphan || lost) && disowned.is_none() && !left {
            settled = Identity::clone(&entry.settled);
        }
        let known = settled.app.as_ref().and_then(|app| names.get(app));
        if let Some(known) = known
            && (known.sure && !settled.name_is_sure || settled.app_name.is_none())
        {
            settled.app_name = Some(known.name.clone());
            settled.name_is_sure = known.sure;
        }
        if settled.run.is_none() {
            settled.run = known.and_then(|known| known.run.clone());
        }
        settled
    }

    /// Drivers by the Python process that started them, or that they serve.
    fn adopted(&self) -> HashMap<ProcessKey, Identity> {
        let drivers = self.entries.values().filter(|e| e.settled.python_parent && e.settled.is_driver_jvm());
        let pairs = drivers.filter_map(|driver| {
            let parent = driver.parent?;
            let python = self.entries.get(&parent).is_some_and(|p| p.own.runtime == Runtime::Python);
            python.then(|| {
                (parent, driver.process.exited, driver.process.key, Identity::clone(&driver.settled))
            })
        });
        // A notebook may have had several JVMs: the one that lives, the newest.
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_by_key(|(_, exited, key, _)| (!exited, key.start_ticks));
        let mut drivers: HashMap<_, _> =
            pairs.into_iter().map(|(parent, _, _, driver)| (parent, driver)).collect();
        let clients = self.entries.iter().filter_map(|(key, e)| Some((key, e.client_of?)));
        for (key, of) in clients.filter(|(_, of)| !of.left) {
            if let Some(server) = self.entries.get(&of.server) {
                drivers.entry(*key).or_insert_with(|| Identity::clone(&server.settled));
            }
        }
        drivers
    }

    /// Names by application: what web servers told of their own, then what drivers' command lines say, or is sure.
    fn app_names(&self) -> HashMap<String, AppName> {
        let told = self
            .asks
            .names()
            .map(|(id, name)| (id.to_owned(), AppName { name: name.to_owned(), sure: true, run: None }));
        let mut names: HashMap<String, AppName> = told.collect();
        let knows = |identity: &&Identity| identity.is_driver_jvm() || identity.role == Role::AppMaster;
        for identity in self.entries.values().map(|e| &*e.settled).filter(knows) {
            if let (Some(app), Some(name)) = (&identity.app, &identity.app_name) {
                let run = identity.run.clone();
                let known = AppName { name: name.clone(), sure: identity.name_is_sure, run };
                let told = names.entry(app.clone()).or_insert_with(|| known.clone());
                if known.sure && !told.sure {
                    (told.name, told.sure) = (known.name, true);
                }
                told.run = told.run.take().or(known.run);
            }
        }
        names
    }
}

/// Adds what discovery found to what a driver says itself. In the order of trust: the executors' URL,
/// the process's own environment, its web server.
fn apply_told(own: &mut Identity, entry: &Entry) {
    let Some(told) = &entry.told else { return };
    if let Some(app) = &told.by_url {
        if own.role == Role::Other {
            // A program that made its own SparkContext, without spark-submit.
            own.role = Role::Driver;
        }
        own.app = None;
        own.set_app(app);
    }
    if let Some(rest) = &told.by_rest {
        if own.app.is_none() {
            own.set_app(&rest.id);
        }
        if own.app.as_deref() == Some(&rest.id) {
            own.app_name = Some(rest.name.clone()).filter(|n| !n.is_empty());
            own.name_is_sure = own.app_name.is_some();
            if !rest.user.is_empty() {
                own.spark_user = Some(rest.user.clone());
            }
        }
    }
}
