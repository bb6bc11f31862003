//! The tables of a report: the whole, queries, stages, operators, methods, settings.

use crate::cli::table::Align;
use crate::cli::text::{percent, signed_time, time};
use emberscope_api::{Change, Compare, ComparedSetting, ComparedStage, ComparedTimes, Pair};
use std::borrow::Cow;

/// A table with a heading.
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// What its columns are.
    pub columns: Vec<(&'static str, Align)>,
    /// Its cells; an empty one means that the figure is not available.
    pub rows: Vec<Vec<String>>,
    /// Rows that the limit left out.
    pub cut: u64,
}

const FIGURES: [(&str, Align); 4] =
    [("DIFFERENCE", Align::Right), ("CHANGE", Align::Right), ("LEFT", Align::Right), ("RIGHT", Align::Right)];

/// The difference with its error.
fn difference(pair: &Pair) -> String {
    let difference = pair.difference.map(signed_time).unwrap_or_default();
    match pair.difference_error.filter(|_| !difference.is_empty()) {
        Some(error) => format!("{difference} +- {}", time(Some(error))),
        None => difference,
    }
}

/// `+12.3 %`; empty of a left figure that is nothing.
pub fn growth(pair: &Pair) -> String {
    let growth = pair.of_left(pair.difference);
    growth.map(|growth| format!("{:+.1} %", 100.0 * growth)).unwrap_or_default()
}

/// How it changed, or why that cannot be said.
fn change(pair: &Pair, significant: bool, only: Option<&str>) -> String {
    match (only, pair.difference_error) {
        (Some(side), _) => format!("only {side}"),
        (None, Some(_)) if !significant => "within error".to_owned(),
        (None, Some(_)) if pair.left_seconds == Some(0.0) => "new".to_owned(),
        (None, Some(_)) => growth(pair),
        (None, None) => growth(pair) + " (no error)",
    }
}

fn figures(of: &Change, only: Option<&str>) -> [String; 4] {
    let Pair { left_seconds, right_seconds, .. } = of.pair;
    [difference(&of.pair), change(&of.pair, of.significant, only), time(left_seconds), time(right_seconds)]
}

/// `12.34 % -> 14.00 %`, as parts of the runs.
fn shares(of: &Change) -> String {
    match (of.left_share, of.right_share) {
        (None, None) => String::new(),
        (left, right) => format!("{} -> {}", percent(left), percent(right)),
    }
}

