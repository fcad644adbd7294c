//! When each commit is due.

use super::stream::{Line, LineKind};
use std::time::{Duration, Instant};

/// See the module's description. Time begins with the first commit.
#[derive(Debug)]
pub struct Pace {
    kind: Kind,
    started: Instant,
    /// Commits so far.
    commits: u64,
    /// Of the first commit that has one, and of the latest; milliseconds since 1970.
    ats: Option<(i64, i64)>,
}

#[derive(Debug)]
enum Kind {
    Rate(f64),
    Speed(f64),
    AtOnce,
}

impl Pace {
    /// So many commits a second, or so much faster than recorded, or all at once.
    #[must_use]
    pub fn new(rate: Option<f64>, speed: Option<f64>) -> Self {
        let kind = match (rate, speed) {
            (Some(rate), _) => Kind::Rate(rate),
            (None, Some(speed)) => Kind::Speed(speed),
            (None, None) => Kind::AtOnce,
        };
        Self { kind, started: Instant::now(), commits: 0, ats: None }
    }

    /// When the next commit is due.
    #[must_use]
    pub fn peek(&self, line: &Line) -> Instant {
        self.started + self.offset(at_of(line))
    }

    /// As [`Pace::peek`], and goes on to the commit after it.
    pub fn due(&mut self, line: &Line) -> Instant {
        if self.commits == 0 {
            self.started = Instant::now();
        }
        let at = at_of(line);
        let due = self.started + self.offset(at);
        self.commits += 1;
        if let Some(at) = at {
            let (first, latest) = self.ats.unwrap_or((at, at));
            self.ats = Some((first, latest.max(at)));
        }
        due
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and milliseconds are far below 2^52")]
    fn offset(&self, at: Option<i64>) -> Duration {
        let seconds = match (&self.kind, self.ats) {
            (Kind::AtOnce, _) | (Kind::Speed(_), None) => 0.0,
            (Kind::Rate(rate), _) => self.commits as f64 / rate,
            // A commit without a time, or with an earlier one, is due with the one before it.
            (Kind::Speed(speed), Some((first, latest))) => {
                let at = at.map_or(latest, |at| at.max(latest));
                (at - first) as f64 / 1_000.0 / speed
            }
        };
        Duration::from_secs_f64(seconds.min(1e9))
    }
}

fn at_of(line: &Line) -> Option<i64> {
    match line.kind {
        LineKind::Commit { at, .. } => at,
        LineKind::Tables => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(mut pace: Pace, ats: &[Option<i64>]) -> Vec<u128> {
        let line = |at| Line {
            number: 1,
            text: Vec::new(),
            kind: LineKind::Commit { at, ops: 0, first_table: None },
            bytes_read: 0,
        };
        let dues: Vec<_> = ats.iter().map(|at| pace.due(&line(*at))).collect();
        dues.iter().map(|due| due.duration_since(dues[0]).as_millis()).collect()
    }

    #[test]
    fn commits_are_due_by_rate_or_recorded_time() {
        let ats = [Some(5_000), Some(15_000), None, Some(10_000), Some(25_000)];
        assert_eq!(offsets(Pace::new(Some(100.0), None), &ats), [0, 10, 20, 30, 40]);
        assert_eq!(offsets(Pace::new(None, Some(100.0)), &ats), [0, 100, 100, 100, 200]);
        assert_eq!(offsets(Pace::new(None, None), &ats), [0; 5]);
    }
}
