//! What an aggregate holds for one group: enough to take away what was added.

use super::{
    bag::ByBytes,
    decimal_sum::DecimalSum,
    exact_sum::{ExactSum, nearest},
    sorted::Sorted,
    spellings::Spellings,
};
use crate::{
    algebra::{Aggregate, AggregateFunction},
    expr::{EvalError, arithmetic, cast, scalar::Arithmetic},
    store::KeyBytes,
};
use bigdecimal::{BigDecimal, RoundingMode, Zero as _, num_bigint::BigInt};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_wire::model::{ColumnType, Numeric, Order, Row, Value, ValueRef, key::encode_cell};

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Accumulator {
    kind: Kind,
    /// With `distinct`: how often each value is there.
    seen: Option<Box<HashMap<KeyBytes, Seen>>>,
}

/// How often a value is there.
#[derive(Debug)]
struct Seen {
    count: i64,
    /// Of a value that equal ones can differ from.
    spellings: Option<Spellings>,
}

#[derive(Debug)]
enum Kind {
    Count(i64),
    /// Numbers, with their squares where a variance is asked for.
    Numbers {
        count: i64,
        sum: Total,
        squares: Option<Box<Total>>,
    },
    /// Truths and falsehoods.
    Truths(i64, i64),
    /// Integers, or what is held as such, in order: of these only the first or the last is asked for.
    Integers(Sorted<i64, ()>),
    /// An aggregate's arguments in order.
    Ordered(Sorted<KeyBytes, Arguments>),
}

type Arguments = SmallVec<[Value; 1]>;

/// A sum of numbers of one type.
#[derive(Debug)]
enum Total {
    Integer(i128),
    /// Of squares of integers, which may be beyond 128 bits.
    Squares(BigInt),
    Numeric {
        sum: Box<DecimalSum>,
        special: Special,
    },
    Float {
        sum: ExactSum,
        special: Special,
    },
}

/// How many numbers are not finite.
#[derive(Debug, Default)]
struct Special {
    nan: i64,
    infinite: i64,
    negative: i64,
}

impl Seen {
    fn new<'a>(cells: impl Iterator<Item = ValueRef<'a>> + Clone) -> Self {
        let has_spellings = cells.clone().any(ValueRef::has_spellings);
        Self { count: 0, spellings: has_spellings.then(|| Spellings::of(Row::encode(cells))) }
    }

    /// Whether the value is there, and how it is spelled where it can be in several ways.
    fn standing(&self) -> Option<Option<ByBytes>> {
        (self.count > 0).then(|| self.spellings.as_ref().map(|spellings| ByBytes(spellings.row().clone())))
    }
}

impl Special {
    fn merge(&mut self, other: &Self) {
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.negative += other.negative;
    }

    /// The sum, where these decide it: NaN, or infinite with a sign.
    fn decides(&self) -> Option<f64> {
        match (self.nan, self.infinite, self.negative) {
            (0, 0, 0) => None,
            (0, 1.., 0) => Some(f64::INFINITY),
            (0, 0, 1..) => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }
}

impl Total {
    fn of(ty: ColumnType, is_of_squares: bool) -> Self {
        match ty {
            ColumnType::Float8 => Self::Float { sum: ExactSum::default(), special: Special::default() },
            ColumnType::Numeric => Self::Numeric { sum: Box::default(), special: Special::default() },
            _ if is_of_squares => Self::Squares(BigInt::zero()),
            _ => Self::Integer(0),
        }
    }

