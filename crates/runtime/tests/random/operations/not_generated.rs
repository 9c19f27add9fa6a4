//! Functions that are offered and that random SQL does not call, each with the reason.

/// Names and reasons.
pub const NOT_GENERATED: &[(&str, &str)] = &[
    ("arrow_field", "it describes a column, and gives no value of it"),
    ("arrow_metadata", "no column has metadata"),
    ("with_metadata", "it changes nothing that an answer shows"),
    ("current_date", "a constant of the job"),
    ("current_time", "refused: it would differ from run to run"),
    ("now", "a constant of the job"),
    ("random", "refused: it would differ from run to run"),
    ("uuid", "refused: it would differ from run to run"),
    ("version", "it names DataFusion's version, whatever the data"),
    ("file_row_index", "DataFusion answers it only when it reads files itself"),
    ("input_file_name", "DataFusion answers it only when it reads files itself"),
    ("union_extract", "no column and no function gives a union"),
    ("union_tag", "no column and no function gives a union"),
];
