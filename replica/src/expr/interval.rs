//! Intervals. No column holds one: inside an expression an interval travels as a `bytea` of 16 bytes, which type checking
//! keeps apart from others.

use super::EvalError;
use std::fmt::{self, Write as _};
use tidegate_wire::model::{Value, ValueRef};

/// Microseconds of a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds of a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

const DAYS_PER_MONTH: i32 = 30;
const OVERFLOW: EvalError = EvalError::OutOfRange("interval");

/// Months, days and microseconds, which do not convert into each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Calendar months.
    pub months: i32,
    /// Calendar days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// The interval as a value inside an expression.
    #[must_use]
    pub fn to_value(self) -> Value {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.months.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.days.to_be_bytes());
        bytes[8..].copy_from_slice(&self.micros.to_be_bytes());
        ValueRef::Bytea(&bytes).to_value()
    }

    /// The interval that a value inside an expression is; zero for anything else.
    #[must_use]
    pub fn from_value(value: ValueRef<'_>) -> Self {
        let ValueRef::Bytea(bytes) = value else { return Self::default() };
        let Ok(bytes) = <[u8; 16]>::try_from(bytes) else { return Self::default() };
        let all = u128::from_be_bytes(bytes);
        Self { months: (all >> 96) as i32, days: (all >> 64) as i32, micros: all as i64 }
    }

    /// What intervals compare by: microseconds, with months of 30 days.
    #[must_use]
    pub fn span(self) -> i128 {
        let days = i128::from(self.months) * i128::from(DAYS_PER_MONTH) + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }

    /// A value that compares as the interval does.
    #[must_use]
    pub fn order(self) -> Value {
        let bytes = ((self.span() as u128) ^ (1 << 127)).to_be_bytes();
        ValueRef::Bytea(&bytes).to_value()
    }

    /// The sum.
    ///
    /// # Errors
    /// Overflow.
    pub fn plus(self, other: Self) -> Result<Self, EvalError> {
        Ok(Self {
            months: self.months.checked_add(other.months).ok_or(OVERFLOW)?,
            days: self.days.checked_add(other.days).ok_or(OVERFLOW)?,
            micros: self.micros.checked_add(other.micros).ok_or(OVERFLOW)?,
        })
    }

    /// The opposite.
    ///
    /// # Errors
    /// Overflow.
    pub fn negate(self) -> Result<Self, EvalError> {
        Ok(Self {
            months: self.months.checked_neg().ok_or(OVERFLOW)?,
            days: self.days.checked_neg().ok_or(OVERFLOW)?,
            micros: self.micros.checked_neg().ok_or(OVERFLOW)?,
        })
    }

    /// The interval so many times.
    ///
    /// # Errors
    /// Overflow.
    pub fn multiply(self, factor: f64) -> Result<Self, EvalError> {
        self.scaled(|part| part * factor)
    }

    /// A part of the interval.
    ///
    /// # Errors
    /// Division by zero, overflow.
    pub fn divide(self, divisor: f64) -> Result<Self, EvalError> {
        if divisor == 0.0 {
            return Err(EvalError::DivisionByZero);
        }
        self.scaled(|part| part / divisor)
    }

    /// Scales each part; fractions of months become days of a month of 30, fractions of days become time.
    fn scaled(self, scale: impl Fn(f64) -> f64) -> Result<Self, EvalError> {
        let to_i32 = |value: f64| {
            if value.is_finite() && value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX) {
                Ok(value as i32)
            } else {
                Err(OVERFLOW)
            }
        };
        let (months_exact, days_exact) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let (months, mut days) = (to_i32(months_exact)?, to_i32(days_exact)?);
        let to_micros = |seconds: f64| (seconds * 1e6).round_ties_even() / 1e6;
        let month_rest = to_micros((months_exact - f64::from(months)) * f64::from(DAYS_PER_MONTH));
        let mut seconds =
            to_micros((days_exact - f64::from(days) + month_rest - month_rest.trunc()) * 86_400.0);
        if seconds.abs() >= 86_400.0 {
            let whole = (seconds / 86_400.0).trunc();
            days = days.checked_add(to_i32(whole)?).ok_or(OVERFLOW)?;
            seconds -= whole * 86_400.0;
        }
        days = days.checked_add(to_i32(month_rest)?).ok_or(OVERFLOW)?;
        let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
        if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros) {
            return Err(OVERFLOW);
        }
        Ok(Self { months, days, micros: micros as i64 })
    }

    /// The interval from one moment to another, in whole days and the rest.
    #[must_use]
    pub fn between(from: i64, to: i64) -> Self {
        let micros = to.saturating_sub(from);
        Self { months: 0, days: (micros / MICROS_PER_DAY) as i32, micros: micros % MICROS_PER_DAY }
    }

    /// Reads an interval as PostgreSQL writes and usually reads it: numbers with units, `HH:MM:SS`, years and months as
    /// `1-2`, `ago`, and ISO 8601 (`P1Y2M3DT4H`). A number alone is seconds.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, EvalError> {
        let wrong = || EvalError::InvalidText { ty: "interval", text: text.to_owned() };
        let out_of_range = || EvalError::FieldOutOfRange { what: "interval", text: text.to_owned() };
        let lower = text.trim().to_ascii_lowercase();
        let mut sum = Sum::default();
        if let Some(rest) = lower.strip_prefix('p') {
            sum.iso(rest).ok_or_else(wrong)?;
            return sum.finish().ok_or_else(out_of_range);
        }
        let mut words = Words { rest: lower.strip_prefix('@').unwrap_or(&lower) };
        let (mut ago, mut any) = (false, false);
        while let Some(word) = words.next() {
            if ago {
                return Err(wrong());
            }
            if word == "ago" {
                ago = true;
                continue;
            }
            any = true;
            if word.contains(':') {
                sum.time(word).ok_or_else(wrong)?;
                continue;
            }
            let digits = word.trim_start_matches(['+', '-']);
            if digits.contains('-') {
                sum.years_months(word).ok_or_else(wrong)?;
                continue;
            }
            let value = Number::parse(word).ok_or_else(wrong)?;
            let unit = match words.peek() {
                Some(unit) if unit.starts_with(|c: char| c.is_ascii_alphabetic()) && unit != "ago" => {
                    words.next();
                    unit
                }
                // `1 02:03:04` is a day and a time.
                Some(next) if next.contains(':') => "day",
                _ => "second",
            };
            sum.add(value, unit).ok_or_else(wrong)?;
        }
        if !any {
            return Err(wrong());
        }
        let interval = sum.finish().ok_or_else(out_of_range)?;
        if ago { interval.negate() } else { Ok(interval) }
    }
}

