//! A JVM's own list of its Java threads: memory in, native thread ids and names out.
//!
//! The list is `ThreadsSMRSupport::_java_thread_list` (an array) or `Threads::_thread_list` (linked; where
//! the former is not exported: JDK 8, many builds of 11). It changes while we read, and what it led to is
//! freed and used again, so each thread is believed only if its java.lang.Thread names it as its own
//! (`eetop`, the JavaThread's address, 0 once it has ended), and two readings within one [`Epoch`] agree.

mod list;
mod locks;

use super::fields::FieldTables;
use super::heap::{Epoch, Heap, Reference};
use super::problem::JvmProblem;
use super::strings::{Strings, Text};
use super::vm_structs::VmStructs;
use emberscope_target::memory::{Memory, Pages, at};
use list::List;
use locks::Owners;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Readings of one thread, or of the list, while it changes.
const MAX_TRIES: u32 = 8;
/// For all threads of a JVM: 37 took 2 ms in an unoptimised build, a collection may take 100.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Until a collector is looked at again.
const PAUSE: Duration = Duration::from_millis(1);

/// Where things are in one JVM: read once, as none of it changes.
#[derive(Clone, Copy, Debug)]
pub struct View {
    heap: Heap,
    strings: Strings,
    list: List,
    os_thread: u64,
    thread_id: u64,
    thread_object: u64,
    /// `_threadObj` is an OopHandle (JDK 15 on): one more step.
    by_handle: bool,
    eetop: u32,
    name: u32,
    /// 0: there is none.
    park_blocker: u32,
    owners: Owners,
}

/// A thread as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaThread {
    /// The thread's id in the JVM's own PID namespace.
    pub tid: u32,
    /// `Thread.getName()`, as far as `profiler_ebpf::MAX_NAME` bytes reach.
    pub name: String,
    /// ZGC may have moved the name meanwhile, and what was read have been something else's.
    pub unsure: bool,
}

/// The threads that were read, and those that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Threads with names.
    pub threads: Vec<JavaThread>,
    /// How many threads gave no sound name: they were ending, changed all the time, or time was up.
    pub unreadable: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    os_thread: u64,
    tid: u32,
    thread: Reference,
    text: Text,
}

impl View {
    /// Reads where things are; `address_of` knows where [`super::vm_structs::SYMBOLS`] are.
    ///
    /// # Errors
    /// [`JvmProblem::NoTables`]: libjvm exports no tables. [`JvmProblem::NotReady`]: the JVM is starting.
    /// [`JvmProblem::Missing`]: the tables do not tell where threads or Strings are. [`JvmProblem::Nonsense`]: a
    /// pointer leads nowhere. [`JvmProblem::Gone`], [`JvmProblem::Denied`]: memory cannot be read.
    pub fn read<M: Memory>(memory: &M, address_of: &dyn Fn(&str) -> Option<u64>) -> Result<Self, JvmProblem> {
        let memory = &Pages::of(memory);
        Self::of(memory, &VmStructs::read(memory, address_of)?)
    }

    /// The same, of tables that were read.
    ///
    /// # Errors
    /// As [`Self::read`], but for the tables themselves.
    pub(crate) fn of<M: Memory>(memory: &M, vm: &VmStructs) -> Result<Self, JvmProblem> {
        let fields = FieldTables::of(vm).ok_or(JvmProblem::Missing("the fields of Java classes"))?;
        let class =
            vm.address_ending("::Thread_klass_knum)]").or_else(|| vm.address_ending("::Thread_klass_knum]"));
        let class = memory.u64(class.ok_or(JvmProblem::Missing("the class Thread"))?)?;
        if class == 0 {
            return Err(JvmProblem::NotReady);
        }
        let field = |name, signature| match fields.offset(memory, class, name, signature) {
            Ok(offset) => offset.ok_or(JvmProblem::Missing("the fields of Thread")),
            Err(problem) => Err(problem),
        };
        let list = List::of(vm).ok_or(JvmProblem::Missing("its list of threads"))?;
        let os_thread = vm.offset("JavaThread::_osthread").or_else(|| vm.offset("Thread::_osthread"));
        let (Some(os_thread), Some(thread_id), Some(object)) =
            (os_thread, vm.offset("OSThread::_thread_id"), vm.field("JavaThread::_threadObj"))
        else {
            return Err(JvmProblem::Missing("what a thread has"));
        };
        let thread_object =
            vm.offset("JavaThread::_threadObj").ok_or(JvmProblem::Missing("what a thread has"))?;
        Ok(Self {
            heap: Heap::read(memory, vm)?,
            strings: Strings::read(memory, vm, &fields)?,
            list,
            os_thread,
            thread_id,
            thread_object,
            by_handle: &*object.type_name == "OopHandle",
            eetop: field("eetop", "J")?,
            name: field("name", "Ljava/lang/String;")?,
            park_blocker: field("parkBlocker", "Ljava/lang/Object;").unwrap_or(0),
            owners: Owners::of(vm),
        })
    }

