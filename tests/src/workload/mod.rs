//! Random schemas, rows, commits, queries and subscribers, from a seed.
//!
//! The same seed and size give the same [`Workload`], on every machine. Values come from small domains with many NULLs
//! and ties, columns share domains so that correlations match, and what PostgreSQL users and peers have stumbled over
//! is common rather than rare: NULLs in cursors and correlations, ties at a limit's edge, keys that are deleted and
//! come back, updates that change nothing, numbers beyond 2^53, NaN and −0, text beyond ASCII.
//!
//! No query faults: what a computation can reach stays in range, and nothing divides by zero. Commits may be refused, on
//! purpose; the oracle says which and with what code.

mod change;
mod condition;
mod domain;
mod query;
mod schedule;
mod schema;
mod shrink;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

/// How much of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For thousands of seeds, and for failures a person can read: about 15 steps on tables of about 5 rows.
    Tiny,
    /// About 40 steps on tables of about 12 rows, 4 subscribers.
    Small,
    /// About 150 steps on tables of about 30 rows, 8 subscribers.
    Medium,
    /// About 500 steps on tables of about 100 rows, 30 subscribers. The oracle takes about a millisecond a query here:
    /// compare a sample of the live queries after each commit rather than all.
    Large,
}

impl Size {
    fn rows(self) -> usize {
        [5, 12, 30, 100][self as usize]
    }

    fn steps(self) -> usize {
        [15, 40, 150, 500][self as usize]
    }

    fn subscribers(self) -> usize {
        [2, 4, 8, 30][self as usize]
    }

    fn templates(self) -> usize {
        [3, 6, 12, 25][self as usize]
    }
}

/// A whole run: what is there, and what happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The first line of a commit stream, `{"tables":[…]}`.
    pub tables: Value,
    /// Commits that fill the tables, none of which is refused.
    pub initial: Vec<Value>,
    /// What happens then, in this order.
    pub steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A commit `{"ops":[…]}`, which may be one to refuse.
    Commit(Value),
    /// A subscriber that is connected subscribes.
    Subscribe {
        /// Which one, counted from 0.
        subscriber: usize,
        /// Its number for the subscription, 1 or more, never used by it before, on an earlier connection neither.
        sub: u64,
        /// The query in its JSON form.
        query: Value,
        /// An object with the values of the query's parameters, and no others.
        args: Value,
    },
    /// A subscriber drops a subscription it has.
    Unsubscribe {
        /// Which one.
        subscriber: usize,
        /// Which subscription.
        sub: u64,
    },
    /// A subscriber that is not connected connects.
    Connect {
        /// Which one.
        subscriber: usize,
    },
    /// A subscriber that is connected goes, and its subscriptions with it.
    Disconnect {
        /// Which one.
        subscriber: usize,
    },
}

impl Step {
    /// The step as one line of JSON, for reports.
    pub fn to_json(&self) -> Value {
        match self {
            Step::Commit(commit) => json!({ "commit": commit }),
            Step::Subscribe { subscriber, sub, query, args } => {
                json!({"subscribe": {"subscriber": subscriber, "sub": sub, "query": query, "args": args}})
            }
            Step::Unsubscribe { subscriber, sub } => {
                json!({"unsubscribe": {"subscriber": subscriber, "sub": sub}})
            }
            Step::Connect { subscriber } => json!({"connect": {"subscriber": subscriber}}),
            Step::Disconnect { subscriber } => json!({"disconnect": {"subscriber": subscriber}}),
        }
    }
}

impl Workload {
    /// Makes the workload of that seed and size.
    pub fn generate(seed: u64, size: Size) -> Workload {
        schedule::generate(seed, size)
    }

    /// The whole workload as lines of JSON: tables, initial commits, steps. A report prints it, best after
    /// [`Workload::shrink`].
    pub fn to_lines(&self) -> String {
        let initial = self.initial.iter().map(|commit| json!({ "initial": commit }));
        let lines = std::iter::once(self.tables.clone()).chain(initial);
        lines.chain(self.steps.iter().map(Step::to_json)).map(|line| format!("{line}\n")).collect()
    }
}
