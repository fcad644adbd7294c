//! Operations on finite decimals with PostgreSQL's result scales.
//!
//! PostgreSQL keeps a numeric in groups of four decimal digits and chooses a result's scale by the *weight* of the
//! first group, its power of 10,000; so this follows the weights.

use super::EvalError;
use bigdecimal::{
    BigDecimal, RoundingMode, Signed, Zero,
    num_bigint::{BigInt, Sign},
};
use std::f64::consts::LOG10_E;
use tidegate_wire::model::numeric::NUMERIC_DIGITS_MAX;

/// Significant digits that PostgreSQL gives at least where a result is not exact.
const SIGNIFICANT_MIN: i64 = 16;
/// Most decimals of such a result.
const SCALE_MAX: i64 = 1_000;
/// Digits beyond the scale that inexact functions compute before they round.
const GUARD: i64 = 24;

type Result = std::result::Result<BigDecimal, EvalError>;

/// The value with exactly `scale` decimals, rounding half away from zero, if it is within the limit of a numeric.
pub(super) fn finish(value: &BigDecimal, scale: i64) -> Result {
    let integer_digits = value.digits() as i64 - value.fractional_digit_count();
    if integer_digits.max(0) + scale.max(0) + 2 > NUMERIC_DIGITS_MAX as i64 {
        return Err(EvalError::NumericOverflow);
    }
    Ok(rounded(value, scale))
}

/// The value with exactly `scale` decimals, rounding half away from zero.
fn rounded(value: &BigDecimal, scale: i64) -> BigDecimal {
    if scale >= value.fractional_digit_count() {
        value.with_scale(scale)
    } else {
        value.with_scale_round(scale, RoundingMode::HalfUp)
    }
}

fn scale(value: &BigDecimal) -> i64 {
    value.fractional_digit_count().max(0)
}

fn common_scale(left: &BigDecimal, right: &BigDecimal) -> i64 {
    scale(left).max(scale(right))
}

/// `left + right`
pub(super) fn add(left: &BigDecimal, right: &BigDecimal) -> Result {
    finish(&(left + right), common_scale(left, right))
}

/// `left - right`
pub(super) fn subtract(left: &BigDecimal, right: &BigDecimal) -> Result {
    finish(&(left - right), common_scale(left, right))
}

/// `left * right`
pub(super) fn multiply(left: &BigDecimal, right: &BigDecimal) -> Result {
    finish(&(left * right), scale(left) + scale(right))
}

/// `left % right`, which takes the dividend's sign.
pub(super) fn remainder(left: &BigDecimal, right: &BigDecimal) -> Result {
    let scale = common_scale(left, right);
    let (left, right) = (units(left, scale), units(right, scale));
    Ok(BigDecimal::new(left % right, scale))
}

/// The quotient without its fraction.
pub(super) fn whole_quotient(left: &BigDecimal, right: &BigDecimal) -> Result {
    let scale = common_scale(left, right);
    Ok(BigDecimal::new(units(left, scale) / units(right, scale), 0))
}

/// `left / right`, with at least 16 significant digits and never fewer decimals than an operand has.
pub(super) fn divide(left: &BigDecimal, right: &BigDecimal) -> Result {
    let (left_weight, left_first) = weight_and_first(left);
    let (right_weight, right_first) = weight_and_first(right);
    let mut quotient_weight = left_weight - right_weight;
    if left_first <= right_first {
        quotient_weight -= 1;
    }
    let scale = (SIGNIFICANT_MIN - quotient_weight * 4).max(common_scale(left, right)).clamp(0, SCALE_MAX);
    finish(&quotient(left, right, scale), scale)
}

fn quotient(left: &BigDecimal, right: &BigDecimal, scale: i64) -> BigDecimal {
    // Cut off, not rounded: more digits than the scale has, so that the last rounding sees what it needs.
    let digits = scale + self::scale(right) + 4;
    let numerator = units(left, self::scale(left) + digits);
    let (denominator, denominator_scale) = right.as_bigint_and_exponent();
    BigDecimal::new(numerator / denominator, self::scale(left) + digits - denominator_scale)
}

