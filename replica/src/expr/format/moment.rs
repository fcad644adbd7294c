//! Formats of dates and moments.

use super::super::{
    EvalError,
    calendar::{Civil, MONTHS, WEEKDAYS, YEAR_MAX, days_in_month, days_of, moment},
    interval::{MICROS_PER_DAY, MICROS_PER_SECOND},
};
use std::fmt::Write as _;

/// Patterns, with longer ones before those that they begin with. Each is known in upper and in lower case.
const PATTERNS: [&str; 45] = [
    "A.M.", "P.M.", "B.C.", "A.D.", "SSSSS", "SSSS", "Y,YYY", "IYYY", "YYYY", "HH24", "HH12", "MONTH",
    "IDDD", "IYY", "YYY", "DAY", "MON", "DDD", "TZH", "TZM", "AM", "PM", "BC", "AD", "CC", "DD", "DY", "FM",
    "FX", "HH", "ID", "IW", "IY", "MI", "MM", "MS", "OF", "RM", "SS", "TM", "TZ", "US", "WW", "YY", "TH",
];
const SHORT_PATTERNS: [&str; 6] = ["D", "I", "J", "Q", "W", "Y"];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// How a name is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    Capital,
    Lower,
}

enum Item {
    Literal(String),
    Pattern { name: &'static str, case: Case, fill: bool, ordinal: Option<Case> },
}

fn items(format: &str) -> Result<Vec<Item>, EvalError> {
    let (mut items, mut rest, mut fill) = (Vec::new(), format, true);
    let push_literal = |items: &mut Vec<Item>, c: char| match items.last_mut() {
        Some(Item::Literal(text)) => text.push(c),
        _ => items.push(Item::Literal(c.to_string())),
    };
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let mut chars = rest[1..].chars();
            loop {
                match chars.next() {
                    None | Some('"') => break,
                    Some('\\') => {
                        if let Some(c) = chars.next() {
                            push_literal(&mut items, c);
                        }
                    }
                    Some(c) => push_literal(&mut items, c),
                }
            }
            rest = chars.as_str();
            continue;
        }
        if let Some(after) = rest.strip_prefix("\\\"") {
            push_literal(&mut items, '"');
            rest = after;
            continue;
        }
        let Some((name, case)) = pattern(rest) else {
            push_literal(&mut items, c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        rest = &rest[name.len()..];
        match name {
            "FM" => fill = false,
            "TH" => match items.last_mut() {
                Some(Item::Pattern { ordinal, .. }) if ordinal.is_none() => *ordinal = Some(case),
                _ => items.push(Item::Literal(if case == Case::Upper { "TH" } else { "th" }.to_owned())),
            },
            "FX" | "TM" => return Err(EvalError::Format(name.to_owned())),
            name => {
                items.push(Item::Pattern { name, case, fill, ordinal: None });
                fill = true;
            }
        }
    }
    Ok(items)
}

fn pattern(text: &str) -> Option<(&'static str, Case)> {
    for name in PATTERNS.into_iter().chain(SHORT_PATTERNS) {
        let Some(head) = text.get(..name.len()) else { continue };
        if head == name {
            return Some((name, Case::Upper));
        }
        if head == name.to_ascii_lowercase() {
            return Some((name, Case::Lower));
        }
        let capital = matches!(name, "MONTH" | "MON" | "DAY" | "DY")
            && head.starts_with(&name[..1])
            && head[1..] == name[1..].to_ascii_lowercase();
        if capital {
            return Some((name, Case::Capital));
        }
    }
    None
}

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_ascii_uppercase(),
        Case::Capital => text.to_owned(),
        Case::Lower => text.to_ascii_lowercase(),
    }
}

