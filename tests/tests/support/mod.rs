//! What the whole-system tests share.

pub(crate) mod engine;
pub(crate) mod seeds;
