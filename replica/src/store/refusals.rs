//! Mutations that were refused of late. A client that lost its connection before it heard of a refusal sends the
//! mutation again, and gets the same answer.

use super::CommitError;
use std::collections::VecDeque;

/// A mutation that was refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) client_id: String,
    pub(super) id: u64,
    pub(super) error: CommitError,
}

impl Refusal {
    /// Whether it is that of a client's mutation.
    pub(super) fn is_of(&self, client_id: &str, id: u64) -> bool {
        self.id == id && self.client_id == client_id
    }
}

/// The most recent refusals; the oldest are forgotten first, and all of them when the store closes. Looked through
/// only when a mutation comes again.
#[derive(Debug)]
pub(super) struct Refusals {
    kept: VecDeque<Refusal>,
    kept_max: usize,
}

impl Refusals {
    pub(super) fn new(kept_max: usize) -> Self {
        Self { kept: VecDeque::new(), kept_max }
    }

    /// That of a client's mutation, if it was refused and that is still known.
    pub(super) fn get(&self, client_id: &str, id: u64) -> Option<&Refusal> {
        self.kept.iter().rev().find(|refusal| refusal.is_of(client_id, id))
    }

    pub(super) fn extend(&mut self, refusals: Vec<Refusal>) {
        self.kept.extend(refusals);
        let excess = self.kept.len().saturating_sub(self.kept_max);
        self.kept.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::CommitProblem;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut refusals = Refusals::new(2);
        let refusal = |client_id: &str, id| Refusal {
            client_id: client_id.into(),
            id,
            error: CommitProblem::MutationIdZero.into(),
        };
        refusals.extend(vec![refusal("a", 1), refusal("b", 1)]);
        assert!(
            refusals.get("a", 1).is_some()
                && refusals.get("a", 2).is_none()
                && refusals.get("c", 1).is_none()
        );
        refusals.extend(vec![refusal("a", 2)]);
        assert!(
            refusals.get("a", 1).is_none()
                && refusals.get("b", 1).is_some()
                && refusals.get("a", 2).is_some()
        );
    }
}
