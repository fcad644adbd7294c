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
