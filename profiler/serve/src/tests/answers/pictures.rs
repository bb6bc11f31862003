//! Call trees in their formats.

use super::*;

#[tokio::test]
async fn folded_units_groups_and_suffixes() {
    let lines = |got: Got| got.text().lines().map(str::to_owned).collect::<Vec<_>>();
    let got = get_all("/api/v1/flamegraph?format=folded&app=app-2").await;
    assert_eq!(got.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(lines(got), ["Twin.run 60"]);
    let ns = get_all("/api/v1/flamegraph?format=folded&app=app-2&unit=ns&annotate=1").await;
    assert_eq!(lines(ns), ["Twin.run_[j] 600000000"]);
    let grouped =
        get_all("/api/v1/flamegraph?format=folded&app=app-1&role=executor&group=stage,thread_class").await;
    let mut grouped = lines(grouped);
    grouped.sort();
    assert_eq!(
        grouped,
        [
            "stage=3;thread_class=task;Main.run;Main.sort;Main.run 120",
            "stage=4;thread_class=task;Main.run 30"
        ]
    );
    let own = get_all("/api/v1/flamegraph?format=folded&app=app-1&role=executor&only=Main.sort,Job.").await;
    assert_eq!(lines(own), ["(no frames) 30", "Main.sort 120"]);
    let many = vec!["a"; 33].join(",");
    let many = get_all(&format!("/api/v1/flamegraph?only={many}")).await;
    assert!(many.refused(400, "bad_parameter", Some("only")).contains("not 33"));
    let either = get_all("/api/v1/flamegraph?format=folded&stage=4&stage=0").await;
    assert_eq!(either.header("x-emberscope-samples"), "90");
}

#[tokio::test]
async fn svg_is_the_default_and_names_cannot_break_out() {
    let got = get_all("/api/v1/flamegraph").await;
    assert_eq!(got.header("content-type"), "image/svg+xml");
    assert!(got.text().contains("<svg") && got.text().contains("Main.sort"));
    let evil = get_all("/api/v1/flamegraph?app=app-3").await;
    assert!(evil.text().contains("alert("), "the name is shown");
    assert!(!evil.text().contains("<script>alert"), "and is no element");
    let titled = get_all("/api/v1/flamegraph?user=ann&process=&role=%3Cscript%3Ealert(2)").await;
    assert!(!titled.text().contains("<script>alert(2)"), "nor is what was asked");
    let body = get_all("/api/v1/flamegraph?app=app-3&format=json").await;
    assert_eq!(body.json()["nodes"][1]["name"], EVIL);
}

#[tokio::test]
async fn a_cut_tree_says_what_was_cut() {
    let got = get_all("/api/v1/flamegraph?format=json&max_nodes=3").await;
    let body = got.json();
    assert_eq!((&body["cut_nodes"], got.header("x-emberscope-cut-nodes")), (&json!(5), "5"));
    let names: Vec<_> =
        body["nodes"].as_array().unwrap().iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["total", "Main.run", "Main.sort", "other", "other"]);
    assert_eq!(body["total"], 300);
    assert_eq!(body["nodes"][4]["total"], 150);
    assert_eq!(get_all("/api/v1/flamegraph?format=json").await.json()["cut_nodes"], 0);
}
