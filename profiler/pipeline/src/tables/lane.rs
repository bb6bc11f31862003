//! A builder as the teller sees it: what it is to read, in which order, and what it reads now.

use super::builder;
use emberscope_unwind::table::{Inode, Wanted};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::SyncSender;

/// Whose files are read first; of one rank the one that was wanted first. Compilers map new files all the time, and are sampled:
/// of theirs none goes before one that waits longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A process of Spark's has it.
    Spark,
    /// A process that was sampled has it.
    Sampled,
    /// Another one.
    Other,
}

impl Rank {
    /// Of a process's files, by whether it is Spark's and whether it was sampled.
    pub fn of(spark: bool, sampled: bool) -> Self {
        match (spark, sampled) {
            (true, _) => Self::Spark,
            (false, true) => Self::Sampled,
            (false, false) => Self::Other,
        }
    }
}

/// A builder, and what it is to read.
pub struct Lane {
    /// Files to be read, in order.
    files: BTreeMap<(Rank, u64), Box<Wanted>>,
    /// Where they are in it.
    places: HashMap<Inode, (Rank, u64)>,
    /// Files that were added.
    added: u64,
    /// The file that is read now.
    busy: Option<Box<Wanted>>,
    jobs: SyncSender<builder::Job>,
    /// Bytes of unwind information of a file, at most.
    most: u64,
}

impl Lane {
    /// A builder that takes jobs of so many bytes by this channel.
    pub fn new(jobs: SyncSender<builder::Job>, most: u64) -> Self {
        Self { files: BTreeMap::new(), places: HashMap::new(), added: 0, busy: None, jobs, most }
    }

    /// Adds a file that the lane does not have.
    pub fn add(&mut self, rank: Rank, file: Box<Wanted>) {
        self.added += 1;
        self.places.insert(file.inode.clone(), (rank, self.added));
        self.files.insert((rank, self.added), file);
    }

    /// A file is wanted by a process of this rank too.
    pub fn raise(&mut self, inode: &Inode, rank: Rank) {
        let Some(place) = self.places.get_mut(inode).filter(|place| place.0 > rank) else { return };
        if let Some(file) = self.files.remove(place) {
            place.0 = rank;
            self.files.insert(*place, file);
        }
    }

    /// The files that wait, the one that would be read last first.
    pub fn last_first(&self) -> impl Iterator<Item = &Inode> {
        self.files.values().rev().map(|file| &file.inode)
    }

    /// A file is not to be read.
    pub fn forget(&mut self, inode: &Inode) {
        if let Some(place) = self.places.remove(inode) {
            self.files.remove(&place);
        }
    }

    /// The file that was read, if this builder read it.
    pub fn take(&mut self, inode: &Inode) -> Option<Box<Wanted>> {
        self.busy.take_if(|file| file.inode == *inode)
    }

    /// Has the builder read the next file, if it does nothing. The answer: a file that it does not take, which is wanted
    /// again with its process's next look.
    pub fn give_job(&mut self) -> Option<Box<Wanted>> {
        if self.busy.is_some() {
            return None;
        }
        let (_, file) = self.files.pop_first()?;
        self.places.remove(&file.inode);
        // It is gone, or slow to take.
        match self.jobs.try_send((file.clone(), self.most)) {
            Ok(()) => {
                self.busy = Some(file);
                None
            }
            Err(_) => Some(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberscope_target::maps;
    use std::sync::mpsc::sync_channel;

    fn file(name: &str, inode: u64) -> Box<Wanted> {
        let line = format!("1000-2000 r-xp 00000000 fe:00 {inode} /lib/{name}\n");
        let mapping = maps::with(line.as_bytes(), |_| true).next().unwrap();
        let inode = Inode::of(&mapping).unwrap();
        Box::new(Wanted { dir: "/proc/7".into(), mapping, inode })
    }

    #[test]
    fn one_file_at_a_time_and_each_builder_its_own() {
        let (jobs, queue) = sync_channel(1);
        let mut lane = Lane::new(jobs, 8);
        let (a, b) = (file("a.so", 1), file("b.so", 2));
        lane.add(Rank::Other, a.clone());
        lane.add(Rank::Other, b.clone());
        assert!(lane.give_job().is_none() && lane.give_job().is_none());
        let (job, most) = queue.try_recv().unwrap();
        assert_eq!((&job.inode, most), (&a.inode, 8));
        assert!(queue.try_recv().is_err(), "it reads one");
        assert!(lane.take(&b.inode).is_none(), "another builder's, or none");
        assert_eq!(lane.take(&a.inode).map(|file| file.inode), Some(a.inode.clone()));
        assert!(lane.give_job().is_none());
        assert_eq!(queue.try_recv().unwrap().0.inode, b.inode);
    }

    #[test]
    fn sparks_come_first_and_those_of_one_rank_in_turn() {
        let (jobs, queue) = sync_channel(1);
        let mut lane = Lane::new(jobs, 8);
        let files: Vec<_> = ["other", "first", "spark", "second", "raised"]
            .into_iter()
            .zip(1..)
            .map(|(name, inode)| file(name, inode))
            .collect();
        let ranks = [Rank::Other, Rank::Sampled, Rank::Spark, Rank::Sampled, Rank::Other];
        for (file, rank) in files.iter().zip(ranks) {
            lane.add(rank, file.clone());
        }
        lane.raise(&files[4].inode, Rank::Sampled);
        // Who has one that is read sooner anyway changes nothing, nor does one that nobody knows.
        lane.raise(&files[2].inode, Rank::Other);
        lane.raise(&file("unknown", 9).inode, Rank::Spark);
        let gone = file("gone", 8);
        lane.add(Rank::Other, gone.clone());
        let last: Vec<_> = lane.last_first().collect();
        assert_eq!((last[0], last[1], last.len()), (&gone.inode, &files[0].inode, 6));
        lane.forget(&gone.inode);
        let mut read = Vec::new();
        while lane.give_job().is_none()
            && let Ok((job, _)) = queue.try_recv()
        {
            read.push(job.mapping.module_name());
            lane.take(&job.inode);
        }
        assert_eq!(read, ["spark", "first", "second", "raised", "other"]);
        assert!(lane.places.is_empty());
    }

    #[test]
    fn what_a_builder_that_is_gone_does_not_take_comes_back() {
        let (jobs, queue) = sync_channel(1);
        drop(queue);
        let mut lane = Lane::new(jobs, 8);
        let a = file("a.so", 1);
        lane.add(Rank::Other, a.clone());
        assert_eq!(lane.give_job().map(|file| file.inode), Some(a.inode.clone()));
        assert!(lane.take(&a.inode).is_none() && lane.give_job().is_none());
    }
}
