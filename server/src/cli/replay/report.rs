//! What a replay has measured.

use super::latency::Summary;
use serde_json::{Value, json};
use std::{fmt::Write as _, time::Duration};
use tidegate_wire::model::Cv;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Report {
    /// Commits applied.
    pub commits: u64,
    /// Their operations.
    pub ops: u64,
    /// Requests they were sent in.
    pub requests: u64,
    /// The last one's commit version.
    pub cv: Cv,
    /// From the first commit's sending to the last one's answer.
    pub duration: Duration,
    /// How long after it was due each commit was sent, with a rate or speed.
    pub behind: Option<Summary>,
    /// A table that the commits wrote to.
    pub first_table: Option<String>,
    /// With subscribers.
    pub watched: Option<Watched>,
}

/// What subscribers saw.
#[derive(Debug)]
pub struct Watched {
    /// How many there were.
    pub subscribers: usize,
    /// How many lost their connection.
    pub lost: usize,
    /// From sending a commit to the release of its batch, for each batch and subscriber.
    pub latency: Summary,
    /// From the last answer to the last subscriber's having everything.
    pub caught_up: Duration,
    /// Commits that others made meanwhile.
    pub foreign_commits: u64,
}

impl Report {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.duration.as_secs_f64().max(1e-9)
    }

    /// As a JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let rounded = |number: f64| (number * 1_000.0).round() / 1_000.0;
        let mut out = json!({
            "commits": self.commits,
            "ops": self.ops,
            "requests": self.requests,
            "cv": self.cv,
            "seconds": rounded(self.duration.as_secs_f64()),
            "commits_per_second": rounded(self.per_second(self.commits)),
            "ops_per_second": rounded(self.per_second(self.ops)),
        });
        if let Some(behind) = &self.behind {
            out["behind_schedule_ms"] = behind.json();
        }
        if let Some(watched) = &self.watched {
            out["subscribers"] = json!(watched.subscribers);
            out["subscribers_lost"] = json!(watched.lost);
            out["latency_ms"] = watched.latency.json();
            out["caught_up_ms"] = json!(rounded(watched.caught_up.as_secs_f64() * 1_000.0));
            out["foreign_commits"] = json!(watched.foreign_commits);
        }
        out
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "{} commits with {} operations in {:.2} s: {:.0} commits/s, {:.0} ops/s\n",
            self.commits,
            self.ops,
            self.duration.as_secs_f64(),
            self.per_second(self.commits),
            self.per_second(self.ops),
        );
        if let Some(behind) = &self.behind {
            let _ = writeln!(out, "sent after they were due: {}", behind.text());
        }
        let Some(watched) = &self.watched else { return out };
        let _ = writeln!(out, "commit to client: {}", watched.latency.text());
        let _ = writeln!(
            out,
            "  over {} batches at {} subscribers; the last had everything {:.2} ms after the last answer",
            watched.latency.samples,
            watched.subscribers,
            watched.caught_up.as_secs_f64() * 1_000.0,
        );
        if watched.foreign_commits > 0 {
            let _ = writeln!(
                out,
                "  {} commits of others fell in between, so that latencies are approximate",
                watched.foreign_commits
            );
        }
        out
    }
}