fn columns(more: &[(&'static str, Align)]) -> Vec<(&'static str, Align)> {
    FIGURES.iter().chain(more).copied().collect()
}

fn row(figures: [String; 4], more: impl IntoIterator<Item = String>) -> Vec<String> {
    figures.into_iter().chain(more).collect()
}

/// Reasons to wait by how much more of them there is.
fn waits(times: &ComparedTimes) -> Vec<(&Cow<'static, str>, [f64; 2])> {
    let mut waits: Vec<_> = times.waited.iter().map(|(reason, both)| (reason, *both)).collect();
    waits.sort_by(|(_, [l, r]), (_, [m, s])| (s - m).abs().total_cmp(&(r - l).abs()));
    waits
}

/// Settings that are not the same.
pub fn settings(compare: &Compare<'_>) -> Section {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    let row =
        |setting: &ComparedSetting| vec![setting.name.clone(), value(&setting.left), value(&setting.right)];
    Section {
        title: "Settings that differ",
        columns: ["SETTING", "LEFT", "RIGHT"].map(|name| (name, Align::Left)).to_vec(),
        rows: compare.settings.iter().map(row).collect(),
        cut: 0,
    }
}

/// Both runs as a whole.
pub fn whole(compare: &Compare<'_>) -> Section {
    let whole = &compare.whole;
    let times = &whole.times;
    let exact = [
        (Some(&whole.cpu), "CPU of tasks"),
        (Some(&whole.beside), "CPU of other threads: driver, GC, JIT, ..."),
        (whole.wall.as_ref(), "the run, from its beginning to its end"),
        (times.task_wall.as_ref(), "wall time of tasks"),
        (times.run_delay.as_ref(), "of it: run delay"),
        (times.blocked.as_ref(), "of it: blocked time"),
    ];
    let mut rows: Vec<Vec<String>> =
        exact.into_iter().filter_map(|(of, what)| Some(row(figures(of?, None), [what.to_owned()]))).collect();
    for (reason, [left, right]) in waits(times) {
        let figures = [signed_time(right - left), String::new(), time(Some(left)), time(Some(right))];
        rows.push(row(figures, [format!("sampled waits: {reason}")]));
    }
    Section { title: "Whole", columns: columns(&[("WHAT", Align::Left)]), rows, cut: 0 }
}

/// The reason of which a stage or query waits the most more or less.
fn waited(times: &ComparedTimes) -> String {
    let most = waits(times).into_iter().next();
    most.map(|(reason, [left, right])| format!("{reason} {}", signed_time(right - left))).unwrap_or_default()
}

/// Queries.
pub fn queries(compare: &Compare<'_>) -> Section {
    let of = &compare.queries;
    let rows = of.rows.iter().map(|query| {
        let number = |id: Option<u64>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let plan = if query.plan_changed == Some(true) { "another plan" } else { "" };
        let numbers = format!("{} -> {}", number(query.left_execution), number(query.right_execution));
        let more =
            [shares(&query.cpu), waited(&query.times), numbers, plan.to_owned(), query.description.clone()];
        row(figures(&query.cpu, query.only.as_deref()), more)
    });
    let more = [
        ("SHARE", Align::Right),
        ("WAITED", Align::Left),
        ("QUERY", Align::Left),
        ("PLAN", Align::Left),
        ("DESCRIPTION", Align::Left),
    ];
    Section { title: "Queries", columns: columns(&more), rows: rows.collect(), cut: of.cut }
}

fn stage_name(stage: &ComparedStage) -> String {
    let number = stage.right_stage.as_ref().or(stage.left_stage.as_ref());
    let without = match number.map(String::as_str) {
        Some("unknown") => "(tasks whose name was not seen)",
        _ => "(no name from Spark: by order)",
    };
    let name = stage.name.clone().unwrap_or_else(|| without.to_owned());
    match stage.description.as_ref().filter(|text| !text.is_empty() && **text != name) {
        Some(description) => format!("{description}: {name}"),
        None => name,
    }
}

/// Stages.
pub fn stages(compare: &Compare<'_>) -> Section {
    let of = &compare.stages;
    let rows = of.rows.iter().map(|stage| {
        let number = |id: &Option<String>| id.clone().unwrap_or_else(|| "-".to_owned());
        let numbers = format!("{} -> {}", number(&stage.left_stage), number(&stage.right_stage));
        let tasks = match stage.left_tasks == stage.right_tasks {
            true => stage.left_tasks.to_string(),
            false => format!("{} -> {}", stage.left_tasks, stage.right_tasks),
        };
        let more = [shares(&stage.cpu), waited(&stage.times), numbers, tasks, stage_name(stage)];
        row(figures(&stage.cpu, stage.only.as_deref()), more)
    });
    let more = [
        ("SHARE", Align::Right),
        ("WAITED", Align::Left),
        ("STAGE", Align::Left),
        ("TASKS", Align::Right),
        ("NAME", Align::Left),
    ];
    Section { title: "Stages", columns: columns(&more), rows: rows.collect(), cut: of.cut }
}

/// Operators of Spark SQL; none of a job without any.
pub fn operators(compare: &Compare<'_>) -> Section {
    let of = &compare.operators;
    let is_sql = of.rows.iter().any(|row| row.operator != "unknown");
    let rows = of.rows.iter().filter(|_| is_sql);
    let rows = rows.map(|of| row(figures(&of.cpu, None), [shares(&of.cpu), of.operator.clone()]));
    let more = [("SHARE", Align::Right), ("OPERATOR", Align::Left)];
    Section { title: "Operators, by samples", columns: columns(&more), rows: rows.collect(), cut: of.cut }
}

/// Methods.
pub fn methods(compare: &Compare<'_>) -> Section {
    let of = &compare.methods;
    let rows = of.rows.iter().map(|of| {
        let Pair { left_seconds, right_seconds, .. } = of.method.own;
        let change = change(&of.method.own, of.significant, None);
        let figures = [difference(&of.method.own), change, time(left_seconds), time(right_seconds)];
        let [name, module] = [&of.method.method.name, &of.method.method.module].map(|text| text.to_string());
        row(figures, [difference(&of.method.total), name, module])
    });
    let more = [("TOTAL", Align::Right), ("METHOD", Align::Left), ("MODULE", Align::Left)];
    Section {
        title: "Methods, self time by samples",
        columns: columns(&more),
        rows: rows.collect(),
        cut: of.cut,
    }
}
