//! Schemas of types that belong to other crates.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tenaz_core::ProblemCode;

/// Whose fault it is. With process (this gateway, or for a failed job a worker) and broker (the broker, or the network) the same
/// may succeed later, with the others not before data, query or program has changed.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code)]
enum FaultClass {
    Data,
    Query,
    Process,
    Broker,
    Bug,
}

/// A question that could not be answered.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct FailedQuery {
    /// Its name.
    name: String,
    /// The party that has to change something.
    class: FaultClass,
    /// What happened, and what to do.
    text: String,
}

/// A file that the client means to send, so that a resumed upload can be told from one of other files.
#[derive(JsonSchema)]
#[schemars(rename = "ManifestFile")]
#[allow(dead_code)]
struct FileEntry {
    /// The table.
    table: String,
    /// The file, relative to the data directory.
    name: String,
    /// Its size.
    bytes: u64,
    /// Digest of its beginning, its end and its size.
    #[serde(default)]
    sample: String,
}

pub(crate) fn fault_class(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<FaultClass>()
}

pub(crate) fn failed_queries(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Vec<FailedQuery>>()
}

pub(crate) fn file_entries(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Vec<FileEntry>>()
}

pub(crate) fn workload_text(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<crate::WorkloadChoice>()
}

pub(crate) fn ranges(_: &mut SchemaGenerator) -> Schema {
    let number = json_schema!({"type": "integer", "format": "int64", "minimum": 0});
    json_schema!({
        "type": "array",
        "items": {"type": "array", "items": number, "minItems": 2, "maxItems": 2},
        "description": "Runs of chunk numbers, each as [first, end).",
    })
}

pub(crate) fn digests(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": ["string", "null"], "pattern": "^[0-9a-f]{16}$"}})
}

pub(crate) fn problem_code(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ProblemCode::ALL.map(ProblemCode::name)})
}
