//! The figures by name, in the order of the table in the README.

use crate::{figures, report::Report};

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Figure {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What is measured.
    pub(crate) what: &'static str,
    /// What it should be.
    pub(crate) target: &'static str,
    /// Measures it; an error when what was measured was not right.
    pub(crate) measure: fn() -> anyhow::Result<Report>,
}

/// All figures.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "latency",
        what: "commit → released on a loopback client, 1 subscriber, idle",
        target: "p50 ≤ 1 ms, p99 ≤ 5 ms (fsync off)",
        measure: figures::latency::measure,
    },
    Figure {
        name: "advance",
        what: "engine: advance of `issue` top 50 + comments, a comment inserted",
        target: "≤ 5 µs median",
        measure: figures::advance::measure,
    },
    Figure {
        name: "families",
        what: "cost per commit, 10,000 bound `issue id = k` with comments against 10",
        target: "≤ 1.5×",
        measure: figures::families::measure,
    },
    Figure {
        name: "hydrate",
        what: "hydrate 500 issues + creators + 1,000 comments",
        target: "≤ 0.8 ms",
        measure: figures::hydrate::measure,
    },
    Figure {
        name: "top",
        what: "hydrate top 50 of 1,000,000 rows with a selective equality",
        target: "≤ 1 ms, rows read ≤ 10 × shown",
        measure: figures::top::measure,
    },
    Figure {
        name: "fanout",
        what: "one query, 1,000 subscribers: updates/s with p99 < 1 s, nobody lost",
        target: "≥ 0.6 × a bare axum broadcaster",
        measure: figures::fanout::measure,
    },
    Figure {
        name: "watchers",
        what: "5,000 distinct `id = k` watchers, 100 commits/s: server CPU per commit",
        target: "≤ 0.3 ms",
        measure: figures::watchers::measure,
    },
    Figure {
        name: "first-result",
        what: "first result of 300 rows for one warm client",
        target: "≤ 2 ms p50",
        measure: figures::first_result::measure,
    },
    Figure {
        name: "apply",
        what: "apply rate of the year's stream, 10 board queries, 1 subscriber each",
        target: "≥ 100,000 operations/s",
        measure: figures::apply::measure,
    },
    Figure {
        name: "memory",
        what: "store memory, 1,000,000 rows of ~100 bytes, one secondary index",
        target: "≤ 2.5 × encoded bytes",
        measure: figures::memory::measure,
    },
    Figure {
        name: "groups",
        what: "advance of count and sum by project over 1,000,000 rows, commits of one row",
        target: "≤ 5 µs per advance",
        measure: figures::groups::measure,
    },
    Figure {
        name: "hydrate-join",
        what: "hydrate a 4-way join with aggregate over 1,000,000 rows",
        target: "≤ 2 × PostgreSQL's time for the query, warm",
        measure: figures::hydrate_join::measure,
    },
    Figure {
        name: "tpch",
        what: "22 TPC-H views at scale 0.1: mean cost of a commit of one order",
        target: "≤ 1/100 of running the 22 on PostgreSQL",
        measure: figures::tpch::measure,
    },
    Figure {
        name: "nexmark",
        what: "Nexmark q3 and q4 live, commits of 1,000 events, one thread",
        target: "≥ the dbsp crate, one worker",
        measure: figures::nexmark::measure,
    },
];
