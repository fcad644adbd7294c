//! Writes: commits and mutations, from their JSON forms to the store.

use super::{CommitOutcome, CommitRefusal, Inner, MutationOutcome};
use crate::store::{CommitErrorKind, Commits, Draft, Mutation, MutationEffect};
use tidegate_wire::model::commit::{CommitLine, RowOp};

/// How often a mutation is resolved before it is given back.
const TRIES_MAX: usize = 3;

fn is_overtaken(effect: &MutationEffect) -> bool {
    effect.error().is_some_and(|error| error.code() == CommitErrorKind::SchemaChanged)
}

impl Inner {
    pub(super) async fn commit(&self, commits: Commits) -> CommitOutcome {
        match self.store.commit(commits).await {
            Ok(outcome) => CommitOutcome {
                applied: outcome.applied,
                cv: outcome.cv,
                refused: outcome.refused.as_ref().map(CommitRefusal::from),
            },
            Err(closed) => {
                CommitOutcome { applied: 0, cv: self.store.snapshot().cv(), refused: Some(closed.into()) }
            }
        }
    }

    pub(super) async fn mutate(&self, client_id: &str, id: u64, ops: &[RowOp]) -> MutationOutcome {
        let line = CommitLine { at: None, ops: ops.to_vec() };
        let mut tries = 0;
        loop {
            tries += 1;
            let ops = Draft::resolve(&line, &self.store.snapshot(), &self.limits());
            match self.store.mutate(Mutation { client_id: client_id.to_owned(), id, ops }).await {
                // Its tables are others now; what it says may fit them all the same.
                Ok(outcome) if is_overtaken(&outcome.effect) && tries < TRIES_MAX => {}
                Ok(outcome) => {
                    let refused = outcome.effect.error().map(CommitRefusal::from);
                    return MutationOutcome { cv: outcome.cv, refused };
                }
                Err(closed) => {
                    return MutationOutcome { cv: self.store.snapshot().cv(), refused: Some(closed.into()) };
                }
            }
        }
    }
}