/// The value in units of 10^-scale, cut off.
fn units(value: &BigDecimal, scale: i64) -> BigInt {
    value.with_scale(scale).into_bigint_and_exponent().0
}

/// The power of 10,000 of the first group of four digits, and that group.
fn weight_and_first(value: &BigDecimal) -> (i64, i64) {
    let (digits, scale) = value.as_bigint_and_exponent();
    let text = digits.magnitude().to_string();
    if text == "0" {
        return (0, 0);
    }
    let integer_digits = text.len() as i64 - scale;
    let weight = (integer_digits - 1).div_euclid(4);
    let group = (integer_digits - 1).rem_euclid(4) as usize + 1;
    let first: String = text.chars().chain(std::iter::repeat('0')).take(group).collect();
    (weight, first.parse().unwrap_or(0))
}

/// The logarithm to base 10 of the value's magnitude, about.
fn log10_estimate(value: &BigDecimal) -> f64 {
    let (digits, scale) = value.as_bigint_and_exponent();
    let text = digits.magnitude().to_string();
    let lead = &text[..text.len().min(17)];
    let lead_value: f64 = lead.parse().unwrap_or(0.0);
    lead_value.log10() + (text.len() - lead.len()) as f64 - scale as f64
}

fn to_f64(value: &BigDecimal) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}

/// The value rounded to `places` decimals, which may be negative; shows no decimals then.
pub(super) fn round(value: &BigDecimal, places: i64) -> Result {
    to_places(value, places, RoundingMode::HalfUp)
}

/// The value cut off after `places` decimals, which may be negative.
pub(super) fn truncate(value: &BigDecimal, places: i64) -> Result {
    to_places(value, places, RoundingMode::Down)
}

fn to_places(value: &BigDecimal, places: i64, mode: RoundingMode) -> Result {
    let places = places.clamp(-(NUMERIC_DIGITS_MAX as i64), NUMERIC_DIGITS_MAX as i64);
    if places > scale(value) {
        return finish(value, places.min(16_383));
    }
    let integer_digits = value.digits() as i64 - value.fractional_digit_count();
    if places < -integer_digits {
        return Ok(BigDecimal::new(BigInt::from(0), places.max(0)));
    }
    finish(&value.with_scale_round(places, mode), places.max(0))
}

/// The square root of a value that is not negative.
pub(super) fn sqrt(value: &BigDecimal) -> Result {
    let (weight, _) = weight_and_first(value);
    let root_weight = (weight + 1) * 2 - 1;
    let scale = (SIGNIFICANT_MIN - root_weight).max(self::scale(value)).clamp(0, SCALE_MAX);
    let root = units(value, 2 * (scale + 1)).sqrt();
    finish(&BigDecimal::new(root, scale + 1), scale)
}

/// e to the power of a value.
pub(super) fn exp(value: &BigDecimal) -> Result {
    let weight = (to_f64(value) * LOG10_E).clamp(-2_000.0, 2_000.0);
    let scale = (SIGNIFICANT_MIN - weight as i64).max(self::scale(value)).clamp(0, SCALE_MAX);
    exp_at(value, scale)
}

fn exp_at(value: &BigDecimal, scale: i64) -> Result {
    let estimate = to_f64(value);
    if estimate.abs() >= 6_000.0 {
        return if estimate > 0.0 {
            Err(EvalError::NumericOverflow)
        } else {
            finish(&BigDecimal::zero(), scale)
        };
    }
    let integer_digits = (estimate * LOG10_E).max(0.0) as i64 + 1;
    finish(&exp_fixed(value, scale + integer_digits + GUARD), scale)
}

