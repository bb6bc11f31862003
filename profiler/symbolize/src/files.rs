//! Files of targets on their way to a name: opened and read on threads that can be given up.
//!
//! In: a mapping whose file is wanted. Out: who the file is ([`Came`]) and the parts of it that its symbols are made of, at
//! once where that is quick, else a moment later: a [`FileSlot`] stands for it meanwhile, and what was sampled is named when
//! its window closes. A file that never comes costs its own frames: a dead file system has no more than a few threads, and
//! then is left alone (`target::errand`). At most [`MAX_COMING`] are on their way.

mod names;

use super::frames::FrameTable;
use super::native::{Loaded, ModuleId, ModuleKey, Natives, Reading};
use emberscope_target::errand::{About, Errand, Ticket, Turned, errands};
use emberscope_target::maps::{Backing, Mapping};
use emberscope_target::open::{self, Refusal};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long the sampling thread waits for a file: most are looked at within some ten microseconds. A libjvm's symbols take
/// 20 ms, and a JVM that starts brings a dozen libraries: for those it does not wait, else all that is new (how the JVM
/// itself is walked) would wait with it.
const PATIENCE: Duration = Duration::from_millis(2);
/// For so long a window that is over waits for files: most come at once, and one that never comes costs no more than that.
const SOON: Duration = Duration::from_secs(1);
/// How often a file whose turn has not come is tried again.
const AGAIN: Duration = Duration::from_millis(50);
/// Files that are on their way at once: more than there are threads.
const MAX_COMING: usize = 64;

/// What came of looking at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The file, and the generation of [`Natives`] in which it is known.
    Known(ModuleId, u64),
    /// It cannot be opened.
    Unreadable,
    /// Its turn did not come: it may at the next sample.
    NotNow,
}

/// A file that is on its way. Compared by identity.
#[derive(Clone, Debug, Default)]
pub struct FileSlot(Arc<OnceLock<Came>>);

impl FileSlot {
    /// The slot of a file that was looked at: of one whose symbols are on their way.
    pub fn of(came: Came) -> Self {
        Self(Arc::new(OnceLock::from(came)))
    }
    /// What the file was found to be, once that is known.
    pub fn get(&self) -> Option<Came> {
        self.0.get().copied()
    }
}

impl PartialEq for FileSlot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for FileSlot {}
impl Hash for FileSlot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// Where a file is mapped.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The process's directory in /proc.
    pub dir: &'a Path,
    /// The mapping of the file in that process.
    pub mapping: &'a Mapping,
}

/// The file is closed where it was opened: that may last, too.
type Looked = Result<ModuleKey, Refusal>;

/// A file that is wanted, and the thread's work on it; None: its turn has not come yet.
struct Wanted<T> {
    dir: PathBuf,
    mapping: Mapping,
    since: Instant,
    tried: Instant,
    ticket: Option<Ticket<T>>,
}

impl<T: Send + 'static> Wanted<T> {
    fn of(At { dir, mapping }: At<'_>, ticket: Option<Ticket<T>>) -> Self {
        let now = Instant::now();
        Self { dir: dir.to_owned(), mapping: mapping.clone(), since: now, tried: now, ticket }
    }

    fn at(&self) -> At<'_> {
        At { dir: &self.dir, mapping: &self.mapping }
    }

    /// What has come of it; None: nothing yet.
    ///
    /// # Errors
    /// [`Turned`]: nothing will come.
    fn poll(&mut self, job: impl FnOnce(At<'_>) -> Errand<T>) -> Result<Option<T>, Turned> {
        if let Some(ticket) = &self.ticket {
            return ticket.poll();
        }
        if self.tried.elapsed() < AGAIN {
            return Ok(None);
        }
        self.tried = Instant::now();
        match job(self.at()) {
            Errand::Done(done) => Ok(Some(done)),
            Errand::Late(ticket) => {
                self.ticket = Some(ticket);
                Ok(None)
            }
            Errand::Turned(why) if waits_its_turn(why) && self.since.elapsed() < SOON => Ok(None),
            Errand::Turned(why) => Err(why),
        }
    }
}

/// Whether a job that was not begun may be begun in a moment: others of its file system or user are out now.
fn waits_its_turn(why: Turned) -> bool {
    matches!(why, Turned::Slow | Turned::UserBusy | Turned::Busy)
}

struct Look {
    slot: FileSlot,
    file: Wanted<Looked>,
}

struct Load {
    id: ModuleId,
    generation: u64,
    file: Wanted<Loaded>,
}

/// Files that are looked at, and files whose symbols are read.
#[derive(Default)]
pub struct Files {
    looks: Vec<Look>,
    loads: Vec<Load>,
    names: Vec<names::Name>,
}

/// What is known of a file now.
pub enum Found {
    /// The file is this one.
    Known(ModuleId),
    /// The file cannot be opened.
    Unreadable,
    /// The file is being looked at.
    Coming(FileSlot),
    /// The file is not looked at now: too many are, or its file system is left alone.
    Later,
}

