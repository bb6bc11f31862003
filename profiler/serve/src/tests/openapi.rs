//! The document against the routes, both ways: the table is asked of the router, and the router's source of the
//! table.

use super::*;
use crate::openapi::document;
use emberscope_api::route::{Answers, CALLS, Kind, LOGIN, RENDER_DIFF, ROUTES, Route, Selects};
use std::collections::BTreeSet;

/// A request that the route answers, without the parameter that is tried.
fn base(route: &Route) -> String {
    let path = route.path.replace("{name}", "app");
    let about = match route.selects {
        Selects::TwoSides if route.id == "compare" => "left.app=app-1&right.app=app-1&",
        Selects::TwoSides => "slow=1&app=app-1&stage=3&",
        _ => "",
    };
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
                Kind::Formats(list) => list.iter().map(|f| f.slug().to_owned()).collect(),
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

/// What of a value is not as a schema says. What this does not know of schemas is none that the document has.
fn wrong(at: &str, value: &Value, schema: &Value, document: &Value) -> Vec<String> {
    if let Some(part) = schema["$ref"].as_str() {
        return wrong(at, value, document.pointer(part.trim_start_matches('#')).unwrap(), document);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let each = any.iter().map(|schema| wrong(at, value, schema, document));
        return each.min_by_key(Vec::len).unwrap_or_default();
    }
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("{at}: {other}"),
    };
    let kinds = match &schema["type"] {
        Value::Null => return Vec::new(),
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    if !kinds.iter().any(|kind| is(kind.as_str().unwrap())) {
        return vec![format!("{at}: {value} is no {kinds:?}")];
    }
    let mut out = Vec::new();
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        out.extend(wrong(&format!("{at}[{index}]"), item, &schema["items"], document));
    }
    let Some(object) = value.as_object() else { return out };
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        out.extend((!object.contains_key(required)).then(|| format!("{at} has no {required}")));
    }
    for (key, value) in object {
        let at = format!("{at}.{key}");
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(schema), _) => out.extend(wrong(&at, value, schema, document)),
            (None, Value::Null | Value::Bool(false)) => out.push(format!("{at} is not in the schema")),
            (None, more) => out.extend(wrong(&at, value, more, document)),
        }
    }
    out
}

#[tokio::test]
async fn answers_are_as_their_schemas_say() {
    let document = document();
    for route in ROUTES {
        let queries: &[&str] = match (&route.answers, route.selects) {
            (Answers::Text(kind), _) => {
                let got = get(route.path).await;
                assert!(got.header("content-type").starts_with(kind), "{}", route.path);
                continue;
            }
            (Answers::Json(_), Selects::Nothing) => &[""],
            (Answers::Json(_), Selects::TwoSides) => &["left.app=app-1&right.app=app-1&fail_over=10"],
            (Answers::Json(_), _) => &["", "type=page-faults"],
            (_, Selects::TwoSides) => &["left.app=app-1&format=json", "left.app=app-1&format=json&nodes=1"],
            (Answers::Formats(..), _) => &["format=json", "columns=1", "format=json&lines=1&group=app,stage"],
        };
        let path = route.path.replace("{name}", "app");
        for query in queries {
            let range = if route.selects == Selects::Nothing { String::new() } else { within(0, 30) };
            let got = get(&format!("{path}?{range}&{query}")).await;
            if got.status == 400 && *query == "type=page-faults" {
                continue;
            }
            let schema =
                &document["paths"][route.path]["get"]["responses"]["200"]["content"]["application/json"];
            let wrong = wrong(&path, &got.json(), &schema["schema"], &document);
            assert!(wrong.is_empty(), "{path}?{query}: {wrong:#?}");
        }
    }
    let refused = get("/api/v1/top?exeuctor=1").await.json();
    let error = &document["components"]["schemas"]["Error"];
    assert_eq!(wrong("error", &refused, error, &document), Vec::<String>::new());
    // The other way: what a schema wants is missed, and what it has not is seen.
    let schema = &document["components"]["schemas"]["Apps"];
    assert!(schema["required"].as_array().unwrap().contains(&json!("quality")), "{schema}");
    let said = wrong("apps", &json!({ "apps": [{ "id": 7 }], "more": 1 }), schema, &document);
    for what in ["apps has no range", "apps.apps[0].id: 7 is no", "apps.more is not in the schema"] {
        assert!(said.iter().any(|line| line.starts_with(what)), "{what}: {said:?}");
    }
}

#[tokio::test]
async fn the_router_and_the_document_have_the_same_routes() {
    let sources = [include_str!("../lib.rs"), include_str!("../pyroscope/mod.rs")];
    let pattern = |s: &'static str| s.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let routed: BTreeSet<&str> = sources.into_iter().flat_map(pattern).collect();
    let listed: BTreeSet<&str> = ROUTES.iter().map(|r| r.path).collect();
    // Of the table: each once, and three of them where health alone is asked for.
    let of_table = sources[0].matches(".route(route::").count();
    assert_eq!(of_table, ROUTES.len() + [LOGIN.path, "/metrics", "/healthz", "/readyz"].len());
    // A page's own files are no API; calls are below.
    let document = document();
    let logins = |p: &str| p.ends_with("/login") && document["paths"].get(p).is_some();
    let known = |p: &&str| {
        listed.contains(*p) || *p == RENDER_DIFF.path || p.contains("Service/{method}") || logins(p)
    };
    let missing: Vec<_> = routed.iter().filter(|p| !known(p) && !p.contains("/ui/")).collect();
    assert!(missing.is_empty(), "not in the document: {missing:?}");
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
