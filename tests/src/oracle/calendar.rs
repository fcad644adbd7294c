//! Dates and timestamps in their JSON form, as days and microseconds since 1970, proleptic Gregorian, years 0001–9999.

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// `2013-02-04` as days since 1970.
pub(super) fn read_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(&text[0..4])?, digits(&text[5..7])?, digits(&text[8..10])?);
    if year < 1 || !(1..=12).contains(&month) || day < 1 || day > month_length(year, month) {
        return None;
    }
    let years = year - 1;
    let mut days = years * 365 + years / 4 - years / 100 + years / 400;
    days += (1..month).map(|earlier| month_length(year, earlier)).sum::<i64>() + day - 1;
    Some(days - DAYS_BEFORE_1970)
}

/// Days from 0001-01-01 to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_162;

/// The JSON form of a day.
pub(super) fn show_date(days: i64) -> String {
    let mut rest = days + DAYS_BEFORE_1970;
    // 366 is an upper bound for a year's length, so the estimate is never too late; step forward from there.
    let mut year = 1 + rest / 366;
    let start = |year: i64| (year - 1) * 365 + (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    while start(year + 1) <= rest {
        year += 1;
    }
    rest -= start(year);
    let mut month = 1;
    while rest >= month_length(year, month) {
        rest -= month_length(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", rest + 1)
}

/// `2013-02-04T05:00:00.25Z`, or with an offset instead of `Z`, as microseconds since 1970.
pub(super) fn read_timestamp(text: &str) -> Option<i64> {
    if !text.is_ascii() || text.len() < 20 || !matches!(&text[10..11], "T" | "t") {
        return None;
    }
    let days = read_date(&text[0..10])?;
    if &text[13..14] != ":" || &text[16..17] != ":" {
        return None;
    }
    let (hour, minute, second) = (digits(&text[11..13])?, digits(&text[14..16])?, digits(&text[17..19])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &text[19..];
    let mut micros = 0;
    if let Some(after) = rest.strip_prefix('.') {
        let length = after.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 || length > 6 {
            return None;
        }
        micros = digits(&after[..length])? * 10_i64.pow(6 - length as u32);
        rest = &after[length..];
    }
    let offset_minutes = match rest.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (digits(&rest[1..3])?, digits(&rest[4..6])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let seconds = (hour * 60 + minute - offset_minutes) * 60 + second;
    Some(days * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + micros)
}

/// The JSON form of a moment: UTC, the fraction without trailing zeros, or none.
pub(super) fn show_timestamp(micros: i64) -> String {
    let (days, within) = (micros.div_euclid(MICROS_PER_DAY), micros.rem_euclid(MICROS_PER_DAY));
    let (seconds, fraction) = (within / MICROS_PER_SECOND, within % MICROS_PER_SECOND);
    let mut text =
        format!("{}T{:02}:{:02}:{:02}", show_date(days), seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text.push('Z');
    text
}

fn digits(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_moments_are_read_and_shown() {
        assert_eq!(read_date("1970-01-01"), Some(0));
        assert_eq!(read_date("2013-02-29"), None);
        assert_eq!(read_timestamp("2013-02-04T05:00:00Z"), Some(1_359_954_000_000_000));
        assert_eq!(read_timestamp("2013-02-04T07:30:00+02:30"), read_timestamp("2013-02-04T05:00:00Z"));
        assert_eq!(read_timestamp("1969-12-31T23:59:59.999999Z"), Some(-1));
        assert_eq!(show_timestamp(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(show_timestamp(500_000), "1970-01-01T00:00:00.5Z");
        for days in (-719_162..2_932_896).step_by(97) {
            assert_eq!(read_date(&show_date(days)), Some(days));
        }
    }
}
