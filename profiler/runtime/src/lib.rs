//! Language runtimes: what each must do so that its processes are known, its stacks walked and its frames named.
//!
//! A [`Runtime`] recognises its processes and opens them; an [`Opened`] one tells what the kernel's walker must know
//! ([`Layout`]), names the frames that the walker deferred ([`DeferredFrame`]), and says what it is ([`Facts`]). The
//! [`Runtimes`] are chosen once, by the pipeline; [`Readers`] hold each process open once, whatever is read of it, on
//! threads that may wait. Nothing of a runtime is known here, and what cannot be read or named is a [`Problem`] or a reason,
//! never a guess.

mod deferred;
mod facts;
mod layout;
mod problem;
mod readers;
mod registry;

pub use deferred::{Answer, DeferredFrame, Meaning};
use emberscope_model::{
    AllocProbe, FileId, NameProbe, PauseProbe, StackEnd, StringLayout, Tid, UnknownReason,
};
use emberscope_target::errand::Held;
pub use facts::{Fact, Facts};
pub use layout::Layout;
pub use problem::Problem;
pub use profiler_ebpf::RuntimeId;
use profiler_ebpf::UserFrame;
pub use readers::{Again, Readers};
pub use registry::Runtimes;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// A runtime. One value for all its processes; used by several threads.
pub trait Runtime: Send + Sync {
    /// The runtime's number, in frames and layouts.
    fn id(&self) -> RuntimeId;

    /// What the runtime is called, and the reasons and sentences that it gives.
    fn words(&self) -> &'static Words;

    /// Texts in the path of a mapped file, each of which shows that a process runs it: `/libjvm.so`. Looked for in
    /// /proc/PID/maps; whether it is so is found out by [`Self::open`].
    fn marks(&self) -> &'static [&'static str];

    /// Opens a process. May wait for the process's memory and files.
    ///
    /// # Errors
    /// [`Problem::Gone`]: it ended. [`Problem::NotNow`]: it starts, say, and is tried again. [`Problem::Never`]: it
    /// is none that is read.
    fn open(&self, dir: &Path, start_ticks: u64) -> Result<Box<dyn Opened>, Problem>;

    /// For how long a deferred frame means what it meant.
    fn meaning(&self, frame: &DeferredFrame) -> Meaning;

    /// A number for what a deferred frame's name is read from, where the process may drop that at any moment: its names are
    /// read soon after it is first met. None: it lasts long, whatever the process does.
    fn passing(&self, _frame: &DeferredFrame) -> Option<u64> {
        None
    }

    /// A stack's user frames, innermost first, in the order in which they called each other, where the walker sends them in
    /// another. None: as they came.
    fn arranged(&self, _user: &[UserFrame], _end: StackEnd) -> Option<Vec<UserFrame>> {
        None
    }
}

/// A process of a runtime that was opened, until it ends or runs another program. Used by one thread at a time; each call
/// may wait for the process's memory.
pub trait Opened: Send {
    /// What the kernel's walker must know of the process, without an incarnation.
    ///
    /// # Errors
    /// [`Problem::NotNow`], [`Problem::Never`] or [`Problem::Gone`]: why the walker cannot know it.
    fn layout(&mut self) -> Result<Layout, Problem>;

    /// Names frames: as many answers as there are frames.
    fn name(&mut self, frames: &[DeferredFrame]) -> Vec<Answer>;

    /// What the process says of itself.
    ///
    /// # Errors
    /// [`Problem::NotNow`], [`Problem::Never`] or [`Problem::Gone`]: why its frames cannot be named.
    fn facts(&mut self) -> Result<Facts, Problem>;

    /// What the process has counted since it began, by names of [`Words::counts`]. What it does not tell, or not yet, is left
    /// out; a count that begins anew is smaller than it was.
    fn counts(&mut self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// So many processes are held open, between which the memory for what is kept of each is divided.
    fn share(&mut self, _held: usize) {}

    /// Where the process's namings of threads can be seen. Asked for only where [`Words::names_threads`].
    ///
    /// # Errors
    /// [`Problem::Never`], as here: the runtime has none. Else why that cannot be read.
    fn library(&mut self) -> Result<Library, Problem> {
        Err(Problem::Never("this runtime gives its threads no names of its own".to_owned()))
    }

    /// Full names of the process's threads. Asked for only where [`Words::names_threads`].
    ///
    /// # Errors
    /// Why the process's list of threads cannot be read.
    fn thread_names(&mut self) -> Result<Vec<(Tid, String)>, Problem> {
        Ok(Vec::new())
    }
}

/// A runtime's slug, reasons and sentences.
#[derive(Debug)]
pub struct Words {
    /// Stable short name.
    pub slug: &'static str,
    /// The runtime names its threads, and what its threads use is told.
    pub names_threads: bool,
    /// A frame whose name could not be read.
    pub unread: UnknownReason,
    /// How a stack ends that was followed by frame pointers before the walker knew the process.
    pub not_ready: StackEnd,
    /// The same where the walker never will.
    pub not_known: StackEnd,
    /// The state of a process that is being looked at.
    pub opening: &'static str,
    /// The state of one whose layout the walker has.
    pub walked: &'static str,
    /// The state of one that is followed by frame pointers only, before the cause.
    pub by_frame_pointers: &'static str,
    /// The facts that its processes tell, for those that were not read yet.
    pub facts: &'static [&'static str],
    /// What its processes count of themselves ([`Opened::counts`]).
    pub counts: &'static [&'static str],
}

/// The file by which a runtime names threads, and where in it namings can be seen.
#[derive(Debug)]
pub struct Library {
    /// The file's identity, by which probes are kept.
    pub id: FileId,
    /// The file, held open.
    pub file: Held,
    /// Where in the file namings can be seen; or why the file does not tell.
    pub probe: Result<NameProbe, &'static str>,
    /// How the process lays out strings, where the probe needs to know.
    pub strings: Option<StringLayout>,
    /// Where its threads can be seen allocating; or why the file does not tell.
    pub allocations: Result<AllocProbe, &'static str>,
    /// Where its threads can be seen being stopped, and what is done then: names by the words that tell it; or why the file
    /// does not tell.
    pub pauses: Result<(PauseProbe, HashMap<u64, Arc<str>>), &'static str>,
}
