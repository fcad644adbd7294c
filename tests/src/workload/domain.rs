//! Small sets of values that columns draw from. Two columns of one domain have values in common.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// Where a column's values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// Whole numbers from 0; `space` keeps apart what does not refer to the same things.
    Id {
        space: usize,
        count: i64,
    },
    /// Whole numbers around 0, for computing with.
    Count,
    /// Whole numbers that a double cannot hold, and both ends.
    Huge,
    Flag,
    Float,
    Word,
    Moment,
    Day,
    Uuid,
    Bytes,
    Decimal,
    Document,
}

const WORDS: &[&str] = &[
    "a", "b", "A", "ab", "", "Ab", "é", "É", "x%y", "x_y", "xzy", "a\\b", "ß", "σ", "Σ", "ας", "😀",
    "\u{ff5a}", "İ", "zz",
];

const PATTERNS: &[&str] = &[
    "a%", "%b", "_", "%", "A%", "", "x\\%y", "x\\_y", "x_y", "x%y", "%\\\\%", "É", "_%_", "σ", "%Σ", "😀%",
    "ß", "i",
];

impl Domain {
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Domain::Id { .. } | Domain::Count | Domain::Huge => "int8",
            Domain::Flag => "bool",
            Domain::Float => "float8",
            Domain::Word => "text",
            Domain::Moment => "timestamptz",
            Domain::Day => "date",
            Domain::Uuid => "uuid",
            Domain::Bytes => "bytea",
            Domain::Decimal => "numeric",
            Domain::Document => "json",
        }
    }

    /// Whether sums and products of its values with small numbers stay in the range of their type.
    pub(super) fn computes(self) -> bool {
        matches!(self, Domain::Id { .. } | Domain::Count)
    }

    /// Whether its values are numbers.
    pub(super) fn is_number(self) -> bool {
        matches!(self.type_name(), "int8" | "float8" | "numeric")
    }

    /// Whether values have an order that queries may use.
    pub(super) fn is_ordered(self) -> bool {
        self != Domain::Document
    }

    /// Whether an expression may compare columns of the two.
    pub(super) fn compares_with(self, other: Domain) -> bool {
        let number = |domain: Domain| matches!(domain.type_name(), "int8" | "float8");
        self.is_ordered() && (self.type_name() == other.type_name() || (number(self) && number(other)))
    }

    /// How many different values there are; at least so many rows can have it as their key.
    pub(super) fn count(self) -> usize {
        match self {
            Domain::Id { count, .. } => usize::try_from(count).unwrap_or(0),
            other => other.pool().len(),
        }
    }

    /// A value, not NULL, in its JSON form; some are much more common than others.
    pub(super) fn value(self, rng: &mut ChaCha8Rng) -> Value {
        let common = rng.random_bool(0.4);
        if let Domain::Id { count, .. } = self {
            return json!(rng.random_range(0..if common { count.min(3) } else { count }));
        }
        let mut pool = self.pool();
        if common {
            pool.truncate(3);
        }
        pool.choose(rng).cloned().unwrap_or(Value::Null)
    }

    /// A literal that may meet a column of this domain: a value, or what no row has.
    pub(super) fn literal(self, rng: &mut ChaCha8Rng) -> Value {
        match self {
            Domain::Id { .. } | Domain::Count if rng.random_bool(0.06) => {
                json!(rng.random_range(0..3) as f64 + 0.5)
            }
            Domain::Huge if rng.random_bool(0.1) => json!(0.5),
            Domain::Decimal if rng.random_bool(0.2) => json!("1.50"),
            _ => self.value(rng),
        }
    }

    /// A LIKE pattern.
    pub(super) fn pattern(rng: &mut ChaCha8Rng) -> Value {
        json!(PATTERNS.choose(rng).unwrap_or(&"%"))
    }

    fn pool(self) -> Vec<Value> {
        let texts = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect();
        match self {
            Domain::Id { count, .. } => (0..count).map(|id| json!(id)).collect(),
            Domain::Count => [0, 1, 2, 3, -1, -2, 7].iter().map(|number| json!(number)).collect(),
            Domain::Huge => {
                let numbers = [
                    9_007_199_254_740_993,
                    9_007_199_254_740_992,
                    0,
                    -9_007_199_254_740_993,
                    i64::MAX,
                    i64::MIN,
                ];
                numbers.iter().map(|number: &i64| json!(number)).collect()
            }
            Domain::Flag => vec![json!(true), json!(false)],
            Domain::Float => {
                let mut pool: Vec<Value> = [0.0, 1.5, -0.0, 1.0, 0.1, -2.25, 1e300, 9_007_199_254_740_992.0]
                    .iter()
                    .map(|number| json!(number))
                    .collect();
                pool.extend([json!("NaN"), json!("Infinity"), json!("-Infinity")]);
                pool
            }
            Domain::Word => texts(WORDS),
            Domain::Moment => texts(&[
                "2013-02-04T05:00:00Z",
                "2013-02-04T05:00:00.000001Z",
                "2000-02-29T00:00:00Z",
                "1969-12-31T23:59:59.999999Z",
                "2013-02-04T04:59:59.123456Z",
                "2038-01-19T03:14:08Z",
            ]),
            Domain::Day => texts(&["2013-02-04", "2013-02-05", "2000-02-29", "1969-12-31", "2013-03-01"]),
            Domain::Uuid => {
                let last = ["0000", "0001", "00ff", "a000", "ffff"];
                let uuid = |last| json!(format!("01890a5d-ac96-774b-bcce-b302099a{last}"));
                last.iter().map(uuid).chain([json!("00000000-0000-0000-0000-000000000000")]).collect()
            }
            Domain::Bytes => texts(&["AA==", "", "AAE=", "/w==", "+/8="]),
            Domain::Decimal => {
                texts(&["1.5", "0", "-2.25", "10", "9", "0.0001", "123456789012345678901234567890.5"])
            }
            Domain::Document => {
                vec![
                    json!({"a": 1}),
                    json!([1, null, "x"]),
                    json!("text"),
                    json!(2.5),
                    json!(false),
                    json!({}),
                ]
            }
        }
    }
}
