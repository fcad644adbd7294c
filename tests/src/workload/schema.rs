//! Random tables.

use super::Size;
use super::domain::Domain;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

pub(super) struct Schema {
    pub(super) tables: Vec<Table>,
}

pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Indexes into `columns`.
    pub(super) key: Vec<usize>,
}

pub(super) struct Column {
    pub(super) name: String,
    pub(super) domain: Domain,
    pub(super) nullable: bool,
}

impl Table {
    /// The columns that an update may set.
    pub(super) fn settable(&self) -> impl Iterator<Item = &Column> {
        self.columns
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.key.contains(index))
            .map(|(_, column)| column)
    }

    /// The column of a name.
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// How many keys there are to draw from.
    pub(super) fn keys(&self) -> usize {
        self.key.iter().map(|index| self.columns[*index].domain.count()).product()
    }
}

impl Schema {
    pub(super) fn generate(rng: &mut ChaCha8Rng, size: Size) -> Schema {
        let count = rng.random_range(2..=4);
        let ids = size.rows() as i64 * 3 / 2;
        let tables = (0..count).map(|index| {
            let mut columns = Vec::new();
            let own = Domain::Id { space: index, count: ids };
            let key_columns = match rng.random_range(0..10) {
                0..=5 => vec![("id", own)],
                6 => vec![("code", Domain::Word)],
                7 | 8 => {
                    vec![("id", Domain::Id { space: index, count: ids / 2 + 2 }), ("part", second_part(rng))]
                }
                _ => {
                    vec![("part", second_part(rng)), ("id", Domain::Id { space: index, count: ids / 2 + 2 })]
                }
            };
            let key = (0..key_columns.len()).collect::<Vec<_>>();
            for (name, domain) in key_columns {
                columns.push(Column { name: name.to_owned(), domain, nullable: false });
            }
            // At least one column beside the key, so that there is something to update.
            for _ in 0..rng.random_range(1..=6 - columns.len()) {
                let domain = column_domain(rng, count, ids);
                let name = format!("c{}", columns.len());
                columns.push(Column { name, domain, nullable: rng.random_bool(0.7) });
            }
            let mut table = Table { name: format!("t{index}"), columns, key };
            // Key columns need not come first.
            if rng.random_bool(0.3) {
                let last = table.columns.len() - 1;
                table.columns.swap(0, last);
                table.key.iter_mut().for_each(|column| *column = if *column == 0 { last } else { *column });
            }
            table
        });
        Schema { tables: tables.collect() }
    }

    /// The first line of a commit stream.
    pub(super) fn to_json(&self) -> Value {
        let tables = self.tables.iter().map(|table| {
            let columns = table.columns.iter().map(|column| {
                let mut described = json!({"name": column.name, "type": column.domain.type_name()});
                if column.nullable {
                    described["nullable"] = json!(true);
                }
                described
            });
            let key = table.key.iter().map(|index| table.columns[*index].name.as_str());
            json!({"name": table.name, "columns": columns.collect::<Vec<_>>(), "primary_key": key.collect::<Vec<_>>()})
        });
        json!({ "tables": tables.collect::<Vec<_>>() })
    }

    /// Every pair of a column of `outer` and one of `inner` that share a domain, as names.
    pub(super) fn correlations(&self, outer: usize, inner: usize) -> Vec<(&str, &str)> {
        let mut pairs = Vec::new();
        for left in &self.tables[outer].columns {
            for right in &self.tables[inner].columns {
                // The space of an id counts here, and not its range, which composite keys narrow.
                let shared = match (left.domain, right.domain) {
                    (Domain::Id { space: left, .. }, Domain::Id { space: right, .. }) => left == right,
                    (left, right) => left == right && left.is_ordered(),
                };
                if shared {
                    pairs.push((left.name.as_str(), right.name.as_str()));
                }
            }
        }
        pairs
    }
}

fn second_part(rng: &mut ChaCha8Rng) -> Domain {
    *[Domain::Word, Domain::Count, Domain::Moment, Domain::Day, Domain::Uuid, Domain::Flag, Domain::Bytes]
        .choose(rng)
        .unwrap_or(&Domain::Word)
}

fn column_domain(rng: &mut ChaCha8Rng, tables: usize, ids: i64) -> Domain {
    match rng.random_range(0..100) {
        0..=29 => Domain::Id { space: rng.random_range(0..tables), count: ids },
        30..=41 => Domain::Count,
        42..=44 => Domain::Huge,
        45..=59 => Domain::Word,
        60..=68 => Domain::Flag,
        69..=77 => Domain::Float,
        78..=86 => Domain::Moment,
        87..=89 => Domain::Day,
        90..=92 => Domain::Uuid,
        93 | 94 => Domain::Bytes,
        95..=97 => Domain::Decimal,
        _ => Domain::Document,
    }
}
