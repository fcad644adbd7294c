//! Computing with dates, moments and intervals.

use super::{
    EvalError,
    calendar::{self, Civil, YEAR_MAX, days_in_month, days_of},
    cast, decimal,
    interval::{Interval, MICROS_PER_DAY, MICROS_PER_SECOND},
};
use bigdecimal::BigDecimal;
use std::sync::Arc;
use tidegate_wire::model::{Numeric, Value, ValueRef};

/// Microseconds from a moment to what [`Part::Julian`] counts from, in days.
const JULIAN_OF_1970: i64 = 2_440_588;

/// A part of a date, a moment or an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Seconds with their fraction, in microseconds.
    Microseconds,
    /// Seconds with their fraction, in milliseconds.
    Milliseconds,
    /// Seconds with their fraction.
    Second,
    /// Minutes of the hour.
    Minute,
    /// Hours of the day.
    Hour,
    /// Day of the month.
    Day,
    /// ISO week.
    Week,
    /// Month.
    Month,
    /// Quarter.
    Quarter,
    /// Year.
    Year,
    /// The year divided by ten.
    Decade,
    /// Century.
    Century,
    /// Millennium.
    Millennium,
    /// The year of the ISO week.
    IsoYear,
    /// Weekday from Sunday = 0.
    DayOfWeek,
    /// Weekday from Monday = 1 to 7.
    IsoDayOfWeek,
    /// Day of the year.
    DayOfYear,
    /// Seconds since 1970, or of the interval.
    Epoch,
    /// Days since 24 November 4714 BC.
    Julian,
    /// The offset from UTC, which is 0, in seconds, hours or minutes.
    TimeZone,
}

impl Part {
    /// The part of a name (any case), or `None`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => {
                Self::Microseconds
            }
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => {
                Self::Milliseconds
            }
            "second" | "seconds" | "s" | "sec" | "secs" => Self::Second,
            "minute" | "minutes" | "m" | "min" | "mins" => Self::Minute,
            "hour" | "hours" | "h" | "hr" | "hrs" => Self::Hour,
            "day" | "days" | "d" => Self::Day,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "quarter" | "qtr" => Self::Quarter,
            "year" | "years" | "y" | "yr" | "yrs" => Self::Year,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "century" | "centuries" | "c" | "cent" => Self::Century,
            "millennium" | "millennia" | "mil" | "mils" => Self::Millennium,
            "isoyear" => Self::IsoYear,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            "epoch" => Self::Epoch,
            "julian" | "jd" | "j" => Self::Julian,
            "timezone" | "timezone_hour" | "timezone_minute" | "timezone_h" | "timezone_m" => Self::TimeZone,
            _ => return None,
        })
    }

    /// The part's canonical name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "microseconds",
            Self::Milliseconds => "milliseconds",
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
            Self::Decade => "decade",
            Self::Century => "century",
            Self::Millennium => "millennium",
            Self::IsoYear => "isoyear",
            Self::DayOfWeek => "dow",
            Self::IsoDayOfWeek => "isodow",
            Self::DayOfYear => "doy",
            Self::Epoch => "epoch",
            Self::Julian => "julian",
            Self::TimeZone => "timezone",
        }
    }

    fn unsupported(self, ty: &'static str) -> EvalError {
        EvalError::Unit { unit: self.name().to_owned(), ty }
    }
}

/// The part a text names, for the functions that take it as text.
pub(super) fn part_of(text: &str, ty: &'static str) -> Result<Part, EvalError> {
    Part::from_name(text).ok_or_else(|| EvalError::Unit { unit: text.to_owned(), ty })
}

fn whole(value: i64) -> Value {
    Value::Numeric(Arc::new(Numeric::from(value)))
}

fn decimal(units: i128, scale: i64) -> Value {
    Value::Numeric(Arc::new(Numeric::Finite(BigDecimal::new(units.into(), scale))))
}

