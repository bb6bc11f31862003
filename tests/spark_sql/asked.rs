//! Asks Spark, and compares what it says with answers of the HTTP API.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::{Here, WARM_UP};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs deploy/spark below `dir` with that Spark's Python. Nothing is fetched.
pub fn install(here: &Here, dir: &Path) -> Result<PathBuf> {
    let target = dir.join("installed");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/spark");
    let mut pip = Command::new(here.venv.join("bin/python"));
    pip.args(["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]);
    let run = pip.arg("--target").arg(&target).arg(&source).output()?;
    ensure!(run.status.success(), "pip install: {}", String::from_utf8_lossy(&run.stderr));
    Ok(target)
}

/// Blocks, and what is asked of them.
pub struct Set {
    /// What its answers are called by.
    pub name: &'static str,
    /// Where the blocks are.
    pub path: PathBuf,
    /// Questions, each with a name.
    pub ask: Vec<Value>,
}

/// Asks all in one application; answers by set and question.
pub fn ask(here: &Here, dir: &Path, sets: &[Set]) -> Result<Value> {
    std::fs::create_dir_all(dir)?;
    let package = install(here, dir)?;
    let (file, answers) = (dir.join("questions.json"), dir.join("answers.json"));
    let of = |set: &Set| json!({ "name": set.name, "paths": [set.path], "ask": set.ask });
    std::fs::write(&file, Value::from_iter(sets.iter().map(of)).to_string())?;
    // Small questions: what is saved is the time of the JIT and of hundreds of tasks.
    let job = here.spark("ask_blocks.py", dir).master("local[2]").java_options("-XX:TieredStopAtLevel=1");
    let job = job.conf("spark.sql.shuffle.partitions", "2").conf("spark.ui.enabled", "false");
    let job = job
        .conf("spark.default.parallelism", "1")
        .conf("spark.sql.sources.parallelPartitionDiscovery.threshold", "1000");
    let job = [&package, &file, &answers].into_iter().fold(job, |job, path| job.arg(path.to_string_lossy()));
    let mut job = job.start()?;
    for set in sets {
        for question in &set.ask {
            let name = question["name"].as_str().unwrap_or_default();
            job.wait_fact(&format!("answered-{}-{name}", set.name), WARM_UP)?;
        }
    }
    job.wait(WARM_UP)?;
    Ok(serde_json::from_str(&std::fs::read_to_string(answers)?)?)
}

/// A number that Spark may write as text.
pub fn number(value: &Value) -> Result<u128> {
    match value {
        Value::String(text) => Ok(text.parse()?),
        other => other.as_u64().map(u128::from).with_context(|| format!("{other} is no number")),
    }
}

fn rows<'a>(answers: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    answers[name].as_array().with_context(|| format!("{name} is not answered: {}", answers[name]))
}

/// Folded stacks by text: (count, weight) of Spark's.
pub fn flame_graph(answers: &Value, name: &str) -> Result<BTreeMap<String, (u128, u128)>> {
    let row = |row: &Value| {
        let text = row["stack"].as_str().context("a stack is no text")?;
        Ok((text.to_owned(), (number(&row["count"])?, number(&row["weight"])?)))
    };
    rows(answers, name)?.iter().map(row).collect()
}

/// Folded stacks by text, of the HTTP API: frames that differ in kind alone have one text.
pub fn folded(body: &str) -> Result<BTreeMap<String, u128>> {
    let mut out = BTreeMap::new();
    for line in body.lines() {
        let (text, number) = line.rsplit_once(' ').with_context(|| format!("{line:?}"))?;
        *out.entry(text.to_owned()).or_default() += number.parse::<u128>()?;
    }
    Ok(out)
}

/// Asserts that both have the same stacks with the same numbers.
pub fn same_stacks(
    place: &str,
    spark: &BTreeMap<String, (u128, u128)>,
    counts: &BTreeMap<String, u128>,
    weights: &BTreeMap<String, u128>,
) -> Result<()> {
    ensure!(!counts.is_empty(), "{place}: the answer by HTTP is empty");
    let of_spark: BTreeMap<&str, u128> = spark.iter().map(|(text, (count, _))| (&**text, *count)).collect();
    let of_http: BTreeMap<&str, u128> = counts.iter().map(|(text, count)| (&**text, *count)).collect();
    let differs = of_http.iter().find(|(text, count)| of_spark.get(*text) != Some(count));
    ensure!(differs.is_none(), "{place}: Spark says otherwise of {differs:?}");
    ensure!(
        of_spark.len() == of_http.len(),
        "{place}: Spark has {} stacks, HTTP {}",
        of_spark.len(),
        of_http.len()
    );
    for (text, (_, weight)) in spark {
        ensure!(weights.get(text).copied().unwrap_or_default() == *weight, "{place}: weight of {text}");
    }
    Ok(())
}

/// Asserts that both have the same methods. Where HTTP has several lines of a name (kinds of code in several modules)
/// it cannot be compared; how many those are is the answer.
pub fn same_methods(spark: &Value, name: &str, http: &Value) -> Result<usize> {
    let mut of_http: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for row in http["top"].as_array().context("no methods by HTTP")? {
        of_http.entry(row["name"].as_str().unwrap_or_default()).or_default().push(row);
    }
    let of_spark = rows(spark, name)?;
    ensure!(
        of_spark.len() == of_http.len() && !of_spark.is_empty(),
        "{} methods, {}",
        of_spark.len(),
        of_http.len()
    );
    let mut several = 0;
    for row in of_spark {
        let method = row["name"].as_str().unwrap_or_default();
        let same = of_http.get(method).with_context(|| format!("{method} is not answered by HTTP"))?;
        let [same] = same.as_slice() else {
            several += 1;
            continue;
        };
        for (ours, theirs) in [("self", "self"), ("total", "total")] {
            let (count, weight) =
                (number(&row[format!("{ours}_count")])?, number(&row[format!("{ours}_weight")])?);
            ensure!(same[theirs]["samples"].as_u64().map(u128::from) == Some(count), "{row} {same}");
            ensure!(is_seconds(&same[theirs]["cpu_seconds"], weight), "{row} {same}");
        }
    }
    Ok(several)
}

/// Whether a number of JSON is so many nanoseconds, as seconds.
pub fn is_seconds(value: &Value, ns: u128) -> bool {
    value.as_f64().is_some_and(|seconds| (seconds - ns as f64 / 1e9).abs() < 1e-9 * seconds.abs().max(1.0))
}

/// Asserts that both have the same CPU time by application, stage and attempt; out: how many stages.
pub fn same_stages(spark: &Value, name: &str, http: &Value) -> Result<usize> {
    let mut of_http: BTreeMap<Vec<String>, (u64, f64)> = BTreeMap::new();
    for series in http["series"].as_array().context("no series by HTTP")? {
        let label = |key: &str| series["labels"][key].as_str().unwrap_or_default().to_owned();
        let sum = of_http.entry(["app", "stage", "stage_attempt"].map(label).to_vec()).or_default();
        for point in series["points"].as_array().into_iter().flatten() {
            sum.0 += point["samples"].as_u64().unwrap_or_default();
            sum.1 += point["cpu_seconds"].as_f64().unwrap_or_default();
        }
    }
    of_http.retain(|labels, sum| !labels[1].is_empty() && sum.0 > 0);
    let of_spark = rows(spark, name)?;
    ensure!(of_spark.len() == of_http.len(), "{} stages, {}", of_spark.len(), of_http.len());
    for row in of_spark {
        let label = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let (samples, seconds) = of_http
            .get(["app", "stage", "stage_attempt"].map(label).as_slice())
            .with_context(|| format!("{row} is not answered by HTTP"))?;
        ensure!(number(&row["count"])? == u128::from(*samples), "{row}: {samples} by HTTP");
        ensure!(is_seconds(&json!(seconds), number(&row["weight"])?), "{row}: {seconds} s by HTTP");
    }
    Ok(of_spark.len())
}

/// Asserts that both have the same ledger by `by`; out: how many lines.
pub fn same_ledger(spark: &Value, name: &str, http: &Value, by: &[&str]) -> Result<usize> {
    let key = |labels: &Value| -> Vec<String> {
        by.iter().map(|key| labels[*key].as_str().unwrap_or_default().to_owned()).collect()
    };
    let of_http: BTreeMap<Vec<String>, &Value> =
        (http["ledger"].as_array().context("no ledger by HTTP")?.iter())
            .map(|line| (key(&line["labels"]), &line["exact"]))
            .collect();
    let of_spark = rows(spark, name)?;
    ensure!(of_spark.len() == of_http.len(), "{} lines, {}", of_spark.len(), of_http.len());
    for row in of_spark {
        let exact = of_http.get(&key(row)).with_context(|| format!("{row} is not answered by HTTP"))?;
        for (ours, theirs) in [("cpu_ns", "cpu_seconds"), ("run_delay_ns", "run_delay_seconds")] {
            ensure!(is_seconds(&exact[theirs], number(&row[ours])?), "{row} {exact}");
        }
        for same in ["voluntary_switches", "minor_faults", "written_bytes", "begun"] {
            ensure!(exact[same].as_u64().map(u128::from) == Some(number(&row[same])?), "{row} {exact}");
        }
    }
    Ok(of_spark.len())
}

/// Asserts that both have the same samples of each operator.
pub fn same_operators(spark: &Value, name: &str, http: &Value) -> Result<()> {
    let values = http["values"].as_array().context("no operators by HTTP")?;
    let of_http: BTreeMap<&str, Option<u64>> = values
        .iter()
        .map(|row| (row["value"].as_str().unwrap_or_default(), row["samples"].as_u64()))
        .collect();
    let of_spark = rows(spark, name)?;
    ensure!(of_spark.len() == of_http.len() && of_spark.len() > 3, "{of_spark:?} {of_http:?}");
    for row in of_spark {
        let operator = row["operator"].as_str().context("an operator is no text")?;
        ensure!(of_http.get(operator) == Some(&row["count"].as_u64()), "{row} {of_http:?}");
    }
    Ok(())
}

/// Asserts that a drawing has the samples and the figures of the API's answer; `counts` are its folded stacks.
pub fn same_drawing(drawn: &Value, http: &Value, counts: &BTreeMap<String, u128>) -> Result<()> {
    let answer = &drawn["answer"];
    for same in ["total", "type", "unit"] {
        ensure!(answer[same] == http[same], "{same}: {} {}", answer[same], http[same]);
    }
    for (figure, value) in answer["quality"].as_object().context("no figures")? {
        ensure!(*value == http["quality"][figure], "{figure}: {value} {}", http["quality"][figure]);
    }
    let samples: u128 = folded(drawn["folded"].as_str().context("no stacks")?)?.values().sum();
    ensure!(samples == counts.values().sum::<u128>(), "{samples} samples are drawn; {}", drawn["lines"]);
    Ok(())
}
