//! Types of recordings: those of the JDK and of async-profiler that matter here.

/// Types: number, name, fields as (name, type, in a pool, list, ticks).
pub(super) type Shape = (i64, &'static str, &'static [(&'static str, i64, bool, bool, bool)]);

pub(super) const LONG: i64 = 1001;
pub(super) const INT: i64 = 1002;
pub(super) const BOOLEAN: i64 = 1003;
pub(super) const STRING: i64 = 1004;
pub(super) const TRACE: i64 = 1010;
pub(super) const FRAME: i64 = 1011;
pub(super) const METHOD: i64 = 1012;
pub(super) const CLASS: i64 = 1013;
pub(super) const SYMBOL: i64 = 1014;
pub(super) const KIND: i64 = 1015;
pub(super) const STATE: i64 = 1016;
pub(super) const THREAD: i64 = 1017;
pub(super) const GROUP: i64 = 1018;
pub const EXECUTION: i64 = 101;
pub const NATIVE: i64 = 102;
pub const WALL: i64 = 103;
pub const CPU_TIME: i64 = 104;
pub const SETTING: i64 = 105;
pub const RECORDING: i64 = 106;
pub const ALLOCATION: i64 = 107;
pub const IN_TLAB: i64 = 108;
pub const OUTSIDE_TLAB: i64 = 109;
pub const MONITOR_ENTER: i64 = 110;
pub const PARK: i64 = 111;

pub(super) const SAMPLE: &[(&str, i64, bool, bool, bool)] = &[
    ("startTime", LONG, false, false, true),
    ("sampledThread", THREAD, true, false, false),
    ("stackTrace", TRACE, true, false, false),
    ("state", STATE, true, false, false),
];

pub(super) const SHAPES: [Shape; 24] = [
    (LONG, "long", &[]),
    (INT, "int", &[]),
    (BOOLEAN, "boolean", &[]),
    (STRING, "java.lang.String", &[]),
    (
        TRACE,
        "jdk.types.StackTrace",
        &[("truncated", BOOLEAN, false, false, false), ("frames", FRAME, false, true, false)],
    ),
    (
        FRAME,
        "jdk.types.StackFrame",
        &[
            ("method", METHOD, true, false, false),
            ("lineNumber", INT, false, false, false),
            ("bytecodeIndex", INT, false, false, false),
            ("type", KIND, true, false, false),
        ],
    ),
    (
        METHOD,
        "jdk.types.Method",
        &[
            ("type", CLASS, true, false, false),
            ("name", SYMBOL, true, false, false),
            ("descriptor", SYMBOL, true, false, false),
        ],
    ),
    (CLASS, "java.lang.Class", &[("name", SYMBOL, true, false, false)]),
    (SYMBOL, "jdk.types.Symbol", &[("string", STRING, false, false, false)]),
    (KIND, "jdk.types.FrameType", &[("description", STRING, false, false, false)]),
    (STATE, "jdk.types.ThreadState", &[("name", STRING, false, false, false)]),
    (
        THREAD,
        "java.lang.Thread",
        &[
            ("osName", STRING, false, false, false),
            ("javaName", STRING, false, false, false),
            ("group", GROUP, true, false, false),
        ],
    ),
    (GROUP, "jdk.types.ThreadGroup", &[("name", STRING, false, false, false)]),
    (EXECUTION, "jdk.ExecutionSample", SAMPLE),
    (NATIVE, "jdk.NativeMethodSample", SAMPLE),
    (
        WALL,
        "profiler.WallClockSample",
        &[
            ("startTime", LONG, false, false, true),
            ("sampledThread", THREAD, true, false, false),
            ("stackTrace", TRACE, true, false, false),
            ("state", STATE, true, false, false),
            ("samples", INT, false, false, false),
        ],
    ),
    (
        CPU_TIME,
        "jdk.CPUTimeSample",
        &[
            ("startTime", LONG, false, false, true),
            ("stackTrace", TRACE, true, false, false),
            ("eventThread", THREAD, true, false, false),
            ("failed", BOOLEAN, false, false, false),
            ("samplingPeriod", LONG, false, false, true),
        ],
    ),
    (
        SETTING,
        "jdk.ActiveSetting",
        &[
            ("startTime", LONG, false, false, true),
            ("id", LONG, false, false, false),
            ("name", STRING, false, false, false),
            ("value", STRING, false, false, false),
        ],
    ),
    (RECORDING, "jdk.ActiveRecording", &[("startTime", LONG, false, false, true)]),
    (
        ALLOCATION,
        "jdk.ObjectAllocationSample",
        &[
            ("startTime", LONG, false, false, true),
            ("eventThread", THREAD, true, false, false),
            ("stackTrace", TRACE, true, false, false),
            ("objectClass", CLASS, true, false, false),
            ("weight", LONG, false, false, false),
        ],
    ),
    (
        IN_TLAB,
        "jdk.ObjectAllocationInNewTLAB",
        &[
            ("startTime", LONG, false, false, true),
            ("eventThread", THREAD, true, false, false),
            ("stackTrace", TRACE, true, false, false),
            ("objectClass", CLASS, true, false, false),
            ("allocationSize", LONG, false, false, false),
            ("tlabSize", LONG, false, false, false),
        ],
    ),
    (
        OUTSIDE_TLAB,
        "jdk.ObjectAllocationOutsideTLAB",
        &[
            ("startTime", LONG, false, false, true),
            ("eventThread", THREAD, true, false, false),
            ("stackTrace", TRACE, true, false, false),
            ("objectClass", CLASS, true, false, false),
            ("allocationSize", LONG, false, false, false),
        ],
    ),
    (
        MONITOR_ENTER,
        "jdk.JavaMonitorEnter",
        &[
            ("startTime", LONG, false, false, true),
            ("duration", LONG, false, false, true),
            ("eventThread", THREAD, true, false, false),
            ("stackTrace", TRACE, true, false, false),
            ("monitorClass", CLASS, true, false, false),
            ("previousOwner", THREAD, true, false, false),
        ],
    ),
    (
        PARK,
        "jdk.ThreadPark",
        &[
            ("startTime", LONG, false, false, true),
            ("duration", LONG, false, false, true),
            ("eventThread", THREAD, true, false, false),
            ("stackTrace", TRACE, true, false, false),
            ("parkedClass", CLASS, true, false, false),
        ],
    ),
];
