//! SQL's scalar functions.

use super::{EvalError, like::fold};
use bigdecimal::{BigDecimal, RoundingMode, Signed};
use compact_str::CompactString;
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Numeric, Value, ValueRef};

/// A function. Its arguments' types are checked when the query is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `lower(text)`
    Lower,
    /// `upper(text)`
    Upper,
    /// `length(text)`: code points
    Length,
    /// `concat(…)` of anything; NULLs are skipped
    Concat,
    /// `a || b`; NULL when either is
    Append,
    /// `left(text, n)`; negative drops the last −n
    Left,
    /// `right(text, n)`; negative drops the first −n
    Right,
    /// `substring(text, from[, count])`, from 1
    Substring,
    /// `trim(text)`: spaces on both sides
    Trim,
    /// `ltrim(text)`
    TrimStart,
    /// `rtrim(text)`
    TrimEnd,
    /// `replace(text, from, to)`
    Replace,
    /// `strpos(text, part)`: code points from 1, 0 when absent
    Position,
    /// `starts_with(text, prefix)`
    StartsWith,
    /// `abs(number)`
    Abs,
    /// `sign(number)`
    Sign,
    /// `round(number)`
    Round,
    /// `floor(number)`
    Floor,
    /// `ceil(number)`
    Ceil,
    /// `trunc(number)`
    Trunc,
    /// `sqrt(float8)`
    Sqrt,
    /// `power(float8, float8)`
    Power,
    /// `coalesce(…)`: the first that is not NULL
    Coalesce,
    /// `nullif(a, b)`: NULL when they are equal
    NullIf,
    /// `greatest(…)`; NULLs are skipped
    Greatest,
    /// `least(…)`; NULLs are skipped
    Least,
}

/// What a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// Arguments of these types, of which the last may be left out when `optional`.
    Fixed {
        /// The types in order.
        types: &'static [ColumnType],
        /// Whether the last is optional.
        optional: bool,
        /// The result's type.
        result: ColumnType,
    },
    /// One number; the result has its type (`sign` and the roundings too).
    Number,
    /// At least one argument of any types; the result is text.
    Any,
    /// At least `min`, at most `max` arguments of one type, which is the result's.
    Same {
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
}

