//! The proleptic Gregorian calendar, and PostgreSQL's text forms of dates and moments. The time zone is UTC.

use super::{
    EvalError,
    interval::{MICROS_PER_DAY, MICROS_PER_SECOND},
};
use std::fmt::Write as _;
use tidegate_wire::model::time::{DATE_DAYS, TIMESTAMPTZ_MICROS};

/// Days that are told as a date where they are out of range; the calendar of more would overflow.
const DAYS_MAX: i64 = 1 << 40;

/// The last year that is computed with: far enough to tell what is out of range.
pub const YEAR_MAX: i64 = 300_000;

/// The names of months; the first three letters are the short ones.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The names of weekdays from Sunday; the first three letters are the short ones.
pub const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A moment's date and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// Days since 1970.
    pub days: i64,
    /// Microseconds since midnight.
    pub micros: i64,
}

impl Civil {
    /// A moment's.
    #[must_use]
    pub fn of_moment(micros: i64) -> Self {
        Self { micros: micros.rem_euclid(MICROS_PER_DAY), ..Self::of_date(micros.div_euclid(MICROS_PER_DAY)) }
    }

    /// A date's midnight, of days since 1970.
    #[must_use]
    pub fn of_date(days: i64) -> Self {
        // Years start in March here, so that a leap day is the last one.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self { year, month, day, days, micros: 0 }
    }

    /// 0 (Sunday) to 6.
    #[must_use]
    pub fn weekday(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }

    /// 1 to 366.
    #[must_use]
    pub fn day_of_year(&self) -> i64 {
        self.days - days_of(self.year, 1, 1) + 1
    }

    /// The year and number of the ISO week.
    #[must_use]
    pub fn iso_week(&self) -> (i64, i64) {
        let thursday = Self::of_date(self.days + 3 - (self.weekday() + 6) % 7);
        (thursday.year, (thursday.day_of_year() - 1) / 7 + 1)
    }

    /// The year as people count it, without 0, and whether it is BC.
    #[must_use]
    pub fn year_and_era(&self) -> (i64, bool) {
        if self.year > 0 { (self.year, false) } else { (1 - self.year, true) }
    }
}

/// Days since 1970 of a date whose month is 1 to 12; a day beyond the month's end counts on.
#[must_use]
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + of_era - 719_468
}

/// How many days a month has.
#[must_use]
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A moment, if it is one that a column can hold.
pub(super) fn moment(micros: i128) -> Result<i64, EvalError> {
    if let Ok(micros) = i64::try_from(micros)
        && TIMESTAMPTZ_MICROS.contains(&micros)
    {
        return Ok(micros);
    }
    let day = i128::from(MICROS_PER_DAY);
    let text = match i64::try_from(micros.div_euclid(day)) {
        Ok(days) if days.abs() <= DAYS_MAX => {
            civil_text(Civil { micros: micros.rem_euclid(day) as i64, ..Civil::of_date(days) })
        }
        _ => format!("{micros} microseconds since 1970"),
    };
    Err(EvalError::OutsideYears { what: "timestamp", text })
}

/// A date, if it is one that a column can hold.
pub(super) fn date(days: i64) -> Result<i32, EvalError> {
    match i32::try_from(days) {
        Ok(days) if DATE_DAYS.contains(&days) => Ok(days),
        _ => {
            let is_shown = (-DAYS_MAX..=DAYS_MAX).contains(&days);
            let text = if is_shown { date_text(days) } else { format!("{days} days since 1970") };
            Err(EvalError::OutsideYears { what: "date", text })
        }
    }
}

/// A date's midnight.
pub(super) fn midnight(days: i32) -> Result<i64, EvalError> {
    moment(i128::from(days) * i128::from(MICROS_PER_DAY))
}

/// `2013-02-04`, with ` BC` where it is.
#[must_use]
pub fn date_text(days: i64) -> String {
    let civil = Civil::of_date(days);
    let (year, bc) = civil.year_and_era();
    format!("{year:04}-{:02}-{:02}{}", civil.month, civil.day, if bc { " BC" } else { "" })
}

/// `2013-02-04 05:00:00.5+00`
#[must_use]
pub fn moment_text(micros: i64) -> String {
    civil_text(Civil::of_moment(micros))
}

