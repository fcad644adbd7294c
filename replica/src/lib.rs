//! The replica: commit log, store, workers and drain, in flow order.

pub mod commit_log;
