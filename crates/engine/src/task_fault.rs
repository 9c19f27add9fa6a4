//! Whose fault it is that a task failed, found at the root of DataFusion's error.

use std::error::Error as StdError;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use tenaz_core::{Classified, FaultClass};

use crate::Error;
use crate::error::ValueError;

/// The class of an error of planning or computing.
///
/// A value that an expression cannot take (a division by zero, an overflow, a text that is no number) is the query's fault:
/// records that do not fit their layout were rejected before, so the value is valid data, and only the query can say what is
/// to become of it (`NULLIF`, `TRY_CAST`, a wider type).
pub(crate) fn class_of_task_error(error: &DataFusionError) -> FaultClass {
    match error.find_root() {
        // Memory is bounded by this process's `--memory`; the only files that a task touches are those that it spills to.
        DataFusionError::ResourcesExhausted(_) | DataFusionError::IoError(_) => FaultClass::Process,
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Configuration(_)
        | DataFusionError::Execution(_) => FaultClass::Query,
        DataFusionError::ArrowError(error, _) => class_of_arrow_error(error),
        DataFusionError::External(error) => class_of_foreign_error(error.as_ref()),
        // `find_root` stops here: of several errors the first is shown.
        DataFusionError::Collection(errors) => errors.first().map_or(FaultClass::Bug, class_of_task_error),
        // A task that crashed, an invariant of DataFusion, and what this program never uses.
        _ => FaultClass::Bug,
    }
}

/// Whether the memory that a task may have was not enough.
pub(crate) fn is_out_of_memory(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => true,
        DataFusionError::ArrowError(error, _) => matches!(**error, ArrowError::MemoryError(_)),
        DataFusionError::Collection(errors) => errors.first().is_some_and(is_out_of_memory),
        _ => false,
    }
}

fn class_of_arrow_error(error: &ArrowError) -> FaultClass {
    match error {
        ArrowError::IoError(..) | ArrowError::MemoryError(_) => FaultClass::Process,
        ArrowError::DivideByZero
        | ArrowError::ArithmeticOverflow(_)
        | ArrowError::CastError(_)
        | ArrowError::ComputeError(_)
        | ArrowError::ParseError(_)
        | ArrowError::InvalidArgumentError(_)
        | ArrowError::NotYetImplemented(_)
        // Texts of one column that together are larger than a batch can be: the query gathers them.
        | ArrowError::OffsetOverflowError(_)
        | ArrowError::DictionaryKeyOverflowError => FaultClass::Query,
        ArrowError::ExternalError(error) => class_of_foreign_error(error.as_ref()),
        _ => FaultClass::Bug,
    }
}

/// The class of an error that DataFusion or Arrow only passed on. At this border types are lost, so they are asked for. What
/// the operating system said may lie deeper: the rows of a task come from spools, whose own errors wrap it.
fn class_of_foreign_error(error: &(dyn StdError + 'static)) -> FaultClass {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<Error>() {
            return error.class();
        }
        if error.is::<ValueError>() {
            return FaultClass::Query;
        }
        if let Some(error) = error.downcast_ref::<tenaz_csv::Error>() {
            return error.class();
        }
        if let Some(error) = error.downcast_ref::<ArrowError>() {
            return class_of_arrow_error(error);
        }
        if error.is::<std::io::Error>() {
            return FaultClass::Process;
        }
        next = error.source();
    }
    FaultClass::Bug
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    fn class(error: DataFusionError) -> FaultClass {
        Error::Query { queries: "q1".to_owned(), cause: error.context("while running") }.class()
    }

    #[test]
    fn what_this_process_has_too_little_of_is_its_own_fault() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        for error in [
            DataFusionError::ResourcesExhausted("memory".to_owned()),
            DataFusionError::IoError(full()),
            ArrowError::IoError("spilling".to_owned(), full()).into(),
            DataFusionError::External(Box::new(full())),
            DataFusionError::Shared(Arc::new(DataFusionError::ResourcesExhausted("memory".to_owned()))),
            DataFusionError::Collection(vec![DataFusionError::IoError(full())]),
        ] {
            let text = error.to_string();
            assert_eq!(class(error), FaultClass::Process, "{text}");
        }
    }

    #[test]
    fn too_little_memory_is_told_from_a_full_disk() {
        let is_memory =
            |error: DataFusionError| Error::Query { queries: "q1".to_owned(), cause: error }.is_out_of_memory();
        let memory = || DataFusionError::ResourcesExhausted("memory".to_owned());
        assert!(is_memory(memory().context("while running")));
        assert!(is_memory(DataFusionError::Shared(Arc::new(memory()))));
        assert!(is_memory(ArrowError::MemoryError("no".to_owned()).into()));
        assert!(!is_memory(DataFusionError::IoError(io::Error::from(io::ErrorKind::StorageFull))));
        assert!(!is_memory(ArrowError::DivideByZero.into()));
    }

    #[test]
    fn values_that_an_expression_cannot_take_are_the_querys_fault() {
        for error in [
            ArrowError::DivideByZero.into(),
            ArrowError::ArithmeticOverflow("i64".to_owned()).into(),
            ArrowError::CastError("'x' is no number".to_owned()).into(),
            DataFusionError::Execution("a subquery gave two rows".to_owned()),
            DataFusionError::Plan("no such column".to_owned()),
            DataFusionError::External(Box::new(Error::Sql {
                query: "q".to_owned(),
                place: String::new(),
                message: "no".to_owned(),
            })),
        ] {
            let text = error.to_string();
            assert_eq!(class(error), FaultClass::Query, "{text}");
        }
    }

    #[test]
    fn what_data_and_query_cannot_cause_is_a_bug() {
        assert_eq!(class(DataFusionError::Internal("no".to_owned())), FaultClass::Bug);
        assert_eq!(class(ArrowError::SchemaError("columns differ".to_owned()).into()), FaultClass::Bug);
        assert_eq!(class(DataFusionError::External("a stranger".into())), FaultClass::Bug);
        let header = tenaz_csv::Error::Header { problem: "no".to_owned(), found: "x".to_owned() };
        assert_eq!(class(DataFusionError::External(Box::new(header))), FaultClass::Data);
    }
}
