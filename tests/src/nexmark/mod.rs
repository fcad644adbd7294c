//! Nexmark: an auction house's stream of persons, auctions and bids from a seed, and its queries without time windows.

mod queries;

pub use queries::{AVERAGES, LOCAL_SELLERS, QUERIES, Query};

use crate::row_changes::{RowChange, integer, schemas, with_cell};
use rand::{Rng as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use tidegate_wire::model::{Row, TableSchema, Value};

/// The tables' positions in [`tables`].
pub const PERSON: usize = 0;
/// See [`PERSON`].
pub const AUCTION: usize = 1;
/// See [`PERSON`].
pub const BID: usize = 2;

/// Of so many events, one is a person, three are auctions, and the rest are bids.
const ROUND: i64 = 50;
/// Auctions that take bids at a time.
const OPEN_AUCTIONS: usize = 200;
/// Persons who sell and bid at a time.
const ACTIVE_PERSONS: usize = 500;
/// Bids that may still be taken back.
const RECENT_BIDS: usize = 1_000;
/// Microseconds between two events.
const PACE: i64 = 10_000;
const STATES: &[(&str, &str)] = &[
    ("az", "phoenix"),
    ("ca", "palo alto"),
    ("ca", "los angeles"),
    ("id", "boise"),
    ("or", "portland"),
    ("or", "bend"),
    ("wa", "seattle"),
    ("wa", "redmond"),
    ("wy", "cheyenne"),
];
const NAMES: &[&str] =
    &["peter", "paul", "luke", "john", "saul", "vicky", "kate", "julie", "sarah", "walter"];
const CHANNELS: &[&str] = &["apple", "google", "facebook", "baidu"];

/// The tables line `{"tables":[…]}`.
#[must_use]
pub fn tables() -> Json {
    let table = |name: &str, key: &[&str], columns: &[(&str, &str)]| {
        let columns: Vec<Json> = columns.iter().map(|(name, ty)| json!({"name": name, "type": ty})).collect();
        json!({"name": name, "primary_key": key, "columns": columns})
    };
    json!({"tables": [
        table("person", &["id"], &[("id", "int8"), ("name", "text"), ("email", "text"), ("city", "text"),
            ("state", "text"), ("date_time", "timestamptz")]),
        table("auction", &["id"], &[("id", "int8"), ("item", "text"), ("initial_bid", "int8"), ("reserve", "int8"),
            ("date_time", "timestamptz"), ("expires", "timestamptz"), ("seller", "int8"),
            ("category", "int8")]),
        table("bid", &["auction", "id"], &[("id", "int8"), ("auction", "int8"), ("bidder", "int8"), ("price", "int8"),
            ("channel", "text"), ("date_time", "timestamptz")]),
    ]})
}

/// The stream.
#[derive(Debug)]
pub struct Nexmark {
    schemas: Vec<TableSchema>,
    random: ChaCha8Rng,
    event: i64,
    persons: VecDeque<Row>,
    auctions: VecDeque<Row>,
    bids: VecDeque<Row>,
    ids: [i64; 3],
}

impl Nexmark {
    /// A stream before its first event. The same seed gives the same events on every machine.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            schemas: schemas(&tables()),
            random: ChaCha8Rng::seed_from_u64(seed),
            event: 0,
            persons: VecDeque::new(),
            auctions: VecDeque::new(),
            bids: VecDeque::new(),
            ids: [0; 3],
        }
    }

    /// The tables' schemas, by position.
    #[must_use]
    pub fn schemas(&self) -> &[TableSchema] {
        &self.schemas
    }

    /// The next events, each a row that comes.
    pub fn events(&mut self, count: usize) -> Vec<RowChange> {
        (0..count).map(|_| self.event()).collect()
    }

    fn event(&mut self) -> RowChange {
        let (in_round, now) = (self.event % ROUND, self.event * PACE);
        self.event += 1;
        let (table, row) = match in_round {
            0 => (PERSON, self.person(now)),
            1..4 => (AUCTION, self.auction(now)),
            _ => (BID, self.bid(now)),
        };
        let (recent, most) = match table {
            PERSON => (&mut self.persons, ACTIVE_PERSONS),
            AUCTION => (&mut self.auctions, OPEN_AUCTIONS),
            _ => (&mut self.bids, RECENT_BIDS),
        };
        recent.push_back(row.clone());
        if recent.len() > most {
            recent.pop_front();
        }
        RowChange::insert(table, row)
    }

    /// What a stream of events does not have and a database does: a bid is taken back, an auction is prolonged or
    /// withdrawn, a person moves.
    pub fn corrections(&mut self) -> Vec<RowChange> {
        let mut changes = Vec::new();
        if !self.bids.is_empty() {
            let at = self.random.random_range(0..self.bids.len());
            changes.extend(self.bids.remove(at).map(|bid| RowChange::delete(BID, bid)));
        }
        let at = self.random.random_range(0..self.auctions.len());
        if self.random.random_range(0..4) == 0 {
            changes.extend(self.auctions.remove(at).map(|auction| RowChange::delete(AUCTION, auction)));
        } else {
            let expires = Value::Timestamptz((self.event + self.random.random_range(0..2_000)) * PACE);
            let new = with_cell(&self.auctions[at], 5, &expires);
            let old = std::mem::replace(&mut self.auctions[at], new.clone());
            changes.push(RowChange::update(AUCTION, old, new));
        }
        let at = self.random.random_range(0..self.persons.len());
        let (state, _) = *STATES.choose(&mut self.random).expect("there are states");
        let new = with_cell(&self.persons[at], 4, &Value::Text(state.into()));
        let old = std::mem::replace(&mut self.persons[at], new.clone());
        changes.push(RowChange::update(PERSON, old, new));
        changes.retain(|change| match (&change.old, &change.new) {
            (Some(old), Some(new)) => old.as_bytes() != new.as_bytes(),
            _ => true,
        });
        changes
    }

    fn next_id(&mut self, table: usize) -> Value {
        self.ids[table] += 1;
        Value::Int8(self.ids[table])
    }

    fn person(&mut self, now: i64) -> Row {
        let id = self.next_id(PERSON);
        let name = *NAMES.choose(&mut self.random).expect("there are names");
        let (state, city) = *STATES.choose(&mut self.random).expect("there are states");
        let text = |text: &str| Value::Text(text.into());
        Row::from_values(&[
            id,
            text(name),
            text(&format!("{name}@example.com")),
            text(city),
            text(state),
            Value::Timestamptz(now),
        ])
    }

    fn auction(&mut self, now: i64) -> Row {
        let id = self.next_id(AUCTION);
        let seller = one(&mut self.random, &self.persons);
        let first = self.random.random_range(100..10_000);
        Row::from_values(&[
            id,
            Value::Text(format!("item {}", self.random.random_range(0..1_000)).into()),
            Value::Int8(first),
            Value::Int8(first + self.random.random_range(0..5_000)),
            Value::Timestamptz(now),
            Value::Timestamptz(now + self.random.random_range(100..5_000) * PACE),
            Value::Int8(seller),
            Value::Int8(self.random.random_range(10..15)),
        ])
    }

    fn bid(&mut self, now: i64) -> Row {
        let id = self.next_id(BID);
        Row::from_values(&[
            id,
            Value::Int8(one(&mut self.random, &self.auctions)),
            Value::Int8(one(&mut self.random, &self.persons)),
            Value::Int8(self.random.random_range(100..100_000)),
            Value::Text((*CHANNELS.choose(&mut self.random).expect("there are channels")).into()),
            Value::Timestamptz(now),
        ])
    }
}

/// The id of one of some rows; the newer ones are as likely as the older.
fn one(random: &mut ChaCha8Rng, rows: &VecDeque<Row>) -> i64 {
    integer(&rows[random.random_range(0..rows.len())], 0)
}
