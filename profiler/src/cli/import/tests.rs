//! Files into data directories, and out of them again.

use super::super::code;
use super::super::recorded::fixture;
use super::*;
use clap::Parser;
use emberscope_export::{ExportOptions, Format as Written, render};
use emberscope_serve::{Asked, Params};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    import: ImportArgs,
}

fn parse(flags: &[&str]) -> ImportArgs {
    Line::try_parse_from(std::iter::once(&"x").chain(flags)).unwrap().import
}

fn import(dir: &Path, flags: &[&str]) -> Result<String, CliError> {
    let args = parse(&[&["--data-dir", dir.to_str().unwrap()], flags].concat());
    let mut out = Vec::new();
    all(&args, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn export(dir: &Path, written: Written, annotate: bool, chosen: &[(&'static str, &str)]) -> Vec<u8> {
    let (_lock, store) = stopped::open(dir).unwrap();
    let span = [("from", "1700000000"), ("until", "1800000000")];
    let pairs: Vec<(&'static str, String)> =
        chosen.iter().chain(&span).map(|(key, value)| (*key, (*value).to_owned())).collect();
    let asked = Params::of_pairs(&pairs).and_then(|params| Asked::read(&params, WallTime::now()));
    let query = asked.and_then(|asked| asked.query(&store)).unwrap();
    let answer = store.merge(&query).unwrap();
    render(written, &answer, &ExportOptions { annotate, ..ExportOptions::default() }).unwrap()
}

fn folded(dir: &Path, annotate: bool) -> String {
    String::from_utf8(export(dir, Written::Folded, annotate, &[])).unwrap()
}

fn blocks(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("store/blocks")).map_or(0, Iterator::count)
}

fn file(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

const TIME: [&str; 4] = ["--from", "1790000000", "--until", "1790000040"];

#[test]
fn what_is_exported_comes_back_as_it_was() {
    let from = fixture();
    for (name, written, annotate) in
        [("all.folded", Written::Folded, true), ("all.pb.gz", Written::Pprof, false)]
    {
        let bytes = export(from.path(), written, true, &[]);
        let to = tempfile::tempdir().unwrap();
        let path = file(from.path(), name, bytes);
        let flags: &[&str] = if annotate { &["--hz", "99", TIME[0], TIME[1], TIME[2], TIME[3]] } else { &[] };
        let said = import(to.path(), &[flags, &[path.as_str()]].concat()).unwrap();
        assert!(said.contains("imported 4920 samples"), "{said}");
        assert_eq!(folded(to.path(), annotate), folded(from.path(), annotate), "{name}");
    }
}

#[test]
fn an_import_is_beside_what_is_there_and_comes_once() {
    let dir = fixture();
    let before = folded(dir.path(), true);
    let path = file(dir.path(), "old.txt", "a/B.run;a/B.work 5\n");
    let flags = ["--hz", "100", "--label", "app=old", "--label", "executor=3", TIME[0], TIME[1], &path];
    let said = import(dir.path(), &flags).unwrap();
    assert!(said.contains("imported 5 samples, 0.05 s of CPU"), "{said}");
    assert!(
        said.contains("2026-09-21T14:13:20.000Z to 2026-09-21T14:13:30.000Z: 1 window in 1 block"),
        "{said}"
    );
    let of = |labels: &[(&'static str, &str)]| {
        String::from_utf8(export(dir.path(), Written::Folded, true, labels)).unwrap()
    };
    assert_eq!(
        of(&[("app", "old"), ("executor", "3"), ("role", "executor")]),
        "a.B.run_[j];a.B.work_[j] 5\n"
    );
    assert_eq!(of(&[("source", "folded"), ("service_name", "old")]), "a.B.run_[j];a.B.work_[j] 5\n");
    assert_eq!(of(&[("source", "")]), before, "what Emberscope sampled itself");
    let (count, renamed) = (blocks(dir.path()), file(dir.path(), "again.txt", "a/B.run;a/B.work 5\n"));
    let said = import(dir.path(), &["--hz", "100", &renamed]).unwrap();
    assert!(said.contains("was imported already, as old.txt at "), "{said}");
    assert_eq!(blocks(dir.path()), count);
}

#[test]
fn an_import_is_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "a.folded", "a 1\n");
    import(dir.path(), &["--hz", "100", TIME[0], TIME[1], &path]).unwrap();
    let store = dir.path().join("store");
    let window = emberscope_import::read(
        &b"b 2\n"[..],
        None,
        &Told {
            range: Some(TimeRange {
                from: WallTime(1_790_000_100_000_000_000),
                until: WallTime(1_790_000_110_000_000_000),
            }),
            written_ns: 0,
            period: Some(Duration::from_millis(10)),
            nanoseconds: false,
            events: Events::Cpu,
            window: WINDOW,
            class_of: |_| emberscope_model::ThreadClass::Other,
        },
    )
    .unwrap()
    .windows
    .remove(0);
    let facts = |digest: &str| ImportFacts { digest: digest.to_owned(), file: "b".to_owned(), at_ns: 1 };
    let second = emberscope_model::Window {
        range: TimeRange {
            from: window.range.from.plus(Duration::from_secs(7200)),
            until: window.range.until.plus(Duration::from_secs(7200)),
        },
        ..window.clone()
    };
    // Broken off before all was there: nothing of it is, and the next start removes it.
    let mut broken = Importing::begin(&store, 7, facts("bb")).unwrap();
    broken.append(&window).unwrap();
    broken.append(&second).unwrap();
    drop(broken);
    assert!(store.join("imports/.bb").is_dir());
    assert_eq!(folded(dir.path(), false), "a 1\n");
    assert!(!store.join("imports/.bb").exists());
    // Broken off when all was there, and one block was moved: the next start goes on.
    let mut whole = Importing::begin(&store, 7, facts("cc")).unwrap();
    whole.append(&window).unwrap();
    whole.append(&second).unwrap();
    assert_eq!(whole.commit().unwrap().0, 2);
    let done: Vec<PathBuf> =
        std::fs::read_dir(store.join("blocks")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let of_it = done.iter().find(|path| path.to_str().unwrap().ends_with("000000000008")).unwrap();
    let waiting = store.join("imports/cc");
    std::fs::create_dir_all(&waiting).unwrap();
    std::fs::rename(of_it, waiting.join(of_it.file_name().unwrap())).unwrap();
    assert_eq!(folded(dir.path(), false), "a 1\nb 4\n");
    assert!(of_it.is_dir() && !waiting.exists());
}

#[test]
fn wrong_files_and_places_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let fails = |flags: &[&str]| import(&data, flags).unwrap_err();
    let bad = file(dir.path(), "bad.folded", "a 1\nb\n");
    let error = fails(&["--hz", "100", &bad]);
    assert!(error.to_string().contains("bad.folded: line 2 has no count"), "{error}");
    assert!(error.to_string().ends_with("nothing of it was imported"), "{error}");
    let silent = file(dir.path(), "a.folded", "a 1\n");
    assert_eq!(fails(&[&silent]).code(), code::USAGE, "no rate");
    let empty = file(dir.path(), "empty.folded", "");
    assert_eq!(fails(&["--hz", "1", &empty]).code(), code::NOTHING);
    assert_eq!(fails(&["--hz", "1", dir.path().to_str().unwrap()]).code(), code::USAGE, "a directory");
    assert_eq!(fails(&["--hz", "1", "/nonexistent"]).code(), code::FAILURE);
    assert_eq!(fails(&["--hz", "1", "--from", "2", "--until", "1", &silent]).code(), code::USAGE);
    assert_eq!(blocks(&data), 0);
    let lock = DataDirLock::take(&data).unwrap();
    assert!(fails(&["--hz", "1", &silent]).to_string().contains("another emberscope daemon"));
    drop(lock);
    for wrong in [
        &["--label", "apps=x"][..],
        &["--label", "app="],
        &["--label", "source=emberscope"],
        &["--label", "app"],
        &["--hz", "0"],
        &["--hz", "1", "--period", "1s"],
        &["--period", "0s"],
        &["--format", "svg"],
    ] {
        let line = [&["x", "--data-dir", "d", "f"][..], wrong].concat();
        assert!(Line::try_parse_from(line).is_err(), "{wrong:?}");
    }
}

#[test]
fn an_event_log_names_what_others_sampled_and_comes_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = include_bytes!("../../../import/src/event_log/recorded/3.5.9.log");
    let path = file(dir.path(), "app-1", log);
    let said = import(dir.path(), &["--event-log", &path]).unwrap();
    assert!(
        said.contains("imported 19 stages, 15 jobs, 7 SQL executions with 5 plans, 2 executors"),
        "{said}"
    );
    assert!(
        import(dir.path(), &["--event-log", &path]).unwrap().contains("was imported already, as app-1 at")
    );
    let (_lock, store) = stopped::open(dir.path()).unwrap();
    let span = TimeRange { from: WallTime(0), until: WallTime::now().plus(Duration::from_secs(1 << 30)) };
    let facts = store.spark_facts("app-20261126075840-0000", span).unwrap();
    assert_eq!((facts.facts.len(), facts.left_out), (19 + 15 + 7 + 5 + 2, 0));
}
