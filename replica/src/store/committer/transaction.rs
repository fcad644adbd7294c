//! Transactions: written elsewhere over a snapshot, and taken here when what they depend on is still as it was there.

use super::{Answer, Committer, record};
use crate::store::{CommitError, SnapshotEditor, TableId};
use tidegate_wire::model::Cv;
use tokio::sync::oneshot;

/// What a transaction has written, and what it has looked at.
pub struct Transaction {
    /// The edits, which leave all constraints satisfied.
    pub editor: SnapshotEditor,
    /// The tables that it read or wrote, and those that constraints of these are about.
    pub tables: Vec<TableId>,
}

/// What became of a [`Transaction`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// It is one commit, which is durable.
    Committed(Cv),
    /// Another commit came before it that changed what it depends on; nothing of it remains.
    Overtaken,
    /// The log does not take it.
    Refused(CommitError),
}

impl Committer {
    pub(super) fn transaction(&mut self, transaction: Transaction, to: oneshot::Sender<TransactionOutcome>) {
        let outcome = self.take_transaction(transaction);
        self.group.answers.push(Answer::Transaction { to, outcome });
    }

    fn take_transaction(&mut self, transaction: Transaction) -> TransactionOutcome {
        let Transaction { editor, tables } = transaction;
        let from = editor.origin();
        // Its reads were of the same rows as they would be now, so it is as if it had run now.
        let is_current = from.has_tables_of(&self.head)
            && tables.iter().all(|&table| match (from.table(table), self.head.table(table)) {
                (Some(then), Some(now)) => then.rows().ptr_eq(now.rows()),
                (Some(_), None) => false,
                // One that it made itself.
                (None, _) => true,
            });
        if !is_current {
            return TransactionOutcome::Overtaken;
        }
        let committed = editor.replayed_on(&self.head).and_then(|editor| {
            if !editor.changes_tables() {
                return self.finish(editor, None, None);
            }
            let cv = self.head.cv().next();
            self.append(|out| record::encode_script(cv, &editor, out))?;
            self.group.commits += 1;
            self.advance(editor.finish(cv));
            Ok(cv)
        });
        match committed {
            Ok(cv) => TransactionOutcome::Committed(cv),
            Err(error) => TransactionOutcome::Refused(error),
        }
    }
}
