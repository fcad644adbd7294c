//! What the whole-system tests share.

pub(crate) mod binary;
pub(crate) mod counters;
pub(crate) mod engine;
pub(crate) mod expression;
pub(crate) mod http;
pub(crate) mod laws;
pub(crate) mod live;
pub(crate) mod raw;
pub(crate) mod recorder;
pub(crate) mod seeds;
pub(crate) mod server;
pub(crate) mod tap;
pub(crate) mod views;
