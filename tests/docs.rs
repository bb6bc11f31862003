//! The pages for people say what the code says: the lists of reasons and labels, the paths, the links.
//!
//! In: README.md, CONTRIBUTING.md, CHANGELOG.md, docs/**.md, and the library's own lists. The tables of
//! docs/reference/reasons.md and labels.md are held row by row: a reason or label that the code has must
//! have its row, and no other row may be there. Not held: what the rows say.

use anyhow::{Context, Result, ensure};
use emberscope_model::{
    Deploy, DropReason, LabelKey, Role, StackEnd, ThreadClass, UnknownReason, WaitReason,
};
use emberscope_symbolize::{AskError, Refusal};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Directories at the root of the repository; a path in backticks that begins with one must exist.
const ROOTS: [&str; 9] =
    ["profiler/", "profiler-ebpf/", "xtask/", "tests/", "deploy/", "grafana/", "docs/", ".ci/", "./x"];

/// What a build or a run makes.
const MADE: [&str; 1] = ["target/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// All pages, relative to the root.
fn pages() -> Result<Vec<String>> {
    let mut found: Vec<String> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned).into();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path.strip_prefix(root())?.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

/// The text under a heading, up to the next heading of the same depth or less.
fn section<'a>(page: &'a str, heading: &str) -> Result<&'a str> {
    let depth = heading.chars().take_while(|c| *c == '#').count();
    let at = page.find(&format!("{heading}\n")).with_context(|| format!("no {heading}"))?;
    let body = &page[at + heading.len()..];
    let ends = |line: &str| {
        let hashes = line.chars().take_while(|c| *c == '#').count();
        hashes > 0 && hashes <= depth
    };
    let end = body.match_indices('\n').find(|(i, _)| ends(&body[i + 1..])).map_or(body.len(), |(i, _)| i);
    Ok(&body[..end])
}

/// The first cells of a section's tables, where they are in backticks.
fn first_cells(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(cell, _)| cell).collect()
}

fn hold(page: &str, heading: &str, code: impl IntoIterator<Item = &'static str>) -> Result<()> {
    let on_page = first_cells(section(page, heading)?);
    let in_code: Vec<&str> = code.into_iter().collect();
    ensure!(on_page == in_code, "{heading}: the page has {on_page:?}, the code {in_code:?}");
    Ok(())
}

#[test]
fn every_reason_is_on_its_page() -> Result<()> {
    let reasons = page("docs/reference/reasons.md")?;
    hold(&reasons, "## How a user stack ended", StackEnd::ALL.iter().map(|r| r.slug()))?;
    hold(&reasons, "## What the kernel side could not deliver", DropReason::ALL.iter().map(|r| r.slug()))?;
    hold(&reasons, "## Why a frame has no name", UnknownReason::ALL.iter().map(|r| r.slug()))?;
    hold(&reasons, "## Why a perf map was not read", Refusal::ALL.iter().map(|r| r.slug()))?;
    // Numbers are part of the kernel boundary, and the sentences are the code's own.
    for reason in StackEnd::ALL {
        let row = format!("| `{}` | {} | {} |", reason.slug(), *reason as u8, reason.sentence());
        ensure!(reasons.contains(&row), "reasons.md lacks: {row}");
    }
    for reason in DropReason::ALL {
        let row = format!("| `{}` | {} | {} |", reason.slug(), *reason as u8, reason.sentence());
        ensure!(reasons.contains(&row), "reasons.md lacks: {row}");
    }
    Ok(())
}

#[test]
fn every_way_of_asking_a_jvm_in_vain_is_on_its_page() -> Result<()> {
    let kind = std::io::ErrorKind::Other;
    let all = [
        AskError::Gone,
        AskError::NotReady,
        AskError::Stopped,
        AskError::Never(""),
        AskError::Timeout(""),
        AskError::Denied(0),
        AskError::UnknownCommand(String::new()),
        AskError::Unsafe("", ""),
        AskError::Failed(String::new()),
        AskError::System("", kind),
    ];
    hold(&page("docs/reference/reasons.md")?, "## Why asking a JVM failed", all.iter().map(AskError::slug))
}

#[test]
fn every_label_is_on_its_page() -> Result<()> {
    let labels = page("docs/reference/labels.md")?;
    hold(&labels, "## Labels", LabelKey::ASKED.iter().map(|key| key.name()))?;
    hold(&labels, "## Values of `role`", Role::ALL.iter().map(|role| role.slug()))?;
    hold(&labels, "## Values of `deploy`", Deploy::ALL.iter().map(|deploy| deploy.slug()))
}

#[test]
fn every_thread_class_is_on_its_page() -> Result<()> {
    let classes = ThreadClass::ALL.iter().map(|class| class.slug());
    hold(&page("docs/attribution.md")?, "## Thread classes", classes)
}

#[test]
fn every_reason_to_wait_is_on_its_page() -> Result<()> {
    let reasons = WaitReason::ALL.iter().map(|reason| reason.slug());
    hold(&page("docs/reference/labels.md")?, "## Values of `wait`", reasons)
}

/// Texts in backticks outside of code blocks.
fn in_backticks(page: &str) -> Vec<&str> {
    let mut fenced = false;
    let prose = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    prose.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// Whether it has the shape of a path of this repository.
fn is_path(text: &str) -> bool {
    let whole = !text.contains(|c: char| c.is_whitespace() || "*<>{}$=".contains(c));
    let under = ROOTS.iter().any(|root| text.starts_with(root));
    let here = ["Cargo.toml", "deny.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"].contains(&text);
    whole && (under || here) && !MADE.iter().any(|made| text.starts_with(made))
}

#[test]
fn paths_in_the_pages_exist() -> Result<()> {
    let mut missing = BTreeSet::new();
    let mut seen = 0;
    for name in pages()? {
        let text = page(&name)?;
        for path in in_backticks(&text).into_iter().filter(|text| is_path(text)) {
            seen += 1;
            if !root().join(path).exists() {
                missing.insert(format!("{name}: {path}"));
            }
        }
    }
    ensure!(missing.is_empty(), "no such files: {missing:#?}");
    ensure!(seen > 20, "only {seen} paths were found: the pages changed their shape");
    Ok(())
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn links_between_the_pages_lead_somewhere() -> Result<()> {
    let mut broken = BTreeSet::new();
    for name in pages()? {
        let text = page(&name)?;
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            if link.contains("://") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let from = Path::new(&name).parent().unwrap_or(Path::new(""));
            let target = if path.is_empty() { PathBuf::from(&name) } else { from.join(path) };
            let found = root().join(&target);
            let headed = heading.is_empty()
                || std::fs::read_to_string(&found).is_ok_and(|page| {
                    page.lines().any(|line| line.starts_with('#') && anchor(line) == heading)
                });
            if !found.exists() || !headed {
                broken.insert(format!("{name}: {link}"));
            }
        }
    }
    ensure!(broken.is_empty(), "broken links: {broken:#?}");
    Ok(())
}