/// `to_char(moment, format)`
pub(in super::super) fn moment_text(micros: i64, format: &str) -> Result<String, EvalError> {
    let civil = Civil::of_moment(micros);
    let (year, bc) = civil.year_and_era();
    let (iso_year, iso_week) = civil.iso_week();
    let iso_year = if iso_year > 0 { iso_year } else { 1 - iso_year };
    let seconds = civil.micros / MICROS_PER_SECOND;
    let fraction = civil.micros % MICROS_PER_SECOND;
    let hour = seconds / 3_600;
    let month = MONTHS[(civil.month - 1) as usize];
    let weekday = WEEKDAYS[civil.weekday() as usize];
    let mut out = String::with_capacity(format.len() + 16);
    for item in items(format)? {
        let (name, case, fill, ordinal) = match item {
            Item::Literal(text) => {
                out.push_str(&text);
                continue;
            }
            Item::Pattern { name, case, fill, ordinal } => (name, case, fill, ordinal),
        };
        let before = out.len();
        let mut number = |value: i64, width: usize| {
            let _ = if fill { write!(out, "{value:0width$}") } else { write!(out, "{value}") };
        };
        match name {
            "YYYY" => number(year, 4),
            "YYY" => number(year % 1_000, 3),
            "YY" => number(year % 100, 2),
            "Y" => number(year % 10, 1),
            "IYYY" => number(iso_year, 4),
            "IYY" => number(iso_year % 1_000, 3),
            "IY" => number(iso_year % 100, 2),
            "I" => number(iso_year % 10, 1),
            "MM" => number(civil.month, 2),
            "DD" => number(civil.day, 2),
            "DDD" => number(civil.day_of_year(), 3),
            "IDDD" => number((iso_week - 1) * 7 + (civil.weekday() + 6) % 7 + 1, 3),
            "D" => number(civil.weekday() + 1, 1),
            "ID" => number((civil.weekday() + 6) % 7 + 1, 1),
            "IW" => number(iso_week, 2),
            "WW" => number((civil.day_of_year() - 1) / 7 + 1, 2),
            "W" => number((civil.day - 1) / 7 + 1, 1),
            "Q" => number((civil.month - 1) / 3 + 1, 1),
            "J" => number(civil.days + 2_440_588, 1),
            "CC" => number((year + 99) / 100 * if bc { -1 } else { 1 }, if bc { 3 } else { 2 }),
            "HH24" => number(hour, 2),
            "HH" | "HH12" => number((hour + 11) % 12 + 1, 2),
            "MI" => number(seconds / 60 % 60, 2),
            "SS" => number(seconds % 60, 2),
            "SSSS" | "SSSSS" => number(seconds, 1),
            "MS" => {
                let _ = write!(out, "{:03}", fraction / 1_000);
            }
            "US" => {
                let _ = write!(out, "{fraction:06}");
            }
            "Y,YYY" => {
                let _ = write!(out, "{},{:03}", year / 1_000, year % 1_000);
            }
            "AM" | "PM" => out.push_str(&cased(if hour < 12 { "AM" } else { "PM" }, case)),
            "A.M." | "P.M." => out.push_str(&cased(if hour < 12 { "A.M." } else { "P.M." }, case)),
            "AD" | "BC" => out.push_str(&cased(if bc { "BC" } else { "AD" }, case)),
            "A.D." | "B.C." => out.push_str(&cased(if bc { "B.C." } else { "A.D." }, case)),
            "TZ" => out.push_str(&cased("UTC", case)),
            "TZH" | "OF" => out.push_str("+00"),
            "TZM" => out.push_str("00"),
            "RM" => {
                let roman = cased(ROMAN[(civil.month - 1) as usize], case);
                let _ = if fill { write!(out, "{roman:<4}") } else { write!(out, "{roman}") };
            }
            "MONTH" | "DAY" => {
                let name = cased(if name == "DAY" { weekday } else { month }, case);
                let _ = if fill { write!(out, "{name:<9}") } else { write!(out, "{name}") };
            }
            "MON" => out.push_str(&cased(&month[..3], case)),
            "DY" => out.push_str(&cased(&weekday[..3], case)),
            name => return Err(EvalError::Format(name.to_owned())),
        }
        if let Some(case) = ordinal {
            let digits = &out[before..];
            if !digits.ends_with(|c: char| c.is_ascii_digit()) {
                return Err(EvalError::Format("TH".to_owned()));
            }
            let teen = digits.len() > 1 && digits[digits.len() - 2..].starts_with('1');
            let suffix = match digits.as_bytes().last() {
                Some(b'1') if !teen => "st",
                Some(b'2') if !teen => "nd",
                Some(b'3') if !teen => "rd",
                _ => "th",
            };
            out.push_str(&cased(suffix, case));
        }
    }
    Ok(out)
}

