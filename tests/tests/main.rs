//! All whole-system tests, in one binary.

mod advance_is_difference;
mod support;
