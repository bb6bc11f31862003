//! A builder as the teller sees it: what it is to read, and what it reads now.

use super::builder;
use emberscope_unwind::table::{Inode, Wanted};
use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;

/// A builder, and what it is to read.
pub struct Lane {
    /// Files to be read, in order.
    pub files: VecDeque<Box<Wanted>>,
    /// The file that is read now.
    busy: Option<Box<Wanted>>,
    jobs: SyncSender<builder::Job>,
    /// Bytes of unwind information of a file, at most.
    most: u64,
}

impl Lane {
    /// A builder that takes jobs of so many bytes by this channel.
    pub fn new(jobs: SyncSender<builder::Job>, most: u64) -> Self {
        Self { files: VecDeque::new(), busy: None, jobs, most }
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
        let file = self.files.pop_front()?;
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
        lane.files.extend([a.clone(), b.clone()]);
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
    fn what_a_builder_that_is_gone_does_not_take_comes_back() {
        let (jobs, queue) = sync_channel(1);
        drop(queue);
        let mut lane = Lane::new(jobs, 8);
        let a = file("a.so", 1);
        lane.files.push_back(a.clone());
        assert_eq!(lane.give_job().map(|file| file.inode), Some(a.inode.clone()));
        assert!(lane.take(&a.inode).is_none() && lane.give_job().is_none());
    }
}