fn civil_text(civil: Civil) -> String {
    let (year, bc) = civil.year_and_era();
    let seconds = civil.micros / MICROS_PER_SECOND;
    let mut out = format!(
        "{year:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        civil.month,
        civil.day,
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    );
    let fraction = civil.micros % MICROS_PER_SECOND;
    if fraction > 0 {
        let _ = write!(out, ".{fraction:06}");
        out.truncate(out.trim_end_matches('0').len());
    }
    out.push_str(if bc { "+00 BC" } else { "+00" });
    out
}

/// Reads a date; a time of day behind it is passed over, as PostgreSQL does.
pub(super) fn parse_date(text: &str) -> Result<i32, EvalError> {
    let read = read(text).map_err(|fault| fault.error("date", text))?;
    date(read.days)
}

/// Reads a moment; without a time it is midnight, without an offset UTC.
pub(super) fn parse_moment(text: &str) -> Result<i64, EvalError> {
    let read = read(text).map_err(|fault| fault.error("timestamp with time zone", text))?;
    moment(i128::from(read.days) * i128::from(MICROS_PER_DAY) + i128::from(read.micros - read.offset_micros))
}

enum Fault {
    Syntax,
    Range,
}

impl Fault {
    fn error(self, ty: &'static str, text: &str) -> EvalError {
        match self {
            Self::Syntax => EvalError::InvalidText { ty, text: text.to_owned() },
            Self::Range => EvalError::FieldOutOfRange { what: "date/time", text: text.to_owned() },
        }
    }
}

struct Read {
    days: i64,
    micros: i64,
    offset_micros: i64,
}

fn read(text: &str) -> Result<Read, Fault> {
    let lower = text.trim().to_ascii_lowercase();
    if lower == "epoch" {
        return Ok(Read { days: 0, micros: 0, offset_micros: 0 });
    }
    // The T of RFC 3339 stands between digits.
    let mut spaced = String::with_capacity(lower.len());
    let mut chars = lower.chars().peekable();
    let mut previous = ' ';
    while let Some(c) = chars.next() {
        let between = previous.is_ascii_digit() && chars.peek().is_some_and(char::is_ascii_digit);
        spaced.push(if (c == 't' && between) || c == ',' { ' ' } else { c });
        previous = c;
    }
    let (mut date, mut micros, mut offset, mut bc) = (Vec::new(), None, None, false);
    let mut afternoon = None;
    for word in spaced.split_whitespace() {
        match word {
            "bc" => bc = true,
            "ad" => {}
            "am" | "pm" if micros.is_some() && afternoon.is_none() => afternoon = Some(word == "pm"),
            _ if word.contains(':') && micros.is_none() => {
                let zone = word.find(['+', '-', 'z', 'a', 'p', 'u', 'g']).unwrap_or(word.len());
                micros = Some(time_of_day(&word[..zone])?);
                match &word[zone..] {
                    "" => {}
                    half @ ("am" | "pm") => afternoon = Some(half == "pm"),
                    zone if offset.is_none() => offset = Some(zone_offset(zone)?),
                    _ => return Err(Fault::Syntax),
                }
            }
            _ if micros.is_some() && offset.is_none() => offset = Some(zone_offset(word)?),
            _ if micros.is_none() => {
                let (day, zone) = word.split_at(zone_start(word));
                date.extend((!day.is_empty()).then_some(day));
                match zone {
                    "" => {}
                    zone if offset.is_none() => offset = Some(zone_offset(zone)?),
                    _ => return Err(Fault::Syntax),
                }
            }
            _ => return Err(Fault::Syntax),
        }
    }
    let mut time = micros.unwrap_or(0);
    if let Some(afternoon) = afternoon {
        let hour = time / (3_600 * MICROS_PER_SECOND);
        if !(1..=12).contains(&hour) {
            return Err(Fault::Range);
        }
        let shift = match (afternoon, hour) {
            (true, 12) | (false, 1..=11) => 0,
            (true, _) => 12,
            (false, _) => -12,
        };
        time += shift * 3_600 * MICROS_PER_SECOND;
    }
    let days = calendar_date(&date, bc)?;
    Ok(Read { days, micros: time, offset_micros: offset.unwrap_or(0) })
}

