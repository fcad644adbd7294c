//! When each commit was sent. Written by the thread that posts, read by the subscribers' tasks.
//!
//! A subscriber may have a commit before its request is answered, so commit versions are foretold: each commit takes
//! exactly one. Where someone else commits meanwhile the answer shows it, and later versions are right again; the
//! commits of others are counted, since latencies are approximate where they fell among ours.
//!
//! Memory: 24 bytes a request.

use parking_lot::RwLock;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};
use tidegate_wire::model::Cv;

/// See the module's description.
#[derive(Debug)]
pub struct Sends {
    requests: RwLock<Requests>,
    foreign_commits: AtomicU64,
}

#[derive(Debug)]
struct Requests {
    /// The last commit version before the first request.
    base: u64,
    /// The last commit version of each request and when it was sent, ascending.
    sent: Vec<(u64, Instant)>,
}

impl Requests {
    fn newest(&self) -> u64 {
        self.sent.last().map_or(self.base, |(last, _)| *last)
    }
}

impl Sends {
    /// Nothing was sent behind a commit version.
    #[must_use]
    pub fn after(base: Cv) -> Self {
        let requests = RwLock::new(Requests { base: base.0, sent: Vec::new() });
        Self { requests, foreign_commits: AtomicU64::new(0) }
    }

    /// The newest commit version sent.
    #[must_use]
    pub fn newest(&self) -> Cv {
        Cv(self.requests.read().newest())
    }

    /// A request with so many commits is sent now.
    pub fn sending(&self, commits: usize) -> Instant {
        let mut requests = self.requests.write();
        let last = requests.newest() + commits as u64;
        let now = Instant::now();
        requests.sent.push((last, now));
        now
    }

    /// The last request's last commit took this version.
    pub fn answered(&self, cv: Cv) {
        let mut requests = self.requests.write();
        let newest = requests.newest();
        if let Some((last, _)) = requests.sent.last_mut()
            && cv.0 > newest
        {
            self.foreign_commits.fetch_add(cv.0 - newest, Ordering::Relaxed);
            *last = cv.0;
        }
    }

    /// When the commit of a version was sent; `None` for one from before.
    #[must_use]
    pub fn sent_at(&self, cv: Cv) -> Option<Instant> {
        let requests = self.requests.read();
        if cv.0 <= requests.base {
            return None;
        }
        let index = requests.sent.partition_point(|(last, _)| *last < cv.0);
        requests.sent.get(index).map(|(_, at)| *at)
    }

    /// Commits of others in between.
    #[must_use]
    pub fn foreign_commits(&self) -> u64 {
        self.foreign_commits.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_foretold_and_put_right() {
        let sends = Sends::after(Cv(10));
        let first = sends.sending(2);
        assert_eq!(
            (sends.sent_at(Cv(10)), sends.sent_at(Cv(12)), sends.sent_at(Cv(13))),
            (None, Some(first), None)
        );
        sends.answered(Cv(12));
        let second = sends.sending(1);
        assert_eq!((sends.sent_at(Cv(13)), sends.foreign_commits()), (Some(second), 0));
        sends.answered(Cv(15));
        assert_eq!(
            (sends.newest(), sends.sent_at(Cv(15)), sends.foreign_commits()),
            (Cv(15), Some(second), 2)
        );
        let third = sends.sending(1);
        assert_eq!(sends.sent_at(Cv(16)), Some(third));
    }
}
