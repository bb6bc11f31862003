//! Two profiles compared, Pyroscope's tree form, call sites and settings, by its own client.

use super::http::raw;
use super::{CPU, END, SAMPLES, START, ask, client, select, serve, with};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

#[test]
fn comparisons_answer_as_pyroscope_does() -> Result<()> {
    let Some(client) = client("pyroscope::comparisons")? else { return Ok(()) };
    let port = serve()?;
    let url = format!("http://127.0.0.1:{port}/behind/a/proxy");
    let of = |stage: &str| select(SAMPLES, &format!("{{app=\"app-1\",stage={stage:?}}}"));
    let mut other_type = of("1");
    other_type["profileTypeID"] = json!(CPU);
    let answers = ask(
        &client,
        &url,
        &[
            ("diff", "Diff", json!({"left": of("0"), "right": of("1")})),
            ("cut", "Diff", json!({"left": with(of("0"), "maxNodes", json!(3)), "right": of("1")})),
            ("nobody", "Diff", json!({"left": of("7"), "right": of("8")})),
            ("two types", "Diff", json!({"left": of("0"), "right": other_type})),
            ("one side", "Diff", json!({"left": of("0")})),
            ("settings", "settings.v1.SettingsService/Get", json!({})),
        ],
    )?;
    let by_name = |name: &str| answers.iter().find(|a| a["name"] == name).expect("asked").clone();
    assert_eq!(
        by_name("diff")["ok"]["flamegraph"],
        json!({"names": ["total", "java", "Task.run", "hash", "sort"],
               "levels": [{"values": ["0", "40", "0", "0", "55", "0", "0"]},
                          {"values": ["0", "40", "0", "0", "55", "0", "1"]},
                          {"values": ["0", "40", "0", "0", "55", "5", "2"]},
                          {"values": ["0", "0", "0", "5", "50", "50", "3", "0", "40", "40", "0", "0", "0", "4"]}],
               "total": "95", "maxSelf": "50", "leftTicks": "40", "rightTicks": "55"})
    );
    let cut = by_name("cut")["ok"]["flamegraph"].clone();
    assert_eq!(cut["names"], json!(["total", "java", "Task.run", "other"]));
    assert_eq!(cut["levels"][3]["values"], json!(["0", "40", "40", "5", "50", "50", "3"]));
    assert_eq!(
        by_name("nobody")["ok"]["flamegraph"],
        json!({"names": ["total"], "levels": [{"values": ["0", "0", "0", "0", "0", "0", "0"]}]})
    );
    assert_eq!(by_name("two types")["code"], "invalid_argument");
    assert_eq!(by_name("one side")["code"], "invalid_argument");
    assert_eq!(by_name("settings")["ok"], json!({}));

    // The older call, which Grafana's app for profiles makes, has the same numbers.
    let side = |side: &str, stage: &str| {
        format!(
            "{side}Query=process_cpu%3Asamples%3Acount%3Acpu%3Ananoseconds%7Bstage%3D%22{stage}%22%7D&{side}From={}&{side}Until={}",
            START / 1000,
            END / 1000
        )
    };
    let path = format!(
        "/behind/a/proxy/pyroscope/render-diff?{}&{}&max-nodes=8192",
        side("left", "0"),
        side("right", "1")
    );
    let (head, body) = raw(port, &format!("GET {path}"), "", b"")?;
    ensure!(head.contains(" 200 ") && head.contains("content-type: application/json"), "{head}");
    let body: Value = serde_json::from_slice(&body)?;
    assert_eq!(body["flamebearer"]["names"], by_name("diff")["ok"]["flamegraph"]["names"]);
    assert_eq!(body["flamebearer"]["levels"][2], json!([0, 40, 0, 0, 55, 5, 2]));
    assert_eq!((&body["leftTicks"], &body["rightTicks"]), (&json!(40), &json!(55)));
    assert_eq!(
        (&body["flamebearer"]["numTicks"], &body["metadata"]["format"]),
        (&json!(95), &json!("double"))
    );
    let (head, body) = raw(port, "GET /pyroscope/render-diff?leftQuery=%3Cscript%3E", "", b"")?;
    ensure!(head.contains(" 400 ") && head.contains("content-type: application/json"), "{head}");
    assert_eq!(serde_json::from_slice::<Value>(&body)?["code"], "invalid_argument");
    Ok(())
}

