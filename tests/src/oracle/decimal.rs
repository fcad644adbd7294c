//! Exact comparison of decimal numbers of any length, on their text.

use std::cmp::Ordering;

/// A decimal taken apart: value = ± 0.d₁d₂d₃… × 10^point, without leading or trailing zeros; zero has no digits.
struct Decimal {
    negative: bool,
    point: i64,
    digits: Vec<u8>,
}

impl Decimal {
    fn read(text: &str) -> Option<Decimal> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if all.is_empty() || !all.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let leading = all.iter().take_while(|digit| **digit == b'0').count();
        let trailing = all[leading..].iter().rev().take_while(|digit| **digit == b'0').count();
        let digits = all[leading..all.len() - trailing].to_vec();
        let point = whole.len() as i64 - leading as i64 + exponent;
        Some(Decimal { negative: negative && !digits.is_empty(), point, digits })
    }
}

/// Whether the text is a decimal number.
pub(super) fn is_decimal(text: &str) -> bool {
    Decimal::read(text).is_some()
}

/// Compares two decimal texts by value.
///
/// # Panics
/// If one of them is not a decimal: cells are checked when they are read.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let left = Decimal::read(left).expect("a checked decimal");
    let right = Decimal::read(right).expect("a checked decimal");
    let sign = |decimal: &Decimal| match (decimal.digits.is_empty(), decimal.negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    let magnitude = || left.point.cmp(&right.point).then_with(|| left.digits.cmp(&right.digits));
    sign(&left).cmp(&sign(&right)).then_with(|| match sign(&left) {
        0 => Ordering::Equal,
        1 => magnitude(),
        _ => magnitude().reverse(),
    })
}

/// A decimal text as a whole number of the last of so many decimals.
///
/// # Panics
/// If it is no plain decimal, or longer than 128 bits hold.
fn scaled(text: &str, decimals: usize) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let padding = "0".repeat(decimals - fraction.len());
    format!("{whole}{fraction}{padding}").parse().expect("a decimal of the tests' size")
}

fn decimals(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// The text of a whole number of the last of so many decimals.
fn shown(number: i128, decimals: usize) -> String {
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let sign = if number < 0 { "-" } else { "" };
    if decimals == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// The sum, with as many decimals as the number with the most.
pub(super) fn sum(texts: &[String]) -> String {
    let places = texts.iter().map(|text| decimals(text)).max().unwrap_or(0);
    shown(texts.iter().map(|text| scaled(text, places)).sum(), places)
}

/// The mean, with as many decimals as PostgreSQL's division gives: about 16 significant digits by groups of four, and no
/// fewer than the sum has.
pub(super) fn average(texts: &[String]) -> String {
    let sum = sum(texts);
    let count = texts.len() as i128;
    let (sum_group, sum_first) = first_group(&sum);
    let (count_group, count_first) = first_group(&count.to_string());
    let quotient_group = sum_group - count_group - i64::from(sum_first <= count_first);
    let places = usize::try_from(16 - 4 * quotient_group).unwrap_or(0).max(decimals(&sum));
    // One decimal more, which decides the rounding: half away from zero.
    let number = scaled(&sum, places + 1) / count;
    shown((number + if number < 0 { -5 } else { 5 }) / 10, places)
}

/// The first group of four digits that is not 0, counted from the point (0 is the one before it), and its value.
fn first_group(text: &str) -> (i64, i64) {
    let (whole, fraction) =
        text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
    let padded = format!("{whole:0>width$}", width = whole.len().div_ceil(4) * 4);
    let fraction = format!("{fraction:0<width$}", width = fraction.len().div_ceil(4) * 4);
    let highest = padded.len() as i64 / 4 - 1;
    let digits: Vec<u8> = padded.bytes().chain(fraction.bytes()).collect();
    let mut groups =
        digits.chunks(4).map(|group| group.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')));
    groups.position(|group| group != 0).map_or((0, 0), |at| {
        let group =
            digits[4 * at..4 * at + 4].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        (highest - at as i64, group)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_compare_by_value() {
        let ascending =
            ["-10", "-9.99", "-0.001", "0", "0.0001", "1.5", "10", "123456789012345678901234567890.5"];
        for (i, left) in ascending.iter().enumerate() {
            for (j, right) in ascending.iter().enumerate() {
                assert_eq!(compare(left, right), i.cmp(&j), "{left} and {right}");
            }
        }
        for (left, right) in [("1.5", "1.50"), ("-0.0", "0"), ("01", "1"), ("1e2", "100"), (".5", "0.5")] {
            assert_eq!(compare(left, right), Ordering::Equal);
        }
        assert!(!is_decimal("") && !is_decimal("-") && !is_decimal("1,5") && !is_decimal("."));
    }
}
