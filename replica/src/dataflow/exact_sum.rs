//! Sums of doubles without rounding, so that what was added can be taken away again.

use bigdecimal::{
    ToPrimitive as _, Zero as _,
    num_bigint::{BigInt, Sign},
};
use std::collections::BTreeMap;

/// Bits by which the exponents of two neighbouring parts differ.
const PART_BITS: i32 = 64;

/// A sum of numbers that are whole multiples of powers of two.
#[derive(Clone, Debug, Default)]
pub(super) struct ExactSum {
    /// What each part's number, times two to the power of 64 times its key, adds up to.
    parts: BTreeMap<i32, BigInt>,
}

impl ExactSum {
    /// Adds a finite double so many times.
    pub(super) fn add(&mut self, value: f64, times: i64) {
        let (mantissa, exponent) = decompose(value);
        self.add_scaled(BigInt::from(mantissa) * times, exponent);
    }

    /// Adds the square of a finite double so many times.
    pub(super) fn add_square(&mut self, value: f64, times: i64) {
        let (mantissa, exponent) = decompose(value);
        self.add_scaled(BigInt::from(mantissa) * mantissa * times, 2 * exponent);
    }

    fn add_scaled(&mut self, number: BigInt, exponent: i32) {
        if number.is_zero() {
            return;
        }
        self.add_to_part(exponent.div_euclid(PART_BITS), number << exponent.rem_euclid(PART_BITS));
    }

    fn add_to_part(&mut self, part: i32, number: BigInt) {
        let sum = self.parts.entry(part).or_default();
        *sum += number;
        if sum.is_zero() {
            self.parts.remove(&part);
        }
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: Self) {
        other.parts.into_iter().for_each(|(part, number)| self.add_to_part(part, number));
    }

    /// The sum as a whole number times a power of two.
    pub(super) fn total(&self) -> (BigInt, i32) {
        let Some((&first, _)) = self.parts.first_key_value() else { return (BigInt::zero(), 0) };
        let total = self.parts.iter().fold(BigInt::zero(), |total, (part, number)| {
            total + (number << usize::try_from((part - first) * PART_BITS).unwrap_or(0))
        });
        (total, first * PART_BITS)
    }

    /// The double nearest to the sum; infinite when none is.
    pub(super) fn to_f64(&self) -> f64 {
        let (total, exponent) = self.total();
        nearest(&total, exponent)
    }
}

/// The double nearest to a whole number times a power of two.
pub(super) fn nearest(number: &BigInt, exponent: i32) -> f64 {
    let bits = i64::try_from(number.bits()).unwrap_or(i64::MAX);
    // A double has 53 bits, fewer near its least exponent; what is cut off decides the rounding, once.
    let lowest = (bits + i64::from(exponent) - 53).max(-1_074);
    let cut = lowest - i64::from(exponent);
    if cut <= 0 {
        return scale(number.to_f64().unwrap_or(f64::NAN), exponent);
    }
    let magnitude = number.magnitude();
    let cut = u64::try_from(cut).unwrap_or(0);
    let mut kept = magnitude >> cut;
    let half = cut.checked_sub(1).is_some_and(|bit| magnitude.bit(bit));
    let is_exactly_half = half && magnitude.trailing_zeros() == Some(cut - 1);
    if half && (!is_exactly_half || kept.bit(0)) {
        kept += 1_u32;
    }
    let value = scale(kept.to_f64().unwrap_or(f64::NAN), i32::try_from(lowest).unwrap_or(i32::MAX));
    if number.sign() == Sign::Minus { -value } else { value }
}

/// A double times a power of two, where the product is a double or beyond all of them.
fn scale(value: f64, exponent: i32) -> f64 {
    let (mut value, mut exponent) = (value, exponent);
    while exponent > 1_000 {
        value *= 2_f64.powi(1_000);
        exponent -= 1_000;
    }
    while exponent < -1_000 {
        value *= 2_f64.powi(-1_000);
        exponent += 1_000;
    }
    value * 2_f64.powi(exponent)
}

/// A finite double as a whole number times a power of two.
fn decompose(value: f64) -> (i64, i32) {
    let bits = value.to_bits();
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let (mantissa, exponent) =
        if exponent == 0 { (fraction, -1_074) } else { (fraction | 1 << 52, exponent - 1_075) };
    (if value.is_sign_negative() { -mantissa } else { mantissa }, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Fails when a bit is lost on the way in or out.
        #[test]
        fn one_number_comes_back(value in any::<f64>().prop_filter("finite", |it| it.is_finite())) {
            let mut sum = ExactSum::default();
            sum.add(value, 1);
            prop_assert_eq!(sum.to_f64(), value);
        }

        #[test]
        fn what_is_taken_away_leaves_no_trace(
            kept in -1e3..1e3_f64,
            others in prop::collection::vec(any::<f64>().prop_filter("finite", |it| it.is_finite()), 0..20),
        ) {
            let mut sum = ExactSum::default();
            others.iter().for_each(|other| sum.add(*other, 1));
            sum.add(kept, 1);
            others.iter().for_each(|other| sum.add(*other, -1));
            prop_assert_eq!(sum.to_f64(), kept);
        }

        #[test]
        fn two_numbers_round_as_doubles_do(a in any::<i32>(), b in any::<i32>(), by in -60..60) {
            let (a, b) = (f64::from(a), f64::from(b) * 2_f64.powi(by));
            let mut sum = ExactSum::default();
            sum.add(a, 1);
            sum.add(b, 1);
            prop_assert_eq!(sum.to_f64(), a + b);
        }
    }

    #[test]
    fn large_and_small_cancel() {
        let mut sum = ExactSum::default();
        for value in [0.1, 1e16, -1e16] {
            sum.add(value, 1);
        }
        assert_eq!(sum.to_f64(), 0.1);
        sum.add(f64::MAX, 2);
        assert_eq!(sum.to_f64(), f64::INFINITY);
    }
}
