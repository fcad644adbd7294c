//! How many seeds a random test runs, and which.

use std::ops::Range;

/// The seeds to run: `TIDEGATE_SEED=n` runs one, `TIDEGATE_SEEDS=n` that many, otherwise `default` of them.
///
/// # Panics
/// When a variable is not a number.
pub(crate) fn seeds(default: u64) -> Range<u64> {
    seeds_named("TIDEGATE_SEED", "TIDEGATE_SEEDS", default)
}

/// As [`seeds`], with variables of these names.
///
/// # Panics
/// When a variable is not a number.
pub(crate) fn seeds_named(one: &str, many: &str, default: u64) -> Range<u64> {
    let read = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is not a number")))
    };
    match (read(one), read(many)) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(count)) => 0..count,
        (None, None) => 0..default,
    }
}
