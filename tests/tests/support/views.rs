//! Many live queries over one set of tables, each held against PostgreSQL after every commit.

use super::live::Live;
use serde_json::{Map, Value as Json};
use tidegate_replica::handle::QuerySource;
use tidegate_tests::{
    postgres::Cluster,
    row_changes::{RowChange, commit},
    sql::{Answer, Reference, Statement, compare},
};
use tidegate_wire::model::{Row, SubId, TableSchema};

/// Rows that one commit brings when tables are filled.
const FILL_ROWS: usize = 20_000;

/// Tables with what they hold at first.
pub(crate) struct Tables<'t> {
    /// The tables line.
    pub(crate) line: &'t Json,
    /// The tables by position.
    pub(crate) schemas: &'t [TableSchema],
    /// Each table's rows.
    pub(crate) rows: Vec<Vec<Row>>,
    /// What PostgreSQL is to do once they are filled: indexes, statistics.
    pub(crate) script: String,
}

/// Registers queries as live views and compares each with PostgreSQL, at first and after every commit.
///
/// # Panics
/// When one is refused, faults, differs, or has nothing to show at first.
pub(crate) fn views_equal_postgres(
    tables: &Tables<'_>,
    statements: &[Statement],
    commits: impl Iterator<Item = Vec<RowChange>>,
) {
    let cluster = Cluster::start();
    let mut client = cluster.connect();
    let mut reference = Reference::new(&mut client, tables.line);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut live = Live::start(&runtime, tables.line);
    for (table, rows) in tables.rows.iter().enumerate() {
        reference.fill(&tables.schemas[table].name, rows.iter());
        for rows in rows.chunks(FILL_ROWS) {
            let changes: Vec<RowChange> =
                rows.iter().map(|row| RowChange::insert(table, row.clone())).collect();
            assert!(live.commit(&commit(tables.schemas, &changes)), "the tables take their rows");
        }
    }
    reference.prepare(&tables.script);
    let mut failures = Vec::new();
    let mut views = Vec::new();
    for (statement, number) in statements.iter().zip(1..) {
        let source = QuerySource::Sql(statement.sql.clone());
        let taken = live.prepare(source, &Map::new()).and_then(|query| live.subscribe(SubId(number), &query));
        let answer = reference.ask(statement).expect("PostgreSQL answers");
        assert!(shows_something(&answer), "nothing is found by {}", statement.sql);
        match taken {
            Ok(()) => views.push(View { sub: SubId(number), statement, answer }),
            Err(error) => failures.push(format!("{}: refused: {}", statement.sql, error.message)),
        }
    }
    let mut check = |live: &Live<'_>, views: &mut Vec<View<'_>>, number: usize| {
        views.retain(|view| {
            let agrees = live.shown(view.sub).and_then(|shown| compare(view.statement, &view.answer, &shown));
            if let Err(failure) = &agrees {
                failures.push(format!("{}: commit {number}: {failure}", view.statement.sql));
            }
            agrees.is_ok()
        });
    };
    check(&live, &mut views, 0);
    for (number, changes) in (1..).zip(commits) {
        let commit = commit(tables.schemas, &changes);
        assert!(reference.apply(&commit), "{commit} applies");
        let changed: Vec<&str> =
            changes.iter().map(|change| tables.schemas[change.table].name.as_str()).collect();
        // Both work at the same time.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for view in views.iter_mut().filter(|view| view.reads(&changed)) {
                    view.answer = reference.ask(view.statement).expect("PostgreSQL answers");
                }
            });
            assert!(live.commit(&commit), "{commit} applies");
        });
        check(&live, &mut views, number);
    }
    live.check().unwrap_or_else(|difference| failures.push(difference));
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// A live query.
struct View<'s> {
    sub: SubId,
    statement: &'s Statement,
    /// What PostgreSQL answers now.
    answer: Answer,
}

impl View<'_> {
    /// Whether it may read one of some tables.
    fn reads(&self, tables: &[&str]) -> bool {
        let mut words = self.statement.sql.split(|it: char| !it.is_alphanumeric() && it != '_');
        words.any(|word| tables.contains(&word))
    }
}

/// Whether there is a row in which not all is NULL.
fn shows_something(answer: &Answer) -> bool {
    answer.rows.iter().any(|row| row.iter().any(Option::is_some))
}
