//! Where in the text something stands, and refusals that say so.

use crate::{
    expr::typing::TypingError,
    query::{QueryError, QueryErrorKind},
};
use sqlparser::{
    ast::{BinaryOperator, Expr, Spanned},
    tokenizer::{Location, Span},
};
use std::fmt;
use tidegate_wire::model::row::COLUMNS_MAX;

/// What binding gives, or why it is refused.
pub(super) type Result<T> = std::result::Result<T, QueryError>;

/// A line and a column of the text, both from 1; line 0 where the parser does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Place {
    /// A place nobody knows.
    pub(super) const UNKNOWN: Self = Self { line: 0, column: 0 };

    /// A refusal of something here.
    pub(super) fn error(self, kind: QueryErrorKind, message: impl fmt::Display) -> QueryError {
        if self.line == 0 {
            return QueryError::new(kind, message.to_string());
        }
        QueryError::new(kind, format!("{message} (line {}, column {})", self.line, self.column))
    }

    /// A refusal of the query's form.
    pub(super) fn bad<T>(self, message: impl fmt::Display) -> Result<T> {
        Err(self.error(QueryErrorKind::BadQuery, message))
    }

    /// The refusal of something that SQL has and this does not.
    pub(super) fn unsupported<T>(self, what: impl fmt::Display) -> Result<T> {
        self.bad(format_args!("{what} is not supported"))
    }

    /// A refusal of a type.
    pub(super) fn mismatch<T>(self, message: impl fmt::Display) -> Result<T> {
        Err(self.error(QueryErrorKind::TypeMismatch, message))
    }

    /// Adds the place to an error of typing.
    pub(super) fn typing(self, error: TypingError) -> QueryError {
        let kind = match error {
            TypingError::Unsupported(_) => QueryErrorKind::BadQuery,
            TypingError::Mismatch(_) => QueryErrorKind::TypeMismatch,
        };
        self.error(kind, error)
    }
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Self { line: location.line, column: location.column }
    }
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        span.start.into()
    }
}

/// A number of columns that a relation may have; rows do not hold more.
pub(super) fn fits(columns: usize, place: Place) -> Result<usize> {
    if columns > COLUMNS_MAX {
        return place.bad(format_args!("more than the limit of {COLUMNS_MAX} columns"));
    }
    Ok(columns)
}

/// The first operand of an operator, for those that bind more tightly than NOT.
fn first_operand(expr: &Expr) -> Option<&Expr> {
    Some(match expr {
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => return None,
        Expr::BinaryOp { left, .. } | Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => left,
        Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotUnknown(inner)
        | Expr::IsDistinctFrom(inner, _)
        | Expr::IsNotDistinctFrom(inner, _)
        | Expr::Between { expr: inner, .. }
        | Expr::In { expr: inner, .. }
        | Expr::Like { expr: inner, .. }
        | Expr::ILike { expr: inner, .. } => inner,
        _ => return None,
    })
}

/// Where an expression starts. Walks down the left side itself, since a span costs a walk through everything.
pub(super) fn start(expr: &Expr) -> Place {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::BinaryOp { left, .. } => left,
            Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } | Expr::Cast { expr: inner, .. } => inner,
            Expr::Tuple(members) => match members.first() {
                Some(first) => first,
                None => return Place::UNKNOWN,
            },
            Expr::Exists { subquery, .. } | Expr::Subquery(subquery) => {
                return super::query::start_of(subquery);
            }
            other => match first_operand(other) {
                Some(first) => first,
                None => return other.span().into(),
            },
        }
    }
}
