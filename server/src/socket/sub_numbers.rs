//! The subscription numbers a connection has used, none of which may be used again.

use std::collections::BTreeMap;
use tidegate_wire::model::SubId;

/// Most separate ranges remembered. A client that counts up needs one; one that jumps about needs one per number.
const RANGES_MAX: usize = 65_536;

/// A set of numbers, kept as ranges so that counting up costs constant memory.
#[derive(Debug, Default)]
pub struct SubNumbers {
    /// First number of each range to its last.
    ranges: BTreeMap<u64, u64>,
}

impl SubNumbers {
    /// Whether a number was used.
    #[must_use]
    pub fn contains(&self, sub: SubId) -> bool {
        self.ranges.range(..=sub.0).next_back().is_some_and(|(_, last)| *last >= sub.0)
    }

    /// Whether a further number can be remembered.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ranges.len() >= RANGES_MAX
    }

    /// Remembers a number that was not used.
    pub fn insert(&mut self, sub: SubId) {
        let before = self.ranges.range(..sub.0).next_back().map(|(first, last)| (*first, *last));
        let first = match before {
            Some((first, last)) if last + 1 == sub.0 => first,
            _ => sub.0,
        };
        let after = sub.0.checked_add(1).and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, after.unwrap_or(sub.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_set_of_numbers_in_few_ranges() {
        let mut numbers = SubNumbers::default();
        let inserted = [5, 1, 2, 9, 3, u64::MAX, 4, u64::MAX - 1, 7];
        for (done, number) in inserted.iter().enumerate() {
            numbers.insert(SubId(*number));
            for other in (0..12).chain([u64::MAX - 2, u64::MAX - 1, u64::MAX]) {
                assert_eq!(numbers.contains(SubId(other)), inserted[..=done].contains(&other), "{other}");
            }
        }
        assert_eq!(numbers.ranges.len(), 4, "1–5, 7, 9, and the two greatest");
    }
}
