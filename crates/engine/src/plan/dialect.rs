//! The SQL that is understood: PostgreSQL's, and what people know from elsewhere and cannot be mistaken.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// PostgreSQL's dialect with `SELECT * EXCLUDE (…)`, `* EXCEPT (…)` and `* REPLACE (…)`, and with an IS DISTINCT FROM that ends
/// before AND and OR (the parser's own takes all that follows for its right side).
///
/// The parser asks for dialects by type in some places; there this one passes for PostgreSQL's.
#[derive(Debug)]
pub(super) struct Sql;

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

/// What PostgreSQL's dialect answers other than the default.
macro_rules! as_postgres {
    ($($name:ident)*) => {
        $(fn $name(&self) -> bool {
            POSTGRES.$name()
        })*
    };
}

impl Dialect for Sql {
    fn dialect(&self) -> TypeId {
        POSTGRES.dialect()
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        POSTGRES.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        POSTGRES.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, word: Keyword) -> bool {
        POSTGRES.is_reserved_for_identifier(word)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        POSTGRES.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        POSTGRES.get_next_precedence(parser)
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, left: &Expr, _precedence: u8) -> Option<Result<Expr, ParserError>> {
        use Keyword::{DISTINCT, FROM, IS, NOT};
        let make: fn(Box<Expr>, Box<Expr>) -> Expr = if parser.parse_keywords(&[IS, DISTINCT, FROM]) {
            Expr::IsDistinctFrom
        } else if parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]) {
            Expr::IsNotDistinctFrom
        } else {
            return None;
        };
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(right.map(|right| make(Box::new(left.clone()), Box::new(right))))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        POSTGRES.prec_value(precedence)
    }

    as_postgres! {
        supports_unicode_string_literal
        supports_filter_during_aggregation
        supports_group_by_expr
        allow_extract_custom
        allow_extract_single_quotes
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_listen_notify
        supports_factorial_operator
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_colon_operator
        supports_named_fn_args_with_expr_name
        supports_empty_projections
        supports_nested_comments
        supports_string_escape_constant
        supports_numeric_literal_underscores
        supports_array_typedef_with_brackets
        supports_geometric_types
        supports_set_names
        supports_alter_column_type_using
        supports_notnull_operator
        supports_interval_options
        supports_insert_table_alias
        supports_create_table_like_parenthesized
        supports_select_wildcard_with_alias
        supports_comma_separated_trim
        supports_xml_expressions
        supports_comment_optimizer_hint
    }
}