#[test]
fn trees_and_call_sites_have_the_same_sums() -> Result<()> {
    let Some(client) = client("pyroscope::trees_and_call_sites")? else { return Ok(()) };
    let url = format!("http://127.0.0.1:{}", serve()?);
    let tree = |request: Value| with(request, "format", json!("PROFILE_FORMAT_TREE"));
    let site = |names: &[&str]| {
        let functions: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        with(select(SAMPLES, "{}"), "stackTraceSelector", json!({"callSite": functions}))
    };
    let answers = ask(
        &client,
        &url,
        &[
            ("tree", "SelectMergeStacktraces", tree(select(SAMPLES, "{}"))),
            ("cut", "SelectMergeStacktraces", tree(with(select(SAMPLES, "{}"), "maxNodes", json!(3)))),
            ("nobody", "SelectMergeStacktraces", tree(select(SAMPLES, "{app=\"x\"}"))),
            ("of spans", "SelectMergeSpanProfile", tree(select(SAMPLES, "{}"))),
            ("site", "SelectMergeStacktraces", site(&["java", "Task.run", "hash"])),
            ("site's profile", "SelectMergeProfile", site(&["java", "Task.run"])),
            ("no such site", "SelectMergeStacktraces", site(&["Task.run"])),
            (
                "pgo",
                "SelectMergeProfile",
                with(select(SAMPLES, "{}"), "stackTraceSelector", json!({"goPgo": {}})),
            ),
        ],
    )?;
    let by_name = |name: &str| answers.iter().find(|a| a["name"] == name).expect("asked").clone();
    let stacks = |name: &str| unmarshal(by_name(name)["ok"]["tree"].as_str().context("tree")?);
    let expected =
        [("java;Task.run", 5), ("java;Task.run;hash", 50), ("java;Task.run;sort", 40), ("main", 5)];
    assert_eq!(stacks("tree")?, expected.map(|(stack, own)| (stack.to_owned(), own)));
    assert_eq!(stacks("of spans")?, stacks("tree")?);
    assert_eq!(
        stacks("cut")?,
        [("java;Task.run", 5), ("java;Task.run;other", 90), ("other", 5)].map(|(s, own)| (s.to_owned(), own))
    );
    assert_eq!(by_name("nobody")["ok"], json!({}));
    let graph = by_name("site")["ok"]["flamegraph"].clone();
    assert_eq!(
        (&graph["total"], &graph["names"]),
        (&json!("50"), &json!(["total", "java", "Task.run", "hash"]))
    );
    let profile = by_name("site's profile")["ok"]["sample"].as_array().context("samples")?.clone();
    let own = |s: &Value| s["value"][0].as_str().and_then(|v| v.parse::<i64>().ok());
    assert_eq!(profile.iter().filter_map(own).sum::<i64>(), 95);
    assert_eq!(by_name("no such site")["ok"], json!({}));
    assert_eq!(by_name("pgo")["code"], "unimplemented");
    Ok(())
}

/// Reads the tree form as Pyroscope's `UnmarshalTree` does: stacks with a value of their own, in order.
fn unmarshal(base64: &str) -> Result<Vec<(String, u64)>> {
    let digit = |c: u8| {
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".iter().position(|d| *d == c)
    };
    let bits: Vec<u32> = base64.bytes().filter_map(digit).map(|d| d as u32).collect();
    let mut bytes = Vec::new();
    for four in bits.chunks(4) {
        let word = four.iter().fold(0, |word, six| word << 6 | six) << (6 * (4 - four.len()));
        bytes.extend(&word.to_be_bytes()[1..four.len()]);
    }
    let mut stacks = Vec::new();
    let mut parents: Vec<Vec<String>> = vec![Vec::new()];
    let mut at = 0;
    while let Some(parent) = parents.pop() {
        let length = leb128(&bytes, &mut at)? as usize;
        let name = String::from_utf8(bytes.get(at..at + length).context("short")?.to_vec())?;
        at += length;
        let own = leb128(&bytes, &mut at)?;
        let callees = leb128(&bytes, &mut at)?;
        let path = if name.is_empty() { parent } else { [parent, vec![name]].concat() };
        if own > 0 {
            stacks.push((path.join(";"), own));
        }
        parents.extend((0..callees).map(|_| path.clone()));
    }
    ensure!(at == bytes.len(), "{} bytes too many", bytes.len() - at);
    stacks.sort();
    Ok(stacks)
}

fn leb128(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).context("short")?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    Ok(value)
}
