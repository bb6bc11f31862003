//! How a frame is called: a code object's name and file in, the name that people read out.
//!
//! `qualified.name (file)`. Of what lies in a library's directory or archive the file's way inside of that is kept
//! (`pyspark/worker.py`), so that runs on different nodes can be compared; of any other file its last part (`job.py`).
//! What is no path (`<stdin>`, `<frozen runpy>`) stays as it is.

/// Ends of directories and archives in which libraries lie.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", ".zip/", ".egg/"];

/// The name of a frame: the function's, and the file's without what differs from machine to machine.
pub fn called(name: &str, file: &str) -> String {
    match short(file) {
        "" => name.to_owned(),
        short => format!("{name} ({short})"),
    }
}

/// A file's name without what differs from machine to machine.
fn short(file: &str) -> &str {
    if file.starts_with('<') {
        return file;
    }
    let inside = LIBRARIES.iter().filter_map(|dir| Some(file.rsplit_once(dir)?.1));
    // An archive may lie in a library: the innermost of them.
    let shortest = inside.min_by_key(|inside| inside.len()).or_else(|| standard(file));
    shortest.unwrap_or_else(|| file.rsplit('/').next().unwrap_or(file))
}

/// Inside of the standard library: `/lib/python3.11/json/decoder.py`.
fn standard(file: &str) -> Option<&str> {
    let (before, inside) = file.rsplit_once("/lib/python3.")?;
    let (version, inside) = inside.split_once('/')?;
    (!before.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == 't')).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_keep_their_way_and_others_their_last_part() {
        for (file, expected) in [
            ("/home/u/.pyenv/versions/3.11.7/lib/python3.11/json/decoder.py", "json/decoder.py"),
            ("/usr/lib/python3/dist-packages/numpy/core/x.py", "numpy/core/x.py"),
            ("/v/lib/python3.11/site-packages/pandas/core/frame.py", "pandas/core/frame.py"),
            ("/s/python/lib/pyspark.zip/pyspark/worker.py", "pyspark/worker.py"),
            ("/v/site-packages/pyspark/python/lib/pyspark.zip/pyspark/daemon.py", "pyspark/daemon.py"),
            ("/home/u/etl/job.py", "job.py"),
            ("job.py", "job.py"),
            ("<stdin>", "<stdin>"),
            ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
            ("/tmp/ipykernel_17/12.py", "12.py"),
            ("/a/", ""),
        ] {
            assert_eq!(short(file), expected, "{file}");
        }
        assert_eq!(
            called("main.<locals>.process", "/x.zip/pyspark/worker.py"),
            "main.<locals>.process (pyspark/worker.py)"
        );
        assert_eq!(called("f", ""), "f");
    }
}
