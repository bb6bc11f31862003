//! What `./x package` makes: the same bytes twice; a program that its debug info is found by; a Debian and an RPM package that
//! come, are upgraded, and go, in a bare bookworm without systemd, and leave there what docs/deploy.md says.

use anyhow::{Context as _, Result, ensure};
use emberscope_target::elf::Headers;
use emberscope_target::text::hex;
use emberscope_tests::{can_unshare_mounts, is_root, ran, required, skip};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use xtask::arch::Arch;
use xtask::fresh::system;
use xtask::package::{Packages, Source, make};
use xtask::setup::packaging;

/// The time that all has.
const EPOCH: &str = "1700000000";
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Another one, as far as the package tells.
const NEXT: &str = "99.0.0";

/// The daemon, where packages can be made. None after saying why `test` is skipped.
pub(super) fn binary_or_skip(test: &str) -> Option<PathBuf> {
    let binary = required(test, "EMBERSCOPE_BIN")?;
    let listed = ran(["git", "-C", concat!(env!("CARGO_MANIFEST_DIR"), "/.."), "ls-files"]);
    if !listed.is_ok_and(|listed| listed.code == 0) {
        skip(test, "the source tree is none of git's, which tells what is shipped of it");
        return None;
    }
    match packaging::ensure() {
        Ok(()) => Some(binary),
        Err(error) => {
            skip(test, &format!("no packages can be made: {error:#}"));
            None
        }
    }
}

fn made(binary: &Path, version: &str, dir: &Path) -> Result<Packages> {
    let arch = Arch::own().context("the daemon runs on no such machine")?;
    make(Source { binaries: &[(arch, binary)], version, epoch: EPOCH }, dir)
}

/// The packages of a version, made once for all tests of a run: compressing them is most of what these take.
pub(super) fn shared(binary: &Path, version: &'static str) -> Result<Arc<Packages>> {
    static MADE: Mutex<BTreeMap<&str, Arc<Packages>>> = Mutex::new(BTreeMap::new());
    let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(packages) = all.get(version) {
        return Ok(Arc::clone(packages));
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages").join(version);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    let packages = Arc::new(made(binary, version, &dir)?);
    all.insert(version, Arc::clone(&packages));
    Ok(packages)
}

fn build_id(path: &Path) -> Result<String> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let id = Headers::read(&file, file.metadata()?.len())?.build_id(&file);
    let id = id.with_context(|| format!("{} has no build id", path.display()))?;
    Ok(hex(&id))
}

#[test]
fn two_packagings_are_the_same_bytes() -> Result<()> {
    let Some(binary) = binary_or_skip("two_packagings_are_the_same_bytes") else { return Ok(()) };
    let first = shared(&binary, VERSION)?;
    let dir = tempfile::tempdir()?;
    let second = made(&binary, VERSION, &dir.path().join("second"))?;
    let sums = std::fs::read_to_string(&first.sums)?;
    assert_eq!(sums, std::fs::read_to_string(&second.sums)?);
    assert_eq!(sums.lines().count(), 7, "{sums}");
    let check =
        format!("cd {} && sha256sum --check --strict SHA256SUMS", dir.path().join("second").display());
    ran(["sh", "-c", &check])?.good()?;

    let list = ["tar", "--numeric-owner", "--utc", "--full-time", "-tvf"].map(str::to_owned);
    let list = ran(list.into_iter().chain([first.native[0].archive.display().to_string()]))?.good()?.out;
    let times: BTreeSet<_> = list
        .lines()
        .map(|line| line.split_whitespace().skip(3).take(2))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|words| words.collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(times.len(), 1, "{times:?}");
    assert!(list.lines().all(|line| line.split_whitespace().nth(1) == Some("0/0")), "{list}");
    let names: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
    assert!(names.is_sorted_by(|a, b| a.trim_end_matches('/') < b.trim_end_matches('/')), "{names:?}");
    for part in ["usr/bin/emberscope", "LICENSE-MIT", "docs/deploy.md", "emberscope.service", "fish"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part} is not in {names:?}");
    }
    Ok(())
}

/// A bare bookworm.
struct System {
    dir: PathBuf,
}