impl Function {
    /// The function of a SQL name (lower case), or `None`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "lower" => Self::Lower,
            "upper" => Self::Upper,
            "length" | "char_length" | "character_length" => Self::Length,
            "concat" => Self::Concat,
            "||" => Self::Append,
            "left" => Self::Left,
            "right" => Self::Right,
            "substring" | "substr" => Self::Substring,
            "trim" | "btrim" => Self::Trim,
            "ltrim" => Self::TrimStart,
            "rtrim" => Self::TrimEnd,
            "replace" => Self::Replace,
            "strpos" => Self::Position,
            "starts_with" => Self::StartsWith,
            "abs" => Self::Abs,
            "sign" => Self::Sign,
            "round" => Self::Round,
            "floor" => Self::Floor,
            "ceil" | "ceiling" => Self::Ceil,
            "trunc" => Self::Trunc,
            "sqrt" => Self::Sqrt,
            "power" | "pow" => Self::Power,
            "coalesce" => Self::Coalesce,
            "nullif" => Self::NullIf,
            "greatest" => Self::Greatest,
            "least" => Self::Least,
            _ => return None,
        })
    }

    /// What the function takes and gives.
    #[must_use]
    pub fn signature(self) -> Signature {
        use ColumnType::{Bool, Float8, Int8, Text};
        let fixed = |types, result| Signature::Fixed { types, optional: false, result };
        match self {
            Self::Lower | Self::Upper | Self::Trim | Self::TrimStart | Self::TrimEnd => fixed(&[Text], Text),
            Self::Length => fixed(&[Text], Int8),
            Self::Append => fixed(&[Text, Text], Text),
            Self::Left | Self::Right => fixed(&[Text, Int8], Text),
            Self::Substring => Signature::Fixed { types: &[Text, Int8, Int8], optional: true, result: Text },
            Self::Replace => fixed(&[Text, Text, Text], Text),
            Self::Position => fixed(&[Text, Text], Int8),
            Self::StartsWith => fixed(&[Text, Text], Bool),
            Self::Sqrt => fixed(&[Float8], Float8),
            Self::Power => fixed(&[Float8, Float8], Float8),
            Self::Abs | Self::Sign | Self::Round | Self::Floor | Self::Ceil | Self::Trunc => {
                Signature::Number
            }
            Self::Concat => Signature::Any,
            Self::Coalesce | Self::Greatest | Self::Least => Signature::Same { min: 1, max: usize::MAX },
            Self::NullIf => Signature::Same { min: 2, max: 2 },
        }
    }

    /// Computes the function. But for `concat`, `coalesce`, `greatest`, `least` and `nullif`, NULL in gives NULL out.
    ///
    /// # Errors
    /// A result outside its type's range, or an argument outside the function's domain.
    pub fn call(self, arguments: &[ValueRef<'_>]) -> Result<Value, EvalError> {
        match self {
            Self::Concat => {
                let mut out = String::new();
                arguments.iter().for_each(|argument| push_text(*argument, &mut out));
                return Ok(Value::Text(out.into()));
            }
            Self::Coalesce => {
                return Ok(arguments.iter().find(|a| !a.is_null()).map_or(Value::Null, |a| a.to_value()));
            }
            Self::Greatest | Self::Least => {
                let present = arguments.iter().filter(|a| !a.is_null());
                let chosen = if self == Self::Greatest {
                    present.max_by(|a, b| a.compare(**b))
                } else {
                    present.min_by(|a, b| a.compare(**b))
                };
                return Ok(chosen.map_or(Value::Null, |a| a.to_value()));
            }
            Self::NullIf => {
                let (a, b) = (arguments[0], arguments[1]);
                let equal = !a.is_null() && !b.is_null() && a.compare(b).is_eq();
                return Ok(if equal { Value::Null } else { a.to_value() });
            }
            _ => {}
        }
        if arguments.iter().any(|a| a.is_null()) {
            return Ok(Value::Null);
        }
        use ValueRef::{Float8, Int8, Text};
        Ok(match (self, arguments) {
            (Self::Lower, [Text(t)]) => Value::Text(t.chars().map(fold).collect()),
            (Self::Upper, [Text(t)]) => Value::Text(t.chars().map(raise).collect()),
            (Self::Length, [Text(t)]) => Value::Int8(t.chars().count() as i64),
            (Self::Append, [Text(a), Text(b)]) => Value::Text(compact_str::format_compact!("{a}{b}")),
            (Self::Left, [Text(t), Int8(n)]) => {
                let keep = if *n < 0 { t.chars().count() as i64 + n } else { *n };
                Value::Text(t.chars().take(usize::try_from(keep).unwrap_or(0)).collect())
            }
            (Self::Right, [Text(t), Int8(n)]) => {
                let count = t.chars().count() as i64;
                let skip = if *n < 0 { n.saturating_neg() } else { count.saturating_sub(*n) };
                Value::Text(t.chars().skip(usize::try_from(skip).unwrap_or(0)).collect())
            }
            (Self::Substring, [Text(t), Int8(from), rest @ ..]) => substring(t, *from, rest)?,
            (Self::Trim, [Text(t)]) => Value::Text(t.trim_matches(' ').into()),
            (Self::TrimStart, [Text(t)]) => Value::Text(t.trim_start_matches(' ').into()),
            (Self::TrimEnd, [Text(t)]) => Value::Text(t.trim_end_matches(' ').into()),
            (Self::Replace, [Text(t), Text(""), _]) => Value::Text((*t).into()),
            (Self::Replace, [Text(t), Text(from), Text(to)]) => Value::Text(t.replace(from, to).into()),
            (Self::Position, [Text(t), Text(part)]) => {
                Value::Int8(t.find(part).map_or(0, |at| t[..at].chars().count() as i64 + 1))
            }
            (Self::StartsWith, [Text(t), Text(prefix)]) => Value::Bool(t.starts_with(prefix)),
            (Self::Abs, [Int8(v)]) => Value::Int8(v.checked_abs().ok_or(EvalError::OutOfRange("int8"))?),
            (Self::Sign, [Int8(v)]) => Value::Int8(v.signum()),
            (Self::Round | Self::Floor | Self::Ceil | Self::Trunc, [Int8(v)]) => Value::Int8(*v),
            (Self::Abs, [Float8(v)]) => Value::Float8(v.abs()),
            (Self::Sign, [Float8(v)]) if *v == 0.0 || v.is_nan() => Value::Float8(*v),
            (Self::Sign, [Float8(v)]) => Value::Float8(v.signum()),
            (Self::Round, [Float8(v)]) => Value::Float8(v.round_ties_even()),
            (Self::Floor, [Float8(v)]) => Value::Float8(v.floor()),
            (Self::Ceil, [Float8(v)]) => Value::Float8(v.ceil()),
            (Self::Trunc, [Float8(v)]) => Value::Float8(v.trunc()),
            (Self::Sqrt, [Float8(v)]) if *v < 0.0 => {
                return Err(EvalError::Argument {
                    function: "sqrt",
                    problem: "square root of a negative number",
                });
            }
            (Self::Sqrt, [Float8(v)]) => Value::Float8(v.sqrt()),
            (Self::Power, [Float8(a), Float8(b)]) => power(*a, *b)?,
            (_, [ValueRef::Numeric(v)]) => match v.to_numeric() {
                Numeric::Finite(v) => Value::Numeric(Arc::new(Numeric::Finite(self.call_decimal(&v)))),
                Numeric::NegativeInfinity if self == Self::Abs => Value::Numeric(Arc::new(Numeric::Infinity)),
                Numeric::NegativeInfinity if self == Self::Sign => Value::Numeric(Arc::new((-1).into())),
                Numeric::Infinity if self == Self::Sign => Value::Numeric(Arc::new(1.into())),
                other => Value::Numeric(Arc::new(other)),
            },
            _ => unreachable!("argument types are checked when a query is registered"),
        })
    }

    fn call_decimal(self, value: &BigDecimal) -> BigDecimal {
        match self {
            Self::Abs => value.abs(),
            Self::Sign => value.signum(),
            Self::Round => value.with_scale_round(0, RoundingMode::HalfUp),
            Self::Floor => value.with_scale_round(0, RoundingMode::Floor),
            Self::Ceil => value.with_scale_round(0, RoundingMode::Ceiling),
            _ => value.with_scale_round(0, RoundingMode::Down),
        }
    }
}

