//! The same in the page: the queries of an application, the plan of one as a graph, and from an operator to its flame graph.

use anyhow::{Context as _, Result, ensure};
use emberscope_tests::Daemon;
use emberscope_tests::page::Seen;
use serde_json::Value;

/// Three clicks from the list of queries to the flame graph of an operator.
pub fn leads_to_an_operator(server: &Daemon, app: &str, id: u64, (from, until): (u64, u64)) -> Result<()> {
    let Some(mut seen) = Seen::or_skip("a_query_and_its_plan_in_the_page")? else { return Ok(()) };
    server.url().clone_into(&mut seen.base);
    let range = format!("app={app}&from={from}&until={until}");
    let answer = server.json(&format!("/api/v1/sql?{range}&execution={id}"))?;
    let nodes = answer["plan"]["nodes"].as_array().context("no plan")?;
    seen.see(&format!("#view=queries&{range}"))?;
    seen.press(&format!("tbody a[href*='execution={id}']"))?;
    seen.browser.wait(&format!("document.querySelectorAll('.plan .box').length === {}", nodes.len()))?;
    let edges = answer["plan"]["edges"].as_array().context("no edges")?;
    let drawn = seen.browser.js("return document.querySelectorAll('.plan path').length")?;
    ensure!(drawn == edges.len(), "{drawn} lines of {} edges", edges.len());
    // No box lies over another, and what gives rows lies above what takes them.
    let over = seen.browser.js(
        "const r = [...document.querySelectorAll('.plan .box')].map((b) => b.getBoundingClientRect()); \
         return r.flatMap((a, i) => r.slice(i + 1).filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length",
    )?;
    ensure!(over == 0, "{over} boxes lie over others");
    let named = nodes.iter().max_by_key(|node| node["samples"].as_u64()).context("no node")?;
    let name = named["name"].as_str().context("no name")?;
    let label = name.split(' ').next().unwrap_or(name);
    seen.browser.js(&format!(
        "[...document.querySelectorAll('.plan .box:not(.idle) a')].find((a) => a.textContent.includes({label:?})).click()"
    ))?;
    seen.hash_has("operator=")?;
    seen.hash_has("view=flame")?;
    seen.drawn()?;
    // The graph is of what the operators of that box have.
    let rows = answer["operators"].as_array().context("no operators")?;
    let of_box = |row: &&Value| row["nodes"].as_array().is_some_and(|all| all.contains(&named["id"]));
    let labels: Vec<&str> = rows
        .iter()
        .filter(of_box)
        .flat_map(|row| row["labels"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let chosen = seen.browser.js("return new URLSearchParams(location.hash.slice(1)).getAll('operator')")?;
    let chosen: Vec<&str> = chosen.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ensure!(
        !chosen.is_empty() && chosen.iter().all(|label| labels.contains(label)),
        "{chosen:?} of {labels:?}"
    );
    seen.quiet()
}
