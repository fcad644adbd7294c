//! What the whole-system tests are made of.
//!
//! * [`oracle`] holds a database in memory and answers a query by brute force. It shares no code with the engine, so
//!   that agreement between the two means something.
//! * [`sql`] makes SQL queries, tables and commits from a seed.
//! * [`workload`] makes schemas, rows, commits, queries and subscribers from a seed.
//! * [`changes`] makes statements that write rows and change tables, from a seed.
//! * [`conformance`] reads the recorded nested-query cases, where they are present.
//! * [`tpch`] makes the tables, commits and queries of TPC-H from a seed; [`row_changes`] has the forms that they take.
//! * [`nexmark`] makes an auction house's stream of events and has its queries.
//! * [`postgres`] starts a private PostgreSQL, whose answers are the measure for SQL.
//!
//! Everything is spoken in the JSON forms of the outside interfaces: commits, queries, arguments and results are
//! [`serde_json::Value`]s. Nothing here starts a thread, reads a clock or does I/O, except `conformance`, which reads
//! files, and `postgres`, which runs a server; `sql` asks it.

pub mod changes;
pub mod conformance;
pub mod nexmark;
pub mod oracle;
pub mod postgres;
pub mod row_changes;
mod shrink;
pub mod sql;
pub mod tpch;
pub mod workload;
