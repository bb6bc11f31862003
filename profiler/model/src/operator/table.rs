//! The rules as a file for the Spark package, which asks blocks without a daemon: `deploy/spark/emberscope_spark/operators.json`.
//!
//! It is made here, of the rules themselves, and held equal to them: `EMBERSCOPE_WRITE_DOCS=1 cargo test -p emberscope-model
//! --lib operator` writes it anew.

use super::nodes::{NODES, PYTHON};
use super::rules::{BEGINNINGS, CLASSES, Claim, ENGINES, LIBRARIES, PREFIXES, WORDS};
use super::{
    GENERATED, ITERATE, ITERATED, ITERATORS, MAX_STAGE, OF_STAGE, Operator, PROJECT, PROJECTIONS, WORKERS,
};
use std::path::Path;

/// A string of JSON: names of the rules have nothing that is to be escaped.
fn text(name: &str) -> String {
    assert!(name.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\'), "{name}");
    format!("\"{name}\"")
}

fn list(names: &[&str]) -> String {
    let lines: Vec<String> = names.iter().map(|name| format!("    {}", text(name))).collect();
    format!("[\n{}\n  ]", lines.join(",\n"))
}

fn object(pairs: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let lines: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("    {}: {value}", text(name))).collect();
    format!("{{\n{}\n  }}", lines.join(",\n"))
}

fn claim(claim: Claim) -> String {
    match claim {
        Claim::Own => "own".into(),
        Claim::Shared => "shared".into(),
        Claim::Unless(other) => format!("unless {other}"),
        Claim::Around => "around".into(),
        Claim::Ground => "ground".into(),
        Claim::Python => "python".into(),
        Claim::Silent => "silent".into(),
    }
}

fn table() -> String {
    let named = |pairs: &[(&'static str, &str)]| object(pairs.iter().map(|(of, name)| (*of, text(name))));
    let claims = |all: &'static [(&'static str, &str, Claim)]| {
        object(all.iter().map(|(of, name, says)| (*of, format!("[{}, {}]", text(name), text(&claim(*says))))))
    };
    let parts = [
        ("unknown", text(Operator::UNKNOWN)),
        ("python_name", text(Operator::PYTHON)),
        ("generated", text(&format!("{GENERATED}{OF_STAGE}"))),
        ("max_stage", MAX_STAGE.to_string()),
        ("workers", list(&WORKERS)),
        ("iterators", text(ITERATORS)),
        ("iterate", list(&ITERATE)),
        ("iterated", text(ITERATED)),
        ("projections", list(&PROJECTIONS)),
        ("project", text(PROJECT)),
        ("prefixes", named(PREFIXES)),
        ("words", named(WORDS)),
        ("classes", claims(CLASSES)),
        ("engines", named(ENGINES)),
        ("libraries", named(LIBRARIES)),
        ("beginnings", claims(BEGINNINGS)),
        ("nodes", list(NODES)),
        ("python", list(PYTHON)),
    ];
    let lines: Vec<String> = parts.iter().map(|(name, value)| format!("  {}: {value}", text(name))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[test]
fn the_spark_package_has_these_rules() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/spark/emberscope_spark/operators.json");
    if std::env::var_os("EMBERSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&file, table()).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap();
    assert!(
        there == table(),
        "operators.json has other rules: EMBERSCOPE_WRITE_DOCS=1 cargo test -p emberscope-model --lib operator"
    );
}
