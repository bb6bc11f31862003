//! The document against the routes, both ways: the table is asked of the router, and the router's source of the
//! table.

use super::*;
use crate::openapi::document;
use crate::openapi::table::{Answers, CALLS, Kind, RENDER_DIFF, ROUTES, Route, Selects};
use emberscope_export::Format;
use std::collections::BTreeSet;

/// A request that the route answers, without the parameter that is tried.
fn base(route: &Route) -> String {
    let path = route.path.replace("{name}", "app");
    let about = if route.selects == Selects::TwoSides { "slow=1&app=app-1&stage=3&" } else { "" };
    format!("{path}?{about}")
}

/// If it is refused, then not for this parameter.
async fn accepted(path: &str, name: &str) {
    let got = get(path).await;
    let at_fault = format!("\"parameter\":\"{name}\"");
    assert!(got.status == 200 || !got.text().contains(&at_fault), "{path}: {}", got.text());
}

fn documented(route: &Route) -> BTreeSet<String> {
    let document = document();
    let listed = document["paths"][route.path]["get"]["parameters"].as_array().cloned().unwrap_or_default();
    let name = |p: &Value| match p["$ref"].as_str() {
        Some(at) => document.pointer(at.trim_start_matches('#')).unwrap()["name"].clone(),
        None if p["in"] == "path" => Value::Null,
        None => p["name"].clone(),
    };
    listed.iter().map(name).filter_map(|n| n.as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn each_route_takes_the_parameters_that_are_listed_and_no_other() {
    for route in ROUTES.iter().filter(|r| r.path.starts_with("/api/")) {
        let path = route.path.replace("{name}", "app");
        // A name that is near to none makes the route tell all that it has.
        let said = get(&format!("{path}?utterly_unheard_of=1")).await.refused(
            400,
            "unknown_parameter",
            Some("utterly_unheard_of"),
        );
        let taken: BTreeSet<String> = match said.split_once("there are: ") {
            Some((_, names)) => names.trim_end_matches('.').split(", ").map(str::to_owned).collect(),
            None => BTreeSet::new(),
        };
        assert_eq!(taken, documented(route), "{path}");
    }
}

#[tokio::test]
async fn listed_values_are_taken_and_others_are_not() {
    for route in ROUTES {
        for own in route.own {
            let base = if own.name == "slow" { base(route).replace("slow=1&", "") } else { base(route) };
            let ask = |value: &str| format!("{base}{}={value}", own.name);
            let taken: Vec<String> = match own.kind {
                Kind::Words(words) => words.iter().map(|w| (*w).to_owned()).collect(),
                Kind::Formats => Format::ALL.iter().map(|f| f.slug().to_owned()).collect(),
                Kind::Number(most, _) => {
                    get(&ask(&(most + 1).to_string())).await.refused(400, "bad_parameter", Some(own.name));
                    accepted(&ask(&most.to_string()), own.name).await;
                    get(&ask("0")).await.refused(400, "bad_parameter", Some(own.name));
                    continue;
                }
                Kind::Flag => {
                    for value in ["", "0", "1", "true", "false"] {
                        accepted(&ask(value), own.name).await;
                    }
                    get(&ask("perhaps")).await.refused(400, "bad_parameter", Some(own.name));
                    continue;
                }
                Kind::Text | Kind::Labels => continue,
            };
            let refused = get(&ask("none_of_them")).await;
            refused.refused(400, "bad_parameter", Some(own.name));
            let choices: BTreeSet<String> =
                serde_json::from_value(refused.json()["error"]["choices"].clone()).unwrap();
            assert_eq!(choices, taken.into_iter().collect(), "{} {}", route.path, own.name);
        }
    }
}

#[tokio::test]
async fn answers_have_the_fields_that_are_listed() {
    for route in ROUTES {
        let (query, fields) = match route.answers {
            Answers::Text(kind) => {
                let got = get(route.path).await;
                assert!(got.header("content-type").starts_with(kind), "{}", route.path);
                continue;
            }
            Answers::Json(fields) => ("", fields),
            Answers::Formats(_, fields) => ("format=json", fields),
        };
        let sides = if route.selects == Selects::TwoSides { "left.app=app-1&" } else { "" };
        let path = route.path.replace("{name}", "app");
        let got = get(&format!("{path}?{sides}{query}")).await.json();
        for field in fields {
            assert!(got.get(field).is_some(), "{path} has no {field}: {got}");
        }
        let known = fields.iter().copied().chain(["note"]).collect::<BTreeSet<_>>();
        // The daemon's own part of its status is not the server's to list.
        if !route.path.ends_with("/status") {
            let more: Vec<_> =
                got.as_object().unwrap().keys().filter(|k| !known.contains(k.as_str())).collect();
            assert!(more.is_empty(), "{path}: not listed: {more:?}");
        }
    }
}

#[tokio::test]
async fn the_router_and_the_document_have_the_same_routes() {
    let sources = [include_str!("../lib.rs"), include_str!("../pyroscope/mod.rs")];
    let pattern = |s: &'static str| s.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let routed: BTreeSet<&str> = sources.into_iter().flat_map(pattern).collect();
    let listed: BTreeSet<&str> = ROUTES.iter().map(|r| r.path).collect();
    // A page's own files are no API; calls are below.
    let document = document();
    let logins = |p: &str| p.ends_with("/login") && document["paths"].get(p).is_some();
    let known = |p: &&str| {
        listed.contains(*p) || *p == RENDER_DIFF.path || p.contains("Service/{method}") || logins(p)
    };
    let missing: Vec<_> = routed.iter().filter(|p| !known(p) && !p.contains("/ui/")).collect();
    assert!(missing.is_empty(), "not in the document: {missing:?}");
    let indexed: BTreeSet<&str> = super::super::plain::ROUTES.iter().map(|(path, _)| *path).collect();
    assert_eq!(indexed, listed);
    let calls = include_str!("../pyroscope/mod.rs");
    for (path, _) in CALLS.iter().filter(|(path, _)| path.starts_with("/querier")) {
        let method = path.rsplit('/').next().unwrap();
        assert!(calls.contains(&format!("\"{method}\" =>")), "{method}");
    }
    let offered = calls.lines().filter(|l| l.trim_start().starts_with('"') && l.contains("=>")).count();
    assert_eq!(offered, CALLS.len(), "a call is not in the document");
}

#[tokio::test]
async fn the_document_is_served() {
    let got = get("/api/v1/openapi.json").await;
    assert_eq!(got.json(), document());
    assert_eq!(got.json()["openapi"], "3.1.0");
    // For a validator that is not ours: EMBERSCOPE_OPENAPI=file cargo test ... the_document_is_served
    if let Ok(path) = std::env::var("EMBERSCOPE_OPENAPI") {
        std::fs::write(path, &got.body).unwrap();
    }
}
