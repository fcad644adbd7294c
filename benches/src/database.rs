//! PostgreSQL with the same rows, for figures that are taken against it.

use crate::sample::Sample;
use anyhow::Context as _;
use postgres::Client;
use serde_json::Value as Json;
use tidegate_tests::{
    postgres::Cluster,
    sql::{Shown, Statement, ask, column_types, compare, create_tables, fill},
};
use tidegate_wire::model::Row;

/// A private PostgreSQL.
pub(crate) struct Database {
    client: Client,
    _cluster: Cluster,
}

impl Database {
    /// Starts one with empty tables.
    pub(crate) fn start(tables: &Json) -> anyhow::Result<Self> {
        let cluster = Cluster::start();
        let mut client = cluster.connect();
        client.batch_execute(&create_tables(tables))?;
        // What an administrator would give a database that fits into memory.
        client.batch_execute("set work_mem = '256MB'; set jit = off;")?;
        Ok(Self { client, _cluster: cluster })
    }

    /// Fills a table.
    pub(crate) fn fill<'r>(&mut self, table: &str, rows: impl Iterator<Item = &'r Row>) {
        fill(&mut self.client, table, rows);
    }

    /// Runs statements that answer nothing.
    pub(crate) fn run(&mut self, script: &str) -> anyhow::Result<()> {
        self.client.batch_execute(script).with_context(|| script.to_owned())
    }

    /// Runs a query so many times, warm, and compares its answer with what is shown; the median in seconds.
    ///
    /// # Errors
    /// When they differ.
    pub(crate) fn time(&mut self, statement: &Statement, shown: &Shown, runs: usize) -> anyhow::Result<f64> {
        let types = column_types(&mut self.client, &statement.sql)?;
        let answer = ask(&mut self.client, &statement.sql, types.clone())?;
        compare(statement, &answer, shown)
            .map_err(|difference| anyhow::anyhow!("{}: {difference}", statement.sql))?;
        let mut sample = Sample::default();
        for _ in 0..runs {
            sample.time(|| ask(&mut self.client, &statement.sql, types.clone()))?;
        }
        Ok(sample.median())
    }
}
