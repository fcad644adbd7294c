//! The replica: follows a commit log, keeps the tables, maintains every query and tells each connection what
//! changed. Modules stand in flow order.

pub mod algebra;
pub mod commit_log;
pub mod dataflow;
pub mod drain;
pub mod explain;
pub mod expr;
pub mod handle;
pub mod pipeline;
pub mod plan;
pub mod query;
pub mod sql;
pub mod store;
pub mod suggestion;
pub mod view;
pub mod worker;
