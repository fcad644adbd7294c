//! The store as a whole, through its handle. A failing disk is a journal that fails on demand.

mod committing;
mod index_builds;
mod support;