    fn add(&mut self, value: ValueRef<'_>, weight: i64, is_square: bool) {
        match (self, value) {
            // Rows are fewer than 2^63, so that their sum is within 128 bits.
            (Self::Integer(sum), ValueRef::Int8(value)) => *sum += i128::from(value) * i128::from(weight),
            (Self::Squares(sum), ValueRef::Int8(value)) => {
                *sum += BigInt::from(i128::from(value) * i128::from(value)) * weight;
            }
            (Self::Numeric { sum, special }, ValueRef::Numeric(value)) => {
                match sum.add(value, weight, is_square) {
                    None | Some(Numeric::Finite(_)) => {}
                    Some(Numeric::NaN) => special.nan += weight,
                    Some(Numeric::NegativeInfinity) if !is_square => special.negative += weight,
                    Some(Numeric::Infinity | Numeric::NegativeInfinity) => special.infinite += weight,
                }
            }
            (Self::Float { sum, special }, ValueRef::Float8(value)) => {
                if value.is_nan() {
                    special.nan += weight;
                } else if value == f64::NEG_INFINITY && !is_square {
                    special.negative += weight;
                } else if value.is_infinite() {
                    special.infinite += weight;
                } else if is_square {
                    sum.add_square(value, weight);
                } else {
                    sum.add(value, weight);
                }
            }
            _ => debug_assert!(value.is_null(), "arguments' types are checked when a query is registered"),
        }
    }

    fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Integer(own), Self::Integer(other)) => *own += other,
            (Self::Squares(own), Self::Squares(other)) => *own += other,
            (Self::Numeric { sum, special }, Self::Numeric { sum: other_sum, special: other_special }) => {
                sum.merge(*other_sum);
                special.merge(&other_special);
            }
            (Self::Float { sum, special }, Self::Float { sum: other_sum, special: other_special }) => {
                sum.merge(other_sum);
                special.merge(&other_special);
            }
            _ => unreachable!("both are of one type"),
        }
    }

    /// The sum as a numeric with its decimals; for doubles nothing.
    fn numeric(&self) -> Option<Numeric> {
        Some(match self {
            Self::Integer(sum) => Numeric::Finite(BigDecimal::from(*sum)),
            Self::Squares(sum) => Numeric::Finite(BigDecimal::new(sum.clone(), 0)),
            Self::Numeric { sum, special } => match special.decides() {
                Some(special) => Numeric::from(special),
                None => Numeric::Finite(sum.value()),
            },
            Self::Float { .. } => return None,
        })
    }
}

impl Accumulator {
    pub(crate) fn new(aggregate: &Aggregate) -> Self {
        use AggregateFunction as F;
        let ty = aggregate.arguments.first().map_or(ColumnType::Int8, |argument| argument.ty);
        let kind = match aggregate.function {
            F::Count => Kind::Count(0),
            F::Sum | F::Average => Kind::Numbers { count: 0, sum: Total::of(ty, false), squares: None },
            F::StddevPop | F::StddevSample | F::VariancePop | F::VarianceSample => Kind::Numbers {
                count: 0,
                sum: Total::of(ty, false),
                squares: Some(Box::new(Total::of(ty, true))),
            },
            F::BoolAnd | F::BoolOr => Kind::Truths(0, 0),
            F::Min | F::Max if is_integer(ty) => Kind::Integers(Sorted::default()),
            F::Min | F::Max | F::StringAgg | F::JsonAgg => Kind::Ordered(Sorted::default()),
        };
        Self { kind, seen: aggregate.distinct.then(Box::default) }
    }