/// `to_timestamp(text, format)`
pub(in super::super) fn parse_moment(text: &str, format: &str) -> Result<i64, EvalError> {
    let wrong = || EvalError::FieldOutOfRange { what: "date/time", text: text.to_owned() };
    let (mut year, mut month, mut day, mut day_of_year, mut bc) = (None, None, None, None, false);
    let (mut hour, mut minute, mut second, mut micros) = (0, 0, 0, 0);
    let (mut afternoon, mut twelve) = (None, false);
    let items = items(format)?;
    let mut rest = text.trim_start();
    for (index, item) in items.iter().enumerate() {
        let (name, fill) = match item {
            Item::Literal(literal) => {
                rest = skip(rest, literal);
                continue;
            }
            Item::Pattern { name, fill, .. } => (*name, *fill),
        };
        rest = rest.trim_start();
        // What the text does not reach keeps its default.
        if rest.is_empty() {
            break;
        }
        // Digits that stand together are told apart by the patterns' widths.
        let followed = matches!(items.get(index + 1), Some(Item::Pattern { .. }));
        let mut number = |width: usize| -> Result<(i64, usize), EvalError> {
            let most = if followed || fill { width } else { 9 };
            let (sign, unsigned) = match rest.strip_prefix(['-', '+']) {
                Some(after) => (if rest.starts_with('-') { -1 } else { 1 }, after),
                None => (1, rest),
            };
            let end = unsigned.bytes().take(most).take_while(u8::is_ascii_digit).count();
            let value: i64 = unsigned[..end]
                .parse()
                .map_err(|_| EvalError::InvalidText { ty: "timestamp", text: text.to_owned() })?;
            rest = &unsigned[end..];
            Ok((sign * value, end))
        };
        match name {
            "YYYY" => year = Some(number(if followed { 4 } else { 9 })?.0),
            "YYY" | "YY" | "Y" => {
                let (value, digits) = number(name.len())?;
                year = Some(match digits {
                    ..=2 if value < 70 => value + 2_000,
                    ..=2 => value + 1_900,
                    3 if value < 520 => value + 2_000,
                    3 => value + 1_000,
                    _ => value,
                });
            }
            "MM" => month = Some(number(2)?.0),
            "DD" => day = Some(number(2)?.0),
            "DDD" => day_of_year = Some(number(3)?.0),
            "HH24" => hour = number(2)?.0,
            "HH" | "HH12" => {
                hour = number(2)?.0;
                twelve = true;
                if !(1..=12).contains(&hour) {
                    return Err(wrong());
                }
            }
            "MI" => minute = number(2)?.0,
            "SS" => second = number(2)?.0,
            "MS" | "US" => {
                let places = if name == "MS" { 3 } else { 6 };
                let (value, digits) = number(places)?;
                micros += value * 10_i64.pow(6 - digits.min(6) as u32);
            }
            "AM" | "PM" | "A.M." | "P.M." | "AD" | "BC" | "A.D." | "B.C." => {
                let lower = rest.get(..name.len()).unwrap_or_default().to_ascii_lowercase().replace('.', "");
                match lower.as_str() {
                    "am" => afternoon = Some(false),
                    "pm" => afternoon = Some(true),
                    "ad" => {}
                    "bc" => bc = true,
                    _ => return Err(EvalError::InvalidText { ty: "timestamp", text: text.to_owned() }),
                }
                rest = &rest[name.len()..];
            }
            "MONTH" | "MON" => {
                let lower = rest.to_ascii_lowercase();
                let length = |month: &str| if name == "MON" { 3 } else { month.len() };
                let found = MONTHS
                    .iter()
                    .position(|month| lower.starts_with(&month[..length(month)].to_ascii_lowercase()));
                let Some(found) = found else {
                    return Err(EvalError::InvalidText { ty: "timestamp", text: text.to_owned() });
                };
                month = Some(found as i64 + 1);
                rest = &rest[length(MONTHS[found])..];
            }
            name => return Err(EvalError::Format(name.to_owned())),
        }
    }
    if twelve || afternoon.is_some() {
        match afternoon {
            Some(true) if hour < 12 => hour += 12,
            Some(false) if hour == 12 => hour = 0,
            _ => {}
        }
    }
    let mut year = year.unwrap_or(if bc { 1 } else { 0 });
    if bc {
        year = 1 - year;
    } else if year < 0 {
        year += 1;
    }
    if hour > 23 || minute > 59 || second > 59 || [hour, minute, second].iter().any(|part| *part < 0) {
        return Err(wrong());
    }
    if year.abs() > YEAR_MAX {
        return Err(wrong());
    }
    let days = if let (Some(of_year), None) = (day_of_year, month) {
        if !(1..=366).contains(&of_year) {
            return Err(wrong());
        }
        days_of(year, 1, 1) + of_year - 1
    } else {
        let (month, day) = (month.unwrap_or(1), day.unwrap_or(1));
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
            return Err(wrong());
        }
        days_of(year, month, day)
    };
    let seconds = (hour * 60 + minute) * 60 + second;
    moment(
        i128::from(days) * i128::from(MICROS_PER_DAY)
            + i128::from(seconds * MICROS_PER_SECOND)
            + i128::from(micros),
    )
}

/// Passes over what a literal of the format stands for: a separator matches any separator or none.
fn skip<'a>(text: &'a str, literal: &str) -> &'a str {
    let mut rest = text;
    for c in literal.chars() {
        if c.is_whitespace() || c.is_ascii_punctuation() {
            rest = rest.trim_start();
            if let Some(next) = rest.chars().next()
                && next.is_ascii_punctuation()
            {
                // A sign before a number that no separator stands for belongs to the number.
                rest = &rest[1..];
            }
        } else if let Some(next) = rest.chars().next() {
            rest = &rest[next.len_utf8()..];
        }
    }
    rest
}
