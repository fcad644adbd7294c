//! One figure a file, in the order of the table.

pub(crate) mod advance;
pub(crate) mod apply;
pub(crate) mod families;
pub(crate) mod fanout;
pub(crate) mod first_result;
pub(crate) mod groups;
pub(crate) mod hydrate;
pub(crate) mod hydrate_join;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod nexmark;
pub(crate) mod top;
pub(crate) mod tpch;
pub(crate) mod watchers;
