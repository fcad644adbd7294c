//! Text forms of `timestamptz` and `date`. Both reach from the year 0000 to the end of 9999, as RFC 3339 does.

use jiff::civil::Date;
use std::ops::RangeInclusive;

const EPOCH: Date = Date::constant(1970, 1, 1);
const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Days since 1970 that a `date` can have.
pub const DATE_DAYS: RangeInclusive<i32> = -719_528..=2_932_896;
/// Microseconds since 1970 that a `timestamptz` can have.
pub const TIMESTAMPTZ_MICROS: RangeInclusive<i64> =
    -719_528 * MICROS_PER_DAY..=2_932_897 * MICROS_PER_DAY - 1;

/// Parses an RFC 3339 timestamp into microseconds since 1970. `None` when it is not one. Also taken, as PostgreSQL
/// prints or takes them: a space for the `T`, an offset of whole hours, no offset (then it is UTC), no seconds, no
/// time (then it is midnight), and second 60, which is the next minute's first. Digits beyond microseconds round to
/// the nearest.
#[must_use]
pub fn parse_timestamptz(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut micros = i64::from(parse_date(date)?) * MICROS_PER_DAY;
    if let Some(time) = rest.strip_prefix(['T', 't', ' ']) {
        let (of_day, offset) = parse_time(time)?;
        micros += of_day - parse_offset(offset)?;
    } else if !rest.is_empty() {
        return None;
    }
    TIMESTAMPTZ_MICROS.contains(&micros).then_some(micros)
}

/// `HH:MM[:SS[.digits]]`: the microseconds since midnight, and what follows.
fn parse_time(text: &str) -> Option<(i64, &str)> {
    let (hour, rest) = two_digits(text, 23)?;
    let (minute, rest) = two_digits(rest.strip_prefix(':')?, 59)?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => two_digits(rest, 60)?,
        None => (0, rest),
    };
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => parse_fraction(rest)?,
        None => (0, rest),
    };
    if second == 60 && fraction > 0 {
        return None;
    }
    Some((((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction, rest))
}

/// The digits after a second's point, in microseconds, and what follows.
fn parse_fraction(text: &str) -> Option<(i64, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(count);
    if digits.is_empty() {
        return None;
    }
    let digit = |index: usize| digits.as_bytes().get(index).map_or(0, |digit| i64::from(digit - b'0'));
    let micros = (0..6).fold(0, |micros, index| micros * 10 + digit(index));
    Some((micros + i64::from(digit(6) >= 5), rest))
}

/// `Z`, `±HH`, `±HHMM`, `±HH:MM` or nothing: microseconds east of UTC.
fn parse_offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes() {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', ..] => (1, &text[1..]),
        [b'-', ..] => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, rest) = two_digits(rest, 23)?;
    let (minutes, rest) = match rest {
        "" => (0, ""),
        rest => two_digits(rest.strip_prefix(':').unwrap_or(rest), 59)?,
    };
    rest.is_empty().then_some(sign * (hours * 60 + minutes) * 60 * MICROS_PER_SECOND)
}

/// Two digits up to `max`, and what follows.
fn two_digits(text: &str, max: i64) -> Option<(i64, &str)> {
    let (digits, rest) = text.split_at_checked(2)?;
    let number = number(digits)?;
    (number <= max).then_some((number, rest))
}

fn number(digits: &str) -> Option<i64> {
    // A sign is no digit.
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Formats microseconds since 1970 as RFC 3339 UTC, with as many fraction digits as needed.
#[must_use]
pub fn format_timestamptz(micros: i64) -> String {
    // Only arithmetic can leave the calendar's range; the parser cannot.
    let Some(date) = i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok().and_then(date) else {
        return format!("{micros}us");
    };
    let of_day = micros.rem_euclid(MICROS_PER_DAY);
    let (seconds, fraction) = (of_day / MICROS_PER_SECOND, of_day % MICROS_PER_SECOND);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{date}T{hour:02}:{minute:02}:{second:02}");
    if fraction > 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// Parses `YYYY-MM-DD` into days since 1970. `None` when it is not a date of the calendar.
#[must_use]
pub fn parse_date(text: &str) -> Option<i32> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' || !text.is_ascii() {
        return None;
    }
    let part = |range: std::ops::Range<usize>| number(&text[range]);
    let year = i16::try_from(part(0..4)?).ok()?;
    let month = i8::try_from(part(5..7)?).ok()?;
    let day = i8::try_from(part(8..10)?).ok()?;
    let date = Date::new(year, month, day).ok()?;
    EPOCH.until(date).ok().map(|span| span.get_days())
}

