//! The types of columns as users write them.

use tenaz_csv::Kind;

use tenaz_words::nearest;

/// Why a text is no type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindError {
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub cure: String,
}

/// The type that `text` names: `int`, `decimal(15,2)`, `float`, `timestamp`, `date`, `bool` or `text`.
///
/// # Errors
/// What is wrong and what to write instead.
pub fn parse_kind(text: &str) -> Result<Kind, KindError> {
    let spelled = |words: [&str; 3]| words.map(str::to_owned).to_vec();
    Ok(match text {
        "int" => Kind::Int { float_text: false },
        "float" => Kind::Float,
        "timestamp" => Kind::Timestamp,
        "date" => Kind::Date,
        "text" => Kind::Text,
        "bool" => Kind::Bool { yes: spelled(["True", "true", "TRUE"]), no: spelled(["False", "false", "FALSE"]) },
        _ => return decimal(text),
    })
}

fn decimal(text: &str) -> Result<Kind, KindError> {
    let numbers = text.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')'));
    let Some((precision, scale)) = numbers.and_then(|n| n.split_once(',')) else {
        const KNOWN: [&str; 7] = ["int", "decimal(15,2)", "float", "timestamp", "date", "bool", "text"];
        let close = nearest(text, KNOWN);
        let cure = match close.first() {
            Some(close) => format!("did you mean {close:?}?"),
            None => format!("write one of {}", KNOWN.map(|k| format!("{k:?}")).join(", ")),
        };
        return Err(KindError { problem: format!("the type {text:?} is not known"), cure });
    };
    match (precision.trim().parse::<u8>(), scale.trim().parse::<i8>()) {
        (Ok(precision), Ok(scale)) if (1..=38).contains(&precision) && scale >= 0 && scale as u8 <= precision => {
            Ok(Kind::Decimal { precision, scale })
        }
        _ => {
            let cure =
                "write decimal(P,S) with P from 1 to 38 digits in all and S from 0 to P of them behind the point";
            Err(KindError { problem: format!("the type {text:?} has impossible numbers"), cure: cure.to_owned() })
        }
    }
}
