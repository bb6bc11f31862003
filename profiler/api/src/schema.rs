//! JSON schemas of the answers, as the parts of an OpenAPI 3.1 document.
//!
//! In: types of this crate. Out: a reference to each, and the parts that these refer to. A schema is of what is written:
//! fields that are always there are required. Descriptions are the docs of types and fields.

use crate::route::SchemaOf;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// Collects schemas.
pub struct Schemas(SchemaGenerator);

impl Default for Schemas {
    fn default() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self(settings.for_serialize().with_transform(RecursiveTransform(as_written)).into_generator())
    }
}

impl Schemas {
    /// Of an answer.
    pub fn of(&mut self, answer: SchemaOf) -> Value {
        answer(&mut self.0).to_value()
    }
    /// Of a type.
    pub fn of_type<T: JsonSchema>(&mut self) -> Value {
        self.of(SchemaGenerator::subschema_for::<T>)
    }
    /// All that the others refer to.
    pub fn parts(mut self) -> Map<String, Value> {
        self.0.take_definitions(true)
    }
}

/// Leaves out what stands for a field that a reader does not find: it is always written.
fn as_written(schema: &mut Schema) {
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}
