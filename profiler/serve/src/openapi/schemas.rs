//! The shapes of answers.

use serde_json::{Map, Value, json};

/// The schemas that answers name.
pub(super) fn schemas() -> Value {
    let time = json!({ "type": "string", "format": "date-time" });
    json!({
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": { "error": {
                "type": "object",
                "required": ["code", "message", "parameter"],
                "properties": {
                    "code": { "type": "string" },
                    "message": { "type": "string" },
                    "parameter": { "type": ["string", "null"] },
                    "choices": { "type": "array", "items": { "type": "string" } },
                },
            } },
        },
        "Range": {
            "type": "object",
            "required": ["from", "until"],
            "properties": { "from": time, "until": time },
        },
        "Quality": {
            "description": "What the answer rests on.",
            "type": "object",
            "required": ["samples", "lost", "truncated", "frames", "unnamed_frames"],
            "properties": {
                "samples": { "type": "integer" },
                "lost": { "type": "integer" },
                "truncated": { "type": "integer" },
                "frames": { "type": "integer" },
                "unnamed_frames": { "type": "integer" },
                "sampling_error": { "type": ["number", "null"] },
                "missing": {
                    "description": "Stored parts of this time that were set aside as bad.",
                    "type": "integer",
                },
                "missing_parts": { "type": "array", "items": {
                    "type": "object",
                    "required": ["name", "from", "until", "says"],
                    "properties": {
                        "name": { "type": "string" },
                        "from": time,
                        "until": time,
                        "says": { "type": "string" },
                    },
                } },
            },
        },
    })
}

/// An object with these fields, all of them always there.
pub(super) fn object(fields: &[&str]) -> Value {
    let shape = |field: &str| match field {
        "range" => json!({ "$ref": "#/components/schemas/Range" }),
        "span" => json!({ "anyOf": [{ "$ref": "#/components/schemas/Range" }, { "type": "null" }] }),
        "quality" => json!({ "$ref": "#/components/schemas/Quality" }),
        "windows" | "count" | "cut" | "cut_nodes" | "methods" => json!({ "type": "integer" }),
        "window_seconds" | "step_seconds" => json!({ "type": "number" }),
        _ => json!({}),
    };
    let properties: Map<String, Value> = fields.iter().map(|f| ((*f).to_owned(), shape(f))).collect();
    json!({ "type": "object", "required": fields, "properties": properties })
}
