//! From text to the parser's tree.

use super::{
    place::{Place, Result},
    tokens,
};
use crate::query::QueryErrorKind;
use sqlparser::{
    ast::{Expr, Statement},
    dialect::PostgreSqlDialect,
    parser::{Parser, ParserError},
    tokenizer::{Token, Tokenizer},
};

/// Most bytes of a query's text. A longer one is refused.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Most tokens of a query's text. A chain of operators nests one level per operator, and the parser's tree is walked and
/// dropped recursively: this bounds the stack that takes.
pub const TOKENS_MAX: usize = 100_000;

/// How deep the parser descends; several of its steps make one level of a query.
const PARSER_DEPTH_MAX: usize = 2_000;

/// The text's words in lower case with their places.
pub(super) type Words = Vec<(Place, String)>;

/// A parsed text.
pub(super) struct Parsed {
    /// The statements, in order.
    pub(super) statements: Vec<Statement>,
    /// The text's words in lower case with their places, for clauses whose place the tree does not have.
    pub(super) words: Words,
}

/// Parses a text of statements.
pub(super) fn parse(text: &str) -> Result<Parsed> {
    let (mut parser, words) = parser(text)?;
    let statements = parser.parse_statements().map_err(refusal)?;
    Ok(Parsed { statements, words })
}

/// Parses a text that is one expression.
pub(super) fn parse_expression(text: &str) -> Result<(Expr, Words)> {
    let (mut parser, words) = parser(text)?;
    let expr = parser.parse_expr().map_err(refusal)?;
    parser.expect_token(&Token::EOF).map_err(refusal)?;
    Ok((expr, words))
}

const DIALECT: PostgreSqlDialect = PostgreSqlDialect {};

fn parser(text: &str) -> Result<(Parser<'static>, Words)> {
    if text.len() > TEXT_BYTES_MAX {
        return Place::UNKNOWN.bad(format_args!(
            "a text of {} bytes is longer than the limit of {TEXT_BYTES_MAX}",
            text.len()
        ));
    }
    if text.contains('\0') {
        return Place::UNKNOWN.bad("the text contains a NUL character");
    }
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location().map_err(|error| {
        Place::from(error.location).error(QueryErrorKind::BadQuery, error.message.to_lowercase())
    })?;
    let tokens = tokens::prepared(tokens);
    if let Some(token) = tokens.get(TOKENS_MAX) {
        return Place::from(token.span)
            .bad(format_args!("the text has more than the limit of {TOKENS_MAX} words and signs"));
    }
    let words: Vec<_> = tokens
        .iter()
        .filter_map(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => {
                Some((Place::from(token.span), word.value.to_ascii_lowercase()))
            }
            _ => None,
        })
        .collect();
    let parser =
        Parser::new(&DIALECT).with_recursion_limit(PARSER_DEPTH_MAX).with_tokens_with_locations(tokens);
    Ok((parser, words))
}

/// Whether a text has a parameter of a name.
#[must_use]
pub fn has_parameter(text: &str, name: &str) -> bool {
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location().unwrap_or_default();
    tokens::with_parameters(tokens).iter().any(|token| match &token.token {
        Token::Placeholder(placeholder) => placeholder.strip_prefix(':') == Some(name),
        _ => false,
    })
}

/// Where the first word stands.
pub(super) fn first(words: &[(Place, String)]) -> Place {
    words.first().map_or(Place::UNKNOWN, |(place, _)| *place)
}

fn refusal(error: ParserError) -> crate::query::QueryError {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            return Place::UNKNOWN.error(QueryErrorKind::BadQuery, "the query nests too deeply");
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    // The parser has the place only as the message's last part.
    let (message, place) = match message.rsplit_once(" at Line: ") {
        Some((message, place)) => {
            let mut numbers = place.split(", Column: ").map(|number| number.trim().parse::<u64>());
            match (numbers.next(), numbers.next()) {
                (Some(Ok(line)), Some(Ok(column))) => (message.to_owned(), Place { line, column }),
                _ => (message.to_owned(), Place::UNKNOWN),
            }
        }
        None => (message, Place::UNKNOWN),
    };
    if message.ends_with("found: exclude") || message.ends_with("found: EXCLUDE") {
        return place.error(QueryErrorKind::BadQuery, "exclude in a frame is not supported");
    }
    let message = message.trim_start_matches("Expected: ").to_owned();
    let message = match message.split_once(", found: ") {
        Some((expected, found)) => format!("expected {expected}, found {found}"),
        None => message,
    };
    place.error(QueryErrorKind::BadQuery, message)
}
