//! The recorded week, built into the binary. Read once, when the demo starts.

use flate2::read::GzDecoder;
use serde::Deserialize;
use std::{io::Read as _, ops::Range};
use tidegate_wire::model::{TableSchema, commit::TablesLine};
use xxhash_rust::xxh3::xxh3_128;

const WEEK: &[u8] = include_bytes!("../../../assets/demo/week.commits.ndjson.gz");

const HOUR_MS: i64 = 3_600_000;

/// From the recording's first commit, on Sunday afternoon, to Monday noon: the first flights have landed, every
/// airport has dozens under way and hundreds to come.
const OPENING_MS: i64 = 19 * HOUR_MS;

/// From the first commit to the next Sunday, nine in the evening: the last hour in which every airport has departures
/// to come. Behind it the recording holds a day and a half of weather alone.
const CLOSING_MS: i64 = 172 * HOUR_MS;

/// A recorded commit.
#[derive(Debug)]
pub struct Recorded {
    /// When it happened, milliseconds since 1970.
    pub at: i64,
    /// Its line.
    line: Range<usize>,
}

/// See the module's description.
#[derive(Debug)]
pub struct Recording {
    /// The tables it writes to.
    pub tables: Vec<TableSchema>,
    /// The commits that are played, in order.
    pub commits: Vec<Recorded>,
    /// How many commits, at the front, are loaded at once.
    pub opening: usize,
    /// Tells this recording from another.
    pub hash: u128,
    text: String,
}

impl Recording {
    /// The week of New York's departures from 4 to 10 February 2013.
    ///
    /// # Panics
    /// Never: a test reads the same bytes.
    #[must_use]
    pub fn built_in() -> Self {
        let mut text = String::new();
        GzDecoder::new(WEEK).read_to_string(&mut text).expect("the built-in recording is whole");
        Self::parse(text).expect("the built-in recording is a commit stream")
    }

    fn parse(text: String) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Commit {
            at: i64,
        }
        let hash = xxh3_128(text.as_bytes());
        let mut lines = text.lines();
        let head: TablesLine = serde_json::from_str(lines.next().unwrap_or_default())?;
        let mut commits = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let start = line.as_ptr() as usize - text.as_ptr() as usize;
            let commit: Commit = serde_json::from_str(line)?;
            let first_at = commits.first().map_or(commit.at, |first: &Recorded| first.at);
            if commit.at - first_at > CLOSING_MS {
                break;
            }
            commits.push(Recorded { at: commit.at, line: start..start + line.len() });
        }
        let opens_at = commits.first().map_or(0, |first| first.at) + OPENING_MS;
        let opening = commits.partition_point(|commit| commit.at <= opens_at);
        Ok(Self { tables: head.tables, commits, opening, hash, text })
    }

    /// The line of a commit.
    #[must_use]
    pub fn line(&self, commit: usize) -> &[u8] {
        &self.text.as_bytes()[self.commits[commit].line.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_week_is_in_order_and_opens_on_a_full_board() {
        let recording = Recording::built_in();
        assert!(recording.commits.is_sorted_by_key(|commit| commit.at));
        let tables: Vec<_> = recording.tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(tables, ["airlines", "airports", "planes", "weather", "flights"]);
        assert!((500..1_000).contains(&recording.opening), "{}", recording.opening);
        assert!(recording.commits.len() > 10_000, "{}", recording.commits.len());
        for commit in [0, 3, recording.commits.len() - 1] {
            assert!(recording.line(commit).starts_with(b"{\"at\":"));
        }
    }
}
