//! A file for speedscope (<https://www.speedscope.app>): its JSON, with a sampled profile.
//!
//! In: folded stacks, a name, and what the counts are. Out: frames by name, each once, and a sample with its weight for each
//! stack. Fields as in speedscope's own schema (`file-format-schema.json` of 1.x).

use serde_json::json;
use std::collections::HashMap;

/// The file. `unit` is pprof's name of the unit: `count`, `nanoseconds`, `bytes`.
pub fn render(folded: &[u8], name: &str, unit: &str) -> Vec<u8> {
    let folded = String::from_utf8_lossy(folded);
    let (mut frames, mut places) = (Vec::new(), HashMap::new());
    let (mut samples, mut weights, mut total) = (Vec::new(), Vec::new(), 0u64);
    for line in folded.lines() {
        let Some((stack, weight)) = line.rsplit_once(' ') else { continue };
        let Ok(weight) = weight.parse::<u64>() else { continue };
        let stack: Vec<usize> = stack
            .split(';')
            .map(|name| {
                *places.entry(name).or_insert_with(|| {
                    frames.push(json!({ "name": name }));
                    frames.len() - 1
                })
            })
            .collect();
        total = total.saturating_add(weight);
        samples.push(stack);
        weights.push(weight);
    }
    // Speedscope calls a number without a unit so.
    let unit = if unit == "count" { "none" } else { unit };
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("emberscope ", env!("CARGO_PKG_VERSION")),
        "name": name,
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": total,
            "samples": samples, "weights": weights,
        }],
    });
    file.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_frames() {
        let folded = "a;b 3\na;b;c d 2\na 1\nno number x\n";
        let file: serde_json::Value =
            serde_json::from_slice(&render(folded.as_bytes(), "etl", "count")).unwrap();
        let names = json!([{ "name": "a" }, { "name": "b" }, { "name": "c d" }]);
        assert_eq!(file["shared"]["frames"], names);
        let profile = &file["profiles"][0];
        assert_eq!(profile["samples"], json!([[0, 1], [0, 1, 2], [0]]));
        assert_eq!((&profile["weights"], &profile["endValue"]), (&json!([3, 2, 1]), &json!(6)));
        assert_eq!((&profile["type"], &profile["unit"]), (&json!("sampled"), &json!("none")));
        let ns: serde_json::Value = serde_json::from_slice(&render(b"a 1", "etl", "nanoseconds")).unwrap();
        assert_eq!(ns["profiles"][0]["unit"], "nanoseconds");
    }
}
