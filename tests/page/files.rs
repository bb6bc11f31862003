//! Downloads: each format, and that its figures are the graph's.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::page::Seen;
use serde_json::Value;
use std::io::Read as _;
use std::time::Duration;

pub fn all(seen: &Seen, dir: &std::path::Path) -> Result<()> {
    seen.see("#view=flame&app=app-2")?;
    seen.drawn()?;
    for (format, end) in
        [("svg", ".svg"), ("folded", ".folded"), ("pprof", ".pb.gz"), ("speedscope", ".speedscope.json")]
    {
        seen.choose("#download", format)?;
        let begun = std::time::Instant::now();
        let came = || -> Result<()> {
            let mut files = std::fs::read_dir(dir)?.flatten().map(|entry| entry.path());
            let file = files.find(|path| path.to_string_lossy().ends_with(end));
            right(format, &std::fs::read(file.with_context(|| format!("no {end} came"))?)?)
        };
        // The browser makes the file before it has all of it.
        while let Err(error) = came() {
            ensure!(begun.elapsed() < Duration::from_secs(20), "{error:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

/// Whether a file of this format has the graph's figures.
fn right(format: &str, bytes: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(bytes);
    match format {
        "svg" => ensure!(
            text.contains("Job.work") && !text.contains("<script") && !text.contains("<img"),
            "{text}"
        ),
        "folded" => {
            ensure!(text.lines().any(|l| l.ends_with("Job.work;java.util.Arrays.sort 1200000000")), "{text}")
        }
        "speedscope" => {
            let json: Value = serde_json::from_slice(bytes)?;
            let end = &json["profiles"][0]["endValue"];
            ensure!(end.as_f64() == Some(2.3e9), "{end}");
        }
        _ => pprof(bytes)?,
    }
    Ok(())
}

/// All samples are in it, in nanoseconds, and the names.
fn pprof(packed: &[u8]) -> Result<()> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).context("gzip")?;
    let (mut sum, mut texts) = (0, Vec::new());
    for (field, block) in fields(&bytes)? {
        match field {
            // Sample { location_id = 1, value = 2 }
            2 => {
                for (_, mut values) in fields(block)?.into_iter().filter(|(field, _)| *field == 2) {
                    sum += varint(&mut values).context("a value")?;
                }
            }
            6 => texts.push(String::from_utf8_lossy(block).into_owned()),
            _ => {}
        }
    }
    ensure!(sum == 2_300_000_000, "{sum} ns");
    for name in ["cpu", "nanoseconds", "java.util.Arrays.sort"] {
        ensure!(texts.iter().any(|text| text == name), "{name} is not in {texts:?}");
    }
    Ok(())
}

/// Fields of a protobuf message that have bytes.
fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, &[u8])>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes).context("a key")?;
        let value = varint(&mut bytes).context("a value")?;
        if key & 7 == 2 {
            let (block, rest) = bytes.split_at_checked(value as usize).context("a block")?;
            out.push((key >> 3, block));
            bytes = rest;
        }
    }
    Ok(out)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut out = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        out |= u64::from(first & 127) << shift;
        if first & 128 == 0 {
            return Some(out);
        }
    }
    None
}