    /// Adds a row's arguments so many times; `key` begins as their key in the aggregate's own order, and is of no use
    /// after.
    pub(super) fn add(
        &mut self,
        function: AggregateFunction,
        arguments: &[ValueRef<'_>],
        key: &mut Vec<u8>,
        weight: i64,
    ) {
        // All but these pass over NULL.
        if function != AggregateFunction::JsonAgg && arguments.first().is_some_and(|first| first.is_null()) {
            return;
        }
        if let Some(seen) = &mut self.seen {
            let ordered = key.len();
            arguments.iter().for_each(|argument| encode_cell(*argument, Order::ASC, key));
            let value = KeyBytes::from_slice(&key[ordered..]);
            key.truncate(ordered);
            let cells = arguments.iter().copied();
            let known = seen.entry(value.clone()).or_insert_with(|| Seen::new(cells.clone()));
            let before = known.standing();
            if let Some(spellings) = &mut known.spellings {
                spellings.add(cells, weight, known.count);
            }
            known.count += weight;
            let after = known.standing();
            if known.count == 0 {
                seen.remove(&value);
            }
            if before != after {
                for (spelled, weight) in [(before, -1), (after, 1)] {
                    match &spelled {
                        None => continue,
                        Some(None) => self.kind.add(arguments, key, weight),
                        Some(Some(row)) => {
                            self.kind.add(&row.0.cells().collect::<SmallVec<[_; 2]>>(), key, weight);
                        }
                    }
                    key.truncate(ordered);
                }
            }
        } else {
            self.kind.add(arguments, key, weight);
        }
    }

    /// Adds what another one of the same aggregate was given.
    ///
    /// # Panics
    /// For `distinct` ones, which do not know what both were given.
    pub(super) fn merge(&mut self, other: Self) {
        assert!(self.seen.is_none() && other.seen.is_none(), "distinct values are told apart in one place");
        self.kind.merge(other.kind);
    }

    /// The aggregate's value.
    ///
    /// # Errors
    /// When it is outside its type's range.
    pub(crate) fn value(&self, aggregate: &Aggregate) -> Result<Value, EvalError> {
        use AggregateFunction as F;
        let numeric = |numeric| Value::Numeric(Arc::new(numeric));
        Ok(match (&self.kind, aggregate.function) {
            (Kind::Count(count), _) => Value::Int8(*count),
            (Kind::Truths(0, 0), _) => Value::Null,
            (Kind::Truths(_, falses), F::BoolAnd) => Value::Bool(*falses == 0),
            (Kind::Truths(trues, _), _) => Value::Bool(*trues > 0),
            (Kind::Numbers { count: 0, .. }, _) => Value::Null,
            (Kind::Numbers { sum: Total::Integer(sum), .. }, F::Sum) if aggregate.ty == ColumnType::Int8 => {
                Value::Int8(i64::try_from(*sum).map_err(|_| EvalError::OutOfRange("int8"))?)
            }
            (Kind::Numbers { count, sum, squares: None }, function) => match sum.numeric() {
                Some(sum) if function == F::Sum => numeric(sum),
                Some(sum) => {
                    let count = numeric(Numeric::from(*count));
                    arithmetic::compute(Arithmetic::Divide, numeric(sum).as_ref(), count.as_ref())?
                }
                None => {
                    let Total::Float { sum, special } = sum else { unreachable!("others are numeric") };
                    let sum = special.decides().unwrap_or_else(|| sum.to_f64());
                    if sum.is_infinite() && special.decides().is_none() {
                        return Err(EvalError::OutOfRange("float8"));
                    }
                    Value::Float8(if function == F::Sum { sum } else { sum / *count as f64 })
                }
            },
            (Kind::Numbers { count, sum, squares: Some(squares) }, function) => {
                spread(*count, sum, squares, function)?
            }
            (Kind::Integers(values), function) => {
                let found = if function == F::Min { values.first() } else { values.last() };
                found.map_or(Value::Null, |(number, ())| of_integer(*number, aggregate.ty))
            }
            (Kind::Ordered(values), F::Min) => only_argument(values.first()),
            (Kind::Ordered(values), F::Max) => only_argument(values.last()),
            (Kind::Ordered(values), F::StringAgg) => join_texts(values),
            (Kind::Ordered(values), _) if values.first().is_none() => Value::Null,
            (Kind::Ordered(values), _) => {
                let mut text = String::from("[");
                for (_, arguments, count) in values.iter() {
                    for _ in 0..count {
                        if text.len() > 1 {
                            text.push(',');
                        }
                        push_json(arguments[0].as_ref(), &mut text);
                    }
                }
                text.push(']');
                Value::Json(text.into())
            }
        })
    }
}

impl Kind {
    fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Count(own), Self::Count(other)) => *own += other,
            (
                Self::Numbers { count, sum, squares },
                Self::Numbers { count: other_count, sum: other_sum, squares: other_squares },
            ) => {
                *count += other_count;
                sum.merge(other_sum);
                if let (Some(own), Some(other)) = (squares, other_squares) {
                    own.merge(*other);
                }
            }
            (Self::Truths(trues, falses), Self::Truths(other_trues, other_falses)) => {
                *trues += other_trues;
                *falses += other_falses;
            }
            (Self::Integers(own), Self::Integers(other)) => own.merge(other),
            (Self::Ordered(own), Self::Ordered(other)) => own.merge(other),
            _ => unreachable!("both are of one aggregate"),
        }
    }

    fn add(&mut self, arguments: &[ValueRef<'_>], key: &mut Vec<u8>, weight: i64) {
        match self {
            Self::Count(count) => *count += weight,
            Self::Numbers { count, sum, squares } => {
                *count += weight;
                sum.add(arguments[0], weight, false);
                if let Some(squares) = squares {
                    squares.add(arguments[0], weight, true);
                }
            }
            Self::Truths(trues, falses) => {
                let is_true = matches!(arguments[0], ValueRef::Bool(true));
                *(if is_true { trues } else { falses }) += weight;
            }
            Self::Integers(values) => {
                let number = integer(arguments[0]);
                debug_assert!(number.is_some(), "arguments' types are checked when a query is registered");
                if let Some(number) = number {
                    values.add(&number, || (number, ()), weight);
                }
            }
            Self::Ordered(values) => {
                arguments.iter().for_each(|argument| encode_cell(*argument, Order::ASC, key));
                arguments.iter().for_each(|argument| push_spelling(*argument, key));
                let owned = || arguments.iter().map(|argument| argument.to_value()).collect();
                values.add(key.as_slice(), || (KeyBytes::from_slice(key), owned()), weight);
            }
        }
    }
}

