//! Random SQL: schemas, rows, commits and queries from a seed, and PostgreSQL's answers to compare with.
//!
//! [`Case::generate`] makes a case; the same seed and layers give the same case on every machine. Values come from small
//! domains with many NULLs and ties, and columns of one name have one domain, so that joins match. What PostgreSQL leaves
//! open is avoided or determined: a limit comes with a total order, numbers that are equal but print differently are
//! rounded where something keeps one of several equals, sums of doubles are of multiples of a quarter.
//!
//! [`Reference`] loads a case into PostgreSQL and answers its queries; [`compare`] holds a result against the answer.

mod ast;
mod compare;
mod data;
mod expression;
mod generator;
mod group;
mod recursion;
mod reference;
mod schema;
mod shrink;
mod source;
mod subquery;
#[cfg(test)]
mod tests;
mod window;

pub use ast::{Dialect, Query};
pub use compare::{Shown, compare};
pub use reference::{Answer, Reference, Refused, ask, column_types, create_tables, fill};

use ast::{Body, Grade};
use data::Model;
use generator::Generator;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

/// Which constructs queries may use. Expressions, `where`, `order by` and `limit` are always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// Joins of all kinds.
    pub joins: bool,
    /// `group by`, `having`, aggregates.
    pub groups: bool,
    /// Subqueries in conditions, in values and in `from`; common table expressions.
    pub subqueries: bool,
    /// `distinct`, `distinct on`, `union`, `intersect`, `except`, `values`.
    pub sets: bool,
    /// Window functions.
    pub windows: bool,
    /// Lateral subqueries, `rollup`, `cube`, `grouping sets`.
    pub laterals: bool,
    /// `string_agg`, `array_agg`, `json_agg`.
    pub lists: bool,
    /// Parameters in equalities.
    pub parameters: bool,
    /// `with recursive`, in a query of its own.
    pub recursion: bool,
}

impl Layers {
    /// Everything.
    pub const ALL: Self = Self {
        joins: true,
        groups: true,
        subqueries: true,
        sets: true,
        windows: true,
        laterals: true,
        lists: true,
        parameters: true,
        recursion: true,
    };
    /// One table at a time.
    pub const NONE: Self = Self {
        joins: false,
        groups: false,
        subqueries: false,
        sets: false,
        windows: false,
        laterals: false,
        lists: false,
        parameters: false,
        recursion: false,
    };

    /// The layers with these names, separated by commas.
    ///
    /// # Panics
    /// At another name.
    #[must_use]
    pub fn named(names: &str) -> Self {
        let mut layers = Self::NONE;
        for name in names.split(',').filter(|name| !name.is_empty()) {
            match name {
                "all" => layers = Self::ALL,
                "joins" => layers.joins = true,
                "groups" => layers.groups = true,
                "subqueries" => layers.subqueries = true,
                "sets" => layers.sets = true,
                "windows" => layers.windows = true,
                "laterals" => layers.laterals = true,
                "lists" => layers.lists = true,
                "parameters" => layers.parameters = true,
                "recursion" => layers.recursion = true,
                other => panic!("no layer is called {other}"),
            }
        }
        layers
    }
}

/// Tables, commits and queries.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The first line of a commit stream, `{"tables":[…]}`.
    pub tables: Json,
    /// Commits `{"ops":[…]}`, of which the first fills the tables. None is refused.
    pub commits: Vec<Json>,
    /// The queries.
    pub questions: Vec<Question>,
}

/// A query with the values of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The query.
    pub query: Query,
    /// The parameters by name.
    pub args: Map<String, Json>,
}

/// A query as texts, with what has to be known of its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The text for the engine.
    pub sql: String,
    /// The parameters by name.
    pub args: Map<String, Json>,
    /// The text for PostgreSQL, which may show further columns at the end.
    pub postgres: String,
    /// The columns of PostgreSQL's answer that determine the order, the first ones first.
    pub ordering: Vec<usize>,
    /// The columns that need not be exact.
    pub approximate: Vec<usize>,
}

impl Statement {
    /// A text that means the same to both, without parameters, whose values are exact.
    #[must_use]
    pub fn plain(sql: &str, ordering: &[usize]) -> Self {
        Self {
            sql: sql.to_owned(),
            args: Map::new(),
            postgres: sql.to_owned(),
            ordering: ordering.to_vec(),
            approximate: Vec::new(),
        }
    }
}

/// A case with one query, as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// What it shows, for readers.
    pub about: String,
    /// The tables line.
    pub tables: Json,
    /// The commits.
    pub commits: Vec<Json>,
    /// The query.
    pub statement: Statement,
}

/// Different queries of a case.
const QUERIES: u64 = 3;
/// One of so many cases has a recursive query more.
const RECURSIVE_EVERY: u64 = 3;

impl Case {
    /// Makes the case of a seed.
    #[must_use]
    pub fn generate(seed: u64, layers: Layers) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let tables = schema::tables(&mut rng);
        let mut model = Model::new(&tables, &mut rng);
        let mut commits = vec![model.fill(&mut rng)];
        for _ in 0..rng.random_range(4..=9) {
            commits.push(model.commit(&mut rng));
        }
        let mut questions = Vec::new();
        let recursive = u64::from(layers.recursion && seed.is_multiple_of(RECURSIVE_EVERY));
        for query in 0..QUERIES + recursive {
            let own = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(query + 1));
            let mut generator = Generator::new(own, layers, &tables);
            let query = if query < QUERIES { generator.whole() } else { generator.recursive() };
            let args = generator.args.clone();
            questions.push(Question { query: query.clone(), args: args.clone() });
            // A second binding of the same shape.
            if !args.is_empty() {
                let args = args.into_iter().map(|(name, _)| {
                    let value = generator.redraw(&name);
                    (name, value)
                });
                questions.push(Question { query, args: args.collect() });
            }
        }
        let tables = json!({"tables": tables.iter().map(schema::Table::to_json).collect::<Vec<_>>()});
        Self { tables, commits, questions }
    }

    /// The case with one of its queries, as a file holds it.
    #[must_use]
    pub fn regression(&self, question: usize, about: String) -> Regression {
        Regression {
            about,
            tables: self.tables.clone(),
            commits: self.commits.clone(),
            statement: self.questions[question].statement(),
        }
    }
}

impl Question {
    /// The query's texts.
    #[must_use]
    pub fn statement(&self) -> Statement {
        let approximate = match &self.query.body {
            Body::Select(select) => {
                let grades = select.items.iter().map(|(expr, _)| expr.grade).enumerate();
                grades
                    .filter(|(_, grade)| *grade == Grade::Approximate)
                    .map(|(position, _)| position)
                    .collect()
            }
            _ => Vec::new(),
        };
        Statement {
            sql: self.query.top_text(Dialect::Engine),
            args: self.args.clone(),
            postgres: self.query.top_text(Dialect::Postgres(&self.args)),
            ordering: self.query.ordering(),
            approximate,
        }
    }
}
