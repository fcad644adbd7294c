//! Making a list on which something fails small.

/// Removes runs of items, long ones first, as long as `fails` holds without them.
pub(crate) fn fewer<T: Clone>(items: &[T], mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = items.to_vec();
    let mut length = kept.len();
    while length > 0 {
        // From the end: what comes late depends on what comes early.
        let mut end = kept.len();
        while end > 0 {
            let start = end.saturating_sub(length);
            let mut candidate = kept.clone();
            candidate.drain(start..end);
            if fails(&candidate) {
                kept = candidate;
            }
            end = start;
        }
        length /= 2;
    }
    kept
}
