//! The runtimes that there are.

use super::{Runtime, RuntimeId};
use emberscope_target::maps::{Backing, Mapping};
use std::path::Path;
use std::sync::Arc;

/// All runtimes that are known here. A clone is the same.
#[derive(Clone, Default)]
pub struct Runtimes(Arc<[Box<dyn Runtime>]>);

impl Runtimes {
    /// These; a process that shows the marks of several is the first's.
    pub fn new(all: Vec<Box<dyn Runtime>>) -> Self {
        Self(all.into())
    }

    /// Each runtime, in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Runtime> {
        self.0.iter().map(|runtime| &**runtime)
    }

    /// A runtime by its number.
    pub fn get(&self, id: RuntimeId) -> Option<&dyn Runtime> {
        self.iter().find(|runtime| runtime.id() == id)
    }

    /// What in a mapped file's path shows each runtime.
    pub fn marks(&self) -> Vec<(RuntimeId, &'static str)> {
        self.iter().flat_map(|runtime| runtime.marks().iter().map(|mark| (runtime.id(), *mark))).collect()
    }

    /// Which of them a process with these mappings runs, and the file that shows it.
    pub fn recognise<'a>(&self, mappings: &'a [Mapping]) -> Option<(RuntimeId, &'a Path)> {
        self.iter().find_map(|runtime| {
            let shows = |path: &Path| {
                runtime.marks().iter().any(|mark| path.to_str().is_some_and(|path| path.contains(mark)))
            };
            let found = mappings.iter().find_map(|mapping| match &mapping.backing {
                Backing::File { path, .. } if shows(path) => Some(&**path),
                _ => None,
            });
            found.map(|path| (runtime.id(), path))
        })
    }
}

impl std::fmt::Debug for Runtimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|runtime| runtime.words().slug)).finish()
    }
}
