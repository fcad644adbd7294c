//! Arithmetic on numbers, with PostgreSQL's results and errors.

use super::{EvalError, decimal, scalar::Arithmetic};
use bigdecimal::{RoundingMode, Zero};
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Numeric, Value, ValueRef};

/// Computes `left op right`; NULL when either is. The operands have one type, which type checking sees to.
///
/// # Errors
/// Division by zero, or a result outside the type's range.
pub fn compute(op: Arithmetic, left: ValueRef<'_>, right: ValueRef<'_>) -> Result<Value, EvalError> {
    match (left, right) {
        (ValueRef::Int8(left), ValueRef::Int8(right)) => compute_int8(op, left, right).map(Value::Int8),
        (ValueRef::Float8(left), ValueRef::Float8(right)) => {
            compute_float8(op, left, right).map(Value::Float8)
        }
        (ValueRef::Numeric(left), ValueRef::Numeric(right)) => {
            compute_numeric(op, &left.to_numeric(), &right.to_numeric()).map(|n| Value::Numeric(Arc::new(n)))
        }
        _ => Ok(Value::Null),
    }
}

/// Converts a number to another numeric type, rounding where it must; NULL stays NULL.
///
/// # Errors
/// When the value does not fit the type.
pub fn convert(value: ValueRef<'_>, ty: ColumnType) -> Result<Value, EvalError> {
    if let Some(exact) = value.convert_exact(ty) {
        return Ok(exact);
    }
    match (value, ty) {
        (ValueRef::Null, _) => Ok(Value::Null),
        (ValueRef::Int8(v), ColumnType::Float8) => Ok(Value::Float8(v as f64)),
        (ValueRef::Numeric(v), ColumnType::Float8) => {
            let v: f64 = v.to_numeric().to_string().parse().map_err(|_| EvalError::OutOfRange("float8"))?;
            if v.is_finite() { Ok(Value::Float8(v)) } else { Err(EvalError::OutOfRange("float8")) }
        }
        // PostgreSQL rounds half to even from float8 and half away from zero from numeric.
        (ValueRef::Float8(v), ColumnType::Int8) => {
            let rounded = v.round_ties_even();
            // 2^63 itself does not fit, and is the first double that does not.
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                Ok(Value::Int8(rounded as i64))
            } else {
                Err(EvalError::OutOfRange("int8"))
            }
        }
        (ValueRef::Numeric(v), ColumnType::Int8) => match v.to_numeric() {
            Numeric::Finite(v) => v
                .with_scale_round(0, RoundingMode::HalfUp)
                .to_plain_string()
                .parse()
                .map(Value::Int8)
                .map_err(|_| EvalError::OutOfRange("int8")),
            _ => Err(EvalError::OutOfRange("int8")),
        },
        _ => Err(EvalError::OutOfRange(ty.name())),
    }
}

fn compute_int8(op: Arithmetic, left: i64, right: i64) -> Result<i64, EvalError> {
    let overflow = EvalError::OutOfRange("int8");
    match op {
        Arithmetic::Add => left.checked_add(right).ok_or(overflow),
        Arithmetic::Subtract => left.checked_sub(right).ok_or(overflow),
        Arithmetic::Multiply => left.checked_mul(right).ok_or(overflow),
        Arithmetic::Divide | Arithmetic::Remainder if right == 0 => Err(EvalError::DivisionByZero),
        Arithmetic::Divide => left.checked_div(right).ok_or(overflow),
        // The least int8 % −1 is 0, as in PostgreSQL, though its quotient overflows.
        Arithmetic::Remainder => Ok(left.wrapping_rem(right)),
    }
}

fn compute_float8(op: Arithmetic, left: f64, right: f64) -> Result<f64, EvalError> {
    let result = match op {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide | Arithmetic::Remainder if right == 0.0 && !left.is_nan() => {
            return Err(EvalError::DivisionByZero);
        }
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    };
    let overflowed = result.is_infinite() && left.is_finite() && right.is_finite();
    let vanished = result == 0.0
        && match op {
            Arithmetic::Multiply => left != 0.0 && right != 0.0,
            Arithmetic::Divide => left != 0.0 && right.is_finite(),
            _ => false,
        };
    if overflowed || vanished { Err(EvalError::OutOfRange("float8")) } else { Ok(result) }
}