fn look(At { dir, mapping }: At<'_>, patience: Duration) -> Errand<Looked> {
    let (of, what) = (dir.to_owned(), mapping.clone());
    let job = move || -> Looked {
        let (file, stat) = open::mapped_file(&of, &what)?;
        Ok(ModuleKey::of(&file, &stat))
    };
    errands().run(About::file(dir, mapping), patience, job)
}

fn load(At { dir, mapping }: At<'_>, reading: Reading, patience: Duration) -> Errand<Loaded> {
    let path: Arc<Path> = match &mapping.backing {
        Backing::File { path, .. } => Arc::clone(path),
        Backing::Anonymous | Backing::Special(_) | Backing::Vdso => Path::new("").into(),
    };
    let (of, what) = (dir.to_owned(), mapping.clone());
    let job = move || match open::mapped_file(&of, &what) {
        Ok((file, _)) => reading.read(&file, &path),
        Err(_) => Loaded::NotOpened,
    };
    errands().run(About::file(dir, mapping), patience, job)
}

/// What came of looking at a file. One whose turn did not come is not unreadable: a busy moment must not cost a process the
/// names of a library for good.
fn came(mapping: &Mapping, outcome: Result<Looked, Turned>, natives: &mut Natives) -> Came {
    match outcome {
        Ok(Ok(key)) => Came::Known(natives.known(&mapping.module_name(), key), natives.generation),
        Ok(Err(_)) | Err(Turned::Failed) => Came::Unreadable,
        Err(_) => Came::NotNow,
    }
}

impl Files {
    /// Finds out which file is mapped.
    pub fn look(&mut self, at: At<'_>, natives: &mut Natives) -> Found {
        if self.looks.len() >= MAX_COMING {
            return Found::Later;
        }
        let ticket = match look(at, PATIENCE) {
            Errand::Done(Ok(key)) => return Found::Known(natives.known(&at.mapping.module_name(), key)),
            Errand::Done(Err(_)) => return Found::Unreadable,
            Errand::Late(ticket) => Some(ticket),
            Errand::Turned(why) if waits_its_turn(why) => None,
            Errand::Turned(_) => return Found::Later,
        };
        let slot = FileSlot::default();
        self.looks.push(Look { slot: slot.clone(), file: Wanted::of(at, ticket) });
        Found::Coming(slot)
    }

    /// Has the symbols of a file read. True: they are there, or it has none; false: they are on their way.
    ///
    /// # Errors
    /// [`Turned`]: too many files are on their way, those of this process, user or file system are left alone for a time,
    /// or the read panicked. Nothing is on its way then.
    pub fn load(&mut self, id: ModuleId, at: At<'_>, natives: &mut Natives) -> Result<bool, Turned> {
        self.load_within(PATIENCE, id, at, natives)
    }

    fn load_within(
        &mut self,
        patience: Duration,
        id: ModuleId,
        at: At<'_>,
        natives: &mut Natives,
    ) -> Result<bool, Turned> {
        let generation = natives.generation;
        if self.loads.iter().any(|load| (load.id, load.generation) == (id, generation)) {
            return Ok(false);
        }
        if self.loads.len() >= MAX_COMING {
            return Err(Turned::Busy);
        }
        let ticket = match load(at, natives.reading(id), patience) {
            Errand::Done(loaded) => {
                natives.take(id, loaded);
                return Ok(true);
            }
            Errand::Late(ticket) => Some(ticket),
            Errand::Turned(why) if waits_its_turn(why) => None,
            Errand::Turned(why) => return Err(why),
        };
        self.loads.push(Load { id, generation, file: Wanted::of(at, ticket) });
        Ok(false)
    }

    /// Whether a file may come in a moment.
    pub fn are_coming(&self) -> bool {
        let files =
            self.looks.iter().map(|it| it.file.since).chain(self.loads.iter().map(|it| it.file.since));
        let mut since = files.chain(self.names.iter().map(names::Name::since));
        since.any(|since| since.elapsed() < SOON)
    }

    /// Takes in what has come, and begins what waited for its turn.
    pub fn poll(&mut self, natives: &mut Natives, frames: &mut FrameTable) {
        self.poll_names(natives, frames);
        self.loads.retain_mut(|Load { id, generation, file }| {
            match file.poll(|at| load(at, natives.reading(*id), Duration::ZERO)) {
                Ok(None) => true,
                Ok(Some(loaded)) => {
                    if *generation == natives.generation {
                        natives.take(*id, loaded);
                    }
                    false
                }
                Err(_) => false,
            }
        });
        for mut it in std::mem::take(&mut self.looks) {
            let Some(outcome) = it.file.poll(|at| look(at, Duration::ZERO)).transpose() else {
                self.looks.push(it);
                continue;
            };
            let came = came(&it.file.mapping, outcome, natives);
            let _ = it.slot.0.set(came);
            if let Came::Known(id, _) = came
                && natives.wants_file(id)
            {
                let _ = self.load_within(Duration::ZERO, id, it.file.at(), natives);
            }
        }
    }
}

#[cfg(test)]
mod tests;
