//! One figure a file, in the order of the table.

pub(crate) mod advance;
pub(crate) mod apply;
pub(crate) mod families;
pub(crate) mod fanout;
pub(crate) mod first_result;
pub(crate) mod hydrate;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod top;
pub(crate) mod watchers;