/// Computes in units of 10^-places: halves the argument until a few terms of the series do, then squares.
fn exp_fixed(value: &BigDecimal, places: i64) -> BigDecimal {
    let halvings = (to_f64(value).abs().max(1.0).log2() as u32) + 12;
    let places = places + i64::from(halvings);
    let one = BigInt::from(10).pow(places as u32);
    let reduced = units(value, places) >> halvings;
    let (mut sum, mut term, mut index) = (one.clone(), one.clone(), 1_u32);
    while !term.is_zero() {
        term = (&term * &reduced) / &one / index;
        sum += &term;
        index += 1;
        // A negative argument's terms approach zero from below and stop at −1 where shifting rounds down.
        if term == BigInt::from(-1) {
            break;
        }
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) / &one;
    }
    BigDecimal::new(sum, places)
}

/// PostgreSQL's estimate of the decimal weight of a logarithm.
fn ln_weight(value: &BigDecimal) -> i64 {
    let near = |text: &str| text.parse::<BigDecimal>().unwrap_or_default();
    if *value >= near("0.9") && *value <= near("1.1") {
        let difference = (value - BigDecimal::from(1)).abs();
        if difference.is_zero() {
            return 0;
        }
        let (weight, first) = weight_and_first(&difference);
        return weight * 4 + (first as f64).log10() as i64;
    }
    let ln = log10_estimate(value) * std::f64::consts::LN_10;
    ln.abs().log10() as i64
}

/// The natural logarithm of a positive value.
pub(super) fn ln(value: &BigDecimal) -> Result {
    let scale = (SIGNIFICANT_MIN - ln_weight(value)).max(self::scale(value)).clamp(0, SCALE_MAX);
    finish(&ln_fixed(value, scale + GUARD), scale)
}

/// The logarithm of a positive value to a positive base other than 1.
pub(super) fn log(base: &BigDecimal, value: &BigDecimal) -> Result {
    let weight = ln_weight(value) - ln_weight(base);
    let scale = (SIGNIFICANT_MIN - weight).max(common_scale(base, value)).clamp(0, SCALE_MAX);
    let places = scale + 2 * GUARD + ln_weight(base).abs() + ln_weight(value).abs();
    let (base, value) = (ln_fixed(base, places), ln_fixed(value, places));
    if base.is_zero() {
        return Err(EvalError::DivisionByZero);
    }
    finish(&quotient(&value, &base, scale + 4), scale)
}

/// Computes to `places` decimals: takes roots until the value is near 1, then sums the series of the inverse
/// hyperbolic tangent.
fn ln_fixed(value: &BigDecimal, places: i64) -> BigDecimal {
    let magnitude = log10_estimate(value).floor() as i64;
    let places = places + 24;
    let one = BigInt::from(10).pow(places as u32);
    // The value as m × 10^magnitude with m from 1 to 10.
    let (digits, scale) = value.as_bigint_and_exponent();
    let lead = units(&BigDecimal::new(digits, scale + magnitude), places);
    let mut sum = series(&one, lead);
    if magnitude != 0 {
        sum += series(&one, &one * 10) * magnitude;
    }
    return BigDecimal::new(sum, places);

    fn series(one: &BigInt, mut value: BigInt) -> BigInt {
        let tenth = one / 10;
        let mut doublings = 1_u32;
        while (&value - one).abs() > tenth {
            value = (&value * one).sqrt();
            doublings += 1;
        }
        let ratio = (&value - one) * one / (&value + one);
        let square = &ratio * &ratio / one;
        let (mut sum, mut power, mut index) = (BigInt::from(0), ratio, 1_u32);
        while !power.is_zero() && power != BigInt::from(-1) {
            sum += &power / index;
            power = &power * &square / one;
            index += 2;
        }
        sum << doublings
    }
}

