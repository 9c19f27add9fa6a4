//! The text of a workload file, as TOML sees it. Every value keeps its place, so that a mistake can be pointed at.

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadFile {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) title: String,
    pub(super) now: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) table: Vec<TableEntry>,
    #[serde(default)]
    pub(super) query: Vec<QueryEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableEntry {
    pub(super) name: Spanned<String>,
    pub(super) files: Spanned<OneOrMany>,
    pub(super) role: Option<Spanned<String>>,
    pub(super) header: Option<Spanned<String>>,
    pub(super) delimiter: Option<Spanned<String>>,
    pub(super) encoding: Option<Spanned<String>>,
    pub(super) quote: Option<Spanned<String>>,
    pub(super) escape: Option<Spanned<String>>,
    pub(super) comment: Option<Spanned<String>>,
    pub(super) skip: Option<u64>,
    pub(super) skip_spaces: Option<bool>,
    pub(super) line_end: Option<Spanned<String>>,
    pub(super) columns_by_name: Option<bool>,
    pub(super) drop_repeated_headers: Option<bool>,
    pub(super) drop_totals: Option<bool>,
    pub(super) drop_unlabelled: Option<bool>,
    pub(super) drop_blank: Option<bool>,
    pub(super) drop_footnotes: Option<bool>,
    pub(super) ruled: Option<bool>,
    pub(super) framed: Option<bool>,
    pub(super) doubled_delimiter: Option<bool>,
    pub(super) lenient: Option<bool>,
    pub(super) columns: Spanned<Vec<ColumnEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnEntry {
    pub(super) name: Spanned<String>,
    #[serde(rename = "type")]
    pub(super) kind: Spanned<String>,
    pub(super) float_text: Option<Spanned<bool>>,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) nulls: Vec<String>,
    pub(super) yes: Option<Spanned<Vec<String>>>,
    pub(super) no: Option<Spanned<Vec<String>>>,
    /// Decimals are shown without zeros at their end.
    #[serde(default)]
    pub(super) trim_zeros: bool,
    /// Its name in the files, where that is another.
    pub(super) header: Option<String>,
    pub(super) decimal_mark: Option<Spanned<String>>,
    pub(super) group_mark: Option<Spanned<String>>,
    pub(super) date_order: Option<Spanned<String>>,
    pub(super) date_format: Option<Spanned<String>>,
    /// Values stand in formulas: `="00123"`.
    #[serde(default)]
    pub(super) formulas: bool,
}

impl ColumnEntry {
    /// Its name in the files, which answers show, if that is another.
    pub(super) fn label(&self) -> Option<String> {
        self.header.clone().filter(|header| header != self.name.get_ref())
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryEntry {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) title: String,
    pub(super) file: Option<Spanned<String>>,
    pub(super) sql: Option<Spanned<String>>,
    pub(super) ordered: Option<Spanned<bool>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a path in quotes or a list of them")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn to_vec(&self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one.clone()],
            Self::Many(many) => many.clone(),
        }
    }
}
