//! `to_char`, `to_date` and `to_timestamp` with a format.

mod moment;
mod number;

pub(super) use moment::{moment_text, parse_moment};
pub(super) use number::{NumberText, number_text};
