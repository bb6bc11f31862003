//! Names that are read in their files one by one.

use super::{At, Files, MAX_COMING, PATIENCE, Wanted, waits_its_turn};
use crate::frames::FrameTable;
use crate::native::{ModuleId, NameRead, Naming, Natives};
use emberscope_model::Frame;
use emberscope_target::errand::{About, Errand, Turned, errands};
use emberscope_target::open;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A name that is on its way.
pub(super) struct Name {
    of: (ModuleId, u64),
    generation: u64,
    file: Wanted<NameRead>,
}

impl Name {
    pub(super) fn since(&self) -> Instant {
        self.file.since
    }
}

fn read(At { dir, mapping }: At<'_>, naming: Naming, patience: Duration) -> Errand<NameRead> {
    let (of, what) = (dir.to_owned(), mapping.clone());
    let job = move || open::mapped_file(&of, &what).ok().and_then(|(file, _)| naming.read(&file));
    errands().run(About::file(dir, mapping), patience, job)
}

impl Files {
    /// Has a name read in its file, by what [`Natives::naming`] gave for it. None: it is on its way.
    ///
    /// # Errors
    /// [`Turned`], as [`Self::load`]; also where the file cannot be read.
    pub fn name(
        &mut self,
        of: (ModuleId, u64),
        naming: Naming,
        at: At<'_>,
        (natives, frames): (&mut Natives, &mut FrameTable),
    ) -> Result<Option<Arc<Frame>>, Turned> {
        let generation = natives.generation;
        if self.names.iter().any(|name| (name.of, name.generation) == (of, generation)) {
            return Ok(None);
        }
        if self.names.len() >= MAX_COMING {
            return Err(Turned::Busy);
        }
        let ticket = match read(at, naming, PATIENCE) {
            Errand::Done(Some(found)) => {
                return natives.take_name(of, found, frames).map(Some).ok_or(Turned::Failed);
            }
            Errand::Done(None) => return Err(Turned::Failed),
            Errand::Late(ticket) => Some(ticket),
            Errand::Turned(why) if waits_its_turn(why) => None,
            Errand::Turned(why) => return Err(why),
        };
        self.names.push(Name { of, generation, file: Wanted::of(at, ticket) });
        Ok(None)
    }

    /// Takes in the names that have come.
    pub(super) fn poll_names(&mut self, natives: &mut Natives, frames: &mut FrameTable) {
        self.names.retain_mut(|Name { of, generation, file }| {
            let Some(naming) = natives.naming(of.0, of.1).filter(|_| *generation == natives.generation)
            else {
                return false;
            };
            match file.poll(|at| read(at, naming, Duration::ZERO)) {
                Ok(None) => true,
                Ok(Some(found)) => {
                    found.map(|found| natives.take_name(*of, found, frames));
                    false
                }
                Err(_) => false,
            }
        });
    }
}
