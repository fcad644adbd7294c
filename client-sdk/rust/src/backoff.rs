//! How long to wait before the next connection: exponential, jittered, bounded.

use rand::Rng;
use std::time::Duration;

/// The longest wait that a server may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// The waits between failing connections.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    initial: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(initial: Duration, max: Duration) -> Self {
        Self { initial, max, failures: 0 }
    }

    /// A connection held; the next failure is a first one again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Connections that failed in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// The wait after one more failure: between half and all of what the failures amount to, and at least as long
    /// as the server asked for, spread by up to a quarter so that its clients do not come back all at once.
    pub(crate) fn next(&mut self, asked: Duration, rng: &mut impl Rng) -> Duration {
        let whole = self.initial.saturating_mul(1 << self.failures.min(30)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        let own = whole.mul_f64(rng.random_range(0.5..=1.0));
        let asked = asked.min(RETRY_AFTER_MAX);
        own.max(asked.mul_f64(rng.random_range(1.0..=1.25)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::StdRng};

    #[test]
    fn waits_double_are_jittered_and_bounded() {
        let (initial, max) = (Duration::from_millis(100), Duration::from_secs(3));
        for seed in 0..200 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut backoff = Backoff::new(initial, max);
            for failure in 0..50 {
                let whole = initial.saturating_mul(1 << failure.min(20)).min(max);
                let wait = backoff.next(Duration::ZERO, &mut rng);
                assert!(wait >= whole / 2 && wait <= whole, "seed {seed}, failure {failure}: {wait:?}");
            }
            backoff.reset();
            assert!(backoff.next(Duration::ZERO, &mut rng) <= initial);
        }
    }

    #[test]
    fn the_servers_wish_is_a_lower_bound() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(2));
        let wait = backoff.next(Duration::from_secs(8), &mut rng);
        assert!(wait >= Duration::from_secs(8) && wait <= Duration::from_secs(10), "{wait:?}");
    }
}
