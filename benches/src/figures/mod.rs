//! One figure a file, in the order of the table.

pub(crate) mod advance;
pub(crate) mod families;
pub(crate) mod hydrate;
pub(crate) mod memory;
pub(crate) mod top;
