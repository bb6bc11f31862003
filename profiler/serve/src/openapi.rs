//! `/api/v1/openapi.json`: the API as an OpenAPI 3.1 document.
//!
//! In: the table of routes and their parameters ([`route`]), the schemas of their answers ([`Schemas`]), the labels, the
//! formats. Out: JSON, made once. Tests hold the table to the routes: each parameter is taken, no other is, each listed
//! value is, and each answer is as its schema says. Grafana's calls are named without their messages: these are Pyroscope's protos.

use super::params::{Params, SIDES};
use axum::extract::RawQuery;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use emberscope_api::route::{self, Answers, Kind, Own, Route, Selects};
use emberscope_api::{Error, Schemas};
use emberscope_model::{LabelKey, SampleKind};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Answers `/api/v1/openapi.json`.
pub async fn openapi(RawQuery(raw): RawQuery) -> Response {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));
    if let Err(error) = Params::of_route(raw.as_deref(), &route::OPENAPI) {
        return error.into_response();
    }
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}

/// The whole document.
pub fn document() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Schemas::default());
    for route in route::ROUTES {
        paths.insert(route.path.to_owned(), json!({ "get": operation(route, &mut schemas) }));
    }
    for (path, says) in route::CALLS {
        paths.insert((*path).to_owned(), json!({ "post": call(path, says) }));
    }
    let mut compared = operation(&route::RENDER_DIFF, &mut schemas);
    compared["responses"]["default"] = connect_error();
    paths.insert(route::RENDER_DIFF.path.to_owned(), json!({ "get": compared }));
    let link = operation(&route::LOGIN, &mut schemas);
    paths.insert(route::LOGIN.path.to_owned(), json!({ "post": link }));
    paths.insert("/login".to_owned(), json!({ "get": login() }));
    let mut parameters = Map::new();
    for (name, says, schema) in selection() {
        parameters.insert(name.to_owned(), parameter(name, says, &schema));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Emberscope",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What a daemon knows of its node. docs/reference/http.md says the rest.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{}, { "token": [] }, { "cookie": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Over TCP, on loopback too; the Unix socket wants none.",
                },
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "emberscope-SERVER",
                    "description": "Of a browser that /login logged in; SERVER is another each time a daemon starts.",
                },
            },
            "parameters": parameters,
            "responses": { "Error": {
                "description": "Refused, or failed.",
                "content": { "application/json": { "schema": schemas.of_type::<Error>() } },
            } },
            "schemas": schemas.parts(),
        },
    })
}

/// What logs a browser in.
fn login() -> Value {
    let code = json!({ "name": "code", "in": "query", "required": true, "schema": { "type": "string" } });
    json!({
        "operationId": "login",
        "summary": "Logs a browser in, by a code that is good once.",
        "security": [{}],
        "parameters": [code],
        "responses": {
            "303": { "description": "To the page, with a cookie." },
            "default": { "$ref": "#/components/responses/Error" },
        },
    })
}

/// What every selecting route takes: name, sentence, schema.
fn selection() -> Vec<(&'static str, &'static str, Value)> {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let text = json!({ "type": "string" });
    let kinds: Vec<&str> = SampleKind::ASKED.iter().map(|kind| kind.slug()).collect();
    let label = |key: &LabelKey| match key {
        LabelKey::App => {
            (key.name(), "An application's id, else its name. Given twice: either.", list.clone())
        }
        _ => (key.name(), "A label's value. Given twice: either; empty: without the label.", list.clone()),
    };
    let when = "RFC 3339, Unix seconds or milliseconds, now, now-15m or -15m. Absent: the last hour.";
    let mut all: Vec<_> = LabelKey::ASKED.iter().map(label).collect();
    all.push(("from", when, text.clone()));
    all.push(("until", when, text.clone()));
    all.push(("query", "A PromQL selector, joined to the other conditions with and.", text.clone()));
    let run = "Which run of the app that is named: latest, -1 (the same), -2 (the one before). Without times: all of it.";
    all.push(("run", run, text));
    all.push(("type", "Kind of samples.", json!({ "type": "string", "enum": kinds })));
    all
}

