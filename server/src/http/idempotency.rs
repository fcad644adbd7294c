//! Bodies with an `Idempotency-Key` are dealt with one after the other per key, so that a repeat that comes while the
//! first is under way waits for it and then finds what it did.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::OwnedMutexGuard;

/// One lock per key in use. Keys in use are bounded by the requests under way.
#[derive(Debug, Default)]
pub struct KeyLocks {
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// Holds a key. Dropping it lets the next one go.
#[derive(Debug)]
pub struct KeyGuard {
    _held: OwnedMutexGuard<()>,
}

impl KeyLocks {
    /// Waits until nobody else holds the key.
    pub async fn lock(&self, key: &str) -> KeyGuard {
        let lock = {
            let mut locks = self.locks.lock();
            // A lock that only the map knows is held by nobody and waited for by nobody.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(key.to_owned()).or_default())
        };
        KeyGuard { _held: lock.lock_owned().await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::task::{Context, Waker};

    #[tokio::test]
    async fn a_key_is_held_by_one_and_forgotten_when_free() {
        let locks = KeyLocks::default();
        let first = locks.lock("a").await;
        let _other = locks.lock("b").await;
        let mut second = Box::pin(locks.lock("a"));
        assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(first);
        let second = second.await;
        drop(second);
        let _third = locks.lock("c").await;
        assert_eq!(locks.locks.lock().len(), 2, "b and c");
    }
}
