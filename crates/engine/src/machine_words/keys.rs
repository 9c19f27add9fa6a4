//! Key columns as words of 64 bits.

use std::borrow::Cow;

use datafusion::arrow::array::{Array, ArrayData, ArrayRef, make_array};
use datafusion::arrow::buffer::{Buffer, NullBuffer};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

/// Whether values of this type are equal exactly when their bits are, and have at most 64 of them.
pub(crate) fn are_words(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(_, _)
                | DataType::Duration(_)
        )
}

/// One word for each value; zero where it is null. The column's type is one of [`are_words`].
pub(crate) fn words(column: &ArrayRef) -> Words {
    let data = column.to_data();
    let rows = data.len();
    let bits = match data.data_type().primitive_width() {
        Some(8) => Bits::Whole(data),
        Some(4) => Bits::Widened(data.buffer::<u32>(0)[..rows].iter().map(|v| u64::from(*v)).collect()),
        Some(2) => Bits::Widened(data.buffer::<u16>(0)[..rows].iter().map(|v| u64::from(*v)).collect()),
        _ => Bits::Widened(data.buffer::<u8>(0)[..rows].iter().map(|v| u64::from(*v)).collect()),
    };
    Words { bits, nulls: column.nulls().filter(|nulls| nulls.null_count() > 0).cloned() }
}

/// A key column.
pub(crate) struct Words {
    bits: Bits,
    pub(crate) nulls: Option<NullBuffer>,
}

enum Bits {
    /// The column's own values.
    Whole(ArrayData),
    Widened(Vec<u64>),
}

impl Words {
    pub(crate) fn values(&self) -> Cow<'_, [u64]> {
        let values = match &self.bits {
            Bits::Whole(data) => &data.buffer::<u64>(0)[..data.len()],
            Bits::Widened(words) => words,
        };
        let Some(nulls) = &self.nulls else { return Cow::Borrowed(values) };
        // What stands beneath a null is anything.
        Cow::Owned(values.iter().zip(nulls).map(|(word, valid)| if valid { *word } else { 0 }).collect())
    }
}

/// The column that has these words.
pub(crate) fn column(data_type: &DataType, (words, nulls): (Vec<u64>, Option<NullBuffer>)) -> Result<ArrayRef> {
    let rows = words.len();
    let values = words.iter().copied();
    let values = match data_type.primitive_width() {
        Some(8) => Buffer::from_vec(words),
        Some(4) => Buffer::from_vec(values.map(|word| word as u32).collect::<Vec<u32>>()),
        Some(2) => Buffer::from_vec(values.map(|word| word as u16).collect::<Vec<u16>>()),
        _ => Buffer::from_vec(values.map(|word| word as u8).collect::<Vec<u8>>()),
    };
    let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(values).nulls(nulls);
    Ok(make_array(data.build()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Date32Array, Int8Array, Int64Array, UInt16Array};

    use super::*;

    #[test]
    fn columns_come_back_from_their_words() {
        let columns: [ArrayRef; 4] = [
            Arc::new(Int64Array::from(vec![Some(-1), None, Some(i64::MIN), Some(7)])),
            Arc::new(Date32Array::from(vec![Some(-1), Some(0), None, Some(i32::MAX)])),
            Arc::new(UInt16Array::from(vec![1, 2, u16::MAX, 0])),
            Arc::new(Int8Array::from(vec![Some(-128), Some(127), None, None])),
        ];
        for whole in columns {
            for whole in [whole.slice(0, 4), whole.slice(1, 2), whole.slice(3, 0)] {
                let read = words(&whole);
                let values = read.values();
                let back = (values.to_vec(), read.nulls.clone());
                assert_eq!(&column(whole.data_type(), back).unwrap(), &whole);
            }
        }
    }
}
