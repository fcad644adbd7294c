//! Nexmark's queries 0 to 9, without windows of time, as live views equal PostgreSQL's answers after every commit of a
//! stream in which bids are also taken back, auctions changed and withdrawn, and persons move.

use crate::support::views::{Tables, views_equal_postgres};
use tidegate_tests::{
    nexmark::{Nexmark, QUERIES, tables},
    sql::Statement,
};
use tidegate_wire::model::Row;

const SEED: u64 = 1;
/// Events that are there before the queries come.
const FILL_EVENTS: usize = 5_000;
const COMMITS: usize = 100;
const COMMIT_EVENTS: usize = 100;

#[test]
fn nexmark_equals_postgres() {
    let mut nexmark = Nexmark::new(SEED);
    let schemas = nexmark.schemas().to_vec();
    let mut rows: Vec<Vec<Row>> = schemas.iter().map(|_| Vec::new()).collect();
    for change in nexmark.events(FILL_EVENTS) {
        rows[change.table].extend(change.new);
    }
    let script = "create index on bid (auction); analyze person; analyze auction; analyze bid;".to_owned();
    let statements: Vec<Statement> = QUERIES.iter().map(|it| Statement::plain(it.sql, it.ordering)).collect();
    let commits = (0..COMMITS).map(|_| [nexmark.events(COMMIT_EVENTS), nexmark.corrections()].concat());
    let tables = Tables { line: &tables(), schemas: &schemas, rows, script };
    views_equal_postgres(&tables, &statements, commits);
}
