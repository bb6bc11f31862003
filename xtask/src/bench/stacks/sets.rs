//! Under which flags the oracle's programs run, and which programs there.

/// Programs, flags and the versions of Java that know these.
pub struct Set {
    /// As `--sets` says it.
    pub name: &'static str,
    /// Flags of the JVM.
    pub flags: &'static [&'static str],
    /// Programs.
    pub programs: &'static [&'static str],
    /// First and last version with these flags.
    pub majors: (u32, u32),
}

const ALL: &[&str] = &[
    "deep10",
    "deep100",
    "deep300",
    "deep480",
    "lambdas",
    "streams",
    "inlined",
    "reflect",
    "privileged",
    "sort",
    "initialiser",
    "loader",
    "osr",
    "copy",
    "crc",
    "strings",
    "digest",
    "maths",
    "allocate",
    "exceptions",
    "deopt",
    "virtual",
    "thaw",
];
const SOME: &[&str] = &["deep300", "lambdas", "reflect", "sort", "initialiser", "exceptions"];
const INLINE: &[&str] = &["inlined", "lambdas", "deep100", "streams"];
const OF_COLLECTORS: &[&str] = &["deep100", "allocate", "lambdas"];

const fn set(name: &'static str, flags: &'static [&'static str], programs: &'static [&'static str]) -> Set {
    Set { name, flags, programs, majors: (8, u32::MAX) }
}

const fn since(first: u32, set: Set) -> Set {
    Set { majors: (first, set.majors.1), ..set }
}

const fn until(last: u32, set: Set) -> Set {
    Set { majors: (set.majors.0, last), ..set }
}

/// All there are.
pub const SETS: &[Set] = &[
    set("default", &[], ALL),
    set("interpreter", &["-Xint"], SOME),
    set("c1", &["-XX:TieredStopAtLevel=1"], SOME),
    set("c2", &["-XX:-TieredCompilation"], SOME),
    set(
        "inline",
        &[
            "-XX:CompileCommand=quiet",
            "-XX:CompileCommand=inline,Programs::*",
            "-XX:CompileCommand=inline,Oracle::leaf",
        ],
        INLINE,
    ),
    set("no-inline", &["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,*::*"], INLINE),
    set("pointers", &["-XX:+PreserveFramePointer"], SOME),
    since(9, set("one-heap", &["-XX:-SegmentedCodeCache"], SOME)),
    set("wide", &["-XX:-UseCompressedOops"], OF_COLLECTORS),
    // Every reflective call goes down through the JVM and up again.
    until(17, set("native-reflection", &["-Dsun.reflect.inflationThreshold=2147483647"], &["reflect"])),
    since(21, set("native-reflection", &["-Djdk.reflect.useNativeAccessorOnly=true"], &["reflect"])),
    set("serial", &["-XX:+UseSerialGC"], OF_COLLECTORS),
    set("parallel", &["-XX:+UseParallelGC"], OF_COLLECTORS),
    since(17, set("zgc", &["-XX:+UseZGC"], OF_COLLECTORS)),
];
