//! Writes: commits and mutations, from their JSON forms to the store.

use super::{CommitOutcome, CommitRefusal, Inner, MutationOutcome};
use crate::store::{Commits, Draft, Mutation};
use tidegate_wire::model::commit::{CommitLine, RowOp};

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
        let ops = Draft::resolve(&line, &self.store.snapshot(), &self.limits());
        match self.store.mutate(Mutation { client_id: client_id.to_owned(), id, ops }).await {
            Ok(outcome) => {
                MutationOutcome { cv: outcome.cv, refused: outcome.effect.error().map(CommitRefusal::from) }
            }
            Err(closed) => MutationOutcome { cv: self.store.snapshot().cv(), refused: Some(closed.into()) },
        }
    }
}
