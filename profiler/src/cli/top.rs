//! `emberscope top`: methods by the samples in them and below them.

use super::CliError;
use super::answer::{Basis, amount, counted};
use super::ask::{AskArgs, Rows};
use super::selection::Params;
use super::table::{Align, Table};
use super::text::percent_within;
use super::words::word;
use clap::Args;
use emberscope_api::route::{self, Route, param};
use emberscope_api::{Cost, Method, MethodOrder, Top, Word as _};

/// Flags of `emberscope top`.
#[derive(Args, Clone, Debug)]
pub struct TopArgs {
    /// List at most N methods.
    #[arg(short = 'n', long, help_heading = "Output", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Order: self (samples that ended in the method) or total (also those in methods that it called).
    #[arg(long, help_heading = "Output", value_name = "ORDER", default_value = MethodOrder::Own.word(), value_parser = word::<MethodOrder>())]
    sort: MethodOrder,
    /// Distinguish source lines: package.Class.method:123.
    #[arg(long, help_heading = "Output")]
    lines: bool,
    #[command(flatten)]
    ask: AskArgs,
}

/// Prints a row for each method.
///
/// # Errors
/// As for [`AskArgs::run`].
pub fn run(args: &TopArgs) -> Result<(), CliError> {
    args.ask.run::<Top<'_>>(params(args))
}

fn params(args: &TopArgs) -> Params {
    let mut params = vec![(param::LIMIT, args.limit.to_string()), (param::SORT, args.sort.word().to_owned())];
    if args.lines {
        params.push((param::LINES, "1".to_owned()));
    }
    params
}

impl Rows for Top<'static> {
    const WHAT: &'static str = "sample";
    const ROUTE: &'static Route = &route::TOP;
    fn table(&self, basis: &Basis) -> Table {
        let kind = basis.kind();
        let mut table = Table::new(&[
            ("SELF", Align::Right),
            ("SAMPLES", Align::Right),
            (kind.facts().column, Align::Right),
            ("TOTAL", Align::Right),
            ("SAMPLES", Align::Right),
            (kind.facts().column, Align::Right),
            ("METHOD", Align::Left),
            ("MODULE", Align::Left),
        ]);
        for Method { name, module, own, total, .. } in &self.top {
            let cells = |cost: &Cost| {
                let share = percent_within(cost.share, cost.share_error);
                [share, cost.amount.samples.to_string(), amount(&cost.amount.weight, kind)]
            };
            let names = [name.to_string(), module.to_string()];
            table.row(cells(own).into_iter().chain(cells(total)).chain(names));
        }
        table.note("+- is the standard error of a share p of all n samples: sqrt(p (1 - p) / n)".to_owned());
        let more = self.methods.saturating_sub(self.top.len() as u64);
        if more > 0 {
            table.note(format!("and {}: see them with --limit", counted(more, "more method")));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::ask;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        top: TopArgs,
    }

    #[test]
    fn self_and_total_stand_beside_each_other() {
        let args = Line::try_parse_from(["x", "--limit", "1", "--sort", "total"]).unwrap().top;
        let body = r#"{"range":{"from":"A","until":"B"},"windows":2,"quality":{"samples":8,"lost":0},"sort":"total","methods":4,
            "top":[{"name":"a.B.c","module":"perf-map","kinds":["java"],
            "self":{"samples":1,"cpu_seconds":0.0101,"share":0.125,"share_error":0.1},
            "total":{"samples":4,"cpu_seconds":0.0404,"share":0.5,"share_error":0.2}}]}"#;
        let (target, printed, result) =
            ask::<Top<'_>>(&["--stage", "3", "--stage", "4"], route::TOP.path, params(&args), 200, body);
        result.unwrap();
        assert_eq!(target, "/api/v1/top?stage=3&stage=4&type=cpu&limit=1&sort=total");
        let want = "            SELF  SAMPLES     CPU             TOTAL  SAMPLES     CPU  METHOD  MODULE\n\
                    12.50 +- 10.00 %        1  0.01 s  50.00 +- 20.00 %        4  0.04 s  a.B.c   perf-map\n\
                    +- is the standard error of a share p of all n samples: sqrt(p (1 - p) / n)\n\
                    and 3 more methods: see them with --limit\n";
        assert!(printed.starts_with(want), "{printed}");
    }

    #[test]
    fn an_error_of_the_api_is_a_sentence_with_its_code() {
        let refused = |status, body: &str| {
            let error = ask::<Top<'_>>(&[], route::TOP.path, vec![], status, body).2.unwrap_err();
            (error.code(), error.to_string())
        };
        let unknown =
            r#"{"error":{"code":"unknown_app","message":"There is no app `x`.","parameter":"app"}}"#;
        assert_eq!(refused(404, unknown), (3, "There is no app `x`.".to_owned()));
        let several = r#"{"error":{"code":"ambiguous_app","message":"2 apps are named `x`; ask for one by id: a, b","parameter":"app"}}"#;
        assert_eq!(refused(409, several).0, 2);
        let bad = r#"{"error":{"code":"bad_parameter","message":"not a time","parameter":"from"}}"#;
        assert_eq!(refused(400, bad), (2, "from: not a time".to_owned()));
        let token =
            r#"{"error":{"code":"unauthorized","message":"This daemon wants a token.","parameter":null}}"#;
        let (code, text) = refused(401, token);
        assert_eq!(code, 1);
        assert!(text.contains("--token-file"), "{text}");
        let (code, text) = refused(502, "<html>Bad gateway</html>");
        assert_eq!(code, 1);
        assert!(text.contains("does not answer like an emberscope daemon: HTTP status 502"), "{text}");
        let (code, text) = refused(200, "{\"top\":7}");
        assert_eq!(code, 1);
        assert!(text.contains("does not answer like an emberscope daemon"), "{text}");
    }
}