/// Formats days since 1970 as `YYYY-MM-DD`.
#[must_use]
pub fn format_date(days: i32) -> String {
    match date(days) {
        Some(date) => date.to_string(),
        None => format!("{days}d"),
    }
}

fn date(days: i32) -> Option<Date> {
    EPOCH.checked_add(jiff::Span::new().try_days(days).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_rfc_3339_or_as_postgresql_prints_them() {
        for (text, printed) in [
            ("2013-02-04T05:00:00Z", "2013-02-04T05:00:00Z"),
            ("2013-02-04t05:00:00z", "2013-02-04T05:00:00Z"),
            ("2013-02-04 05:00:00+00", "2013-02-04T05:00:00Z"),
            ("2013-02-04T05:00:00+05:30", "2013-02-03T23:30:00Z"),
            ("2013-02-04T05:00:00-0130", "2013-02-04T06:30:00Z"),
            ("2013-02-04T05:00:00.5", "2013-02-04T05:00:00.5Z"),
            ("2013-02-04T05:00", "2013-02-04T05:00:00Z"),
            ("2013-02-04", "2013-02-04T00:00:00Z"),
            ("2013-02-04T05:00:00.9999995Z", "2013-02-04T05:00:01Z"),
            ("2013-02-04T05:00:00.0000004999Z", "2013-02-04T05:00:00Z"),
            ("1969-12-31T23:59:59.9999995Z", "1970-01-01T00:00:00Z"),
            ("1969-12-31T23:59:59.000001Z", "1969-12-31T23:59:59.000001Z"),
            ("2013-06-30T23:59:60Z", "2013-07-01T00:00:00Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ] {
            let micros = parse_timestamptz(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(format_timestamptz(micros), printed, "{text}");
            assert_eq!(parse_timestamptz(printed), Some(micros), "{text}");
        }
    }

    #[test]
    fn what_is_no_timestamp_is_refused() {
        for text in [
            "",
            "2013-02-04T",
            "2013-02-04T05",
            "2013-02-04T24:00:00Z",
            "2013-02-04T05:60:00Z",
            "2013-02-04T05:00:61Z",
            "2013-02-04T05:00:60.5Z",
            "2013-02-04T05:00:00.Z",
            "2013-02-04T05:00:00,5Z",
            "2013-02-04T05:00:00[Europe/Paris]",
            "2013-02-04T05:00:00+01:00[Europe/Paris]",
            "2013-02-04T05:00:00 Z",
            "2013-02-04T05:00:00+1",
            "2013-02-04T05:00:00+01:",
            "2013-02-04T+5:00:00Z",
            "2013-02-30T05:00:00Z",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59.9999995Z",
            "-009999-01-02T02:00:00Z",
            "20130204T050000Z",
            "2013-02-0ä05:00",
        ] {
            assert_eq!(parse_timestamptz(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_ten_characters() {
        for (text, days) in
            [("1970-01-01", 0), ("0000-02-29", -719_469), ("0000-01-01", -719_528), ("9999-12-31", 2_932_896)]
        {
            assert_eq!(parse_date(text), Some(days), "{text}");
            assert_eq!(format_date(days), text);
        }
        for text in [
            "20130204",
            "2013-02-04T05",
            "2013-W06-1",
            "2013-035",
            "2013-02-04 ",
            " 2013-02-04",
            "+013-02-04",
            "-001-01-01",
            "-0001-01-01",
            "+010000-01-01",
            "2013-02-29",
            "2013-2-004",
            "2013-02-é",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        assert_eq!((*DATE_DAYS.start(), *DATE_DAYS.end()), (-719_528, 2_932_896));
        assert_eq!(format_timestamptz(*TIMESTAMPTZ_MICROS.end()), "9999-12-31T23:59:59.999999Z");
    }
}
