//! The oracle: tables in memory, commits applied whole or not at all, queries answered from scratch.
//!
//! A [`Database`] takes the tables line of a commit stream, then commits, and runs queries in their JSON form. It is
//! written to be read rather than to be fast: no index, no plan, every place of a result is a filter over all rows of
//! its table. It is the meaning of the query language against which the engine is held.
//!
//! # Order of evaluation
//! It shows only when an expression fails (division by zero, overflow), which makes the query `query_faulted`:
//! * a place looks at its table's rows in key order; a row is first matched on its correlation columns, and only if it
//!   matches is `where` evaluated. Ordering, `start` and `limit` come after, so a row they drop can still fault;
//! * `and` goes left to right and stops at the first false, `or` at the first true (NULL stops neither), `in` at the
//!   first member that is equal, `coalesce` at the first that is not NULL; every other operation evaluates all its
//!   arguments, left to right, also when one is NULL;
//! * `exists` stops at the first row that passes, unless its query has a `start` or a `limit`.

mod aggregate;
mod calendar;
mod cell;
mod compare;
mod comparison;
mod database;
mod decimal;
mod evaluate;
mod expression;
mod fault;
mod pattern;
mod query;
#[cfg(test)]
mod tests;

pub use compare::compare_results;
pub use database::{Column, Database, Table};
pub use fault::{QueryError, Refusal};