    /// All threads that have a Java object.
    ///
    /// # Errors
    /// [`JvmProblem::NotReady`]: there is no list yet. [`JvmProblem::Busy`]: the collector kept all threads from being
    /// read. [`JvmProblem::Nonsense`]: the list makes no sense. [`JvmProblem::Gone`], [`JvmProblem::Denied`]: memory
    /// cannot be read. A thread that cannot be read is no error but counted.
    pub fn threads<M: Memory>(&self, memory: &M) -> Result<Snapshot, JvmProblem> {
        let mut all = Snapshot::default();
        let mut seen = HashSet::new();
        self.visit(memory, |reading| {
            match reading {
                Some(Reading { tid, thread, text, .. }) if seen.insert(tid) => {
                    let unsure = thread.stale || text.stale;
                    all.threads.push(JavaThread { tid, name: text.text, unsure });
                }
                _ => all.unreadable += 1,
            }
            true
        })?;
        Ok(all)
    }

    /// How Strings are laid out, learned from one that is a thread's name.
    ///
    /// # Errors
    /// As [`Self::threads`], and [`JvmProblem::NotReady`] where no thread's name could be read.
    pub fn string_layout<M: Memory>(&self, memory: &M) -> Result<emberscope_model::StringLayout, JvmProblem> {
        let mut found = None;
        self.visit(memory, |reading| {
            let eetop_offset = u16::try_from(self.eetop).unwrap_or(0);
            let layout = |r: &Reading| self.strings.layout(&self.heap, &r.text);
            found = reading.as_ref().map(|r| emberscope_model::StringLayout { eetop_offset, ..layout(r) });
            found.is_none()
        })?;
        found.ok_or(JvmProblem::NotReady)
    }

    /// Hands each thread that has a Java object to `reader`, until that says no. None: unreadable. Busy when
    /// all are because of the collector.
    fn visit<M: Memory>(
        &self,
        memory: &M,
        mut reader: impl FnMut(Option<Reading>) -> bool,
    ) -> Result<(), JvmProblem> {
        let deadline = Instant::now() + MAX_TIME;
        let (mut read, mut busy) = (false, false);
        for thread in self.list.read(memory)? {
            let settled = if Instant::now() < deadline {
                self.settled(memory, thread, deadline)
            } else {
                Err(JvmProblem::Busy)
            };
            busy |= settled == Err(JvmProblem::Busy);
            let reading = match settled {
                Ok(None) => continue,
                Ok(Some(reading)) => Some(reading),
                // It ended meanwhile, or was something else.
                Err(JvmProblem::Nonsense(_) | JvmProblem::Busy) => None,
                Err(problem) => return Err(problem),
            };
            read |= reading.is_some();
            if !reader(reading) {
                break;
            }
        }
        if busy && !read { Err(JvmProblem::Busy) } else { Ok(()) }
    }

    /// A reading that another one confirms; None for a thread without a Java object or name.
    fn settled<M: Memory>(
        &self,
        memory: &M,
        thread: u64,
        deadline: Instant,
    ) -> Result<Option<Reading>, JvmProblem> {
        let mut tries = 0;
        let mut last = Err(JvmProblem::Busy);
        while tries < MAX_TRIES {
            let epoch = self.heap.epoch(memory)?;
            if epoch.active {
                if Instant::now() >= deadline {
                    return Err(JvmProblem::Busy);
                }
                std::thread::sleep(PAUSE);
                continue;
            }
            tries += 1;
            last = self.reading(memory, thread, epoch);
            let again = self.reading(memory, thread, epoch);
            if last == again && self.heap.epoch(memory)? == epoch {
                return last;
            }
            last = Err(JvmProblem::Nonsense("it changed all the time"));
        }
        last
    }

    /// Where the reference is that is at this place, or behind the handle there.
    fn behind<M: Memory>(&self, memory: &M, place: u64) -> Result<u64, JvmProblem> {
        Ok(if self.by_handle { memory.u64(place)? } else { place })
    }

    fn reading<M: Memory>(&self, memory: &M, java: u64, epoch: Epoch) -> Result<Option<Reading>, JvmProblem> {
        let os_thread = memory.u64(at(java, self.os_thread)?)?;
        let slot = self.behind(memory, at(java, self.thread_object)?)?;
        if os_thread == 0 || slot == 0 {
            return Ok(None);
        }
        let tid = memory.u32(at(os_thread, self.thread_id)?)?;
        let thread = self.heap.root(memory, slot, epoch)?;
        if thread.address == 0 {
            return Ok(None);
        }
        let (object, _) = self.heap.object(memory, thread)?;
        if memory.u64(at(object, u64::from(self.eetop))?)? != java {
            return Err(JvmProblem::Nonsense("a thread whose object is another's"));
        }
        let name = self.heap.field(memory, at(object, u64::from(self.name))?, epoch)?;
        if name.address == 0 {
            return Ok(None);
        }
        let text = self.strings.text(memory, &self.heap, name, epoch, profiler_ebpf::MAX_NAME)?;
        let text = text.ok_or(JvmProblem::Nonsense("a name that is no String"))?;
        Ok(Some(Reading { os_thread, tid, thread, text }))
    }
}