/// A part of a moment, as a numeric.
pub(super) fn extract_moment(part: Part, micros: i64) -> Result<Value, EvalError> {
    let civil = Civil::of_moment(micros);
    let of_minute = civil.micros % (60 * MICROS_PER_SECOND);
    Ok(match part {
        Part::Microseconds => whole(of_minute),
        Part::Milliseconds => decimal(of_minute.into(), 3),
        Part::Second => decimal(of_minute.into(), 6),
        Part::Minute => whole(civil.micros / (60 * MICROS_PER_SECOND) % 60),
        Part::Hour => whole(civil.micros / (3_600 * MICROS_PER_SECOND)),
        Part::Epoch => decimal(micros.into(), 6),
        Part::Julian => {
            let day = BigDecimal::from(civil.days + JULIAN_OF_1970);
            let fraction =
                decimal::divide(&BigDecimal::from(civil.micros), &BigDecimal::from(MICROS_PER_DAY))?;
            Value::Numeric(Arc::new(Numeric::Finite(decimal::add(&day, &fraction)?)))
        }
        Part::TimeZone => whole(0),
        part => extract_day(part, civil),
    })
}

/// A part of a date, as a numeric.
pub(super) fn extract_date(part: Part, days: i32) -> Result<Value, EvalError> {
    Ok(match part {
        Part::Microseconds
        | Part::Milliseconds
        | Part::Second
        | Part::Minute
        | Part::Hour
        | Part::TimeZone => {
            return Err(part.unsupported("date"));
        }
        Part::Epoch => whole(i64::from(days) * 86_400),
        Part::Julian => whole(i64::from(days) + JULIAN_OF_1970),
        part => extract_day(part, Civil::of_date(days.into())),
    })
}

fn extract_day(part: Part, civil: Civil) -> Value {
    let (year, bc) = civil.year_and_era();
    // Years BC count downwards, and there is no century, millennium or year 0.
    let signed = if bc { -year } else { year };
    let group = |size: i64| if bc { -((year + size - 1) / size) } else { (year + size - 1) / size };
    whole(match part {
        Part::Day => civil.day,
        Part::Week => civil.iso_week().1,
        Part::Month => civil.month,
        Part::Quarter => (civil.month - 1) / 3 + 1,
        Part::Year => signed,
        Part::Decade => civil.year.div_euclid(10),
        Part::Century => group(100),
        Part::Millennium => group(1_000),
        Part::IsoYear => {
            let year = civil.iso_week().0;
            if year <= 0 { year - 1 } else { year }
        }
        Part::DayOfWeek => civil.weekday(),
        Part::IsoDayOfWeek => (civil.weekday() + 6) % 7 + 1,
        _ => civil.day_of_year(),
    })
}

/// A part of an interval, as a numeric.
pub(super) fn extract_interval(part: Part, interval: Interval) -> Result<Value, EvalError> {
    let (years, months) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    let of_minute = interval.micros % (60 * MICROS_PER_SECOND);
    Ok(match part {
        Part::Microseconds => whole(of_minute),
        Part::Milliseconds => decimal(of_minute.into(), 3),
        Part::Second => decimal(of_minute.into(), 6),
        Part::Minute => whole(interval.micros / (60 * MICROS_PER_SECOND) % 60),
        Part::Hour => whole(interval.micros / (3_600 * MICROS_PER_SECOND)),
        Part::Day => whole(interval.days.into()),
        Part::Month => whole(months),
        Part::Quarter => whole(months / 3 + 1),
        Part::Year => whole(years),
        Part::Decade => whole(years / 10),
        Part::Century => whole(years / 100),
        Part::Millennium => whole(years / 1_000),
        Part::Epoch => {
            // A year has 365.25 days here, a month 30.
            let quarter_days = years * 1_461 + months * 120 + i64::from(interval.days) * 4;
            let seconds = i128::from(quarter_days) * 21_600;
            decimal(seconds * 1_000_000 + i128::from(interval.micros), 6)
        }
        part => return Err(part.unsupported("interval")),
    })
}

