//! The recorded nested-query cases, which stand outside the project and may be absent.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// One recorded case: a query's result after some commits to a seed.
#[derive(Clone, Debug)]
pub struct Case {
    /// Which of [`Conformance::seeds`].
    pub seed: String,
    /// The query in its JSON form.
    pub query: Value,
    /// `{"ops":[…]}` each.
    pub commits: Vec<Value>,
    /// The ordered, nested result after the last commit. Integral floats stand as integers.
    pub expected: Value,
}

/// All cases of a folder.
#[derive(Clone, Debug)]
pub struct Conformance {
    /// By name: `{"tables":[…]}`, each table with positional `rows`, which
    /// [`Database::from_stream_tables`](crate::oracle::Database::from_stream_tables) takes.
    pub seeds: BTreeMap<String, Value>,
    /// In the files' order.
    pub cases: Vec<Case>,
}

/// Where the cases are: the folder named by `TIDEGATE_CONFORMANCE`, or else `../shared/conformance` beside the
/// project. `None` where there is none.
pub fn folder() -> Option<PathBuf> {
    let folder = match std::env::var_os("TIDEGATE_CONFORMANCE") {
        Some(named) => PathBuf::from(named),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance"),
    };
    folder.join("nested").is_dir().then_some(folder)
}

/// Reads every seed and every file of cases under `folder`.
///
/// # Errors
/// If a file cannot be read or is not of this form.
pub fn load(folder: &Path) -> io::Result<Conformance> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut names: Vec<PathBuf> = folder
        .join("nested")
        .read_dir()?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    names.sort();
    let mut found = Conformance { seeds: BTreeMap::new(), cases: Vec::new() };
    for path in names {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if let Some(seed) = name.strip_suffix(".seed.json.gz") {
            found.seeds.insert(seed.to_owned(), serde_json::from_reader(open(&path)?)?);
        } else if name.starts_with("cases.") && name.ends_with(".ndjson.gz") {
            for line in open(&path)?.lines() {
                let mut case: Value = serde_json::from_str(&line?)?;
                let commits = case["commits"].as_array().ok_or_else(|| wrong("a case without commits"))?;
                found.cases.push(Case {
                    commits: commits.iter().map(|ops| serde_json::json!({ "ops": ops })).collect(),
                    seed: case["seed"].as_str().ok_or_else(|| wrong("a case without seed"))?.to_owned(),
                    query: case["query"].take(),
                    expected: case["expected"].take(),
                });
            }
        }
    }
    Ok(found)
}

fn open(path: &Path) -> io::Result<BufReader<GzDecoder<File>>> {
    File::open(path).map(|file| BufReader::new(GzDecoder::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Database, compare_results};

    #[test]
    fn the_oracle_answers_every_recorded_case() {
        let Some(folder) = folder() else {
            println!("no conformance cases here: nothing to run");
            return;
        };
        let conformance = load(&folder).expect("readable cases");
        assert!(!conformance.cases.is_empty(), "{} has no cases", folder.display());
        let seeds: BTreeMap<&str, Database> = conformance
            .seeds
            .iter()
            .map(|(name, seed)| (name.as_str(), Database::from_stream_tables(seed).expect("a seed")))
            .collect();
        let mut failures = Vec::new();
        for (index, case) in conformance.cases.iter().enumerate() {
            let mut database = seeds[case.seed.as_str()].clone();
            for commit in &case.commits {
                database.apply(commit).expect("recorded commits are sound");
            }
            let outcome = database
                .run(&case.query, &Value::Null)
                .map_err(|error| error.to_string())
                .and_then(|actual| compare_results(&case.expected, &actual));
            if let Err(difference) = outcome {
                failures.push(format!("case {index} on {}: {difference}\n  {}", case.seed, case.query));
            }
        }
        let shown = failures.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
        assert!(
            failures.is_empty(),
            "{} of {} cases fail:\n{shown}",
            failures.len(),
            conformance.cases.len()
        );
        println!("{} cases", conformance.cases.len());
    }
}
