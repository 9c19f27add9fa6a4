//! Refused requests: RFC 9457.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenaz_core::FaultClass;

use crate::schema;

/// Why a gateway refused a request. Proxies answer with less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// `urn:tenaz:` and the code.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// What the code means.
    #[serde(default)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// What happened, and what to do.
    #[serde(default)]
    pub detail: String,
    /// The stable code.
    #[schemars(schema_with = "schema::problem_code")]
    pub code: String,
    /// The party that has to change something. Proxies and old gateways do not say.
    #[serde(default)]
    #[schemars(schema_with = "schema::fault_class")]
    pub class: Option<FaultClass>,
    /// More for programs, by code.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
