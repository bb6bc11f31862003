//! What archives need of a storage, asked of each one directly: names, lists, sizes, files in several parts, deleting.

use super::event_logs;
use anyhow::{Context as _, Result, ensure};
use emberscope_archive::Remote;
use std::process::Command;
use xtask::launch::Storage;

/// Runs [`a_storage_of_the_environment`] in a process with this storage's environment.
pub fn does_what_archives_need(storage: &dyn Storage) -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?);
    // A test is called by its module's path below the program.
    let (_, below) = module_path!().split_once("::").context("a module of a program")?;
    let name = format!("{below}::a_storage_of_the_environment");
    child.args(["--exact", &name, "--ignored", "--nocapture"]);
    child.envs(storage.environment()).env(URL, storage.url(BELOW));
    let out = child.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(
        out.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&out.stderr)
    );
    Ok(())
}

const URL: &str = "EMBERSCOPE_TEST_STORAGE";
/// Where it does that.
pub const BELOW: &str = "plain/y";

#[test]
#[ignore = "no test of its own: others run it, with an environment"]
fn a_storage_of_the_environment() -> Result<()> {
    let remote = Remote::open(&std::env::var(URL)?, false)?;
    let dir = tempfile::tempdir()?;
    let names = |below: &'static str| async {
        let all = remote.list(below, 100).await?;
        anyhow::Ok(all.into_iter().map(|object| (object.name, object.bytes)).collect::<Vec<_>>())
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        ensure!(names("v1").await?.is_empty() && remote.dirs("v1/index").await?.is_empty());
        ensure!(remote.get("v1/a", 10).await?.is_none());
        ensure!(remote.download("v1/a", &dir.path().join("none"), 10).await?.is_none());
        remote.delete("v1/a/none").await?;

        remote.put("v1/index/1/node=2f/b", b"old".to_vec()).await?;
        remote.put("v1/index/1/node=2f/b", b"newer".to_vec()).await?;
        remote.put("v1/index/2/n/a", b"x".to_vec()).await?;
        ensure!(remote.get("v1/index/1/node=2f/b", 5).await?.as_deref() == Some(&b"newer"[..]));
        let much = remote.get("v1/index/1/node=2f/b", 4).await.err().map(|error| error.to_string());
        ensure!(much.as_ref().is_some_and(|much| much.contains("more than 4 bytes")), "{much:?}");
        let all = [("v1/index/1/node=2f/b".to_owned(), 5), ("v1/index/2/n/a".to_owned(), 1)];
        ensure!(names("v1").await? == all && names("v1/index/1").await? == all[..1]);
        ensure!(remote.dirs("v1/index").await? == ["1", "2"]);
        let more = remote.list("v1", 1).await.err().map(|error| error.to_string());
        ensure!(more.as_ref().is_some_and(|more| more.contains("more than 1 objects")), "{more:?}");

        // In several parts, the last one a short one; and in parts of just their size.
        for length in [20 << 20 | 7, 16 << 20] {
            let bytes: Vec<u8> =
                (0..length).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let (whole, back) = (dir.path().join("whole"), dir.path().join(format!("back-{length}")));
            std::fs::write(&whole, &bytes)?;
            ensure!(remote.put_file("v1/nodes/n/whole", &whole).await? == u64::from(length));
            let got = remote.download("v1/nodes/n/whole", &back, u64::MAX).await?;
            ensure!(got.map(|(bytes, _)| bytes) == Some(u64::from(length)) && std::fs::read(&back)? == bytes);
            ensure!(names("v1/nodes").await? == [("v1/nodes/n/whole".to_owned(), u64::from(length))]);
        }

        // What is empty is no longer listed.
        remote.delete("v1/index/1/node=2f/b").await?;
        ensure!(remote.dirs("v1/index").await? == ["2"] && names("v1/index").await? == all[1..]);
        remote.delete("v1/index/2/n/a").await?;
        remote.delete("v1/nodes/n/whole").await?;
        ensure!(names("v1").await?.is_empty() && remote.dirs("v1").await?.is_empty());
        ensure!(remote.head("v1/none").await?.is_none());
        event_logs::put(&remote).await
    })
}
