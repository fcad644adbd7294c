//! Exact decimals with NaN and the infinities, ordered as PostgreSQL's `numeric`.

use bigdecimal::{BigDecimal, Zero, num_bigint::Sign};
use std::{cmp::Ordering, fmt, str::FromStr};

/// PostgreSQL's `numeric`: a decimal of any length, NaN (equal to itself, greatest) or ±Infinity.
#[derive(Clone, Debug)]
pub enum Numeric {
    /// Below every other value.
    NegativeInfinity,
    /// An exact decimal. The scale it was written with is kept for display and does not count in comparisons.
    Finite(BigDecimal),
    /// Above every finite value.
    Infinity,
    /// Above everything, equal to itself.
    NaN,
}

/// Most characters a numeric's text may have, exponent written out; keeps one cell's arithmetic bounded.
pub const NUMERIC_DIGITS_MAX: usize = 16_384;

impl Numeric {
    fn rank(&self) -> u8 {
        match self {
            Self::NegativeInfinity => 0,
            Self::Finite(_) => 1,
            Self::Infinity => 2,
            Self::NaN => 3,
        }
    }

    /// Appends an encoding whose bytewise order is the numeric order, the same for equal values whatever their
    /// scale.
    pub(crate) fn encode_ordered(&self, out: &mut Vec<u8>) {
        let Self::Finite(decimal) = self else {
            out.push(match self {
                Self::NegativeInfinity => 0,
                Self::Infinity => 4,
                _ => 5,
            });
            return;
        };
        if decimal.is_zero() {
            out.push(2);
            return;
        }
        let (digits, scale) = decimal.as_bigint_and_exponent();
        let text = digits.magnitude().to_string();
        // The value is 0.DIGITS × 10^exponent, with the first digit not zero.
        let exponent = text.len() as i64 - scale;
        let significant = text.trim_end_matches('0');
        let flip: u8 = if digits.sign() == Sign::Minus { 0xff } else { 0 };
        out.push(if flip == 0 { 3 } else { 1 });
        out.extend((exponent as u64 ^ (1 << 63)).to_be_bytes().iter().map(|b| b ^ flip));
        out.extend(significant.bytes().map(|b| b ^ flip));
        out.push(flip);
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Finite(a), Self::Finite(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NaN => f.write_str("NaN"),
            Self::Infinity => f.write_str("Infinity"),
            Self::NegativeInfinity => f.write_str("-Infinity"),
            Self::Finite(decimal) => f.write_str(&decimal.to_plain_string()),
        }
    }
}

impl FromStr for Numeric {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        match text.to_ascii_lowercase().as_str() {
            "nan" => return Ok(Self::NaN),
            "infinity" | "inf" | "+infinity" | "+inf" => return Ok(Self::Infinity),
            "-infinity" | "-inf" => return Ok(Self::NegativeInfinity),
            _ => {}
        }
        let well_formed = text.bytes().any(|b| b.is_ascii_digit())
            && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
        if text.len() > NUMERIC_DIGITS_MAX || !well_formed {
            return Err("not a decimal number");
        }
        let decimal = BigDecimal::from_str(text).map_err(|_| "not a decimal number")?;
        let (_, scale) = decimal.as_bigint_and_exponent();
        if scale.unsigned_abs() > NUMERIC_DIGITS_MAX as u64 {
            return Err("numeric out of range");
        }
        // A positive exponent is written out, as PostgreSQL does: 1e3 is 1000.
        Ok(Self::Finite(if scale < 0 { decimal.with_scale(0) } else { decimal }))
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Self {
        Self::Finite(BigDecimal::from(value))
    }
}

impl From<f64> for Numeric {
    /// The exact decimal value of the double.
    fn from(value: f64) -> Self {
        if value.is_nan() {
            Self::NaN
        } else if value.is_infinite() {
            if value > 0.0 { Self::Infinity } else { Self::NegativeInfinity }
        } else {
            Self::Finite(BigDecimal::try_from(value).expect("a finite double has an exact decimal"))
        }
    }
}
