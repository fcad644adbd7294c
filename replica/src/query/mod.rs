//! Queries with names resolved and types checked, and the shapes they share.

pub mod output;

pub use output::{Output, OutputTable};
