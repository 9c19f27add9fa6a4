//! `SIMILAR TO` as the SQL standard has it, and `LIKE` with an escape character of one's own.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, AsArray, BooleanArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use regex::Regex;

/// The escape character where none is named.
const DEFAULT_ESCAPE: char = '\\';

static SIMILAR_TO: LazyLock<ScalarUDF> =
    LazyLock::new(|| PatternFunction::function("similar_to", DataType::Boolean, 3));
static LIKE_PATTERN: LazyLock<ScalarUDF> =
    LazyLock::new(|| PatternFunction::function("like_pattern", DataType::Utf8, 2));

/// Whether a text matches a pattern as a whole.
pub(crate) fn similar_to(text: Expr, pattern: Expr, escape: Option<char>) -> Expr {
    SIMILAR_TO.call(vec![text, pattern, lit(escape.unwrap_or(DEFAULT_ESCAPE).to_string())])
}

/// The pattern of a LIKE with the default escape character instead of another one.
pub(crate) fn like_pattern(pattern: Expr, escape: char) -> Expr {
    LIKE_PATTERN.call(vec![pattern, lit(escape.to_string())])
}

/// One of the two.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PatternFunction {
    name: &'static str,
    returns: DataType,
    signature: Signature,
}

impl PatternFunction {
    fn function(name: &'static str, returns: DataType, arguments: usize) -> ScalarUDF {
        ScalarUDF::from(Self { name, returns, signature: Signature::string(arguments, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for PatternFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|arg| Ok(cast(&arg.to_array(rows)?, &DataType::Utf8)?));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let text = |index: usize, row: usize| {
            let column = columns[index].as_string::<i32>();
            column.is_valid(row).then(|| column.value(row))
        };
        let results: Arc<dyn Array> = if self.returns == DataType::Boolean {
            let mut patterns = Patterns::default();
            let matches = (0..rows).map(|row| match (text(0, row), text(1, row), text(2, row)) {
                (Some(text), Some(pattern), Some(escape)) => patterns.matches(text, pattern, escape).map(Some),
                _ => Ok(None),
            });
            Arc::new(matches.collect::<Result<BooleanArray>>()?)
        } else {
            let patterns = (0..rows).map(|row| match (text(0, row), text(1, row)) {
                (Some(pattern), Some(escape)) => with_default_escape(pattern, escape).map(Some),
                _ => Ok(None),
            });
            Arc::new(patterns.collect::<Result<StringArray>>()?)
        };
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?));
        }
        Ok(ColumnarValue::Array(results))
    }
}

/// Patterns that were met, ready to be used again.
#[derive(Default)]
struct Patterns<'p> {
    known: HashMap<(&'p str, &'p str), Regex>,
}

impl<'p> Patterns<'p> {
    fn matches(&mut self, text: &str, pattern: &'p str, escape: &'p str) -> Result<bool> {
        if let Some(regex) = self.known.get(&(pattern, escape)) {
            return Ok(regex.is_match(text));
        }
        let wrong = |reason: &str| DataFusionError::Execution(format!("SIMILAR TO {pattern:?}: {reason}"));
        let expression = regular_expression(pattern, escape.chars().next()).map_err(|reason| wrong(&reason))?;
        let regex = Regex::new(&expression).map_err(|_| wrong("this is no pattern; check brackets and repetitions"))?;
        let is_match = regex.is_match(text);
        self.known.insert((pattern, escape), regex);
        Ok(is_match)
    }
}

/// `%` and `_` are wildcards, `| * + ? {m,n} ( ) [ ]` as in regular expressions, everything else stands for itself, and
/// the whole text must match.
fn regular_expression(pattern: &str, escape: Option<char>) -> std::result::Result<String, String> {
    let mut expression = r"\A(?s:".to_owned();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            c if Some(c) == escape => match rest.next() {
                Some(literal) => expression.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4]))),
                None => return Err("the escape character at the end escapes nothing".to_owned()),
            },
            '%' => expression.push_str(".*"),
            '_' => expression.push('.'),
            '(' => expression.push_str("(?:"),
            '|' | '*' | '+' | '?' | ')' => expression.push(c),
            '{' => {
                let mut times = String::new();
                while let Some(c) = rest.next_if(|c| *c != '}') {
                    times.push(c);
                }
                if rest.next().is_none() || times.is_empty() || !times.chars().all(|c| c.is_ascii_digit() || c == ',') {
                    return Err(format!("{{{times}}} is no repetition such as {{2}} or {{2,5}}"));
                }
                expression.push_str(&format!("{{{times}}}"));
            }
            '[' => bracket(&mut rest, &mut expression)?,
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    // Alternatives belong together between the two ends.
    Ok(format!(r"{expression})\z"))
}