/// Upper case by Unicode's simple mapping, one code point for one, as PostgreSQL's `C.UTF-8` maps.
fn raise(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        // Greek letters with an iota below have a full upper case of two code points beside their simple one.
        _ => match c {
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
                char::from_u32(c as u32 + 8).unwrap_or(c)
            }
            '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => char::from_u32(c as u32 + 9).unwrap_or(c),
            _ => c,
        },
    }
}

fn push_text(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Null => {}
        ValueRef::Bool(v) => out.push(if v { 't' } else { 'f' }),
        value => match value.to_json() {
            serde_json::Value::String(text) => out.push_str(&text),
            other => out.push_str(&other.to_string()),
        },
    }
}

fn substring(text: &str, from: i64, rest: &[ValueRef<'_>]) -> Result<Value, EvalError> {
    let end = match rest {
        [ValueRef::Int8(count)] if *count < 0 => {
            return Err(EvalError::Argument {
                function: "substring",
                problem: "negative length not allowed",
            });
        }
        [ValueRef::Int8(count)] => from.saturating_add(*count),
        _ => i64::MAX,
    };
    let start = from.max(1);
    let count = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let skip = usize::try_from(start - 1).unwrap_or(usize::MAX);
    Ok(Value::Text(text.chars().skip(skip).take(count).collect::<CompactString>()))
}

fn power(base: f64, exponent: f64) -> Result<Value, EvalError> {
    if base == 0.0 && exponent < 0.0 {
        return Err(EvalError::Argument {
            function: "power",
            problem: "zero raised to a negative power is undefined",
        });
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(EvalError::Argument {
            function: "power",
            problem: "a negative number raised to a non-integer power yields a complex result",
        });
    }
    let result = base.powf(exponent);
    if result.is_infinite() && base.is_finite() && exponent.is_finite() {
        return Err(EvalError::OutOfRange("float8"));
    }
    Ok(Value::Float8(result))
}
