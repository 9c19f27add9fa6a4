//! The limits of a deployment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedLimit {
    /// Its name, as `--limit` takes it.
    pub name: String,
    /// For whom or what it holds: the cluster, a tenant, a tenant at one gateway, or a job.
    pub of: String,
    /// How much; times in seconds.
    pub value: Number,
}

/// What is limited, and how much of it a tenant uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Limits")]
pub struct TenantLimits {
    /// The tenant.
    pub tenant: String,
    /// All limits.
    pub limits: Vec<NamedLimit>,
    /// What it uses, by the limit's name.
    pub used: BTreeMap<String, u64>,
}
