//! Files that are not opened, each for its reason.

use super::*;
use std::os::unix::fs::symlink;

#[test]
fn refuses_what_is_no_regular_file() {
    let dir = tempfile::tempdir().unwrap();
    let base = root(dir.path()).unwrap();
    let me = rustix::process::geteuid().as_raw();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    symlink("/etc/shadow", dir.path().join("s")).unwrap();
    symlink("/etc", dir.path().join("e")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("p"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    std::fs::write(dir.path().join("f"), "x").unwrap();
    let open = |name: &str| regular_file(&base, Path::new(name), me).map(|_| ());
    assert_eq!(open("d"), Err(Refusal::NotRegular));
    assert_eq!(open("s"), Err(Refusal::Symlink));
    assert_eq!(open("p"), Err(Refusal::NotRegular));
    assert_eq!(open("missing"), Err(Refusal::Missing));
    assert_eq!(open("e/shadow"), Err(Refusal::Missing), "an absolute link stays inside the root");
    assert_eq!(open("../../../etc/passwd"), Err(Refusal::Missing));
    assert_eq!(open("f"), Ok(()));
}

#[test]
fn knows_fuse_by_its_device() {
    let table = "36 35 98:0 /a /b rw,noatime master:1 - ext3 /dev/root rw\n\
                 37 35 0:52 / /home/u/mnt rw - fuse.sshfs host:/ rw\nbroken\n";
    assert_eq!(filesystem_of(table, (98, 0)), Some("ext3"));
    assert_eq!(filesystem_of(table, (0, 52)), Some("fuse.sshfs"));
    assert_eq!(filesystem_of(table, (0, 5)), None);
    assert!(is_fuse(Path::new("/proc/self"), (0, 999_999)), "mounted nowhere");
}

#[test]
fn refuses_another_users_file() {
    if !rustix::process::geteuid().is_root() {
        emberscope_testkit::skip("only root can give files away");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    std::fs::write(&file, "x").unwrap();
    std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
    let base = root(dir.path()).unwrap();
    assert_eq!(regular_file(&base, Path::new("f"), 54321).map(|_| ()), Err(Refusal::WrongOwner));
    assert!(regular_file(&base, Path::new("f"), 12345).is_ok());
    assert_eq!(remove_file(&base, Path::new("f"), 54321), Err(Refusal::WrongOwner));
    assert_eq!(remove_file(&base, Path::new("f"), 12345), Ok(()));
}

#[test]
fn a_process_tells_its_own_mappings() {
    for own in [mappings(Path::new("/proc/self")), mappings_soon(Path::new("/proc/self"))] {
        let own = own.unwrap();
        let code = a_process_tells_its_own_mappings as *const () as u64;
        assert!(maps::find(&own.mappings, code).is_some() && !own.cut && !own.is_empty, "{own:?}");
    }
    assert_eq!(mappings(Path::new("/proc/0")), Err(Refusal::ProcessGone));
}
