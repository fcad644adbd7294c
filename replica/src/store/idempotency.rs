//! Idempotency keys and what became of their bodies. Written by the store thread once the outcome is durable; read
//! by whoever gets a body with a key.

use super::{CommitError, CommitProblem, limits::IDEMPOTENCY_KEY_BYTES_MAX};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use tidegate_wire::model::Cv;

/// A commit's place in an idempotent body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyTag {
    /// The key the client chose.
    pub key: Arc<str>,
    /// Hash of the whole body.
    pub body_hash: u128,
    /// The commit's number in the body, from 0.
    pub ordinal: u64,
}

impl IdempotencyTag {
    /// # Errors
    /// When the key is empty or too long.
    pub(super) fn check(&self) -> Result<(), CommitProblem> {
        let bytes_max = IDEMPOTENCY_KEY_BYTES_MAX;
        if (1..=bytes_max).contains(&self.key.len()) {
            Ok(())
        } else {
            Err(CommitProblem::BadIdempotencyKey { bytes_max })
        }
    }
}

/// What is durable of an idempotent body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyEntry {
    /// Hash of the whole body; another body under the same key is a `conflict`.
    pub body_hash: u128,
    /// How many of its commits are applied.
    pub applied: u64,
    /// The cv of the last of them; with none, the store's cv when the body ended.
    pub cv: Cv,
    /// The refusal that ended the body. Without one, and with fewer applied than it has, the body was cut short
    /// and its repeat does the rest. With none applied and without one, the body has none.
    pub refused: Option<CommitError>,
}

/// The most recent keys; the oldest are forgotten first.
#[derive(Debug)]
pub(super) struct IdempotencyKeys {
    entries: HashMap<Arc<str>, IdempotencyEntry>,
    /// The keys in order of their first record.
    order: VecDeque<Arc<str>>,
    keys_max: usize,
}

impl IdempotencyKeys {
    pub(super) fn new(keys_max: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), keys_max }
    }

    pub(super) fn get(&self, key: &str) -> Option<&IdempotencyEntry> {
        self.entries.get(key)
    }

    pub(super) fn put(&mut self, key: Arc<str>, entry: IdempotencyEntry) {
        if self.entries.insert(Arc::clone(&key), entry).is_none() {
            self.order.push_back(key);
            while self.order.len() > self.keys_max {
                let oldest = self.order.pop_front().expect("more than the limit");
                self.entries.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_keys_are_forgotten() {
        let mut keys = IdempotencyKeys::new(2);
        let entry = |applied| IdempotencyEntry { body_hash: 1, applied, cv: Cv(applied), refused: None };
        keys.put("a".into(), entry(1));
        keys.put("b".into(), entry(1));
        keys.put("a".into(), entry(2));
        assert_eq!(keys.get("a"), Some(&entry(2)));
        keys.put("c".into(), entry(1));
        assert_eq!((keys.get("a"), keys.get("b").is_some(), keys.get("c").is_some()), (None, true, true));
        assert_eq!((keys.entries.len(), keys.order.len()), (2, 2));
    }
}
