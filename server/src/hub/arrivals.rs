//! When the latest commits arrived at this server, so that the time from a write to its release at a client's socket
//! can be measured.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};
use tidegate_wire::model::Cv;

/// Commits remembered.
const SLOTS: usize = 4_096;

/// A ring of arrival times by commit version. Best effort: a time that is not known, or was overwritten, is simply
/// not measured.
#[derive(Debug)]
pub struct Arrivals {
    base: Instant,
    slots: Box<[Slot]>,
}

#[derive(Debug, Default)]
struct Slot {
    cv: AtomicU64,
    nanos: AtomicU64,
}

impl Arrivals {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self { base: Instant::now(), slots: (0..SLOTS).map(|_| Slot::default()).collect() }
    }

    /// `count` commits up to `last` arrived at `at`.
    pub fn note(&self, last: Cv, count: usize, at: Instant) {
        let nanos = u64::try_from(at.saturating_duration_since(self.base).as_nanos()).unwrap_or(u64::MAX);
        let count = count.min(SLOTS) as u64;
        for cv in (last.0 + 1).saturating_sub(count)..=last.0 {
            let slot = &self.slots[cv as usize % SLOTS];
            slot.cv.store(0, Ordering::Release);
            slot.nanos.store(nanos, Ordering::Release);
            slot.cv.store(cv, Ordering::Release);
        }
    }

    /// When a commit arrived.
    #[must_use]
    pub fn get(&self, cv: Cv) -> Option<Instant> {
        let slot = &self.slots[cv.0 as usize % SLOTS];
        let same = || cv.0 != 0 && slot.cv.load(Ordering::Acquire) == cv.0;
        if !same() {
            return None;
        }
        let nanos = slot.nanos.load(Ordering::Acquire);
        same().then(|| self.base + Duration::from_nanos(nanos))
    }
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_remembers_the_latest() {
        let arrivals = Arrivals::new();
        let at = arrivals.base + Duration::from_secs(3);
        arrivals.note(Cv(10), 3, at);
        assert_eq!(arrivals.get(Cv(7)), None);
        assert_eq!(arrivals.get(Cv(8)), Some(at));
        assert_eq!(arrivals.get(Cv(10)), Some(at));
        arrivals.note(Cv(10 + SLOTS as u64), 1, at);
        assert_eq!(arrivals.get(Cv(10)), None, "overwritten");
        assert_eq!(arrivals.get(Cv(0)), None);
    }
}
