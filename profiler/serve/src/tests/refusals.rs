//! Every error, with its status, code and parameter; and the mend where there is one.

use super::*;
use axum::http::Uri;

#[tokio::test]
async fn bad_parameters() {
    for (query, parameter) in [
        ("from=yesterday", "from"),
        ("until=15m", "until"),
        ("from=now&until=-1h", "from"),
        ("from=2000&until=1000", "from"),
        ("from=1&from=2", "from"),
        ("until=1969-01-01T00:00:00Z", "until"),
        ("type=heap", "type"),
        ("query={", "query"),
        ("query={stage=~%22(%22}", "query"),
        ("query={nothing=%22x%22}", "query"),
        ("format=speedscope", "format"),
        ("unit=hours", "unit"),
        ("annotate=maybe", "annotate"),
        ("group=colour", "group"),
        ("group=stage,stage", "group"),
        ("max_nodes=0", "max_nodes"),
        ("max_nodes=-1", "max_nodes"),
        ("max_nodes=many", "max_nodes"),
    ] {
        let message =
            get(&format!("/api/v1/flamegraph?{query}")).await.refused(400, "bad_parameter", Some(parameter));
        assert!(!message.is_empty());
    }
    for (path, parameter) in [
        ("/api/v1/top?limit=0", "limit"),
        ("/api/v1/top?sort=name", "sort"),
        ("/api/v1/series?step=soon", "step"),
        ("/api/v1/series?by=colour", "by"),
        ("/api/v1/series?from=1000&until=now&step=10s", "step"),
        ("/api/v1/labels/app/values?limit=x", "limit"),
    ] {
        get(path).await.refused(400, "bad_parameter", Some(parameter));
    }
    let formats = get("/api/v1/flamegraph?format=speedscope").await.json();
    let mut formats: Vec<_> =
        formats["error"]["choices"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
    formats.sort_unstable();
    assert_eq!(formats, ["folded", "jfr", "json", "parquet", "pprof", "svg"]);
}

#[tokio::test]
async fn unknown_parameters_name_the_nearest() {
    for (path, parameter, near) in [
        ("/api/v1/flamegraph?formta=svg", "formta", "`format`"),
        ("/api/v1/apps?form=-1h", "form", "`from`"),
        ("/api/v1/top?executer=1", "executer", "`executor`"),
        ("/api/v1/status?x=1", "x", "none"),
        ("/?x=1", "x", "none"),
        ("/api/v1/apps?%3Cb%3E=1", "<b>", "there are:"),
    ] {
        let message = get(path).await.refused(400, "unknown_parameter", Some(parameter));
        assert!(message.contains(near), "{path}: {message}");
    }
}

#[tokio::test]
async fn unknown_apps_name_those_there_are() {
    let got = get_all("/api/v1/flamegraph?app=nope").await;
    let message = got.refused(404, "unknown_app", Some("app"));
    assert!(message.contains("app-1 (etl), app-2 (etl), app-3"), "{message}");
    assert!(!message.contains("Did you mean"), "{message}");
    assert_eq!(got.json()["error"]["choices"], json!(["app-1", "app-2", "app-3"]));
    let slip = get_all("/api/v1/flamegraph?app=ettl").await;
    let message = slip.refused(404, "unknown_app", Some("app"));
    assert!(message.starts_with("There is no app `ettl`. Did you mean `etl`? "), "{message}");
    let elsewhere = get("/api/v1/top?app=nope&from=1000&until=2000").await;
    let message = elsewhere.refused(404, "unknown_app", Some("app"));
    assert!(message.contains("none in this time range") && message.contains("app-1"), "{message}");
    let nothing = router(state(FakeStore::default()), Access::LocalHostOnly, Router::new());
    let message =
        send(nothing, request("GET", "/api/v1/apps?app=x")).await.refused(404, "unknown_app", Some("app"));
    assert!(message.contains("no app has been sampled yet"), "{message}");
}

#[tokio::test]
async fn a_name_of_several_apps_is_a_conflict_with_the_ids() {
    for query in ["app=etl", "app=app-1&app=etl"] {
        let got = get_all(&format!("/api/v1/flamegraph?{query}")).await;
        let message = got.refused(409, "ambiguous_app", Some("app"));
        assert!(message.contains("app-1, app-2"), "{message}");
        assert_eq!(got.json()["error"]["choices"], json!(["app-1", "app-2"]));
    }
}

#[tokio::test]
async fn unknown_routes_labels_and_methods() {
    let message = get("/api/v1/flame%0agraph").await.refused(404, "unknown_route", None);
    assert!(message.contains("/api/v1/flamegraph") && !message.contains('\n'), "{message}");
    get("/api/v1/apps/").await.refused(404, "unknown_route", None);
    let message = get("/api/v1/labels/rolle/values").await.refused(404, "unknown_label", Some("name"));
    assert!(message.contains("`role`"), "{message}");
    get("/api/v1/labels/%ff/values").await.refused(404, "unknown_label", Some("name"));
    for method in ["POST", "DELETE", "PUT", "OPTIONS"] {
        let got = send(app(), request(method, "/api/v1/apps")).await;
        got.refused(405, "method_not_allowed", None);
        assert_eq!(got.header("allow"), "GET,HEAD", "{method}");
    }
}

#[tokio::test]
async fn broken_query_strings() {
    for query in ["app=%", "app=%zz", "app=%ff", "%ff=1"] {
        get(&format!("/api/v1/apps?{query}")).await.refused(400, "bad_query_string", None);
    }
    get(&format!("/api/v1/apps?{}", "app=a&".repeat(257))).await.refused(400, "bad_query_string", None);
    let long = format!("/api/v1/apps?app={}", "a".repeat(33_000));
    assert!(long.parse::<Uri>().is_ok());
    get(&long).await.refused(400, "bad_query_string", None);
}

#[tokio::test]
async fn an_answer_over_the_stores_limit_says_the_mend() {
    let mut store = three_windows();
    store.too_large = true;
    let app = router(state(store), Access::LocalHostOnly, Router::new());
    let message =
        send(app, request("GET", "/api/v1/flamegraph")).await.refused(422, "answer_too_large", None);
    assert!(message.contains("narrow"), "{message}");
}

#[tokio::test]
async fn errors_of_merged_routes_are_json_too() {
    use axum::http::StatusCode;
    let more = Router::new()
        .route("/more", axum::routing::get(|| async { (StatusCode::IM_A_TEAPOT, "short and stout") }));
    let app = router(state(three_windows()), Access::LocalHostOnly, more);
    send(app, request("GET", "/more")).await.refused(418, "bad_request", None);
}

#[test]
fn the_reference_names_every_route_parameter_label_and_code() {
    let page = include_str!("../../../../docs/reference/http.md");
    let routes = emberscope_api::route::ROUTES.map(|route| route.path);
    let labels = emberscope_model::LabelKey::ASKED.iter().map(|key| key.name());
    let parameters = [
        "from",
        "until",
        "type",
        "query",
        "format",
        "unit",
        "group",
        "max_nodes",
        "limit",
        "sort",
        "step",
        "by",
    ];
    // The codes of this room: each is a literal that ends a constructor's line or stands alone.
    let sources = [
        include_str!("../access.rs"),
        include_str!("../app.rs"),
        include_str!("../compare/mod.rs"),
        include_str!("../error.rs"),
        include_str!("../flamegraph.rs"),
        include_str!("../labels.rs"),
        include_str!("../params.rs"),
        include_str!("../plain.rs"),
        include_str!("../run.rs"),
        include_str!("../runs/mod.rs"),
    ];
    let code = regex::Regex::new(
        r#"(?:StatusCode::[A-Z_]+,|StatusCode::[A-Z_]+ =>|code:|let code = )\s*"([a-z_]+)""#,
    )
    .unwrap();
    let codes: Vec<&str> =
        sources.iter().flat_map(|s| code.captures_iter(s)).map(|c| c.get(1).unwrap().as_str()).collect();
    assert!(codes.len() >= 14 && codes.contains(&"busy") && codes.contains(&"unknown_label"), "{codes:?}");
    for name in routes.into_iter().chain(labels).chain(parameters).chain(codes) {
        assert!(page.contains(&format!("`{name}`")), "{name} is missing from docs/reference/http.md");
    }
}