/// The moment cut off to a part.
pub(super) fn truncate_moment(part: Part, micros: i64) -> Result<i64, EvalError> {
    let civil = Civil::of_moment(micros);
    let day = |days: i64| calendar::moment(i128::from(days) * i128::from(MICROS_PER_DAY));
    let cut = |size: i64| Ok(micros - civil.micros.rem_euclid(size));
    let first_year = |size: i64| match part {
        // 2001 starts a century, 2010 a decade.
        Part::Decade => civil.year.div_euclid(size) * size,
        _ => (civil.year - 1).div_euclid(size) * size + 1,
    };
    match part {
        Part::Microseconds => Ok(micros),
        Part::Milliseconds => cut(1_000),
        Part::Second => cut(MICROS_PER_SECOND),
        Part::Minute => cut(60 * MICROS_PER_SECOND),
        Part::Hour => cut(3_600 * MICROS_PER_SECOND),
        Part::Day => day(civil.days),
        Part::Week => day(civil.days - (civil.weekday() + 6) % 7),
        Part::Month => day(days_of(civil.year, civil.month, 1)),
        Part::Quarter => day(days_of(civil.year, (civil.month - 1) / 3 * 3 + 1, 1)),
        Part::Year => day(days_of(civil.year, 1, 1)),
        Part::Decade => day(days_of(first_year(10), 1, 1)),
        Part::Century => day(days_of(first_year(100), 1, 1)),
        Part::Millennium => day(days_of(first_year(1_000), 1, 1)),
        part => Err(part.unsupported("timestamp with time zone")),
    }
}

/// The interval cut off to a part.
pub(super) fn truncate_interval(part: Part, interval: Interval) -> Result<Interval, EvalError> {
    let months = |size: i32| Interval { months: interval.months / size * size, days: 0, micros: 0 };
    let micros = |size: i64| Interval { micros: interval.micros / size * size, ..interval };
    Ok(match part {
        Part::Microseconds => interval,
        Part::Milliseconds => micros(1_000),
        Part::Second => micros(MICROS_PER_SECOND),
        Part::Minute => micros(60 * MICROS_PER_SECOND),
        Part::Hour => micros(3_600 * MICROS_PER_SECOND),
        Part::Day => Interval { micros: 0, ..interval },
        Part::Month => months(1),
        Part::Quarter => months(3),
        Part::Year => months(12),
        Part::Decade => months(120),
        Part::Century => months(1_200),
        Part::Millennium => months(12_000),
        part => return Err(part.unsupported("interval")),
    })
}

/// A moment plus an interval: its months first, where the day stays within the month, then its days, then its time.
pub(super) fn add_interval(micros: i64, interval: Interval) -> Result<i64, EvalError> {
    let mut civil = Civil::of_moment(micros);
    if interval.months != 0 {
        let months = civil.year * 12 + civil.month - 1 + i64::from(interval.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let day = civil.day.min(days_in_month(year, month));
        civil.days = days_of(year, month, day);
    }
    let days = i128::from(civil.days) + i128::from(interval.days);
    calendar::moment(
        days * i128::from(MICROS_PER_DAY) + i128::from(civil.micros) + i128::from(interval.micros),
    )
}

/// `make_date(year, month, day)`; a negative year is BC.
pub(super) fn make_date(year: i64, month: i64, day: i64) -> Result<i32, EvalError> {
    let wrong = || EvalError::FieldOutOfRange { what: "date", text: format!("{year}-{month:02}-{day:02}") };
    if year == 0 || !(-YEAR_MAX..=YEAR_MAX).contains(&year) || !(1..=12).contains(&month) {
        return Err(wrong());
    }
    let year = if year < 0 { year + 1 } else { year };
    if day < 1 || day > days_in_month(year, month) {
        return Err(wrong());
    }
    calendar::date(days_of(year, month, day))
}

/// `to_timestamp(seconds since 1970)`
pub(super) fn moment_of_epoch(seconds: f64) -> Result<i64, EvalError> {
    if !seconds.is_finite() {
        let text = format!("{} seconds since 1970", cast::text_of(ValueRef::Float8(seconds)));
        return Err(EvalError::OutsideYears { what: "timestamp", text });
    }
    calendar::moment((seconds * 1e6).round_ties_even() as i128)
}
