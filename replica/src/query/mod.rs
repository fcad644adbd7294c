//! Queries with names resolved and types checked, and the shapes they share.

mod aggregation;
pub mod error;
mod expression;
mod grouped;
mod layout;
pub mod nest;
pub mod output;
pub mod resolve;
pub mod select;
pub mod shape;

pub use error::{QueryError, QueryErrorKind};
pub use expression::Parameters;
pub use output::{Output, OutputTable};
pub use resolve::{Resolved, resolve};
pub use select::resolve_select;
pub use shape::Shape;
