//! Latencies of any number of samples in bounded memory: histograms to three digits, a few of them so that tasks do
//! not wait for each other.

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

const HISTOGRAMS: usize = 8;

/// Longest latency that is told from longer ones.
const MICROS_MAX: u64 = 3_600_000_000;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HISTOGRAM: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % HISTOGRAMS);
}

/// See the module's description.
#[derive(Debug)]
pub struct Latencies(Vec<Mutex<Histogram<u64>>>);

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// No samples.
    #[must_use]
    pub fn new() -> Self {
        Self((0..HISTOGRAMS).map(|_| Mutex::new(empty())).collect())
    }

    /// Adds a sample.
    pub fn record(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.0[HISTOGRAM.get()].lock().saturating_record(micros.clamp(1, MICROS_MAX));
    }

    /// The samples so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut all = empty();
        for part in &self.0 {
            all.add(&*part.lock()).expect("histograms of one shape add up");
        }
        let quantile = |q| micros_to_ms(all.value_at_quantile(q));
        Summary {
            samples: all.len(),
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            max_ms: micros_to_ms(all.max()),
        }
    }
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MICROS_MAX, 3).expect("the bounds are sound")
}

#[expect(clippy::cast_precision_loss, reason = "an hour in microseconds is far below 2^52")]
fn micros_to_ms(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

/// What many samples come to, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many there are.
    pub samples: u64,
    /// Half are at most this.
    pub p50_ms: f64,
    /// 90 % are at most this.
    pub p90_ms: f64,
    /// 99 % are at most this.
    pub p99_ms: f64,
    /// All are at most this.
    pub max_ms: f64,
}

impl Summary {
    /// As a JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let Self { samples, p50_ms, p90_ms, p99_ms, max_ms } = self;
        json!({ "p50": p50_ms, "p90": p90_ms, "p99": p99_ms, "max": max_ms, "samples": samples })
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { p50_ms, p90_ms, p99_ms, max_ms, .. } = self;
        format!("p50 {p50_ms:.2} ms, p90 {p90_ms:.2} ms, p99 {p99_ms:.2} ms, max {max_ms:.2} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let latencies = Latencies::new();
        for micros in 1..=1_000 {
            latencies.record(Duration::from_micros(micros * 100));
        }
        let summary = latencies.summary();
        assert_eq!(summary.samples, 1_000);
        for (got, want) in
            [(summary.p50_ms, 50.0), (summary.p90_ms, 90.0), (summary.p99_ms, 99.0), (summary.max_ms, 100.0)]
        {
            assert!((got - want).abs() <= want / 500.0, "{got} for {want}");
        }
    }
}
