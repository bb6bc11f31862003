//! Named frames.

use std::sync::Arc;

/// What kind of code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// Code of the kernel or of one of its modules.
    Kernel,
    /// Machine code of an executable or library.
    Native,
    /// Java, compiled by the JIT (also when nothing tells which tier).
    JavaCompiled,
    /// Java, inlined into the compiled frame below it.
    JavaInlined,
    /// Java, interpreted.
    JavaInterpreted,
    /// A JVM's generated stub: interpreter, adapters, intrinsics.
    Stub,
    /// A function of Python.
    Python,
    /// No code: a Java class, of what a thread allocated.
    Class,
    /// No name could be given; the name is `[unknown: reason]`.
    Unknown,
    /// No code: a prefix `key=value` of a grouped answer, or the root of a tree.
    Label,
}

impl FrameKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::Kernel,
        Self::Native,
        Self::JavaCompiled,
        Self::JavaInlined,
        Self::JavaInterpreted,
        Self::Stub,
        Self::Python,
        Self::Class,
        Self::Unknown,
        Self::Label,
    ];
    /// The kind with this short name.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
    }
    /// Stable short name, for JSON and the store.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Native => "native",
            Self::JavaCompiled => "java",
            Self::JavaInlined => "java-inlined",
            Self::JavaInterpreted => "java-interpreted",
            Self::Stub => "stub",
            Self::Python => "python",
            Self::Class => "class",
            Self::Unknown => "unknown",
            Self::Label => "label",
        }
    }
    /// The suffix of `&annotate=1`, as async-profiler writes it: `_[j]` compiled, `_[i]` inlined,
    /// `_[0]` interpreted, `_[k]` kernel, none for native.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Kernel => "_[k]",
            Self::JavaCompiled => "_[j]",
            Self::JavaInlined => "_[i]",
            Self::JavaInterpreted => "_[0]",
            Self::Native | Self::Stub | Self::Python | Self::Class | Self::Unknown | Self::Label => "",
        }
    }
}

/// Why a frame has no name. Each is a stable slug; the frame's name is `[unknown: slug]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnknownReason {
    /// The address lies in no mapping of the process that we know.
    NoMapping,
    /// The process ended before its mappings could be read, or before the JVM could be asked for names.
    ProcessGone,
    /// The mapping's file could not be opened or is not what it was.
    FileUnreadable,
    /// The file has no symbol that covers the address (the name says module and offset instead where
    /// the module is known; this is for mappings without a file).
    NoSymbol,
    /// Executable memory without a file, of a process that is no JVM we know.
    AnonymousCode,
    /// JIT code of a JVM whose memory does not tell, and no perf map names it (yet).
    NoPerfMap,
    /// JIT code that was sampled before we knew the JVM, in its first moments or ours, and no perf map names it.
    JvmNotReady,
    /// JIT code, a perf map is there, and it has no entry for the address.
    NotInPerfMap,
    /// This JVM cannot be asked (JDK 8 or 11 without a map, another user, switched off).
    JvmNotAsked,
    /// The kernel's symbols are hidden (kptr_restrict) or the address is in no module.
    KernelSymbol,
    /// The stack's record was lost (ring full).
    StackLost,
    /// A table was full; the detail was dropped to stay inside the memory limit.
    TableFull,
    /// Java code whose method is gone: the JVM unloaded or replaced it before its name was read. The frame is
    /// named `[unloaded]`.
    Unloaded,
    /// The JVM's memory could not be read, or made no sense where the name should be.
    JvmUnreadable,
    /// Reading the file or the process made the daemon fail: it is left alone for a time.
    Quarantined,
    /// The file was not read in time: its file system does not answer, or much is read for its user.
    FileLate,
    /// A Python function whose code object was freed before its name was read.
    PythonCodeGone,
    /// The interpreter's memory could not be read, or made no sense where the name should be.
    PythonUnreadable,
    /// The daemon had no file descriptor left to read the process, or the machine no memory.
    DaemonExhausted,
}

impl UnknownReason {
    /// All reasons.
    pub const ALL: &'static [Self] = &[
        Self::NoMapping,
        Self::ProcessGone,
        Self::FileUnreadable,
        Self::NoSymbol,
        Self::AnonymousCode,
        Self::NoPerfMap,
        Self::JvmNotReady,
        Self::NotInPerfMap,
        Self::JvmNotAsked,
        Self::KernelSymbol,
        Self::StackLost,
        Self::TableFull,
        Self::Unloaded,
        Self::JvmUnreadable,
        Self::Quarantined,
        Self::FileLate,
        Self::PythonCodeGone,
        Self::PythonUnreadable,
        Self::DaemonExhausted,
    ];
    /// The reason with this short name.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.slug() == slug)
    }
    /// Stable short name, for metrics and the frame's name.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::NoMapping => "no mapping",
            Self::ProcessGone => "process gone",
            Self::FileUnreadable => "file unreadable",
            Self::NoSymbol => "no symbol",
            Self::AnonymousCode => "anonymous code",
            Self::NoPerfMap => "no perf map",
            Self::JvmNotReady => "jvm not ready",
            Self::NotInPerfMap => "not in perf map",
            Self::JvmNotAsked => "jvm not asked",
            Self::KernelSymbol => "kernel symbol",
            Self::StackLost => "stack lost",
            Self::TableFull => "table full",
            Self::Unloaded => "unloaded",
            Self::JvmUnreadable => "jvm unreadable",
            Self::Quarantined => "quarantined",
            Self::FileLate => "file late",
            Self::PythonCodeGone => "python code gone",
            Self::PythonUnreadable => "python unreadable",
            Self::DaemonExhausted => "daemon exhausted",
        }
    }
}

/// A named frame. Interned: two frames that are equal share one allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What kind of code the frame is.
    pub kind: FrameKind,
    /// The name people read: `package.Class.method`, a demangled native symbol, `lib.so+0x12` where
    /// the file has no symbol for it, or `[unknown: reason]`.
    pub name: Arc<str>,
    /// Library, executable or kernel module; empty when there is none.
    pub module: Arc<str>,
    /// Java signature or other detail that the name leaves out.
    pub signature: Option<Arc<str>>,
    /// Source line; 0 when not known.
    pub line: u32,
    /// Method and line rest on debug info borrowed from near by: the JVM keeps none for this instruction.
    pub approximate: bool,
    /// Why the frame has no name; None: it has one.
    pub unknown: Option<UnknownReason>,
}

impl Frame {
    /// A frame with a kind, a name and a module.
    pub fn new(kind: FrameKind, name: impl Into<Arc<str>>, module: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            name: name.into(),
            module: module.into(),
            signature: None,
            line: 0,
            approximate: false,
            unknown: None,
        }
    }
    /// A frame that could not be named. `module` may say where it lies.
    pub fn unknown(reason: UnknownReason, module: impl Into<Arc<str>>) -> Self {
        Self {
            kind: FrameKind::Unknown,
            name: match reason {
                UnknownReason::Unloaded => "[unloaded]".into(),
                _ => format!("[unknown: {}]", reason.slug()).into(),
            },
            module: module.into(),
            signature: None,
            line: 0,
            approximate: false,
            unknown: Some(reason),
        }
    }
}
