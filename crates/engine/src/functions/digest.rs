//! `md5`, `sha224` … `sha512` and `digest(text, algorithm)`: digests as hexadecimal text.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use sha2::Digest;

/// The digest of some bytes, in hexadecimal digits.
type HexDigest = fn(&[u8]) -> String;

/// Digests by name.
const ALGORITHMS: [(&str, HexDigest); 5] = [
    ("md5", hex::<md5::Md5>),
    ("sha224", hex::<sha2::Sha224>),
    ("sha256", hex::<sha2::Sha256>),
    ("sha384", hex::<sha2::Sha384>),
    ("sha512", hex::<sha2::Sha512>),
];

fn hex<D: Digest>(bytes: &[u8]) -> String {
    D::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes anything");
        text
    })
}

/// A digest of a text, or of bytes.
#[derive(Debug)]
pub(super) struct DigestFunction {
    name: &'static str,
    /// The algorithm, unless it is the second argument.
    digest: Option<fn(&[u8]) -> String>,
    signature: Signature,
}

impl PartialEq for DigestFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for DigestFunction {}

impl Hash for DigestFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// All of them.
pub(super) fn all() -> Vec<DigestFunction> {
    let function =
        |name, digest| DigestFunction { name, digest, signature: Signature::user_defined(Volatility::Immutable) };
    let named = ALGORITHMS.map(|(name, digest)| function(name, Some(digest)));
    named.into_iter().chain([function("digest", None)]).collect()
}

fn algorithm(name: &str) -> Result<fn(&[u8]) -> String> {
    match ALGORITHMS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        Some((_, digest)) => Ok(*digest),
        None => exec_err!("digest knows md5, sha224, sha256, sha384 and sha512, not {name:?}"),
    }
}

impl ScalarUDFImpl for DigestFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        let is_text = |t: &DataType| t.is_string() || t.is_null();
        match (args, self.digest) {
            ([DataType::Binary | DataType::LargeBinary | DataType::BinaryView], Some(_)) => Ok(vec![DataType::Binary]),
            ([text], Some(_)) if is_text(text) => Ok(vec![DataType::Utf8]),
            ([text, name], None) if is_text(text) && is_text(name) => Ok(vec![DataType::Utf8; 2]),
            (_, Some(_)) => plan_err!("{} takes a text; CAST other values AS TEXT", self.name),
            (_, None) => plan_err!("digest takes a text and the name of an algorithm, such as 'sha256'"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let column = |index: usize, to| -> Result<_> { Ok(cast(&args.args[index].to_array(rows)?, to)?) };
        let bytes = column(0, &DataType::Binary)?;
        let bytes = bytes.as_binary::<i32>();
        let digests: StringArray = match self.digest {
            Some(digest) => bytes.iter().map(|bytes| bytes.map(digest)).collect(),
            None => {
                let names = column(1, &DataType::Utf8)?;
                let pairs = bytes.iter().zip(names.as_string::<i32>());
                let digests = pairs
                    .map(|(bytes, name)| bytes.zip(name).map(|(bytes, name)| Ok(algorithm(name)?(bytes))).transpose());
                digests.collect::<Result<_>>()?
            }
        };
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&digests, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(digests)))
    }
}
