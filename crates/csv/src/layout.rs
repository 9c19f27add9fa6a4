//! What every record of a table looks like.

use std::fmt;

use arrow_schema::{DataType, Field, TimeUnit};

use crate::parse::boolean::BoolParser;
use crate::parse::decimal::DecimalParser;
use crate::parse::float::FloatParser;
use crate::parse::int::IntParser;
use crate::parse::timestamp::{DateParser, TimestampParser};
use crate::parse::{Parser, trim_spaces};
use crate::{Error, Reason};

/// What every record of a table looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The columns, in the order of the file.
    pub columns: Vec<Column>,
    /// The byte between two fields.
    pub delimiter: u8,
    /// What to do with the first record.
    pub header: Header,
}

/// What to do with the first record of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// It must name the columns. Quotes, letter case and surrounding spaces do not matter.
    Check,
    /// It is dropped unread.
    Skip,
    /// There is none: the first record is data.
    Absent,
}

/// One column of a [`Layout`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name in the header and in the schema.
    pub name: String,
    /// What its fields hold.
    pub kind: Kind,
    /// A null in this column rejects the record.
    pub required: bool,
    /// Spellings of null besides the empty field, compared exactly.
    pub nulls: Vec<String>,
}

/// What the fields of a column hold. All kinds but [`Kind::Text`] ignore ASCII spaces around the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of 64 bits, with an optional sign.
    Int {
        /// Also take `29454.0`, `29454.` and `29454.00` as 29454. The fraction must be zeros.
        float_text: bool,
    },
    /// An exact decimal: a value that needs more digits than declared is rejected, never rounded. No exponents.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, at most `precision`; negative: zeros before it.
        scale: i8,
    },
    /// A finite number of 64 bits: what `str::parse::<f64>` takes, except `nan`, `inf` and numbers too large for a finite value.
    Float,
    /// `YYYY-MM-DD HH:MM:SS` with ` ` or `T`, an optional fraction of 1 to 6 digits, an optional `Z`; or only the date (midnight).
    /// Years 0001 to 9999; no leap seconds.
    Timestamp,
    /// `YYYY-MM-DD`, years 0001 to 9999.
    Date,
    /// One of two sets of spellings, compared exactly.
    Bool {
        /// Spellings of true.
        yes: Vec<String>,
        /// Spellings of false.
        no: Vec<String>,
    },
    /// Text as it stands in the file, without the quotes around it.
    Text,
}

impl Kind {
    /// The Arrow type a column of this kind is decoded to.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        match self {
            Kind::Int { .. } => DataType::Int64,
            Kind::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale),
            Kind::Float => DataType::Float64,
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Kind::Date => DataType::Date32,
            Kind::Bool { .. } => DataType::Boolean,
            Kind::Text => DataType::Utf8View,
        }
    }

    /// Whether a field is a value of this kind. `text` is the field without quotes; empty fields are nulls, not values.
    ///
    /// # Errors
    /// The reason for which a decoder would reject the record.
    pub fn check(&self, text: &str) -> Result<(), Reason> {
        let text = trim_spaces(text.as_bytes());
        match self {
            Kind::Int { float_text } => IntParser { float_text: *float_text }.slow(text).map(drop),
            Kind::Decimal { precision, scale } => DecimalParser::new(*precision, *scale).slow(text).map(drop),
            Kind::Float => FloatParser.slow(text).map(drop),
            Kind::Timestamp => TimestampParser::default().slow(text).map(drop),
            Kind::Date => DateParser::default().slow(text).map(drop),
            Kind::Bool { yes, no } => BoolParser { yes: yes.clone(), no: no.clone() }.slow(text).map(drop),
            Kind::Text => Ok(()),
        }
    }
}

/// As a workload file writes it: `int`, `decimal(15,2)`, `text`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Int { .. } => f.write_str("int"),
            Kind::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Kind::Float => f.write_str("float"),
            Kind::Timestamp => f.write_str("timestamp"),
            Kind::Date => f.write_str("date"),
            Kind::Bool { .. } => f.write_str("bool"),
            Kind::Text => f.write_str("text"),
        }
    }
}

impl Column {
    /// A column that may be null, with no further spellings of null.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, required: false, nulls: Vec::new() }
    }

    /// The same column, in which a null rejects the record.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The Arrow field of this column: nullable unless required.
    #[must_use]
    pub fn field(&self) -> Field {
        Field::new(&self.name, self.kind.data_type(), !self.required)
    }
}

impl Layout {
    /// A comma-separated layout whose header is checked.
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, delimiter: b',', header: Header::Check }
    }

    /// Whether records can be read by this layout at all.
    ///
    /// # Errors
    /// [`Error::Layout`] says what is wrong with it.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Layout { what });
        if self.columns.is_empty() {
            return wrong("it has no columns".into());
        }
        if matches!(self.delimiter, b'"' | b'\n' | b'\r') || !self.delimiter.is_ascii() {
            return wrong("the delimiter must be an ASCII character other than a quote or a line end".into());
        }
        for column in &self.columns {
            if let Kind::Decimal { precision, scale } = column.kind
                && (precision == 0 || precision > 38 || i16::from(scale) > i16::from(precision) || scale < -38)
            {
                return wrong(format!(
                    "column {:?} is decimal({precision}, {scale}): precision must be 1 to 38, scale at most the precision and at least -38",
                    column.name
                ));
            }
        }
        Ok(())
    }
}
