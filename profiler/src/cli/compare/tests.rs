use super::*;
use crate::cli::fake::Fake;
use crate::cli::table::Align;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    compare: CompareArgs,
}

fn line(words: &str) -> Result<CompareArgs, clap::Error> {
    Line::try_parse_from(std::iter::once("x").chain(words.split(' '))).map(|line| line.compare)
}

/// Two runs of `etl`: a query that grew, a stage that only the right one has, a method.
fn answer(judged: &str) -> Compare<'static> {
    let change = |left: f64, right: f64, error: f64, significant: bool| {
        format!(
            r#"{{"left_seconds":{left},"right_seconds":{right},"difference":{},"difference_error":{error},
            "left_share":0.5,"right_share":0.6,"significant":{significant},"source":"ledger"}}"#,
            right - left
        )
    };
    let run = |app: &str| {
        format!(
            r#"{{"app":"{app}","app_name":"etl","begun":"2026-11-21T17:00:03.000Z","stages":3,"unnamed_stages":1,
            "range":{{"from":"A","until":"B"}},"quality":{{"samples":400}},"spark":{{"state":"kept","says":""}}}}"#
        )
    };
    let grown = change(10.0, 12.0, 0.1, true);
    let json = format!(
        r#"{{"left":{},"right":{},"whole":{{"cpu":{grown},"beside":{},"waited":{{"shuffle":[1.0,3.0],"lock":[1.0,1.1]}}}},
        "queries":{{"count":2,"cut":1,"rows":[{{"description":"select <b> | 1","left_execution":3,"right_execution":4,
          "plan_changed":true,"cpu":{grown}}}]}},
        "stages":{{"count":1,"rows":[{{"name":"count at Job.scala:33","only":"right","right_stage":"0","right_tasks":8,"cpu":{}}}]}},
        "operators":{{"count":1,"rows":[{{"operator":"unknown","cpu":{grown}}}]}},
        "methods":{{"count":1,"rows":[{{"name":"Job.slow","module":"","kinds":[],"self":{grown},"total":{grown},"significant":true}}]}},
        "settings":[{{"name":"spark.sql.shuffle.partitions","left":"200","right":"400"}},
          {{"name":"spark.executor.memory","left":null,"right":"4g"}}],
        "significant":true,"judged":{judged}}}"#,
        run("app-1"),
        run("app-2"),
        change(1.0, 1.01, 0.2, false),
        change(0.0, 1.0, 0.1, true),
    );
    serde_json::from_str(&json).unwrap()
}

const JUDGED: &str = r#"{"fail_over":0.1,"failed":1,"checked":[
    {"of":"whole","name":"all tasks","growth":0.05,"error":0.01,"failed":false},
    {"of":"query","name":"select <b> \"1\"\u0001","growth":0.2,"error":0.01,"failed":true}]}"#;

