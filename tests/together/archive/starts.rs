//! Servers of storages, each built or fetched once.

use super::*;

/// What is made once for all tests; None after saying that `test` is skipped.
pub(super) fn once<T: Clone>(
    made: &OnceLock<Result<T, String>>,
    test: &str,
    make: impl FnOnce() -> Result<Result<T, String>>,
) -> Option<T> {
    match made.get_or_init(|| make().unwrap_or_else(|error| Err(format!("{error:#}")))) {
        Ok(made) => Some(made.clone()),
        Err(why) => {
            skip(test, why);
            None
        }
    }
}

pub(super) fn s3_binary(test: &str) -> Option<PathBuf> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    once(&BINARY, test, s3::build)
}

pub(super) fn start_s3(_: &Here, test: &str, dir: &Path) -> Result<Option<Box<dyn Storage>>> {
    let Some(binary) = s3_binary(test) else { return Ok(None) };
    Ok(Some(Box::new(S3::start(&binary, dir)?)))
}

pub(super) fn start_azure(_: &Here, test: &str, dir: &Path) -> Result<Option<Box<dyn Storage>>> {
    static MODULES: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let Some(modules) = once(&MODULES, test, azure::install) else { return Ok(None) };
    Ok(Some(Box::new(Azure::start(&modules, dir)?)))
}

pub(super) fn start_gs(_: &Here, test: &str, dir: &Path) -> Result<Option<Box<dyn Storage>>> {
    static BINARIES: OnceLock<Result<(PathBuf, PathBuf), String>> = OnceLock::new();
    let Some(binaries) = once(&BINARIES, test, gs::build) else { return Ok(None) };
    Ok(Some(Box::new(Gs::start(&binaries, dir)?)))
}

pub(super) fn start_hdfs(here: &Here, test: &str, dir: &Path) -> Result<Option<Box<dyn Storage>>> {
    static JARS: OnceLock<Result<Vec<PathBuf>, String>> = OnceLock::new();
    let Some(jars) = once(&JARS, test, || hdfs::fetch(&here.venv)) else { return Ok(None) };
    Ok(Some(Box::new(Hdfs::start(&jars, &here.java, dir)?)))
}
