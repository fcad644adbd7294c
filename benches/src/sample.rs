//! Times of many runs, and what they come to.

use std::time::{Duration, Instant};

/// Times, in any order.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    seconds: Vec<f64>,
}

impl Sample {
    /// Adds a time.
    pub(crate) fn add(&mut self, time: Duration) {
        self.seconds.push(time.as_secs_f64());
    }

    /// Runs `work` and adds its time; `work`'s result is dropped outside the measurement.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.add(start.elapsed());
        result
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.seconds.len()
    }

    /// Takes over another's times.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.seconds.extend(&other.seconds);
    }

    /// All times together, in seconds.
    pub(crate) fn sum(&self) -> f64 {
        self.seconds.iter().sum()
    }

    /// The mean in seconds; 0 when there are none.
    pub(crate) fn mean(&self) -> f64 {
        self.sum() / self.len().max(1) as f64
    }

    /// The time that a share of all do not exceed, in seconds; 0 when there are none.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
    }

    /// The median in seconds.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// A time in the unit that suits it.
pub(crate) fn show(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// The median of numbers.
pub(crate) fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}
