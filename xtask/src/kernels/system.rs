//! The guest's system: an ext4 image with busybox, the daemon, the programs of known stacks, a JDK, and Spark where it is asked for.
//!
//! In: the release binary and the machine's JDK. Out: an image, which all guests read and none writes, and the
//! directory of the programs, which the machine's own kernel is checked with. Libraries are those that `ldd` names, at
//! the paths where they are here, so that the guest runs what this machine runs; for another architecture they are those
//! of Debian's packages ([`super::foreign`]).

use super::foreign;
use crate::arch::Arch;
use crate::setup::python;
use crate::{places, root, step};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHECK: &str = include_str!("check.sh");
/// As in `tests/capture.rs`.
const C_FLAGS: [&str; 4] = ["-O1", "-fno-toplevel-reorder", "-fno-optimize-sibling-calls", "-pthread"];
/// What a JDK has and no program here needs.
const LEFT_OUT: [&str; 9] =
    ["jmods", "src.zip", "docs", "man", "include", "legal", "demo", "sample", "ct.sym"];
/// Room beside the files.
const SLACK: u64 = 64 << 20;

/// What there is to boot and run.
#[derive(Clone, Debug)]
pub struct System {
    /// What it is for.
    pub arch: Arch,
    /// Its busybox, which needs no library.
    pub busybox: PathBuf,
    /// The image.
    pub image: PathBuf,
    /// The daemon, the programs and the script.
    pub tools: PathBuf,
    /// The script that runs them.
    pub check: PathBuf,
}

/// What it holds beside the daemon and the native program.
#[derive(Clone, Debug, Default)]
pub struct Content<'a> {
    /// This machine's JDK, which compiles the programs in Java and, of the same architecture, runs them. None: there are none.
    pub jdk: Option<&'a Path>,
    /// The JAVA_HOME of what runs them instead, of the guest's architecture.
    pub java: Option<PathBuf>,
    /// Spark, a Python and an application.
    pub with_spark: bool,
}

/// Makes it in `dir`, of this machine's architecture or another's.
pub fn make(dir: &Path, arch: Arch, binary: &Path, content: &Content<'_>) -> Result<System> {
    let own_busybox = busybox()?;
    let staged = dir.join("system");
    let _ = std::fs::remove_dir_all(&staged);
    let own = Arch::own() == Some(arch);
    let with_debians_java = content.jdk.is_some() && content.java.is_none();
    let busybox = match own {
        true => own_busybox.clone(),
        false => foreign::unpack(arch, &staged, (with_debians_java, content.with_spark))?,
    };
    for made in ["bin", "dev", "etc", "proc", "sys", "tmp", "tools"] {
        let path = staged.join(made);
        std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    }
    let tools = staged.join("tools");
    write(&staged.join("etc/passwd"), b"root:x:0:0::/tmp:/bin/sh\n")?;
    write(&staged.join("etc/hosts"), b"127.0.0.1 localhost guest\n")?;
    write(&staged.join("check.sh"), CHECK.as_bytes())?;
    if own {
        copy(&busybox, &staged.join("bin/busybox"))?;
    }
    // Debian's has the same programs everywhere.
    let output =
        Command::new(&own_busybox).arg("--list").output().context("asking busybox for its programs")?;
    for applet in String::from_utf8_lossy(&output.stdout).lines().filter(|applet| *applet != "busybox") {
        std::os::unix::fs::symlink("busybox", staged.join("bin").join(applet)).context("linking busybox")?;
    }
    copy(binary, &tools.join("emberscope"))?;
    let mut programs = vec![tools.join("emberscope"), compile_native(arch, &tools)?];
    if let Some(home) = &content.java {
        copy_tree(home, &staged.join("jdk"), &mut Vec::new())?;
    }
    if content.with_spark {
        spark(&staged)?;
    }
    if let Some(home) = content.jdk {
        compile_java(home, arch, &tools)?;
        let mut java = Vec::new();
        for part in ["bin", "lib", "conf", "release"].iter().filter(|_| own) {
            copy_tree(&home.join(part), &staged.join("jdk").join(part), &mut java)?;
        }
        programs.push(staged.join("jdk/bin/java"));
        programs.extend(java.into_iter().filter(|file| file.extension().is_some_and(|end| end == "so")));
    }
    let mut libraries = BTreeSet::new();
    for program in programs.iter().filter(|_| own) {
        libraries.extend(libraries_of(program)?);
    }
    for library in libraries.iter().filter(|library| !library.starts_with(&staged)) {
        copy(library, &staged.join(library.strip_prefix("/").unwrap_or(library)))?;
    }
    let image = dir.join("system.ext4");
    format(&staged, &image)?;
    Ok(System { arch, busybox, image, check: staged.join("check.sh"), tools })
}

/// Spark as PyPI has it, which is of all architectures, and the application.
fn spark(staged: &Path) -> Result<()> {
    let home = python::spark_home(&python::ensure()?).context("the Python environment has no pyspark")?;
    let packages = home.parent().context("pyspark lies in no directory")?;
    std::os::unix::fs::symlink("/bin/busybox", staged.join("usr/bin/env")).context("linking env")?;
    for package in ["pyspark", "py4j"] {
        copy_tree(&packages.join(package), &staged.join("python").join(package), &mut Vec::new())?;
    }
    copy(&places::workspace().join("tests/jobs/guest_spark.py"), &staged.join("tools/guest_spark.py"))
}

