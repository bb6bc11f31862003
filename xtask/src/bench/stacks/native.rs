//! Real Spark jobs whose shuffles are compressed by native libraries: whether all stacks of executors are whole,
//! whether their native frames have names, and whether the stacks of all other processes of the machine are whole.

use super::spark::{Kernel, ROWS, TIMEOUT, job_with, kit};
use super::{Bench, SHOWN, ends, percent, print_worst, seen};
use crate::bench::bpf_stats::BpfStats;
use crate::bench::row::Row;
use crate::clock::over_windows;
use crate::launch::Daemon;
use crate::oracle::{Frame, Stack};
use crate::setup::SparkKit;
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeMap;

/// spark.io.compression.codec.
const CODECS: [&str; 3] = ["snappy", "lz4", "zstd"];
/// Of executors' samples, and of the machine's, in percent: those whose stack reaches the thread's root.
const EXECUTORS: f64 = 99.0;
const MACHINE: f64 = 98.0;
/// Of native frames, in percent: those with a name.
const NAMED: f64 = 95.0;

/// Measures.
pub fn rows(bench: &Bench, skipped: &mut Vec<String>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for major in bench.majors(&[17, 25]) {
        match kit(major) {
            Ok((version, kit)) => {
                for codec in CODECS {
                    rows.extend(of_codec(
                        bench,
                        &format!("Spark {version}, Java {major}, {codec}"),
                        &kit,
                        codec,
                    )?);
                }
            }
            Err(why) => skipped.push(format!("native stacks with Java {major}: {why:#}")),
        }
    }
    Ok(rows)
}

fn of_codec(bench: &Bench, on: &str, kit: &SparkKit, codec: &str) -> Result<Vec<Row>> {
    let work = bench.work.join(format!("native-{}-{codec}", kit.jdk.major));
    let _stats = BpfStats::enable()?;
    let words = ["--hz", "99", "--store-bytes", "512MiB"];
    let daemon = Daemon::start(&bench.binary, &work.join("daemon"), None, &words)?;
    let conf = [("spark.io.compression.codec", codec)];
    let cluster = "local-cluster[2,1,1024]";
    let mut job = job_with(kit, &work, cluster, &bench.options.java_flags, &conf, (ROWS, 1000))?;
    let app = job.wait_fact("app", TIMEOUT)?;
    let (from, until, before, after) = over_windows(bench.options.windows, || Kernel::read(&daemon))?;
    let executors = seen(&daemon, &format!("app={app}&role=executor"), (from, until))?;
    let machine = of_machine(&daemon, (from, until))?;
    drop(job);
    daemon.stop()?;
    let mut rows = vec![whole(on, "executors", &executors.quality, EXECUTORS)];
    rows.extend(named(on, &executors.stacks));
    for (process, all, rooted, why) in machine.1.iter().take(SHOWN) {
        println!("   {on}: {process}: {rooted} of {all} whole; {why}");
    }
    rows.push(whole(on, "all processes", &machine.0, MACHINE));
    let kernel = after.since(&before);
    let samples = kernel.samples.max(1.0);
    let figure = format!(
        "{:.0} ns, {:.1} frames walked a sample",
        kernel.sampling_ns / samples,
        kernel.frames / samples
    );
    rows.push(Row::told(format!("native: {on}, kernel ns a sample"), figure, kernel.samples as usize));
    Ok(rows)
}

/// Samples of threads that have a user half, and those that reach the root.
fn whole(on: &str, whose: &str, quality: &Value, bar: f64) -> Row {
    let (rooted, all) = counts(quality);
    println!("   {on}: stacks of {whose} end by: {}", ends(quality));
    Row::share(format!("native: {on}, whole stacks of {whose}"), rooted, bar, all)
}

