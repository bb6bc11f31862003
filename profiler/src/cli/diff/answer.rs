//! A difference as the API tells it, and its table. Figures are in the unit of the kind of samples that is compared.

use crate::cli::answer::{Basis, counted};
use crate::cli::stages::attempt;
use crate::cli::table::{Align, Table};
use crate::cli::text::{amount, signed_amount, time};
use emberscope_api::{
    Diff, Head, LongTask, MethodName, MethodOrder, Pair, Scale, Side, Slow, SlowLock, Word as _,
};
use emberscope_model::SampleKind;
use serde_json::Value;
use std::borrow::Cow;

/// What a slow task's longer wall time went to, the parts over a percent.
fn why(slow: &Slow) -> String {
    let parts = slow.because.iter().filter(|more| more.share >= 0.01).map(|more| {
        let what = match &*more.of {
            "run_delay" => "run delay",
            "blocked" => "waiting, not sampled",
            of => of,
        };
        format!("{what} {:.0} % ({} a task)", more.share * 100.0, time(Some(more.seconds)))
    });
    format!("slow because of: {}", parts.collect::<Vec<_>>().join(", "))
}

/// Which locks those are that a slow task waits for, and who held them.
fn at_locks(slow: &Slow) -> Option<String> {
    let one = |of: &SlowLock| format!("{} held by {} ({} a task)", of.lock, of.owner, time(Some(of.seconds)));
    let locks: Vec<_> = slow.locks.iter().map(one).collect();
    (!locks.is_empty()).then(|| format!("locks: {}", locks.join(", ")))
}

/// The difference with its standard error, and what it is the difference of.
fn cells(pair: &Pair, kind: SampleKind) -> [String; 3] {
    let difference = pair.difference.map(|difference| signed_amount(difference, kind));
    let mut difference = difference.unwrap_or_default();
    if let Some(error) = pair.difference_error.filter(|_| !difference.is_empty()) {
        difference.push_str(&format!(" +- {}", amount(Some(error), kind)));
    }
    let [left, right] = pair.sides().map(|side| amount(side, kind));
    [difference, left, right]
}

/// What is compared: the kind of both sides.
fn kind_of(diff: &Diff<'_>) -> SampleKind {
    basis(&diff.right).kind()
}

/// The name of a kind's figures in the plural: times, or the unit of what is no time.
fn figures(kind: SampleKind) -> &'static str {
    if kind.is_time() { "times" } else { kind.facts().unit }
}

