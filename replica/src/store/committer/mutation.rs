//! Clients' mutations: each taken once, in the order of its client's ids, also when it is refused.

use super::{Committer, is_final};
use crate::store::{
    CommitError, CommitProblem, Mutation, MutationEffect, SnapshotEditor,
    apply::apply,
    draft::Draft,
    limits::CLIENT_ID_BYTES_MAX,
    refusals::Refusal,
    system_tables::{last_mutation_id, set_last_mutation_id},
};
use std::sync::Arc;

impl Committer {
    pub(super) fn mutation(&mut self, mutation: Mutation) -> MutationEffect {
        let Mutation { client_id, id, ops } = mutation;
        let bytes_max = CLIENT_ID_BYTES_MAX;
        if !(1..=bytes_max).contains(&client_id.len()) || client_id.contains('\0') {
            return MutationEffect::NotTaken(CommitProblem::BadClientId { bytes_max }.into());
        }
        if id == 0 {
            return MutationEffect::NotTaken(CommitProblem::MutationIdZero.into());
        }
        let last = last_mutation_id(&self.head, &client_id);
        if id <= last {
            let of_group = self.group.refusals.iter().find(|it| it.is_of(&client_id, id));
            return match of_group.or_else(|| self.refusals.get(&client_id, id)) {
                Some(refusal) => MutationEffect::Refused(refusal.error.clone()),
                None => MutationEffect::Repeated,
            };
        }
        let gap =
            || MutationEffect::NotTaken(CommitProblem::MutationGap { expected: last + 1, found: id }.into());
        let Ok(stored_id) = i64::try_from(id) else { return gap() };
        if id != last + 1 {
            return gap();
        }
        let effect = self.next_mutation(&client_id, stored_id, ops);
        if let MutationEffect::Refused(error) = &effect {
            self.group.refusals.push(Refusal { client_id, id, error: error.clone() });
        }
        effect
    }

    /// The id advances with the write or with its refusal, so that what is queued behind it goes on.
    fn next_mutation(&mut self, client_id: &str, id: i64, ops: Result<Draft, CommitError>) -> MutationEffect {
        let (applied, at) = match ops {
            Ok(draft) => (apply(&draft, &self.head, &self.limits), draft.at),
            Err(error) => (Err(error), None),
        };
        let written = applied.and_then(|mut editor| {
            set_last_mutation_id(&mut editor, client_id, id);
            self.finish(editor, at, None)
        });
        match written {
            Ok(_) => MutationEffect::Applied,
            Err(error) if is_final(&error) => self.refuse_mutation(client_id, id, error),
            Err(error) => MutationEffect::NotTaken(error),
        }
    }

    /// Only the id advances.
    fn refuse_mutation(&mut self, client_id: &str, id: i64, error: CommitError) -> MutationEffect {
        let mut editor = SnapshotEditor::new(Arc::clone(&self.head));
        set_last_mutation_id(&mut editor, client_id, id);
        match self.finish(editor, None, None) {
            Ok(_) => MutationEffect::Refused(error),
            Err(error) => MutationEffect::NotTaken(error),
        }
    }
}