fn compute_numeric(op: Arithmetic, left: &Numeric, right: &Numeric) -> Result<Numeric, EvalError> {
    use Numeric::{Finite, NaN};
    let (left, right) = match (left, right) {
        (NaN, _) | (_, NaN) => return Ok(NaN),
        (Finite(left), Finite(right)) => (left, right),
        (left, right) => return compute_infinite(op, left, right),
    };
    let result = match op {
        Arithmetic::Add => decimal::add(left, right)?,
        Arithmetic::Subtract => decimal::subtract(left, right)?,
        Arithmetic::Multiply => decimal::multiply(left, right)?,
        Arithmetic::Divide | Arithmetic::Remainder if right.is_zero() => {
            return Err(EvalError::DivisionByZero);
        }
        Arithmetic::Divide => decimal::divide(left, right)?,
        Arithmetic::Remainder => decimal::remainder(left, right)?,
    };
    Ok(Finite(result))
}

/// An integer that must fit 32 bits.
pub(super) fn int4(value: Value) -> Result<Value, EvalError> {
    match value {
        Value::Int8(number) if i32::try_from(number).is_err() => Err(EvalError::OutOfRange("integer")),
        value => Ok(value),
    }
}

fn compute_infinite(op: Arithmetic, left: &Numeric, right: &Numeric) -> Result<Numeric, EvalError> {
    let as_double = |n: &Numeric| match n {
        Numeric::Infinity => f64::INFINITY,
        Numeric::NegativeInfinity => f64::NEG_INFINITY,
        Numeric::NaN => f64::NAN,
        Numeric::Finite(v) if v.is_zero() => 0.0,
        Numeric::Finite(v) if v.sign() == bigdecimal::num_bigint::Sign::Minus => -1.0,
        Numeric::Finite(_) => 1.0,
    };
    let (l, r) = (as_double(left), as_double(right));
    Ok(match op {
        Arithmetic::Divide | Arithmetic::Remainder if r == 0.0 => return Err(EvalError::DivisionByZero),
        Arithmetic::Add => Numeric::from(l + r),
        Arithmetic::Subtract => Numeric::from(l - r),
        Arithmetic::Multiply => Numeric::from(l * r),
        Arithmetic::Divide if r.is_infinite() && l.is_finite() => Numeric::from(0),
        Arithmetic::Divide => Numeric::from(l / r),
        Arithmetic::Remainder if r.is_infinite() && l.is_finite() => left.clone(),
        Arithmetic::Remainder => Numeric::NaN,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Value {
        Value::Numeric(Arc::new(text.parse().expect("numeric")))
    }

    #[test]
    fn integers_overflow_loudly() {
        let compute = |op, a, b| compute(op, ValueRef::Int8(a), ValueRef::Int8(b));
        assert_eq!(compute(Arithmetic::Add, i64::MAX, 1), Err(EvalError::OutOfRange("int8")));
        assert_eq!(compute(Arithmetic::Divide, i64::MIN, -1), Err(EvalError::OutOfRange("int8")));
        assert_eq!(compute(Arithmetic::Remainder, i64::MIN, -1), Ok(Value::Int8(0)));
        assert_eq!(compute(Arithmetic::Divide, -7, 2), Ok(Value::Int8(-3)));
        assert_eq!(compute(Arithmetic::Remainder, -7, 2), Ok(Value::Int8(-1)));
        assert_eq!(compute(Arithmetic::Divide, 1, 0), Err(EvalError::DivisionByZero));
    }

    #[test]
    fn doubles_report_overflow_and_underflow() {
        let compute = |op, a, b| compute(op, ValueRef::Float8(a), ValueRef::Float8(b));
        assert_eq!(compute(Arithmetic::Multiply, 1e200, 1e200), Err(EvalError::OutOfRange("float8")));
        assert_eq!(compute(Arithmetic::Multiply, 1e-200, 1e-200), Err(EvalError::OutOfRange("float8")));
        assert_eq!(compute(Arithmetic::Divide, 1.0, 0.0), Err(EvalError::DivisionByZero));
        assert_eq!(compute(Arithmetic::Add, f64::INFINITY, 1.0), Ok(Value::Float8(f64::INFINITY)));
    }

    #[test]
    fn quotients_have_postgresqls_scale() {
        for (left, right, quotient) in [
            ("1", "3", "0.33333333333333333333"),
            ("10", "3", "3.3333333333333333"),
            ("2", "3", "0.66666666666666666667"),
            ("100", "7", "14.2857142857142857"),
            ("1.5", "0.5", "3.0000000000000000"),
        ] {
            let got =
                compute(Arithmetic::Divide, numeric(left).as_ref(), numeric(right).as_ref()).expect("finite");
            assert_eq!(got.to_json(), quotient, "{left} / {right}");
        }
    }
}