fn digits(text: &str) -> Option<i64> {
    let valid = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| text.parse().ok()).flatten()
}

/// `HH:MM[:SS[.fraction]]` as microseconds.
fn time_of_day(text: &str) -> Result<i64, Fault> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] => (hours, minutes, "0"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(Fault::Syntax),
    };
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let number = |text| digits(text).ok_or(Fault::Syntax);
    let (hours, minutes, whole) = (number(hours)?, number(minutes)?, number(whole)?);
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Syntax);
    }
    let fraction: f64 = format!("0.{fraction}0").parse().map_err(|_| Fault::Syntax)?;
    let micros = (fraction * 1e6).round_ties_even() as i64;
    let total = ((hours * 60 + minutes) * 60 + whole) * MICROS_PER_SECOND + micros;
    if hours > 24 || minutes > 59 || whole > 60 || total > MICROS_PER_DAY {
        return Err(Fault::Range);
    }
    Ok(total)
}

/// The names of UTC, the longer ones first.
const ZONES: [&str; 5] = ["zulu", "utc", "gmt", "ut", "z"];

/// Where a zone begins that stands alone or right behind a date's digits; else the end. A minus sign parts a date.
fn zone_start(word: &str) -> usize {
    let named = || {
        let before = ZONES.iter().find_map(|zone| word.strip_suffix(zone))?;
        (before.is_empty() || before.ends_with(|c: char| c.is_ascii_digit())).then_some(before.len())
    };
    word.find('+').or_else(named).unwrap_or(word.len())
}

/// `Z`, `UTC`, `+HH`, `+HH:MM`, `+HHMM` as microseconds east of UTC.
fn zone_offset(text: &str) -> Result<i64, Fault> {
    if ZONES.contains(&text) {
        return Ok(0);
    }
    let (sign, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (1, rest),
        (_, Some(rest)) => (-1, rest),
        _ => return Err(Fault::Syntax),
    };
    let parts: Vec<&str> = rest.split(':').collect();
    let number = |text| digits(text).ok_or(Fault::Syntax);
    let (hours, minutes, seconds) = match parts[..] {
        [both] if both.len() > 2 => {
            let both = number(both)?;
            (both / 100, both % 100, 0)
        }
        [hours] => (number(hours)?, 0, 0),
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return Err(Fault::Syntax),
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Fault::Range);
    }
    Ok(sign * ((hours * 60 + minutes) * 60 + seconds) * MICROS_PER_SECOND)
}

/// Days since 1970 of a date: `2013-02-04`, `20130204`, `2/4/2013`, `Feb 4 2013`, `4 Feb 2013`, `04-Feb-2013`.
fn calendar_date(words: &[&str], bc: bool) -> Result<i64, Fault> {
    let mut fields: Vec<&str> = Vec::with_capacity(3);
    for word in words {
        fields.extend(word.split(['-', '/', '.']));
    }
    if let [all] = fields[..]
        && all.len() == 8
        && all.is_ascii()
    {
        fields = vec![&all[..4], &all[4..6], &all[6..]];
    }
    let [first, second, third] = fields[..] else { return Err(Fault::Syntax) };
    let named = |text: &str| {
        let found = MONTHS.iter().position(|month| {
            let month = month.to_ascii_lowercase();
            text == month
                || (text.len() == 3 && month.starts_with(text))
                || (text == "sept" && month == "september")
        });
        found.map(|index| index as i64 + 1)
    };
    let number = |text| digits(text).ok_or(Fault::Syntax);
    let (year, month, day) = if let Some(month) = named(first) {
        (third, month, number(second)?)
    } else if let Some(month) = named(second) {
        if first.len() > 2 { (first, month, number(third)?) } else { (third, month, number(first)?) }
    } else if first.len() > 2 {
        (first, number(second)?, number(third)?)
    } else {
        (third, number(first)?, number(second)?)
    };
    let mut number_of_year = number(year)?;
    if year.len() <= 2 && !bc {
        number_of_year += if number_of_year < 70 { 2_000 } else { 1_900 };
    }
    if number_of_year == 0 {
        return Err(Fault::Range);
    }
    let year = if bc { 1 - number_of_year } else { number_of_year };
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) || year > YEAR_MAX {
        return Err(Fault::Range);
    }
    Ok(days_of(year, month, day))
}