impl System {
    /// Runs a command in it; no network.
    fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = system::command(&self.dir, false);
        let output = command.arg("DEBIAN_FRONTEND=noninteractive").args(words).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{words:?}: {}: {said}{err}", output.status);
        Ok(said)
    }

    /// All files, but for logs and what dpkg keeps of all packages.
    fn files(&self) -> Result<BTreeSet<String>> {
        let mut words = vec!["find".to_owned(), self.dir.display().to_string(), "-xdev".to_owned()];
        for left_out in
            ["dev", "proc", "sys", "root", "tmp", "var/cache", "var/lib/dpkg", "var/lib/rpm", "var/log"]
        {
            words.extend(["-path".to_owned(), self.path(left_out).display().to_string()]);
            words.extend(["-prune", "-o"].map(str::to_owned));
        }
        words.extend(["-printf", "%P\n"].map(str::to_owned));
        Ok(ran(words)?.good()?.out.lines().map(str::to_owned).collect())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    fn read(&self, file: &str) -> Result<String> {
        std::fs::read_to_string(self.path(file)).with_context(|| file.to_owned())
    }

    fn install(&self, package: &Path) -> Result<()> {
        std::fs::copy(package, self.path("root/emberscope.deb"))?;
        self.run(&["dpkg", "--install", "/root/emberscope.deb"]).map(drop)
    }

    /// What a daemon and an administrator leave; the settings.
    fn used(&self) -> Result<String> {
        std::fs::create_dir_all(self.path("var/lib/emberscope/store"))?;
        std::fs::write(self.path(DATA), "data")?;
        std::fs::write(self.path(TOKEN), "token")?;
        let settings = self.read(CONFIGURATION)?.replace("hz = 99", "hz = 49");
        std::fs::write(self.path(CONFIGURATION), &settings)?;
        Ok(settings)
    }

    /// RPM of this machine, on that system.
    fn rpm(&self, words: &[&str]) -> Result<String> {
        let root = self.dir.display().to_string();
        let mut all = vec!["rpm", "--root", &root];
        all.extend(words);
        Ok(ran(all)?.good()?.out)
    }

    fn state(&self) -> Result<String> {
        self.run(&["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", "emberscope"])
    }
}

/// A bare bookworm in `dir`. None after saying why `test` is skipped.
fn system_or_skip(test: &str, dir: PathBuf) -> Option<System> {
    if !is_root() || !can_unshare_mounts() {
        skip(test, "entering another system needs root, and mounts of its own");
        return None;
    }
    let system = System { dir };
    match system::copy(&system.dir) {
        Ok(()) => Some(system),
        Err(error) => {
            skip(test, &format!("debootstrap made no bare bookworm: {error:#}"));
            None
        }
    }
}

const CONFIGURATION: &str = "etc/emberscope/emberscope.toml";
const DATA: &str = "var/lib/emberscope/store/block";
const TOKEN: &str = "etc/emberscope/token";

#[test]
fn the_debian_package_comes_and_goes() -> Result<()> {
    let test = "the_debian_package_comes_and_goes";
    let dir = tempfile::tempdir()?;
    let Some(system) = system_or_skip(test, dir.path().join("system")) else { return Ok(()) };
    let Some(binary) = binary_or_skip(test) else { return Ok(()) };
    let (packages, next) = (shared(&binary, VERSION)?, shared(&binary, NEXT)?);
    let (before, users) = (system.files()?, system.read("etc/passwd")?);

    system.install(&packages.native[0].deb)?;
    assert_eq!(system.state()?, format!("installed {VERSION}-1"));
    let version = system.run(&["emberscope", "--version"])?;
    assert_eq!(
        version.trim_end(),
        format!("emberscope {VERSION} (build id {})", build_id(&packages.native[0].debug)?)
    );
    // What the host allows it allows there.
    let here = ran([binary.as_os_str(), "doctor".as_ref()])?;
    let there = system.run(&["sh", "-c", "emberscope doctor; echo code $?"])?;
    assert!(there.ends_with(&format!("code {}\n", here.code)), "{there}\n{here:?}");
    // Enabled for when systemd boots; nothing runs and no user is made meanwhile.
    assert!(system.path("etc/systemd/system/multi-user.target.wants/emberscope.service").is_symlink());
    assert_eq!(system.read("etc/passwd")?, users);

    let settings = system.used()?;
    system.install(&next.native[0].deb)?;
    assert_eq!(system.state()?, format!("installed {NEXT}-1"));
    assert_eq!((system.read(DATA)?.as_str(), system.read(TOKEN)?.as_str()), ("data", "token"));
    assert_eq!(system.read(CONFIGURATION)?, settings);

    let left = || -> Result<BTreeSet<String>> { Ok(system.files()?.difference(&before).cloned().collect()) };
    system.run(&["dpkg", "--remove", "emberscope"])?;
    let removed = left()?;
    assert!([CONFIGURATION, DATA, TOKEN].iter().all(|file| removed.contains(*file)), "{removed:?}");
    let state = ["etc/emberscope", "etc/systemd/system", "var/lib/emberscope", "var/lib/systemd"];
    let other: Vec<_> =
        removed.iter().filter(|file| !state.iter().any(|dir| file.starts_with(dir))).collect();
    assert!(other.is_empty(), "{other:?}");

    system.run(&["dpkg", "--purge", "emberscope"])?;
    assert_eq!(left()?, BTreeSet::from(["etc/emberscope", TOKEN].map(str::to_owned)));
    assert_eq!(system.read("etc/passwd")?, users);
    Ok(())
}