fn format(staged: &Path, image: &Path) -> Result<()> {
    let _ = std::fs::remove_file(image);
    // In /usr/sbin, which is not on everybody's PATH.
    let mke2fs = places::on_path("mke2fs").unwrap_or_else(|| "/usr/sbin/mke2fs".into());
    let bytes = size(staged)?;
    let mut command = Command::new(mke2fs);
    command.args(["-q", "-t", "ext4", "-O", "^has_journal", "-d"]).arg(staged).arg(image);
    command.arg(format!("{}k", (bytes + bytes / 4 + SLACK) / 1024));
    step::run("making the guest's disk", &mut command, "apt-get install e2fsprogs").map(drop)
}

/// The native program: on x86-64 every function has a frame pointer, so that it is walked without tables, too; where calls
/// leave the return address in a register, only those that the compiler wants one for.
fn compile_native(arch: Arch, tools: &Path) -> Result<PathBuf> {
    let pointers = match arch {
        Arch::X86_64 => "-fno-omit-frame-pointer",
        Arch::Arm64 => "-fomit-frame-pointer",
    };
    let program = tools.join("spin");
    let source = places::workspace().join("tests/fixtures/spin.c");
    let mut cc = Command::new(compiler(arch));
    cc.args(C_FLAGS).arg(pointers).arg("-o").arg(&program).arg(source).arg("-ldl");
    compile(&mut cc)?;
    Ok(program)
}

/// The programs in Java, and the library that one of them calls.
fn compile_java(home: &Path, arch: Arch, tools: &Path) -> Result<()> {
    let tests = places::workspace().join("tests");
    let sources = ["jobs/Walk.java", "jobs/UpDown.java"].map(|source| tests.join(source));
    let mut javac = Command::new(home.join("bin/javac"));
    javac.args(["-nowarn", "-g", "--release", "8", "-Xlint:-options", "-d"]).arg(tools).args(sources);
    compile(&mut javac)?;
    let mut cc = Command::new(compiler(arch));
    let include = home.join("include");
    cc.args(["-O1", "-shared", "-fPIC", "-I"]).arg(&include).arg("-I").arg(include.join("linux"));
    compile(cc.arg("-o").arg(tools.join("libupdown.so")).arg(tests.join("fixtures/updown.c")))
}

const fn compiler(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "cc",
        Arch::Arm64 => "aarch64-linux-gnu-gcc",
    }
}

fn compile(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {}", step::shown(command)))?;
    if !output.status.success() {
        bail!("{} failed\n{}", step::shown(command), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The libraries that a program or a library wants, and its loader, as files of this machine; none of a static program.
pub fn libraries_of(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("cannot start ldd")?;
    Ok(parse_ldd(&String::from_utf8_lossy(&output.stdout)))
}

/// `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, and the loader by its path alone.
fn parse_ldd(output: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let (words, _) = line.trim().rsplit_once(" (0x")?;
        let path = words.split_once("=> ").map_or(words, |(_, path)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    output.lines().filter_map(path).collect()
}

/// Copies a file or a tree, links as what they lead to; those that lead nowhere are left out, as what nobody needs.
fn copy_tree(from: &Path, to: &Path, copied: &mut Vec<PathBuf>) -> Result<()> {
    let left_out =
        from.file_name().and_then(|name| name.to_str()).is_some_and(|name| LEFT_OUT.contains(&name));
    let Ok(about) = std::fs::metadata(from) else { return Ok(()) };
    if left_out {
        return Ok(());
    }
    if !about.is_dir() {
        copy(from, to)?;
        copied.push(to.to_owned());
        return Ok(());
    }
    std::fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry.with_context(|| format!("reading {}", from.display()))?;
        copy_tree(&entry.path(), &to.join(entry.file_name()), copied)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(dir) = to.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    }
    std::fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Bytes of a tree's files, in whole blocks.
fn size(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let entry = entry.with_context(|| format!("reading {}", dir.display()))?;
        let about = entry.metadata().with_context(|| format!("reading {}", entry.path().display()))?;
        bytes += if about.is_dir() { size(&entry.path())? } else { about.len().next_multiple_of(4096) };
    }
    Ok(bytes)
}

/// A busybox that needs no library, installed where there is none.
pub fn busybox() -> Result<PathBuf> {
    let found =
        || places::on_path("busybox").filter(|path| libraries_of(path).is_ok_and(|all| all.is_empty()));
    if found().is_none() {
        root::apt_install(&["busybox-static"], "busybox")?;
    }
    found().context("busybox-static is installed, yet there is no busybox on the PATH that needs no library")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_ldd() {
        let output = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                      \tlibjli.so => /jdk/bin/../lib/libjli.so (0x00007f)\n\tlibgone.so => not found\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let want =
            ["/lib/x86_64-linux-gnu/libc.so.6", "/jdk/bin/../lib/libjli.so", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(parse_ldd(output), want.map(PathBuf::from));
        assert!(parse_ldd("\tnot a dynamic executable\n\tstatically linked\n").is_empty());
    }

    #[test]
    fn trees_are_copied_without_what_leads_nowhere() {
        let dir = std::env::temp_dir().join(format!("xtask-tree-{}", std::process::id()));
        let (from, to) = (dir.join("from"), dir.join("to"));
        std::fs::create_dir_all(from.join("jmods")).unwrap();
        std::fs::write(from.join("jmods/x"), "x").unwrap();
        std::fs::write(from.join("real"), "r").unwrap();
        std::os::unix::fs::symlink("real", from.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", from.join("gone")).unwrap();
        let mut copied = Vec::new();
        copy_tree(&from, &to, &mut copied).unwrap();
        copied.sort();
        assert_eq!(copied, [to.join("link"), to.join("real")]);
        assert!(!to.join("jmods").exists() && to.join("link").symlink_metadata().unwrap().is_file());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