/// Splits at spaces, and between a number and the unit that stands right behind it.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        Words { rest: self.rest }.next()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start();
        let first = rest.chars().next()?;
        let in_word = |c: char| {
            if first.is_ascii_alphabetic() {
                c.is_ascii_alphabetic()
            } else {
                c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ':')
            }
        };
        let end = rest.find(|c: char| !in_word(c)).unwrap_or(rest.len()).max(first.len_utf8());
        self.rest = &rest[end..];
        Some(&rest[..end])
    }
}

/// A decimal: the whole part and, with the same sign, the fraction.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

impl Number {
    fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let fraction: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
        Some(if negative { Self { whole: -whole, fraction: -fraction } } else { Self { whole, fraction } })
    }
}

/// The units of an interval.
#[derive(Clone, Copy)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" | "useconds" => Self::Microsecond,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" | "mseconds" => Self::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hour,
            "d" | "day" | "days" => Self::Day,
            "w" | "week" | "weeks" => Self::Week,
            "mon" | "mons" | "month" | "months" => Self::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Self::Year,
            "dec" | "decs" | "decade" | "decades" => Self::Decade,
            "c" | "cent" | "century" | "centuries" => Self::Century,
            "mil" | "mils" | "millennia" | "millennium" => Self::Millennium,
            _ => return None,
        })
    }
}

/// What has been read so far; wider than the result, which is checked at the end.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i128,
    /// Which units were named; none is named twice.
    named: u16,
}

impl Sum {
    /// Notes a unit, which was not named before.
    fn name(&mut self, unit: Unit) -> Option<()> {
        let bit = 1 << unit as u16;
        (self.named & bit == 0).then(|| self.named |= bit)
    }

    fn add(&mut self, value: Number, unit: &str) -> Option<()> {
        let Number { whole, fraction } = value;
        let unit = Unit::from_name(unit)?;
        self.name(unit)?;
        let micros_per = match unit {
            Unit::Microsecond => 1,
            Unit::Millisecond => 1_000,
            Unit::Second => MICROS_PER_SECOND,
            Unit::Minute => 60 * MICROS_PER_SECOND,
            Unit::Hour => 3_600 * MICROS_PER_SECOND,
            _ => 0,
        };
        let months_per = match unit {
            Unit::Day => {
                self.days = self.days.checked_add(whole)?;
                self.fraction_of_days(fraction);
                return Some(());
            }
            Unit::Week => {
                self.days = self.days.checked_add(whole.checked_mul(7)?)?;
                self.fraction_of_days(fraction * 7.0);
                return Some(());
            }
            Unit::Month => {
                self.months = self.months.checked_add(whole)?;
                self.fraction_of_days(fraction * f64::from(DAYS_PER_MONTH));
                return Some(());
            }
            Unit::Year => 12,
            Unit::Decade => 120,
            Unit::Century => 1_200,
            Unit::Millennium => 12_000,
            _ => {
                self.micros += i128::from(whole) * i128::from(micros_per);
                self.micros += (fraction * micros_per as f64).round_ties_even() as i128;
                return Some(());
            }
        };
        self.months = self.months.checked_add(whole.checked_mul(months_per)?)?;
        self.months = self.months.saturating_add((fraction * months_per as f64).round_ties_even() as i64);
        Some(())
    }

