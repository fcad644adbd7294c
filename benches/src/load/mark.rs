//! A mark in a row's text, by which readers recognize an update without decoding anything: when it was due and which
//! one it is.

use std::time::{SystemTime, UNIX_EPOCH};

/// What a mark begins with.
pub(crate) const BEGIN: &[u8] = b"#t=";
/// Bytes of a mark.
pub(crate) const LENGTH: usize = 31;

/// The text of update `number`, due at `micros` since 1970.
pub(crate) fn mark(micros: u64, number: u32) -> String {
    format!("#t={micros:016};n={number:08}#")
}

/// Reads a whole mark.
pub(crate) fn read(bytes: &[u8]) -> Option<(u64, u32)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (micros, number) = text.strip_prefix("#t=")?.strip_suffix('#')?.split_once(";n=")?;
    Some((micros.parse().ok()?, number.parse().ok()?))
}

/// Microseconds since 1970: the two processes share the machine's clock.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_written() {
        let text = mark(1_700_000_000_123_456, 42);
        assert_eq!((text.len(), read(text.as_bytes())), (LENGTH, Some((1_700_000_000_123_456, 42))));
    }
}
