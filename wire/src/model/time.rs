//! Text forms of `timestamptz` and `date`.

use jiff::{Timestamp, civil::Date};

/// Parses an RFC 3339 timestamp (also with a space for the `T`, as PostgreSQL prints it, and without an offset,
/// then taken as UTC) into microseconds since 1970. `None` when it is not one. Digits beyond microseconds round to
/// the nearest, as PostgreSQL rounds.
#[must_use]
pub fn parse_timestamptz(text: &str) -> Option<i64> {
    let text = text.trim();
    let timestamp: Timestamp = match text.parse() {
        Ok(timestamp) => timestamp,
        Err(_) => match text.parse::<jiff::civil::DateTime>() {
            Ok(civil) => civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp(),
            // PostgreSQL prints a whole-hour offset as `+00`.
            Err(_) => format!("{text}:00").parse().ok()?,
        },
    };
    let nanos = timestamp.as_nanosecond();
    i64::try_from((nanos + 500).div_euclid(1_000)).ok()
}

/// Formats microseconds since 1970 as RFC 3339 UTC, with as many fraction digits as needed.
#[must_use]
pub fn format_timestamptz(micros: i64) -> String {
    match Timestamp::from_microsecond(micros) {
        Ok(timestamp) => timestamp.to_string(),
        // Only arithmetic can leave the calendar's range; the parser cannot.
        Err(_) => format!("{micros}us"),
    }
}

const EPOCH: Date = Date::constant(1970, 1, 1);

/// Parses `YYYY-MM-DD` into days since 1970. `None` when it is not a date of the calendar.
#[must_use]
pub fn parse_date(text: &str) -> Option<i32> {
    let text = text.trim();
    // Dates are ten characters or carry a sign; anything longer would be a timestamp, which is refused.
    if text.len() > 13 {
        return None;
    }
    let date: Date = text.parse().ok()?;
    EPOCH.until(date).ok().map(|span| span.get_days())
}

/// Formats days since 1970 as `YYYY-MM-DD`.
#[must_use]
pub fn format_date(days: i32) -> String {
    match EPOCH.checked_add(jiff::Span::new().try_days(days).unwrap_or_default()) {
        Ok(date) => date.to_string(),
        Err(_) => format!("{days}d"),
    }
}