#[test]
fn runs_are_named_as_people_do() {
    let params = |words: &str| line(words).unwrap().params();
    let pairs = |of: &[(&'static str, &str)]| -> Params {
        of.iter().map(|(name, value)| (Cow::Borrowed(*name), (*value).to_owned())).collect()
    };
    let last =
        [("left.app", "etl"), ("left.run", "-2"), ("right.app", "etl"), ("right.run", "-1"), ("limit", "15")];
    assert_eq!(params("--job etl --last"), pairs(&last));
    assert_eq!(params("etl@-2 etl@-1"), pairs(&last));
    let ids = [
        ("left.app", "app-1"),
        ("right.app", "app-2"),
        ("from", "-2h"),
        ("fail_over", "10%"),
        ("limit", "3"),
    ];
    assert_eq!(params("app-1 app-2 --fail-over 10% --from 2h -n 3"), pairs(&ids));
    let times = [
        ("left.app", "stream"),
        ("left.from", "-4h"),
        ("left.until", "-3h"),
        ("right.app", "stream"),
        ("right.from", "-1h"),
        ("limit", "15"),
    ];
    assert_eq!(params("stream@-4h..-3h stream@-1h.."), pairs(&times));
    for bad in ["app-1", "--job etl", "--last", "app-1 app-2 --job etl --last", "a b c", "a b@x..y"] {
        assert!(line(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_format_is_told_by_the_name_of_the_file() {
    let of = |words: &str| line(&format!("a b {words}")).unwrap().decide();
    for (words, format) in [
        ("-n 1", ReportFormat::Text),
        ("-o x.md", ReportFormat::Markdown),
        ("-o x.html", ReportFormat::Html),
        ("-o - --format json", ReportFormat::Json),
        ("-o x.xml --fail-over 5", ReportFormat::Junit),
        ("-o x.dat --format text", ReportFormat::Text),
    ] {
        assert_eq!(of(words).unwrap(), format, "{words}");
    }
    assert!(of("-o x.dat").unwrap_err().to_string().contains("gives no format"));
    assert!(of("--format junit").unwrap_err().to_string().contains("--fail-over"));
}

#[test]
fn the_text_says_what_changed_and_by_how_much() {
    let text = String::from_utf8(Report::new(&answer(JUDGED)).text(None).unwrap()).unwrap();
    for said in [
        "etl: app-2, began 2026-11-21T17:00:03.000Z (right) against app-1, began",
        "Tasks used 12.00 s of CPU instead of 10.00 s: +20.0 % (+2.00 s +- 100.0 ms).",
        "The method that changed most: Job.slow (+2.00 s of self time).",
        "Only the right run has 1 stage.",
        "FAILED: of 2 figures grew by more than 10.00 % beyond their error: 1.",
        "FAILED: query select <b> \"1\"\\u{1}: +20.00 % +- 1.00 %",
        "within error",
        "only right",
        "sampled waits: shuffle",
        "3 -> 4  another plan  select <b> | 1",
        "and 1 more row: see them with --limit",
        "Spark gave no name for 1 stage of the left run",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    assert!(!text.contains("Operators"), "a job without SQL has none: {text}");
    let mut none = answer("null");
    (none.significant, none.whole.cpu.significant) = (false, false);
    let text = String::from_utf8(Report::new(&none).text(Some(80)).unwrap()).unwrap();
    assert!(
        text.contains("Tasks used as much CPU as before") && text.contains("No significant difference"),
        "{text}"
    );
}

#[test]
fn names_stay_text_in_every_format() {
    let compare = answer(JUDGED);
    let report = Report::new(&compare);
    assert!(
        report
            .sections
            .iter()
            .all(|section| section.rows.iter().all(|row| row.len() == section.columns.len()))
    );
    assert!(
        report.sections.iter().any(|section| section.columns.iter().any(|(_, align)| *align == Align::Right))
    );
    let markdown = report.markdown();
    assert!(markdown.contains("select &lt;b> \\| 1"), "{markdown}");
    let page = String::from_utf8(html::write(&report, b"<svg><script>1</script></svg>")).unwrap();
    assert!(
        page.contains("select &lt;b&gt; | 1") && !page.contains("<script") && page.contains("<iframe"),
        "{page}"
    );
    assert!(!page.contains("http"), "it loads nothing: {page}");
    let junit = junit::write(&compare);
    let want = r#"<testcase classname="emberscope.query" name="select &lt;b&gt; &quot;1&quot;"><failure message="query select"#;
    assert!(
        junit.contains(want) && junit.contains(r#"tests="2" failures="1""#) && !junit.contains('\u{1}'),
        "{junit}"
    );
}

#[test]
fn what_fails_ends_with_one() {
    let json = serde_json::to_string(&answer(JUDGED)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.md");
    for (json, code) in
        [(json.clone(), code::FAILURE), (serde_json::to_string(&answer("null")).unwrap(), code::OK)]
    {
        let fake = Fake::answering(200, &[], &json);
        let mut args = line(&format!("a b --fail-over 10 -o {}", file.display())).unwrap();
        args.client.url = Some(fake.url().to_owned());
        assert_eq!(run(&args).unwrap(), code);
        assert_eq!(fake.request().target, "/api/v1/compare?left.app=a&right.app=b&fail_over=10&limit=15");
        assert!(std::fs::read_to_string(&file).unwrap().starts_with("## etl: app-2"));
    }
}
