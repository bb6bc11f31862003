//! What a driver, a history server or a standalone Worker answers over HTTP: any body, and one that Spark gave and the
//! input spoils. Texts that are kept stay short, lists too.
#![cfg_attr(fuzzing, no_main)]

use emberscope_process::spark_rest;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// The answers of Spark 4.3.0 that the unit tests have.
static RECORDED: LazyLock<Vec<(usize, String)>> = LazyLock::new(|| {
    let text = include_str!("../../process/src/discovery/names/recorded/4.3.0.json");
    let all: serde_json::Value = serde_json::from_str(text).expect("the recorded answers");
    let kinds = spark_rest::KINDS.iter().enumerate();
    let mut told: Vec<_> =
        kinds.filter_map(|(kind, name)| Some((kind, all.get(*name)?.to_string()))).collect();
    let plan = include_str!("../../process/src/discovery/names/recorded/plan-4.3.0.json");
    told.push((spark_rest::KINDS.len() - 1, plan.to_owned()));
    told
});

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (kind, spoiled, bytes) = input;
    if !spoiled {
        spark_rest::read(usize::from(kind) % spark_rest::KINDS.len(), bytes);
        return;
    }
    let (kind, text) = &RECORDED[usize::from(kind) % RECORDED.len()];
    let mut body = text.clone().into_bytes();
    for change in bytes.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % body.len();
        body[at] = change[2];
        if change[3] < 16 {
            // Cut, or a value doubled where it stands.
            let end = (at + usize::from(change[3])).min(body.len());
            let again = body[at..end].to_vec();
            body.splice(at..at, again);
        }
    }
    spark_rest::read(*kind, &body);
});
