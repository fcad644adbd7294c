//! Functions of numbers.

use super::{
    super::{EvalError, arithmetic, cast, decimal, format},
    Function,
};
use bigdecimal::{BigDecimal, RoundingMode, Signed as _, num_bigint::Sign};
use std::sync::Arc;
use tidegate_wire::model::{Numeric, Value, ValueRef};

impl Function {
    /// Functions of numbers.
    pub(super) fn call_of_numbers(self, arguments: &[ValueRef<'_>]) -> Result<Option<Value>, EvalError> {
        use ValueRef::{Float8, Int8, Text};
        let bigint = EvalError::OutOfRange("bigint");
        Ok(Some(match (self, arguments) {
            (Self::Abs, [Int8(v)]) => Value::Int8(v.checked_abs().ok_or(bigint)?),
            (Self::Negate, [Int8(v)]) => Value::Int8(v.checked_neg().ok_or(bigint)?),
            (Self::Int4, [Int8(v)]) => arithmetic::int4(Value::Int8(*v))?,
            (Self::NumberText, [number, Text(format)]) => {
                let text = format::number_text(format, |decimals| number_text(*number, decimals))?;
                Value::Text(text.into())
            }
            (Self::Precision, [value, Int8(precision), Int8(scale)]) => {
                cast::to_precision(*value, *precision as u32, *scale as i32)?
            }
            (_, [Float8(v)]) => Value::Float8(self.call_float8(*v)?),
            (Self::Power, [Float8(base), Float8(exponent)]) => Value::Float8(power(*base, *exponent)?),
            (_, [ValueRef::Numeric(v), rest @ ..]) => {
                let second = match rest {
                    [ValueRef::Numeric(v)] => Some(v.to_numeric()),
                    [Int8(v)] => Some(Numeric::from(*v)),
                    _ => None,
                };
                Value::Numeric(Arc::new(self.call_numeric(v.to_numeric(), second)?))
            }
            _ => return Ok(None),
        }))
    }

    fn call_float8(self, v: f64) -> Result<f64, EvalError> {
        let checked = |result: f64| {
            let overflowed = result.is_infinite() && v.is_finite();
            if overflowed { Err(EvalError::OutOfRange("float8")) } else { Ok(result) }
        };
        Ok(match self {
            Self::Abs => v.abs(),
            Self::Negate => -v,
            // NaN has none.
            Self::Sign if v == 0.0 || v.is_nan() => 0.0,
            Self::Sign => v.signum(),
            Self::Round => v.round_ties_even(),
            Self::Floor => v.floor(),
            Self::Ceil => v.ceil(),
            Self::Trunc => v.trunc(),
            Self::CubeRoot => v.cbrt(),
            Self::Sqrt if v < 0.0 => {
                return argument("sqrt", "cannot take square root of a negative number");
            }
            Self::Sqrt => v.sqrt(),
            Self::Exp => {
                let result = checked(v.exp())?;
                if result == 0.0 && v.is_finite() {
                    return Err(EvalError::OutOfRange("float8"));
                }
                result
            }
            Self::Ln | Self::Log if v == 0.0 => return argument("ln", "cannot take logarithm of zero"),
            Self::Ln | Self::Log if v < 0.0 => {
                return argument("ln", "cannot take logarithm of a negative number");
            }
            Self::Ln => v.ln(),
            _ => v.log10(),
        })
    }

    fn call_numeric(self, v: Numeric, second: Option<Numeric>) -> Result<Numeric, EvalError> {
        use Numeric::{Finite, NaN};
        let value = match (v, &second) {
            (NaN, _) | (_, Some(NaN)) if !matches!(self, Self::Power) => return Ok(NaN),
            (Finite(value), _) => value,
            (v, second) => return self.call_not_finite(v, second.clone()),
        };
        let places = match &second {
            None => 0,
            Some(Finite(places)) if matches!(self, Self::Round | Self::Trunc) => {
                places.to_string().parse().unwrap_or(0)
            }
            Some(_) => 0,
        };
        Ok(Finite(match (self, second) {
            (Self::Abs, _) => value.abs(),
            (Self::Negate, _) => -value,
            (Self::Sign, _) => value.signum().with_scale(0),
            (Self::Round, _) => decimal::round(&value, places)?,
            (Self::Trunc, _) => decimal::truncate(&value, places)?,
            (Self::Floor, _) => value.with_scale_round(0, RoundingMode::Floor),
            (Self::Ceil, _) => value.with_scale_round(0, RoundingMode::Ceiling),
            (Self::Sqrt, _) if value.sign() == Sign::Minus => {
                return argument("sqrt", "cannot take square root of a negative number");
            }
            (Self::Sqrt, _) => decimal::sqrt(&value)?,
            (Self::Exp, _) => decimal::exp(&value)?,
            (Self::Ln | Self::Log, _) if value.sign() == Sign::NoSign => {
                return argument("ln", "cannot take logarithm of zero");
            }
            (Self::Ln | Self::Log, _) if value.sign() == Sign::Minus => {
                return argument("ln", "cannot take logarithm of a negative number");
            }
            (Self::Ln, _) => decimal::ln(&value)?,
            (Self::Log, None) => decimal::log(&BigDecimal::from(10), &value)?,
            (Self::Log, Some(Finite(number))) => match number.sign() {
                Sign::NoSign => return argument("log", "cannot take logarithm of zero"),
                Sign::Minus => return argument("log", "cannot take logarithm of a negative number"),
                Sign::Plus => decimal::log(&value, &number)?,
            },
            (Self::WholeQuotient, Some(Finite(divisor))) => {
                if divisor.sign() == Sign::NoSign {
                    return Err(EvalError::DivisionByZero);
                }
                decimal::whole_quotient(&value, &divisor)?
            }
            (Self::Power, Some(Finite(exponent))) => decimal::power(&value, &exponent)?,
            (_, Some(second)) => return self.call_not_finite(Finite(value), Some(second)),
            (_, None) => return Ok(Finite(value)),
        }))
    }

    /// With NaN or an infinity among the arguments: what doubles give, which agree but for their kinds of zero.
    fn call_not_finite(self, v: Numeric, second: Option<Numeric>) -> Result<Numeric, EvalError> {
        let double = |v: &Numeric| v.to_string().parse::<f64>().unwrap_or(f64::NAN);
        let first = double(&v);
        let result = match (self, &second) {
            (Self::Power, Some(exponent)) => {
                let result = power(first, double(exponent))?;
                // A double does not tell whether a large number is odd.
                match exponent {
                    Numeric::Finite(exponent)
                        if first < 0.0
                            && exponent.is_integer()
                            && !(exponent / BigDecimal::from(2)).is_integer() =>
                    {
                        -result.abs()
                    }
                    _ => result,
                }
            }
            (Self::WholeQuotient, Some(divisor)) => {
                let divisor = double(divisor);
                if divisor == 0.0 {
                    return Err(EvalError::DivisionByZero);
                }
                (first / divisor).trunc()
            }
            (Self::Log, Some(number)) => {
                let number = double(number);
                if first <= 0.0 || number <= 0.0 {
                    return argument("log", "cannot take logarithm of a negative number");
                }
                match (first.is_infinite(), number.is_infinite()) {
                    (true, true) => f64::NAN,
                    (true, false) => 0.0,
                    _ => f64::INFINITY,
                }
            }
            (Self::Exp, _) => first.exp(),
            _ => self.call_float8(first)?,
        };
        Ok(if result == 0.0 { Numeric::from(0) } else { Numeric::from(result) })
    }
}

fn argument<T>(function: &'static str, problem: &'static str) -> Result<T, EvalError> {
    Err(EvalError::Argument { function, problem })
}

/// The number with so many decimals, for `to_char`.
fn number_text(value: ValueRef<'_>, decimals: usize) -> Result<format::NumberText, EvalError> {
    let text = match value {
        ValueRef::Float8(v) if v.is_finite() => {
            // A double has 15 digits that mean something.
            let whole = format!("{:.0}", v.abs()).len();
            let decimals = decimals.min(15_usize.saturating_sub(whole));
            format!("{v:.decimals$}")
        }
        ValueRef::Int8(v) => v.to_string(),
        ValueRef::Numeric(v) => match v.to_numeric() {
            Numeric::Finite(v) => decimal::round(&v, decimals as i64)?.to_plain_string(),
            _ => return Err(EvalError::Format("NaN and infinity have no digits".to_owned())),
        },
        _ => return Err(EvalError::Format("NaN and infinity have no digits".to_owned())),
    };
    let unsigned = text.strip_prefix('-').unwrap_or(&text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    Ok(format::NumberText {
        negative: text.starts_with('-'),
        whole: whole.to_owned(),
        fraction: fraction.to_owned(),
    })
}

fn power(base: f64, exponent: f64) -> Result<f64, EvalError> {
    if base == 0.0 && exponent < 0.0 {
        return argument("power", "zero raised to a negative power is undefined");
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return argument("power", "a negative number raised to a non-integer power yields a complex result");
    }
    let result = base.powf(exponent);
    if base.is_finite() && exponent.is_finite() && (result.is_infinite() || (result == 0.0 && base != 0.0)) {
        return Err(EvalError::OutOfRange("float8"));
    }
    Ok(result)
}