/// Stacks that reach the root, and all that have a user half.
fn counts(quality: &Value) -> (usize, usize) {
    let count = |why: &str| quality["ends"][why].as_u64().unwrap_or(0) as usize;
    let all: u64 = quality["ends"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum();
    (count("root"), all as usize - count("kernel_thread"))
}

/// What is not whole, by process: its name, all, whole ones, reasons.
type Lacks = Vec<(String, usize, usize, String)>;

/// The whole machine's stacks, and what is lacking where.
fn of_machine(daemon: &Daemon, (from, until): (u64, u64)) -> Result<(Value, Lacks)> {
    let range = format!("from={from}&until={until}&format=json");
    let all = daemon.json(&format!("/api/v1/flamegraph?{range}&group=process"))?;
    let names = all["nodes"].as_array().into_iter().flatten().filter(|node| node["kind"] == "label");
    let names = names.filter_map(|node| node["name"].as_str()?.strip_prefix("process="));
    let mut lacks = Lacks::new();
    for name in names {
        let answer = daemon.json(&format!("/api/v1/flamegraph?{range}&process={}", escaped(name)))?;
        let (rooted, of) = counts(&answer["quality"]);
        if rooted < of {
            lacks.push((name.to_owned(), of, rooted, ends(&answer["quality"])));
        }
    }
    lacks.sort_by_key(|(_, of, rooted, _)| std::cmp::Reverse(of - rooted));
    Ok((all["quality"].clone(), lacks))
}

/// For a query.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Native frames with a name; those that are a module and an offset, and those that are nothing, apart.
fn named(on: &str, stacks: &[Stack]) -> Vec<Row> {
    let (mut named, mut modules, mut nothing) = (0, BTreeMap::<String, usize>::new(), BTreeMap::new());
    for stack in stacks {
        for frame in stack.user() {
            match offset_in(frame) {
                Some(module) => *modules.entry(module.to_owned()).or_default() += stack.count,
                None if frame.kind == "native" => named += stack.count,
                None if frame.kind == "unknown" && !frame.is_nameless_java() => {
                    *nothing.entry(frame.name.clone()).or_default() += stack.count;
                }
                None => {}
            }
        }
    }
    let sum = |of: &BTreeMap<String, usize>| of.values().sum::<usize>();
    let all = named + sum(&modules) + sum(&nothing);
    for (what, of) in [("module and offset", &modules), ("no module", &nothing)] {
        let mut worst: Vec<(&str, usize)> = of.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        worst.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        worst.truncate(SHOWN);
        print_worst(what, &worst, all);
    }
    let share = |n| format!("{:.2} %", percent(n, all));
    vec![
        Row::share(format!("native: {on}, frames with a name"), named, NAMED, all),
        Row::told(format!("native: {on}, frames by module and offset"), share(sum(&modules)), all),
        Row::told(format!("native: {on}, frames without a module"), share(sum(&nothing)), all),
    ]
}

/// The module of a frame that is told as `libfoo.so+0x1234`.
fn offset_in(frame: &Frame) -> Option<&str> {
    let (module, offset) = frame.name.rsplit_once("+0x")?;
    (frame.kind == "native" && offset.bytes().all(|b| b.is_ascii_hexdigit())).then_some(module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::rc::Rc;

    #[test]
    fn kernel_threads_have_no_user_half() {
        let quality = json!({"ends": {"root": 90, "kernel_thread": 50, "table_not_ready": 10}});
        assert_eq!(counts(&quality), (90, 100));
        assert_eq!(counts(&json!({})), (0, 0));
    }

    #[test]
    fn a_module_and_an_offset_is_no_name() {
        let frame = |kind: &str, name: &str| {
            Rc::new(Frame { kind: kind.to_owned(), name: name.to_owned(), ..Frame::default() })
        };
        assert_eq!(offset_in(&frame("native", "libz.so.1+0x12af")), Some("libz.so.1"));
        assert_eq!(offset_in(&frame("native", "deflate")), None);
        let frames =
            [("native", "start_thread"), ("java", "A.b"), ("native", "libz.so.1+0x1"), ("unknown", "[x]")];
        let frames = frames.iter().map(|(kind, name)| frame(kind, name)).collect();
        let rows = named("here", &[Stack { frames, labels: vec![], count: 3 }]);
        assert!(rows[0].fails(), "one of three");
        assert_eq!(escaped("a b%"), "a%20b%25");
    }
}