/// Whether values of a type are held as integers.
fn is_integer(ty: ColumnType) -> bool {
    matches!(ty, ColumnType::Int8 | ColumnType::Timestamptz | ColumnType::Date)
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int8(number) | ValueRef::Timestamptz(number) => Some(number),
        ValueRef::Date(days) => Some(days.into()),
        _ => None,
    }
}

/// The value of a type that is held as an integer.
fn of_integer(number: i64, ty: ColumnType) -> Value {
    match ty {
        ColumnType::Timestamptz => Value::Timestamptz(number),
        ColumnType::Date => Value::Date(number as i32),
        _ => Value::Int8(number),
    }
}

/// Appends what tells a value from others that are equal, so that which of them is first does not depend on which came
/// first.
fn push_spelling(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Numeric(value) => {
            let decimals = match value.to_numeric() {
                Numeric::Finite(value) => value.fractional_digit_count(),
                _ => 0,
            };
            out.extend((decimals as u64 ^ 1 << 63).to_be_bytes());
        }
        ValueRef::Float8(value) => out.push(u8::from(value.is_sign_positive())),
        ValueRef::Json(text) => out.extend(text.as_bytes()),
        _ => {}
    }
}

fn only_argument(found: Option<(&KeyBytes, &Arguments)>) -> Value {
    found.map_or(Value::Null, |(_, arguments)| arguments[0].clone())
}

/// Texts with each one's separator before it, but for the first.
fn join_texts(values: &Sorted<KeyBytes, Arguments>) -> Value {
    let mut text: Option<String> = None;
    for (_, arguments, count) in values.iter() {
        for _ in 0..count {
            let Value::Text(own) = &arguments[0] else { continue };
            match &mut text {
                None => text = Some(own.to_string()),
                Some(text) => {
                    if let Some(Value::Text(separator)) = arguments.get(1) {
                        text.push_str(separator);
                    }
                    text.push_str(own);
                }
            }
        }
    }
    text.map_or(Value::Null, |text| Value::Text(text.into()))
}