fn parameter(name: &str, says: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "description": says, "schema": schema })
}

fn own(own: &Own) -> Value {
    let words = |words: &[&str]| json!({ "type": "string", "enum": words });
    let schema = match &own.kind {
        Kind::Words(list) => words(list),
        Kind::Formats(list) => words(&list.iter().map(|format| format.slug()).collect::<Vec<_>>()),
        Kind::Number(most, None) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        Kind::Number(most, Some(usual)) => {
            json!({ "type": "integer", "minimum": 1, "maximum": most, "default": usual })
        }
        Kind::Flag => words(&["", "0", "1", "true", "false"]),
        Kind::Text => json!({ "type": "string" }),
        // With commas, or several times.
        Kind::Labels => {
            let names: Vec<&str> = LabelKey::ASKED.iter().map(|key| key.name()).collect();
            json!({ "type": "array", "items": { "type": "string", "enum": names } })
        }
    };
    let mut out = parameter(own.name, own.says, &schema);
    if matches!(own.kind, Kind::Labels) {
        out["style"] = "form".into();
        out["explode"] = false.into();
    }
    out
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for piece in route.path.split('/').filter_map(|p| p.strip_prefix('{')?.strip_suffix('}')) {
        parameters.push(json!({
            "name": piece, "in": "path", "required": true, "description": "A label.",
            "schema": { "type": "string" },
        }));
    }
    if route.selects != Selects::Nothing {
        let names = selection();
        parameters
            .extend(names.iter().map(|(n, ..)| json!({ "$ref": format!("#/components/parameters/{n}") })));
    }
    if route.selects == Selects::TwoSides {
        for side in SIDES {
            let sided = selection().into_iter().filter(|(name, ..)| *name != "type");
            parameters
                .extend(sided.map(|(name, says, schema)| parameter(&format!("{side}{name}"), says, &schema)));
        }
    }
    parameters.extend(route.own.iter().map(own));
    let mut out = json!({
        "operationId": route.id,
        "summary": route.says,
        "responses": {
            "200": { "description": "The answer.", "content": content(&route.answers, schemas) },
            "default": { "$ref": "#/components/responses/Error" },
        },
    });
    if !parameters.is_empty() {
        out["parameters"] = parameters.into();
    }
    if route.path == "/healthz" {
        out["security"] = json!([{}]);
    }
    out
}

fn content(answers: &Answers, schemas: &mut Schemas) -> Value {
    let text = |kind: &&str| ((*kind).to_owned(), json!({ "schema": { "type": "string" } }));
    let mut json = |schema| ("application/json".to_owned(), json!({ "schema": schemas.of(schema) }));
    match answers {
        Answers::Text(kind) => [text(kind)].into_iter().collect(),
        Answers::Json(schema) => [json(*schema)].into_iter().collect(),
        Answers::Formats(kinds, schema) => kinds.iter().map(text).chain([json(*schema)]).collect(),
    }
}

/// A call of Pyroscope's, in protobuf or its JSON.
fn call(path: &str, says: &str) -> Value {
    let id = path.rsplit('/').next().unwrap_or(path);
    let message = json!({
        "application/json": { "schema": { "type": "object" } },
        "application/proto": { "schema": { "type": "string", "contentMediaType": "application/proto" } },
    });
    json!({
        "operationId": id,
        "summary": says,
        "requestBody": { "content": message },
        "responses": {
            "200": { "description": "The answer's message.", "content": message },
            "default": connect_error(),
        },
    })
}

fn connect_error() -> Value {
    json!({
        "description": "A Connect error.",
        "content": { "application/json": { "schema": {
            "type": "object",
            "required": ["code", "message"],
            "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
        } } },
    })
}