#[test]
fn the_rpm_package_comes_and_goes() -> Result<()> {
    let test = "the_rpm_package_comes_and_goes";
    let dir = tempfile::tempdir()?;
    let Some(system) = system_or_skip(test, dir.path().join("system")) else { return Ok(()) };
    let Some(binary) = binary_or_skip(test) else { return Ok(()) };
    if let Err(error) = packaging::ensure_rpm() {
        skip(test, &format!("no RPM to install with: {error:#}"));
        return Ok(());
    }
    let (packages, next) = (shared(&binary, VERSION)?, shared(&binary, NEXT)?);
    let file = |package: &Path| package.display().to_string();
    let (before, users) = (system.files()?, system.read("etc/passwd")?);

    // What it needs is told in the names that distributions of RPM have; here Debian's packages have it.
    let needs = system.rpm(&["-qp", "--requires", &file(&packages.native[0].rpm)])?;
    if let Some(glibc) = packages.native[0].glibc {
        let glibc = format!("libc.so.6(GLIBC_{glibc})(64bit)");
        ensure!(needs.lines().any(|line| line == glibc), "{glibc}: {needs}");
    }
    system.rpm(&["--install", "--nodeps", &file(&packages.native[0].rpm)])?;
    assert_eq!(
        system.rpm(&["-q", "emberscope"])?.trim_end(),
        format!("emberscope-{VERSION}-1.{}", std::env::consts::ARCH)
    );
    let version = system.run(&["emberscope", "--version"])?;
    assert_eq!(
        version.trim_end(),
        format!("emberscope {VERSION} (build id {})", build_id(&packages.native[0].debug)?)
    );
    let changed = system.rpm(&["--verify", "--nodeps", "emberscope"])?;
    assert_eq!(changed, "", "as it was packed");
    let listed = system.rpm(&["-ql", "emberscope"])?;
    for part in [
        "emberscope.service",
        "emberscope.socket",
        "sysusers.d/emberscope.conf",
        "zsh/site-functions",
        "docs/deploy.md",
    ] {
        ensure!(listed.contains(part), "{part} is not in {listed}");
    }

    let settings = system.used()?;
    system.rpm(&["--upgrade", "--nodeps", &file(&next.native[0].rpm)])?;
    assert_eq!(
        system.rpm(&["-q", "emberscope"])?.trim_end(),
        format!("emberscope-{NEXT}-1.{}", std::env::consts::ARCH)
    );
    assert_eq!((system.read(DATA)?.as_str(), system.read(TOKEN)?.as_str()), ("data", "token"));
    assert_eq!(system.read(CONFIGURATION)?, settings);

    system.rpm(&["--erase", "emberscope"])?;
    let left: BTreeSet<String> = system.files()?.difference(&before).cloned().collect();
    let kept = format!("{CONFIGURATION}.rpmsave");
    let stays = ["etc/emberscope", &kept, TOKEN, "var/lib/emberscope", "var/lib/emberscope/store", DATA];
    assert_eq!(left, BTreeSet::from(stays.map(str::to_owned)));
    assert_eq!(system.read("etc/passwd")?, users);
    Ok(())
}