/// `base` to the power of `exponent`.
pub(super) fn power(base: &BigDecimal, exponent: &BigDecimal) -> Result {
    let scales = common_scale(base, exponent);
    let is_whole = exponent.is_integer();
    if base.is_zero() {
        return match exponent.sign() {
            Sign::Minus => Err(EvalError::Argument {
                function: "power",
                problem: "zero raised to a negative power is undefined",
            }),
            Sign::NoSign => finish(&BigDecimal::from(1), SIGNIFICANT_MIN.max(scales)),
            Sign::Plus if is_whole => Ok(BigDecimal::new(BigInt::from(0), SIGNIFICANT_MIN.max(scales))),
            Sign::Plus => Ok(BigDecimal::new(BigInt::from(0), SIGNIFICANT_MIN)),
        };
    }
    if base.sign() == Sign::Minus && !is_whole {
        return Err(EvalError::Argument {
            function: "power",
            problem: "a negative number raised to a non-integer power yields a complex result",
        });
    }
    if *base == 1 || *base == -1 {
        let is_odd = base.sign() == Sign::Minus && units(exponent, 0) % BigInt::from(2) != BigInt::from(0);
        let scale = SIGNIFICANT_MIN.max(scales).min(SCALE_MAX);
        return finish(&BigDecimal::from(if is_odd { -1 } else { 1 }), scale);
    }
    let exponent_f64 = to_f64(exponent);
    if exponent_f64.is_infinite() {
        let grows = (base.abs() > 1) == (exponent_f64 > 0.0);
        let zero = BigDecimal::new(BigInt::from(0), SCALE_MAX);
        return if grows { Err(EvalError::NumericOverflow) } else { Ok(zero) };
    }
    let weight = exponent_f64 * log10_estimate(base);
    if weight > NUMERIC_DIGITS_MAX as f64 {
        return Err(EvalError::NumericOverflow);
    }
    // With a whole exponent the result has a fixed scale, else one for its significant digits.
    let has_fixed_scale =
        is_whole && exponent_f64 >= f64::from(i32::MIN) && exponent_f64 <= f64::from(i32::MAX);
    let scale = if has_fixed_scale { SIGNIFICANT_MIN } else { SIGNIFICANT_MIN - weight.max(-2_000.0) as i64 };
    let scale = scale.max(scales).clamp(0, SCALE_MAX);
    if weight + 1.0 < -(scale as f64) {
        return Ok(BigDecimal::new(BigInt::from(0), scale));
    }
    if is_whole && exponent_f64.abs() <= 1_000.0 {
        return whole_power(base, exponent_f64 as i64, scale);
    }
    let negative = base.sign() == Sign::Minus && units(exponent, 0) % BigInt::from(2) != BigInt::from(0);
    // The logarithm is multiplied by the exponent, which costs as many digits as that has.
    let places = scale
        + GUARD
        + weight.abs().log10().max(0.0) as i64
        + exponent_f64.abs().log10().max(0.0) as i64
        + weight.max(0.0) as i64;
    let logarithm = ln_fixed(&base.abs(), places) * exponent;
    let result = exp_at(&logarithm, scale)?;
    Ok(if negative { -result } else { result })
}

/// By squaring; what the result's scale cannot show is cut off on the way.
fn whole_power(base: &BigDecimal, exponent: i64, scale: i64) -> Result {
    let mut remaining = exponent.unsigned_abs();
    // A quotient needs as many digits of the divisor as it shows, counted from the divisor's first.
    let places = scale + 2 * GUARD + (log10_estimate(base).abs() * remaining as f64 * 2.0) as i64;
    let (mut result, mut square) = (BigDecimal::from(1), base.clone());
    while remaining > 0 {
        if remaining & 1 == 1 {
            result = cut(&result * &square, places);
        }
        remaining >>= 1;
        if remaining > 0 {
            square = cut(&square * &square, places);
        }
    }
    if exponent < 0 {
        if result.is_zero() {
            return Err(EvalError::NumericOverflow);
        }
        result = quotient(&BigDecimal::from(1), &result, scale + 4);
    }
    return finish(&result, scale);

    fn cut(value: BigDecimal, places: i64) -> BigDecimal {
        if value.fractional_digit_count() > places { value.with_scale(places) } else { value }
    }
}