    /// Whole days of it are days, the rest is time.
    fn fraction_of_days(&mut self, days: f64) {
        let whole = days.trunc();
        self.days = self.days.saturating_add(whole as i64);
        self.micros += ((days - whole) * MICROS_PER_DAY as f64).round_ties_even() as i128;
    }

    /// `[-]HH:MM[:SS[.fraction]]`
    fn time(&mut self, word: &str) -> Option<()> {
        let (sign, digits) = match word.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, word.strip_prefix('+').unwrap_or(word)),
        };
        let parts: Vec<&str> = digits.split(':').collect();
        let whole = |part: &str| -> Option<i64> {
            let valid = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            valid.then(|| part.parse().ok()).flatten()
        };
        let (hours, minutes, seconds) = match parts[..] {
            // Two parts with a fraction are minutes and seconds.
            [minutes, seconds] if seconds.contains('.') => (0, whole(minutes)?, Number::parse(seconds)?),
            [hours, minutes] => (whole(hours)?, whole(minutes)?, Number { whole: 0, fraction: 0.0 }),
            [hours, minutes, seconds] => (whole(hours)?, whole(minutes)?, Number::parse(seconds)?),
            _ => return None,
        };
        self.name(Unit::Hour)?;
        self.name(Unit::Minute)?;
        self.name(Unit::Second)?;
        if minutes > 59 || seconds.whole > 60 || seconds.whole < 0 || seconds.fraction < 0.0 {
            return None;
        }
        let total = i128::from(hours) * 3_600 + i128::from(minutes) * 60 + i128::from(seconds.whole);
        let fraction = (seconds.fraction * 1e6).round_ties_even() as i128;
        self.micros += sign * (total * i128::from(MICROS_PER_SECOND) + fraction);
        Some(())
    }

    /// `[-]YEARS-MONTHS`
    fn years_months(&mut self, word: &str) -> Option<()> {
        let (sign, digits) = match word.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, word.strip_prefix('+').unwrap_or(word)),
        };
        let (years, months) = digits.split_once('-')?;
        let (years, months): (i64, i64) = (years.parse().ok()?, months.parse().ok()?);
        if !(0..12).contains(&months) {
            return None;
        }
        self.name(Unit::Year)?;
        self.name(Unit::Month)?;
        self.months = self.months.checked_add(sign * years.checked_mul(12)?.checked_add(months)?)?;
        Some(())
    }

    /// What follows the `p` of ISO 8601.
    fn iso(&mut self, text: &str) -> Option<()> {
        let (mut rest, mut in_time, mut any) = (text, false, false);
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('t') {
                if in_time {
                    return None;
                }
                (rest, in_time) = (after, true);
                continue;
            }
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let (number, unit) = (Number::parse(&rest[..end])?, &rest[end..=end]);
            let unit = match (in_time, unit) {
                (false, "y") => "year",
                (false, "m") => "month",
                (false, "w") => "week",
                (false, "d") => "day",
                (true, "h") => "hour",
                (true, "m") => "minute",
                (true, "s") => "second",
                _ => return None,
            };
            self.add(number, unit)?;
            rest = &rest[end + 1..];
            any = true;
        }
        any.then_some(())
    }

    fn finish(self) -> Option<Interval> {
        Some(Interval {
            months: self.months.try_into().ok()?,
            days: self.days.try_into().ok()?,
            micros: self.micros.try_into().ok()?,
        })
    }
}

impl fmt::Display for Interval {
    /// PostgreSQL's own style: `1 year 2 mons 3 days 04:05:06.7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut out, mut after_negative) = (String::new(), false);
        for (value, unit) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if value == 0 {
                continue;
            }
            if !out.is_empty() {
                out.push(' ');
            }
            let plus = if after_negative && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            write!(out, "{plus}{value} {unit}{plural}")?;
            after_negative = value < 0;
        }
        if out.is_empty() || self.micros != 0 {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(match (self.micros < 0, after_negative) {
                (true, _) => "-",
                (false, true) => "+",
                _ => "",
            });
            let micros = self.micros.unsigned_abs();
            let seconds = micros / MICROS_PER_SECOND as u64;
            write!(out, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)?;
            let fraction = micros % MICROS_PER_SECOND as u64;
            if fraction > 0 {
                out.push_str(format!(".{fraction:06}").trim_end_matches('0'));
            }
        }
        f.write_str(&out)
    }
}