/// Heads of columns of figures: with the unit, but for times, of which each says its own.
fn heads(names: [&'static str; 4], kind: SampleKind) -> [Cow<'static, str>; 4] {
    names.map(|name| match kind.is_time() {
        true => name.into(),
        false => format!("{name} {}", kind.facts().unit.to_uppercase()).into(),
    })
}

/// What a side rests on.
fn basis(side: &Side) -> Basis {
    Head { basis: side.basis.clone(), note: side.note.clone(), ..Head::default() }.into()
}

fn line(of: &Side, side: &str) -> String {
    let slow = of.slow.as_ref();
    let name = slow.map(|slow| &*slow.name).filter(|name| !name.is_empty() && *name != side);
    let mut line = name.map_or(side.to_owned(), |name| format!("{side} ({name})"));
    line.push_str(": ");
    if let Some(slow) = slow {
        line.push_str(&counted(slow.task_count, "task"));
        match time(slow.task_cpu_seconds) {
            cpu if cpu.is_empty() => line.push_str(", "),
            cpu => line.push_str(&format!(" of {cpu} CPU in all, ")),
        }
    }
    let basis = basis(of);
    let kind = basis.kind();
    let whole = of.amount.weight.of(kind).and_then(Value::as_f64);
    match (amount(whole, kind), kind.facts().unit) {
        (whole, _) if whole.is_empty() => {}
        (whole, "ns" | "bytes") => line.push_str(&format!("{whole} sampled, ")),
        (count, unit) => line.push_str(&format!("{count} {unit} sampled, ")),
    }
    line + &basis.line()
}

/// A side without samples: nothing can be compared.
pub fn empty_side(diff: &Diff<'_>) -> Option<(&'static str, Basis)> {
    let sides = [("left", basis(&diff.left)), ("right", basis(&diff.right))];
    sides.into_iter().find(|(_, basis)| basis.samples() == 0)
}

/// What each side rests on.
pub fn lines(diff: &Diff<'_>) -> [String; 2] {
    [line(&diff.left, "left"), line(&diff.right, "right")]
}

/// A row for each method, the largest difference first, and the whole in the last.
pub fn table(diff: &Diff<'_>) -> Table {
    let by_total = MethodOrder::from_word(&diff.sort) == Some(MethodOrder::Total);
    let (sorted, other) = if by_total { ("TOTAL", "SELF") } else { ("SELF", "TOTAL") };
    let kind = kind_of(diff);
    let mut columns = heads([sorted, "LEFT", "RIGHT", other], kind).map(|name| (name, Align::Right)).to_vec();
    columns.extend(["METHOD", "MODULE"].map(|name| (name.into(), Align::Left)));
    let mut table = Table::new(&columns);
    table.give_way(&["MODULE"]);
    for row in &diff.diff {
        let (first, second) = if by_total { (&row.total, &row.own) } else { (&row.own, &row.total) };
        let [difference, left, right] = cells(first, kind);
        let [beside, ..] = cells(second, kind);
        let [name, module] = [&row.method.name, &row.method.module].map(|text| text.to_string());
        table.row([difference, left, right, beside, name, module]);
    }
    let [difference, left, right] = cells(&diff.total, kind);
    table.row([difference, left, right, String::new(), "(all)".to_owned(), String::new()]);
    if diff.cut > 0 {
        table.note(format!("and {}: see them with --limit", counted(diff.cut, "more method")));
    }
    match &diff.cause {
        _ if diff.significant == Some(false) => table.note(
            "no significant difference: neither the whole nor a method differs by more than chance explains"
                .to_owned(),
        ),
        Some(MethodName { name, .. }) => table.note(format!("most of the difference comes from {name}")),
        None => {}
    }
    if let Some(slow) = &diff.slow {
        for note in slow_notes(slow, diff) {
            table.note(note);
        }
    }
    table.note(how(diff));
    table
}

/// Which tasks are compared, and why they are slow.
fn slow_notes(slow: &Slow, diff: &Diff<'_>) -> Vec<String> {
    let by = if slow.by.is_empty() { "cpu" } else { &slow.by };
    let at = |p| slow.percentiles.get(&format!("p{p}_{by}_seconds"))?.as_f64();
    let [p40, p60, p90] = [40, 60, 90].map(at).map(time);
    let most = if by == "wall" { "took the longest" } else { "used the most CPU" };
    let mut notes = vec![format!(
        "of the stage's {}, right are those that {most} (above the 90th percentile, {p90}), left \
             those from the 40th to the 60th ({p40} to {p60})",
        counted(slow.tasks, "task")
    )];
    if !slow.because.is_empty() {
        notes.push(why(slow));
    }
    notes.extend(at_locks(slow));
    let kind = kind_of(diff);
    if by == "wall" && kind == SampleKind::Cpu {
        notes.push("methods are compared by CPU time; --type wall compares where tasks wait".to_owned());
    }
    if !kind.is_time() {
        notes.push(format!("methods are compared by {}", kind.facts().title));
    }
    notes.extend(slow.long.as_ref().map(long));
    notes
}

/// A task that is slow by wall time, where CPU time is compared.
fn long(of: &LongTask) -> String {
    let [wall, blocked, usual] = [of.wall_seconds, of.blocked_seconds, of.usual_wall_seconds];
    let [wall, blocked, usual] = [wall, blocked, usual].map(|seconds| time(Some(seconds)));
    let index = attempt(&of.task.task_index, &of.task.task_attempt);
    let executor = of.task.executor.as_ref().map(|id| format!(" on executor {id}")).unwrap_or_default();
    let maybe = match of.waits_sampled {
        true => "",
        false => "; up to Spark 4.1 the thread's wait for its next task may be in that",
    };
    format!(
        "another task is slow by wall time: task {index}{executor} took {wall}, {blocked} of it blocked, where the usual ones \
         took {usual}: compare with --by wall{maybe}"
    )
}

/// How figures were scaled and errors come about.
fn how(diff: &Diff<'_>) -> String {
    let kind = kind_of(diff);
    let figures = figures(kind);
    let apart = format!("sqrt(l^2/m + r^2/n) of {figures} l and r of m and n samples");
    let (scale, error) = match Scale::from_word(&diff.scale) {
        Some(Scale::Task) => (format!("{figures} are per task"), apart),
        Some(Scale::Absolute) => (format!("{figures} are not scaled"), apart),
        Some(Scale::Equal) | None => (
            format!("left {figures} are scaled to an equal total"),
            "that of the shares of both totals".to_owned(),
        ),
    };
    let of = if kind == SampleKind::Cpu { String::new() } else { format!(" of {}", kind.facts().title) };
    format!("by samples{of}; {scale}; +- is the standard error, {error}")
}
