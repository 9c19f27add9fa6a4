//! The contract as OpenAPI 3.1: paths from the table below, schemas from the types of this crate.
//!
//! `crates/api/openapi.json` is the document that gateways serve; a test compares it with [`document`], and `TENAZ_BLESS=1` writes it
//! anew. The gateway's own test compares its routes with the paths.

mod operations;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The document, as it is kept.
pub const TEXT: &str = include_str!("../openapi.json");

/// The document, made from the types.
pub fn document() -> Value {
    let mut generator = SchemaGenerator::new(
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into()),
    );
    let problem = generator.subschema_for::<crate::Problem>();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations::all(&mut generator) {
        let (path, method, value) = operation.into_parts();
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[method] = value;
    }
    // What only streams carry.
    generator.subschema_for::<crate::ClusterEvent>();
    generator.subschema_for::<crate::JobEnd>();
    generator.subschema_for::<crate::StateEvent>();
    generator.subschema_for::<crate::WaitingEvent>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tenaz",
            "version": "1",
            "description": "Questions over CSV files, answered by a cluster. Any gateway serves any job; every request may be repeated, at any gateway.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Needed where the gateway has a tokens file."},
            },
            "responses": {
                "Problem": {
                    "description": "What went wrong, and what to do (RFC 9457). 429 and 503 come with Retry-After.",
                    "content": {"application/problem+json": {"schema": problem}},
                },
            },
            "schemas": generator.take_definitions(true),
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_document_that_is_served_is_the_one_that_the_types_give() {
        let text = format!("{}\n", serde_json::to_string_pretty(&document()).unwrap());
        if std::env::var_os("TENAZ_BLESS").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json"), &text).unwrap();
        } else {
            assert_eq!(TEXT, text, "TENAZ_BLESS=1 writes openapi.json anew");
        }
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        fn check(value: &Value, whole: &Value) {
            match value {
                Value::Object(members) => members.iter().for_each(|(name, member)| match member {
                    Value::String(target) if name == "$ref" => {
                        let target = target.strip_prefix('#').unwrap();
                        assert!(whole.pointer(target).is_some(), "{target}");
                    }
                    member => check(member, whole),
                }),
                Value::Array(items) => items.iter().for_each(|item| check(item, whole)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
    }
}