/// Appends a value as PostgreSQL writes it inside JSON.
fn push_json(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Numeric(value) => match value.to_numeric() {
            finite @ Numeric::Finite(_) => out.push_str(&finite.to_string()),
            other => out.push_str(&format!("\"{other}\"")),
        },
        ValueRef::Json(text) => out.push_str(text),
        ValueRef::Float8(number) if number.is_finite() => out.push_str(&cast::text_of(value)),
        ValueRef::Timestamptz(_) => match value.to_json().as_str().and_then(|text| text.strip_suffix('Z')) {
            Some(text) => out.push_str(&format!("\"{text}+00:00\"")),
            None => out.push_str(&value.to_json().to_string()),
        },
        value => out.push_str(&value.to_json().to_string()),
    }
}

/// Variance and standard deviation: from the sums of the numbers and of their squares.
fn spread(count: i64, sum: &Total, squares: &Total, function: AggregateFunction) -> Result<Value, EvalError> {
    use AggregateFunction as F;
    let is_sample = matches!(function, F::StddevSample | F::VarianceSample);
    let is_root = matches!(function, F::StddevSample | F::StddevPop);
    if is_sample && count < 2 {
        return Ok(Value::Null);
    }
    let divisor = BigInt::from(count) * if is_sample { count - 1 } else { count };
    let numeric = |numeric| Value::Numeric(Arc::new(numeric));
    if let (Some(sum), Some(squares)) = (sum.numeric(), squares.numeric()) {
        let (Numeric::Finite(sum), Numeric::Finite(squares)) = (sum, squares) else {
            return Ok(numeric(Numeric::NaN));
        };
        let difference = BigDecimal::from(count) * squares - &sum * &sum;
        if difference <= BigDecimal::zero() {
            return Ok(numeric(Numeric::from(0)));
        }
        let (difference, divisor) =
            (numeric(Numeric::Finite(difference)), numeric(Numeric::Finite(divisor.into())));
        let variance = arithmetic::compute(Arithmetic::Divide, difference.as_ref(), divisor.as_ref())?;
        return Ok(match variance {
            Value::Numeric(variance) if is_root => match &*variance {
                Numeric::Finite(variance) => numeric(Numeric::Finite(square_root(variance))),
                other => numeric(other.clone()),
            },
            variance => variance,
        });
    }
    let (Total::Float { sum, special }, Total::Float { sum: squares, .. }) = (sum, squares) else {
        unreachable!("both are of the argument's type");
    };
    if special.decides().is_some() {
        return Ok(Value::Float8(f64::NAN));
    }
    let ((sum, sum_exponent), (squares, squares_exponent)) = (sum.total(), squares.total());
    // Both whole numbers brought to the lesser of the two powers of two.
    let (square, square_exponent) = (&sum * &sum, 2 * sum_exponent);
    let exponent = square_exponent.min(squares_exponent);
    let brought = |number: BigInt, from: i32| number << usize::try_from(from - exponent).unwrap_or(0);
    let difference = brought(squares * count, squares_exponent) - brought(square, square_exponent);
    if difference <= BigInt::zero() {
        return Ok(Value::Float8(0.0));
    }
    let variance = nearest(&difference, exponent) / nearest(&divisor, 0);
    Ok(Value::Float8(if is_root { variance.sqrt() } else { variance }))
}

/// The square root with as many decimals as the number has.
fn square_root(value: &BigDecimal) -> BigDecimal {
    let scale = value.fractional_digit_count().max(0);
    // One decimal more than is wanted, cut off; it rounds right, as the next one cannot be exactly a half.
    let (digits, _) = value.with_scale(2 * (scale + 1)).into_bigint_and_exponent();
    let root = digits.magnitude().sqrt();
    BigDecimal::new(root.into(), scale + 1).with_scale_round(scale, RoundingMode::HalfUp)
}
