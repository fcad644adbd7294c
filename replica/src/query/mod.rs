//! Queries with names resolved and types checked, and the shapes they share.

pub mod error;
pub mod output;

pub use error::{QueryError, QueryErrorKind};
pub use output::{Output, OutputTable};
