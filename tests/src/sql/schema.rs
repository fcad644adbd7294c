//! Random tables. Columns of one name have one domain in all tables, so that tables join by name.

use super::ast::Kind;
use rand::{Rng, seq::IndexedRandom as _, seq::SliceRandom as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

/// Where a column's values come from. Domains are small, so that ties and matches are common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// Whole numbers from 0 below this.
    Id(i64),
    /// Whole numbers around 0.
    Small,
    /// Whole numbers that a double cannot hold, and both ends: not for computing with.
    Huge,
    /// Decimals, all with two digits: equal numbers have equal texts.
    Decimal,
    /// Multiples of a quarter: their sums are exact in any order.
    Quarters,
    /// As [`Domain::Quarters`], with NaN and both infinities.
    Wild,
    Word,
    Flag,
    Day,
    Moment,
}

const WORDS: &[&str] =
    &["a", "b", "A", "ab", "", "Ab", "é", "É", "x%y", "x_y", "a b", "b c d", "zz", "😀", "'", "a\\b"];
const MOMENTS: &[&str] = &[
    "2013-02-04T05:00:00Z",
    "2013-02-04T05:00:00.000001Z",
    "2000-02-29T00:00:00Z",
    "1969-12-31T23:59:59.999999Z",
    "2013-02-04T23:59:59.5Z",
    "2024-12-31T12:34:56Z",
];
const DAYS: &[&str] = &["2013-02-04", "2013-02-05", "2000-02-29", "1969-12-31", "2013-03-01", "2024-12-31"];

impl Domain {
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Domain::Id(_) | Domain::Small | Domain::Huge => "int8",
            Domain::Decimal => "numeric",
            Domain::Quarters | Domain::Wild => "float8",
            Domain::Word => "text",
            Domain::Flag => "bool",
            Domain::Day => "date",
            Domain::Moment => "timestamptz",
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Domain::Id(_) | Domain::Small => Kind::Int,
            Domain::Huge => Kind::Big,
            Domain::Decimal => Kind::Num,
            Domain::Quarters | Domain::Wild => Kind::Float,
            Domain::Word => Kind::Text,
            Domain::Flag => Kind::Bool,
            Domain::Day => Kind::Date,
            Domain::Moment => Kind::Time,
        }
    }

    /// A value, not NULL, in its JSON form; some are much more common than others.
    pub(super) fn value(self, rng: &mut ChaCha8Rng) -> Json {
        let common = rng.random_bool(0.35);
        let quarters = |rng: &mut ChaCha8Rng| {
            json!(f64::from(rng.random_range(if common { 0..=3 } else { -8..=20 })) / 4.0)
        };
        let choose = |texts: &[&str], rng: &mut ChaCha8Rng| {
            let texts = if common { &texts[..3] } else { texts };
            json!(texts.choose(rng).expect("there are some"))
        };
        match self {
            Domain::Id(count) => json!(rng.random_range(0..if common { count.min(3) } else { count })),
            Domain::Small => json!(rng.random_range(if common { 0..=2 } else { -5..=9 })),
            Domain::Huge => {
                let huge = [
                    9_007_199_254_740_993,
                    9_007_199_254_740_992,
                    0,
                    1,
                    -9_007_199_254_740_993,
                    i64::MAX,
                    i64::MIN,
                ];
                json!(huge.choose(rng).expect("there are some"))
            }
            Domain::Decimal => {
                let cents: i64 = *[0, 150, -225, 1000, 1, 999_999_999_999_999_999, 333, -1, 700, 50]
                    [..if common { 4 } else { 10 }]
                    .choose(rng)
                    .expect("there are some");
                let sign = if cents < 0 { "-" } else { "" };
                json!(format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100))
            }
            Domain::Quarters => quarters(rng),
            Domain::Wild if rng.random_bool(0.3) => {
                json!(["NaN", "Infinity", "-Infinity"].choose(rng).expect("there are some"))
            }
            Domain::Wild => quarters(rng),
            Domain::Word => choose(WORDS, rng),
            Domain::Flag => json!(rng.random_bool(0.6)),
            Domain::Day => choose(DAYS, rng),
            Domain::Moment => choose(MOMENTS, rng),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) domain: Domain,
    pub(super) nullable: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// The key's first.
    pub(super) columns: Vec<Column>,
    /// How many columns the key has.
    pub(super) key: usize,
}

impl Table {
    pub(super) fn to_json(&self) -> Json {
        let columns = self.columns.iter().map(|column| {
            let mut described = json!({"name": column.name, "type": column.domain.type_name()});
            if column.nullable {
                described["nullable"] = json!(true);
            }
            described
        });
        let key: Vec<&str> = self.columns[..self.key].iter().map(|column| column.name).collect();
        json!({"name": self.name, "columns": columns.collect::<Vec<_>>(), "primary_key": key})
    }
}

/// Two to four tables.
pub(super) fn tables(rng: &mut ChaCha8Rng) -> Vec<Table> {
    let names = ["item", "part", "lot", "note"];
    (0..rng.random_range(2..=4)).map(|index| table(names[index], rng)).collect()
}

fn table(name: &str, rng: &mut ChaCha8Rng) -> Table {
    let ids = Domain::Id(6);
    let keys: &[(&'static str, Domain)] = match rng.random_range(0..10) {
        0..=5 => &[("id", Domain::Id(30))],
        6 | 7 => &[("a", ids), ("b", ids)],
        8 => &[("word", Domain::Word), ("day", Domain::Day)],
        _ => &[("b", ids), ("moment", Domain::Moment)],
    };
    let mut others = vec![
        ("a", ids),
        ("b", ids),
        ("n", Domain::Small),
        ("m", Domain::Small),
        ("huge", Domain::Huge),
        ("price", Domain::Decimal),
        ("f", Domain::Quarters),
        ("word", Domain::Word),
        ("tag", Domain::Word),
        ("flag", Domain::Flag),
        ("day", Domain::Day),
        ("moment", Domain::Moment),
    ];
    if rng.random_bool(0.1) {
        others.push(("wild", Domain::Wild));
    }
    others.shuffle(rng);
    // A number and something to join by are worth more than the rest.
    others.sort_by_key(|(name, _)| !matches!(*name, "a" | "n") || rng.random_bool(0.5));
    others.retain(|(name, _)| keys.iter().all(|(key, _)| key != name));
    others.truncate(rng.random_range(3..=6));
    let column = |name, domain, nullable| Column { name, domain, nullable };
    let mut columns: Vec<Column> = keys.iter().map(|(name, domain)| column(*name, *domain, false)).collect();
    for (name, domain) in others {
        columns.push(column(name, domain, rng.random_bool(0.65)));
    }
    Table { name: name.to_owned(), columns, key: keys.len() }
}
