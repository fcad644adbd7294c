//! Order-preserving key encoding: the bytewise order of encoded cells is the comparator's order, NULL placement
//! and direction included, and equal values encode to equal bytes. Encoded cells are prefix-free, so that the
//! concatenation of several orders by the first, then the second, and so on.

use super::{ValueRef, json};
use serde::{Deserialize, Serialize};

/// Ascending or descending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Least first.
    #[default]
    Asc,
    /// Greatest first.
    Desc,
}

/// Where NULLs stand in an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Nulls {
    /// Before every value.
    #[serde(rename = "nulls first")]
    First,
    /// After every value.
    #[default]
    #[serde(rename = "nulls last")]
    Last,
}

/// How one column orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order {
    /// Ascending or descending.
    pub direction: Direction,
    /// Where NULLs stand.
    pub nulls: Nulls,
}

impl Order {
    /// Ascending, NULLs last: how keys and index prefixes are encoded.
    pub const ASC: Self = Self { direction: Direction::Asc, nulls: Nulls::Last };

    /// The order `direction` alone means in SQL: NULLs last ascending, first descending.
    #[must_use]
    pub fn with_default_nulls(direction: Direction) -> Self {
        let nulls = if direction == Direction::Asc { Nulls::Last } else { Nulls::First };
        Self { direction, nulls }
    }
}

const NULL_FIRST: u8 = 0;
const PRESENT: u8 = 1;
const NULL_LAST: u8 = 2;

/// Appends the encoding of `cell` under `order` to `out`.
pub fn encode_cell(cell: ValueRef<'_>, order: Order, out: &mut Vec<u8>) {
    if cell.is_null() {
        out.push(if order.nulls == Nulls::First { NULL_FIRST } else { NULL_LAST });
        return;
    }
    out.push(PRESENT);
    let start = out.len();
    match cell {
        ValueRef::Null => unreachable!("handled above"),
        ValueRef::Bool(v) => out.push(u8::from(v)),
        ValueRef::Int8(v) | ValueRef::Timestamptz(v) => out.extend((v as u64 ^ (1 << 63)).to_be_bytes()),
        ValueRef::Date(v) => out.extend((v as u32 ^ (1 << 31)).to_be_bytes()),
        ValueRef::Float8(v) => out.extend(ordered_float8(v).to_be_bytes()),
        ValueRef::Text(v) => {
            debug_assert!(!v.contains('\0'), "text never holds NUL");
            out.extend(v.as_bytes());
            out.push(0);
        }
        ValueRef::Bytea(v) => {
            for &byte in v {
                out.push(byte);
                if byte == 0 {
                    out.push(0xff);
                }
            }
            out.extend([0, 0]);
        }
        ValueRef::Uuid(v) => out.extend(v.as_bytes()),
        ValueRef::Numeric(v) => v.to_numeric().encode_ordered(out),
        ValueRef::Json(v) => out.extend(json::ordered_bytes(v)),
    }
    if order.direction == Direction::Desc {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Bits whose unsigned order is the doubles' order, with one form for NaN and one for zero.
fn ordered_float8(value: f64) -> u64 {
    let canonical = if value.is_nan() {
        f64::NAN.abs()
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    let bits = canonical.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::super::{Numeric, Value};
    use super::*;
    use proptest::prelude::*;
    use std::{cmp::Ordering, sync::Arc};

    fn pair() -> impl Strategy<Value = (Value, Value)> {
        fn two<T: std::fmt::Debug + Clone + 'static>(
            strategy: impl Strategy<Value = T> + 'static,
            make: fn(T) -> Value,
        ) -> BoxedStrategy<(Value, Value)> {
            let one = prop_oneof![1 => Just(Value::Null), 6 => strategy.prop_map(make)].boxed();
            (one.clone(), one).boxed()
        }
        let double = prop_oneof![
            any::<f64>(),
            Just(f64::NAN),
            Just(-f64::NAN),
            Just(-0.0),
            Just(0.0),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            (-3_i32..3).prop_map(f64::from)
        ];
        let numeric = prop_oneof![
            "-?[0-9]{1,5}(\\.[0-9]{1,4})?",
            "-?(0|1|10|1\\.0|0\\.10|0\\.1)",
            Just("NaN".to_owned()),
            Just("Infinity".to_owned()),
            Just("-Infinity".to_owned())
        ];
        let document = prop_oneof![
            Just("null".to_owned()),
            Just("[]".to_owned()),
            Just("[1,2]".to_owned()),
            Just("[1.0,2]".to_owned()),
            Just("{\"a\":1}".to_owned()),
            Just("{\"b\":0}".to_owned()),
            Just("{\"aa\":0}".to_owned()),
            Just("\"x\"".to_owned()),
            Just("true".to_owned()),
            Just("10".to_owned()),
            Just("9".to_owned())
        ];
        prop_oneof![
            two(any::<i64>(), Value::Int8),
            two(-2_i64..3, Value::Int8),
            two(double, Value::Float8),
            two("[ab]{0,3}", |s| Value::Text(s.into())),
            two(prop::collection::vec(0_u8..3, 0..4), |b| Value::Bytea(b.into())),
            two(any::<i32>(), Value::Date),
            two(any::<bool>(), Value::Bool),
            two(numeric, |s| Value::Numeric(Arc::new(s.parse::<Numeric>().expect("numeric")))),
            two(document, |s| Value::Json(s.into())),
        ]
    }

    fn order() -> impl Strategy<Value = Order> {
        (
            prop_oneof![Just(Direction::Asc), Just(Direction::Desc)],
            prop_oneof![Just(Nulls::First), Just(Nulls::Last)],
        )
            .prop_map(|(direction, nulls)| Order { direction, nulls })
    }

    fn expected(a: &Value, b: &Value, order: Order) -> Ordering {
        match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if order.nulls == Nulls::First => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if order.nulls == Nulls::First => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let ordering = a.as_ref().compare(b.as_ref());
                if order.direction == Direction::Desc { ordering.reverse() } else { ordering }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn byte_order_is_the_comparators((a, b) in pair(), (c, d) in pair(), order in order()) {
            let encode = |x: &Value, y: &Value| {
                let mut out = Vec::new();
                encode_cell(x.as_ref(), order, &mut out);
                encode_cell(y.as_ref(), Order::ASC, &mut out);
                out
            };
            let want = expected(&a, &b, order).then_with(|| expected(&c, &d, Order::ASC));
            prop_assert_eq!(encode(&a, &c).cmp(&encode(&b, &d)), want);
        }
    }
}
