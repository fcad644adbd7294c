//! The sqllogictest suite of `tests/slt` against a server over HTTP, and against PostgreSQL, which its expected results
//! are from.
//!
//! `TIDEGATE_SLT=PATH` runs a file of others, or a folder of them, against a server; `TIDEGATE_SLT_WRITE=1` writes the
//! suite's expected results anew, as PostgreSQL answers.
//!
//! Seen to fail: with the referring rows of a foreign key looked at only when all others have had their effect,
//! `constraints.slt`.

use crate::support::{
    http::Http,
    server::{TestServer, block_on, memory},
};
use postgres::SimpleQueryMessage;
use serde_json::{Value as Json, json};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tidegate_tests::postgres::Cluster;
use tokio::runtime::Runtime;

static SCHEMAS: AtomicU64 = AtomicU64::new(0);

/// A statement was refused.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

type Output = DBOutput<DefaultColumnType>;

/// The answer to a text: the rows of its last statement that shows some, else how many were written.
fn output(rows: Option<Vec<Vec<String>>>, width: usize, affected: u64) -> Output {
    match rows {
        Some(rows) => DBOutput::Rows { types: vec![DefaultColumnType::Any; width], rows },
        None => DBOutput::StatementComplete(affected),
    }
}

/// A server.
struct Tidegate {
    runtime: Arc<Runtime>,
    http: Http,
}

impl DB for Tidegate {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<Output, Refused> {
        let body = json!({ "sql": sql }).to_string();
        let answer = self.runtime.block_on(self.http.send(hyper::Method::POST, "/v1/sql", &[], body)).json();
        if let Some(message) = answer["error"]["message"].as_str() {
            return Err(Refused(message.to_owned()));
        }
        let (mut shown, mut width, mut affected) = (None, 0, 0);
        for result in answer["results"].as_array().expect("results") {
            affected += result["affected"].as_u64().unwrap_or(0);
            if let (Some(columns), Some(rows)) = (result["columns"].as_array(), result["rows"].as_array()) {
                let types: Vec<&str> =
                    columns.iter().map(|column| column["type"].as_str().unwrap_or("")).collect();
                let row = |row: &Json| {
                    let cells = row.as_array().expect("cells").iter().zip(&types);
                    cells.map(|(cell, ty)| text(cell, ty)).collect()
                };
                shown = Some(rows.iter().map(row).collect());
                width = types.len();
            }
        }
        Ok(output(shown, width, affected))
    }

    fn engine_name(&self) -> &'static str {
        "tidegate"
    }
}

/// A cell as PostgreSQL prints it.
fn text(cell: &Json, ty: &str) -> String {
    match (cell, ty) {
        (Json::Null, _) => "NULL".to_owned(),
        (cell, "json") => document(cell),
        (Json::Bool(truth), _) => if *truth { "t" } else { "f" }.to_owned(),
        (Json::Number(number), "float8") => number.as_f64().unwrap_or(f64::NAN).to_string(),
        (Json::String(text), "timestamptz") => text.replace('T', " ").replace('Z', "+00"),
        (Json::String(text), _) if text.is_empty() => "(empty)".to_owned(),
        (Json::String(text), _) => text.clone(),
        (cell, _) => cell.to_string(),
    }
}

/// A document as PostgreSQL prints a `jsonb`.
fn document(json: &Json) -> String {
    match json {
        Json::Array(members) => format!("[{}]", members.iter().map(document).collect::<Vec<_>>().join(", ")),
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", json!(name), document(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// PostgreSQL.
struct Postgres(postgres::Client);

impl DB for Postgres {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<Output, Refused> {
        let messages = match apart(|| self.0.simple_query(sql)) {
            Ok(messages) => messages,
            Err(error) => {
                apart(|| self.0.batch_execute("rollback")).expect("the session goes on");
                return Err(Refused(error.to_string()));
            }
        };
        let (mut shown, mut width, mut affected) = (None, 0, 0);
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    (shown, width) = (Some(Vec::new()), columns.len());
                }
                SimpleQueryMessage::Row(row) => {
                    let cells = (0..row.len()).map(|cell| match row.get(cell) {
                        None => "NULL".to_owned(),
                        Some("") => "(empty)".to_owned(),
                        Some(text) => text.to_owned(),
                    });
                    shown.get_or_insert_with(Vec::new).push(cells.collect());
                }
                SimpleQueryMessage::CommandComplete(rows) => affected += rows,
                _ => {}
            }
        }
        Ok(output(shown, width, affected))
    }

    fn engine_name(&self) -> &'static str {
        "postgres"
    }
}

/// A schema of its own in a cluster.
fn postgres(cluster: &Cluster) -> Postgres {
    let own = SCHEMAS.fetch_add(1, Relaxed);
    apart(|| {
        let mut client = cluster.connect();
        client.batch_execute(&format!("create schema s{own}; set search_path = s{own}")).expect("a schema");
        Postgres(client)
    })
}

/// Does something that waits in a runtime of its own, which it may not inside another's.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join()).expect("it does not panic")
}

/// The files of a folder that are of the suite's kind, or the one file that a path names.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "slt" || ext == "test"))
        .collect();
    files.sort();
    files
}

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("slt")
}

#[test]
fn the_suite_holds_on_a_server() {
    let path = std::env::var_os("TIDEGATE_SLT").map_or_else(suite, PathBuf::from);
    let runtime = Arc::new(tokio::runtime::Runtime::new().expect("a runtime"));
    let mut failures = Vec::new();
    for file in files(&path) {
        let server = runtime.block_on(TestServer::start(memory()));
        let mut runner = Runner::new(|| async {
            let http = apart(|| runtime.block_on(Http::connect(server.addr())));
            Ok(Tidegate { runtime: Arc::clone(&runtime), http })
        });
        if let Err(error) = runner.run_file(&file) {
            failures.push(error.display(false).to_string());
        }
        drop(runner);
        runtime.block_on(server.stop());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn the_suite_holds_on_postgres() {
    let cluster = Cluster::start();
    let writes = std::env::var_os("TIDEGATE_SLT_WRITE").is_some();
    let mut failures = Vec::new();
    for file in files(&suite()) {
        let mut runner = Runner::new(|| async { Ok(postgres(&cluster)) });
        if writes {
            let (validator, normalizer) = (sqllogictest::default_validator, sqllogictest::default_normalizer);
            let columns = sqllogictest::default_column_validator;
            let update = runner.update_test_file(&file, "  ", validator, normalizer, columns);
            block_on(update).expect("the file is written");
            continue;
        }
        if let Err(error) = runner.run_file(&file) {
            failures.push(error.display(false).to_string());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
