//! A difference as the API tells it, and its table.

use crate::cli::answer::{Basis, counted};
use crate::cli::table::{Align, Table};
use crate::cli::text::{signed_time, time};
use serde::Deserialize;

/// The difference of two sides: the right one against the left.
#[derive(Debug, Deserialize)]
pub struct Diff {
    #[serde(default)]
    scale: String,
    left: Side,
    right: Side,
    slow: Option<Slow>,
    #[serde(default)]
    total: Cost,
    cause: Option<Name>,
    #[serde(default)]
    sort: String,
    #[serde(default)]
    cut: u64,
    #[serde(default)]
    diff: Vec<Method>,
}

#[derive(Debug, Deserialize)]
struct Side {
    #[serde(flatten)]
    basis: Basis,
    name: Option<String>,
    #[serde(alias = "off_cpu_seconds", alias = "wall_seconds")]
    cpu_seconds: Option<f64>,
    task_count: Option<u64>,
    task_cpu_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Slow {
    #[serde(default)]
    tasks: u64,
    #[serde(default)]
    by: String,
    #[serde(alias = "p40_wall_seconds")]
    p40_cpu_seconds: Option<f64>,
    #[serde(alias = "p60_wall_seconds")]
    p60_cpu_seconds: Option<f64>,
    #[serde(alias = "p90_wall_seconds")]
    p90_cpu_seconds: Option<f64>,
    #[serde(default)]
    because: Vec<More>,
}

impl Slow {
    /// What a slow task's longer wall time went to, the parts over a percent.
    fn why(&self) -> String {
        let parts = self.because.iter().filter(|more| more.share >= 0.01).map(|more| {
            let what = match more.of.as_str() {
                "run_delay" => "waiting for a CPU",
                "blocked" => "waiting, not sampled",
                of => of,
            };
            format!("{what} {:.0} % ({} a task)", more.share * 100.0, time(Some(more.seconds)))
        });
        format!("slow because of: {}", parts.collect::<Vec<_>>().join(", "))
    }
}

/// What slow tasks have more of.
#[derive(Debug, Deserialize)]
struct More {
    of: String,
    seconds: f64,
    share: f64,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Name {
    name: String,
    #[serde(default)]
    module: String,
}

#[derive(Debug, Deserialize)]
struct Method {
    #[serde(flatten)]
    name: Name,
    #[serde(rename = "self", default)]
    own: Cost,
    #[serde(default)]
    total: Cost,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cost {
    left_seconds: Option<f64>,
    right_seconds: Option<f64>,
    difference: Option<f64>,
    difference_error: Option<f64>,
}

impl Cost {
    /// The difference with its standard error, and what it is the difference of.
    fn cells(&self) -> [String; 3] {
        let mut difference = self.difference.map(signed_time).unwrap_or_default();
        if let Some(error) = self.difference_error.filter(|_| !difference.is_empty()) {
            difference.push_str(&format!(" +- {}", time(Some(error))));
        }
        [difference, time(self.left_seconds), time(self.right_seconds)]
    }
}

impl Side {
    fn line(&self, side: &str) -> String {
        let name = self.name.as_deref().filter(|name| !name.is_empty() && *name != side);
        let mut line = name.map_or(side.to_owned(), |name| format!("{side} ({name})"));
        line.push_str(": ");
        if let Some(tasks) = self.task_count {
            line.push_str(&counted(tasks, "task"));
            match time(self.task_cpu_seconds) {
                cpu if cpu.is_empty() => line.push_str(", "),
                cpu => line.push_str(&format!(" of {cpu} CPU in all, ")),
            }
        }
        match time(self.cpu_seconds) {
            cpu if cpu.is_empty() => {}
            cpu => line.push_str(&format!("{cpu} sampled, ")),
        }
        line + &self.basis.line()
    }
}

impl Diff {
    /// A side without samples: nothing can be compared.
    pub fn empty_side(&self) -> Option<(&'static str, &Basis)> {
        let sides = [("left", &self.left.basis), ("right", &self.right.basis)];
        sides.into_iter().find(|(_, basis)| basis.samples() == 0)
    }

    /// What each side rests on.
    pub fn lines(&self) -> [String; 2] {
        [self.left.line("left"), self.right.line("right")]
    }

    /// A row for each method, the largest difference first, and the whole in the last.
    pub fn table(&self) -> Table {
        let right = |name| (name, Align::Right);
        let by_total = self.sort == "total";
        let (sorted, other) = if by_total { ("TOTAL", "SELF") } else { ("SELF", "TOTAL") };
        let mut columns = [sorted, "LEFT", "RIGHT", other].map(right).to_vec();
        columns.extend([("METHOD", Align::Left), ("MODULE", Align::Left)]);
        let mut table = Table::new(&columns);
        table.give_way(&["MODULE"]);
        for method in &self.diff {
            let (first, second) =
                if by_total { (&method.total, &method.own) } else { (&method.own, &method.total) };
            let [difference, left, right] = first.cells();
            let [beside, ..] = second.cells();
            table.row([
                difference,
                left,
                right,
                beside,
                method.name.name.clone(),
                method.name.module.clone(),
            ]);
        }
        let [difference, left, right] = self.total.cells();
        table.row([difference, left, right, String::new(), "(all)".to_owned(), String::new()]);
        if self.cut > 0 {
            table.note(format!("and {}: see them with --limit", counted(self.cut, "more method")));
        }
        if let Some(Name { name, .. }) = &self.cause {
            table.note(format!("most of the difference comes from {name}"));
        }
        if let Some(slow) = &self.slow {
            let [p40, p60, p90] =
                [slow.p40_cpu_seconds, slow.p60_cpu_seconds, slow.p90_cpu_seconds].map(time);
            let most = if slow.by == "wall" { "took the longest" } else { "used the most CPU" };
            table.note(format!(
                "of the stage's {}, right are those that {most} (above the 90th percentile, {p90}), left \
                 those from the 40th to the 60th ({p40} to {p60})",
                counted(slow.tasks, "task")
            ));
            if !slow.because.is_empty() {
                table.note(slow.why());
            }
        }
        table.note(self.how());
        table
    }

    /// How times were scaled and errors come about.
    fn how(&self) -> String {
        const APART: &str = "sqrt(l^2/m + r^2/n) of times l and r of m and n samples";
        let (scale, error) = match self.scale.as_str() {
            "task" => ("times are for each task", APART),
            "absolute" => ("times are as they are", APART),
            _ => ("left times are scaled to an equal total", "that of the shares of both totals"),
        };
        format!("by samples; {scale}; +- is the standard error, {error}")
    }
}
