//! Files of targets on their way to a name: opened and read on threads that can be given up.
//!
//! In: a mapping whose file is wanted. Out: who the file is ([`Known`]) and the parts of it that its symbols are made of, at
//! once where that is quick, else a moment later: a [`FileSlot`] stands for it meanwhile, and what was sampled is named when
//! its window closes. A file that never comes costs its own frames: a dead file system has no more than a few threads, and
//! then is left alone (`target::errand`). At most [`MAX_COMING`] are on their way.

use super::native::{Loaded, ModuleId, ModuleKey, Natives};
use emberscope_target::errand::{About, Errand, Ticket, Turned, errands};
use emberscope_target::maps::{Backing, Mapping};
use emberscope_target::open::{self, Refusal};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long the sampling thread waits for a file, where it did not wait much lately. A libjvm's symbols take 20 ms.
const PATIENCE: Duration = Duration::from_millis(100);
/// Files that are on their way at once: more than there are threads.
const MAX_COMING: usize = 64;

/// A file and the generation of [`Natives`] in which it is known; None: it cannot be opened.
pub type Known = Option<(ModuleId, u64)>;

/// A file that is on its way. Compared by identity.
#[derive(Clone, Debug, Default)]
pub struct FileSlot(Arc<OnceLock<Known>>);

impl FileSlot {
    /// The slot of a file that is known, whose symbols are on their way.
    pub fn of(known: Known) -> Self {
        Self(Arc::new(OnceLock::from(known)))
    }
    /// What the file was found to be, once that is known.
    pub fn get(&self) -> Option<Known> {
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

struct Look {
    slot: FileSlot,
    dir: PathBuf,
    mapping: Mapping,
    ticket: Ticket<Looked>,
}

/// Files that are looked at, and files whose symbols are read.
#[derive(Default)]
pub struct Files {
    looks: Vec<Look>,
    loads: Vec<(ModuleId, u64, Ticket<Loaded>)>,
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

impl Files {
    /// Finds out which file is mapped.
    pub fn look(&mut self, at: At<'_>, natives: &mut Natives) -> Found {
        let At { dir, mapping } = at;
        if self.looks.len() >= MAX_COMING {
            return Found::Later;
        }
        let (of, what) = (dir.to_owned(), mapping.clone());
        let job = move || -> Looked {
            let (file, stat) = open::mapped_file(&of, &what)?;
            Ok(ModuleKey::of(&file, &stat))
        };
        match errands().run(About::file(dir, mapping), PATIENCE, job) {
            Errand::Done(Ok(key)) => Found::Known(natives.known(&mapping.module_name(), key)),
            Errand::Done(Err(_)) => Found::Unreadable,
            Errand::Late(ticket) => {
                let slot = FileSlot::default();
                let (dir, mapping) = (dir.to_owned(), mapping.clone());
                self.looks.push(Look { slot: slot.clone(), dir, mapping, ticket });
                Found::Coming(slot)
            }
            Errand::Turned(_) => Found::Later,
        }
    }

    /// Has the symbols of a file read. True: they are there, or it has none; false: they are on their way.
    ///
    /// # Errors
    /// [`Turned`]: too many reads are out, those of this process, user or file system are left alone for a time, or
    /// the read panicked. Nothing is on its way then.
    pub fn load(&mut self, id: ModuleId, at: At<'_>, natives: &mut Natives) -> Result<bool, Turned> {
        self.load_within(PATIENCE, id, at, natives)
    }

    fn load_within(
        &mut self,
        patience: Duration,
        id: ModuleId,
        At { dir, mapping }: At<'_>,
        natives: &mut Natives,
    ) -> Result<bool, Turned> {
        let generation = natives.generation;
        if self.loads.iter().any(|(of, when, _)| (*of, *when) == (id, generation)) {
            return Ok(false);
        }
        if self.loads.len() >= MAX_COMING {
            return Err(Turned::Busy);
        }
        let path: Box<Path> = match &mapping.backing {
            Backing::File { path, .. } => path.clone(),
            Backing::Anonymous | Backing::Special(_) | Backing::Vdso => Path::new("").into(),
        };
        let (of, what, reading) = (dir.to_owned(), mapping.clone(), natives.reading(id));
        let job = move || match open::mapped_file(&of, &what) {
            Ok((file, _)) => reading.read(&file, &path),
            Err(_) => Loaded::NotOpened,
        };
        match errands().run(About::file(dir, mapping), patience, job) {
            Errand::Done(loaded) => {
                natives.take(id, loaded);
                Ok(true)
            }
            Errand::Late(ticket) => {
                self.loads.push((id, generation, ticket));
                Ok(false)
            }
            Errand::Turned(why) => Err(why),
        }
    }

    /// Takes in what has come.
    pub fn poll(&mut self, natives: &mut Natives) {
        if self.looks.is_empty() && self.loads.is_empty() {
            return;
        }
        self.loads.retain(|(id, generation, ticket)| match ticket.poll() {
            Ok(None) => true,
            Ok(Some(loaded)) => {
                if *generation == natives.generation {
                    natives.take(*id, loaded);
                }
                false
            }
            Err(_) => false,
        });
        for look in std::mem::take(&mut self.looks) {
            match look.ticket.poll() {
                Ok(None) => self.looks.push(look),
                Ok(Some(Ok(key))) => {
                    let id = natives.known(&look.mapping.module_name(), key);
                    let _ = look.slot.0.set(Some((id, natives.generation)));
                    if natives.wants_file(id) {
                        let at = At { dir: &look.dir, mapping: &look.mapping };
                        let _ = self.load_within(Duration::ZERO, id, at, natives);
                    }
                }
                Ok(Some(Err(_))) | Err(_) => {
                    let _ = look.slot.0.set(None);
                }
            }
        }
    }
}