/// A set of characters, behind its opening bracket.
fn bracket(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    expression: &mut String,
) -> std::result::Result<(), String> {
    expression.push('[');
    if rest.next_if_eq(&'^').is_some() {
        expression.push('^');
    }
    let mut any = false;
    while let Some(c) = rest.next() {
        match c {
            ']' if any => {
                expression.push(']');
                return Ok(());
            }
            '[' if rest.next_if_eq(&':').is_some() => {
                let class: String = rest.by_ref().take_while(|c| *c != ':').collect();
                if rest.next() != Some(']') || !class.chars().all(|c| c.is_ascii_alphabetic()) {
                    return Err(format!("[:{class} is no class such as [:digit:]"));
                }
                expression.push_str(&format!("[:{class}:]"));
            }
            // A range, unless it is the first or the last one.
            '-' if any && rest.peek().is_some_and(|next| *next != ']') => expression.push('-'),
            other => expression.push_str(&format!(r"\x{{{:x}}}", u32::from(other))),
        }
        any = true;
    }
    Err("a bracket is not closed".to_owned())
}

/// The same pattern with backslashes as escapes.
fn with_default_escape(pattern: &str, escape: &str) -> Result<String> {
    let escape = escape.chars().next();
    let mut same = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if Some(c) == escape {
            match rest.next() {
                Some(literal) => same.extend([DEFAULT_ESCAPE, literal]),
                None => return exec_err!("LIKE {pattern:?}: the escape character at the end escapes nothing"),
            }
        } else if c == DEFAULT_ESCAPE {
            same.extend([DEFAULT_ESCAPE; 2]);
        } else {
            same.push(c);
        }
    }
    Ok(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, pattern: &str) -> bool {
        Patterns::default().matches(text, pattern, "\\").expect("a pattern")
    }

    #[test]
    fn patterns_match_the_whole_text() {
        for (text, pattern) in [
            ("abc", "abc"),
            ("abc", "a%"),
            ("abc", "_b_"),
            ("abc", "%(b|d)%"),
            ("abc", "(a|x)(b|y)c"),
            ("aaa", "a{3}"),
            ("aaa", "a{2,}"),
            ("ab", "ab?"),
            ("a", "ab?"),
            ("abab", "(ab)+"),
            ("a.c", "a.c"),
            ("b", "a|b"),
            ("a\nc", "a%"),
            ("50%", "50\\%"),
            ("a^$", "a^$"),
            ("x-", "x[-a]"),
            ("]", "[]]"),
            ("q", "[a-z]"),
            ("7", "[[:digit:]]"),
            ("é", "_"),
            ("&", "[&&a]"),
            ("", "%"),
            ("", ""),
        ] {
            assert!(matches(text, pattern), "{text:?} SIMILAR TO {pattern:?}");
        }
        for (text, pattern) in [
            ("abc", "b"),
            ("abc", "a"),
            ("abc", "%(b|d)"),
            ("axc", "a.c"),
            ("ab", "a|b"),
            ("aa", "a{3}"),
            ("q", "[^a-z]"),
            ("x", "[^]x]"),
            ("500", "50\\%"),
            ("ABC", "abc"),
            ("abc\n", "abc"),
        ] {
            assert!(!matches(text, pattern), "{text:?} NOT SIMILAR TO {pattern:?}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in ["a(", "[a", "a{x}", "a{2", "a\\", "*", "[[:digit]"] {
            let error = Patterns::default().matches("a", pattern, "\\").expect_err(pattern).to_string();
            assert!(error.contains("SIMILAR TO"), "{error}");
        }
    }

    #[test]
    fn any_character_can_escape() {
        assert!(Patterns::default().matches("50%", "50!%", "!").expect("a pattern"));
        assert!(Patterns::default().matches(r"a\b", r"a\b", "!").expect("a pattern"));
        assert_eq!(with_default_escape(r"50!%\_!!", "!").expect("a pattern"), r"50\%\\_\!");
        assert!(with_default_escape("50!", "!").is_err());
    }
}
