//! Where in a libjvm file threads can be seen naming themselves, allocating, and being stopped.

/// A file, wherever it is mounted: as `fstat` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Device number, as `st_dev`.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

/// A function that names the current thread, by its offset in the file in bytes (not its address).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameProbe {
    /// `os::set_native_thread_name(const char*)`: in the symbol table (.symtab) only. JDK 8 to 25, os_linux.cpp.
    NativeName {
        /// Bytes from the start of the file to the function's first instruction.
        offset: u64,
        /// The same of `JVM_SetNativeThreadName`, which calls it and has the thread's `JavaThread`; None: it is not there.
        by_java: Option<u64>,
    },
    /// `JVM_SetNativeThreadName(JNIEnv*, jobject thread, jstring name)`: exported, so it is in a stripped file too.
    /// Names come only of processes whose layout of Strings is known, and not those that the JVM gives at a thread's
    /// start. JDK 8 to 25, jvm.cpp.
    JavaName {
        /// Bytes from the start of the file to the function's first instruction.
        offset: u64,
    },
}

/// The functions to which HotSpot reports what threads allocate, by their offsets in the file in bytes (not
/// addresses): in the symbol table (.symtab) only. JDK 11 to 25, allocTracer.cpp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocProbe {
    /// Offset of `AllocTracer::send_allocation_in_new_tlab`.
    pub in_new_tlab: u64,
    /// Offset of `AllocTracer::send_allocation_outside_tlab`.
    pub outside_tlab: u64,
}

/// Functions that HotSpot's VM thread runs once a pause, by their offsets in the file in bytes (not addresses): in the
/// symbol table (.symtab) only. JDK 11 to 25, runtimeService.cpp and vmOperations.cpp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseProbe {
    /// Offset of `RuntimeService::record_safepoint_begin`.
    pub begin: u64,
    /// Its argument is for how long threads ran since the last pause, nanoseconds (JDK 14 on).
    pub since: bool,
    /// Offset of `VM_Operation::evaluate`.
    pub operation: u64,
    /// Offset of `RuntimeService::record_safepoint_end`.
    pub end: u64,
}
