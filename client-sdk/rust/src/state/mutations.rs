//! The queue of mutations that are not both answered and visible yet.
//!
//! Ids are gapless per `client_id` across connections and processes, so none is given before the server's own count,
//! the subscription 0, was seen. Every connection sends again from the first mutation in the queue; the server
//! acknowledges without effect what it has applied already, also what has the id of another process's mutation. So an id
//! that is guessed loses its mutation.

use super::{effect::Effect, message_limits::MessageLimits};
use crate::error::{Fault, MutationError};
use std::collections::VecDeque;
use tidegate_wire::{
    model::{Cv, commit::RowOp},
    protocol::{
        ClientMessage, ErrorCode,
        client::{Mutation, Push},
        server::PushResult,
    },
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Mutations {
    queue: VecDeque<Pending>,
    queue_max: usize,
    next_ticket: u64,
    /// The last id that was given, by this process or before it; `None` before the server's count was seen.
    last_id: Option<u64>,
    /// The last id that is in the released state.
    confirmed: u64,
    /// The cv of the release that confirmed it.
    confirmed_cv: Cv,
    /// Whether this connection has shown the server's count, so that mutations may be sent.
    ready: bool,
    /// That count.
    counted: u64,
    /// Whether ids were given without any count, to a server that cannot write.
    uncounted: bool,
    /// What this connection's server takes.
    limits: MessageLimits,
}

#[derive(Debug)]
struct Pending {
    ticket: u64,
    id: Option<u64>,
    ops: Vec<RowOp>,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Applied,
    Refused,
}

impl Mutations {
    pub(crate) fn new(queue_max: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            queue_max,
            next_ticket: 1,
            last_id: None,
            confirmed: 0,
            confirmed_cv: Cv(0),
            ready: false,
            counted: 0,
            uncounted: false,
            limits: MessageLimits::default(),
        }
    }

    /// The server told what it takes on this connection.
    pub(crate) fn limit(&mut self, limits: MessageLimits) {
        self.limits = limits;
    }

    /// Queues a mutation, and sends it when the connection is ready; returns its ticket.
    pub(crate) fn push(&mut self, ops: Vec<RowOp>, effects: &mut Vec<Effect>) -> Result<u64, MutationError> {
        if self.queue.len() >= self.queue_max {
            return Err(MutationError::QueueFull { max: self.queue_max });
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.push_back(Pending { ticket, id: None, ops, answer: None });
        if self.ready {
            self.send_from(self.queue.len() - 1, effects);
        }
        Ok(ticket)
    }

    /// The id of a mutation in the queue, once it has one.
    pub(crate) fn id(&self, ticket: u64) -> Option<u64> {
        self.queue.iter().find(|pending| pending.ticket == ticket)?.id
    }

    /// The connection ended.
    pub(crate) fn disconnect(&mut self) {
        self.ready = false;
        if std::mem::take(&mut self.uncounted) {
            self.last_id = None;
            self.queue.iter_mut().for_each(|pending| pending.id = None);
        }
    }

    /// The server cannot write, and counts nothing: what is sent is refused with the reason.
    pub(crate) fn cannot_write(&mut self, effects: &mut Vec<Effect>) {
        if self.ready {
            return;
        }
        self.ready = true;
        self.counted = 0;
        self.uncounted = self.last_id.is_none();
        self.send_from(0, effects);
    }

    /// The server's count on this connection: its last id of this client, released or not.
    pub(crate) fn counted(&mut self, last: u64, effects: &mut Vec<Effect>) {
        if self.ready {
            return;
        }
        self.ready = true;
        self.counted = last;
        let first = self.queue.iter().find_map(|pending| pending.id);
        if first.is_some_and(|first| last + 1 < first) {
            // The server has lost what it once confirmed (another database, or one restored): the queue starts
            // over from its count, or nothing would ever be taken again.
            self.queue.retain(|pending| pending.answer != Some(Answer::Refused));
            self.queue.iter_mut().for_each(|pending| (pending.id, pending.answer) = (None, None));
            self.confirmed = last;
            self.last_id = Some(last);
        } else {
            // Ids given before the connection was lost stand; without any, the server's count goes on.
            self.last_id = Some(first.and(self.last_id).unwrap_or(last).max(last));
            self.confirmed = self.confirmed.min(last);
        }
        self.send_from(0, effects);
    }

    /// The server answered a mutation.
    pub(crate) fn answered(&mut self, result: PushResult, effects: &mut Vec<Effect>) {
        let Some(index) = self.queue.iter().position(|pending| pending.id == Some(result.id)) else { return };
        // Answers come in order: what is refused ahead of one before it leaves a gap.
        let is_gap = self.queue.iter().take(index).any(|pending| pending.answer.is_none());
        let pending = &mut self.queue[index];
        match result.error {
            None if pending.answer.is_none() => pending.answer = Some(Answer::Applied),
            None => {}
            Some(error) if error.code != ErrorCode::ReadOnly && (is_gap || advances_nothing(error.code)) => {
                // It was not taken, and waits to be sent again with all that is behind it.
                let (code, message) = (error.code, error.message);
                effects.push(Effect::Reconnect { code, message, after_ms: 0 });
            }
            Some(error) => {
                if pending.answer.replace(Answer::Refused) != Some(Answer::Refused) {
                    let ticket = pending.ticket;
                    let retry = false;
                    let fault = Fault { code: error.code, message: error.message, retry };
                    effects.push(Effect::Refused { ticket, fault });
                }
                if error.code == ErrorCode::ReadOnly {
                    // Nothing counts ids there, so nothing would ever take it out.
                    self.queue.remove(index);
                }
            }
        }
        self.settle(effects);
    }

    /// The released state has reached the server's count `last`.
    pub(crate) fn released(&mut self, last: u64, cv: Cv, effects: &mut Vec<Effect>) {
        self.confirmed = last;
        self.confirmed_cv = cv;
        self.settle(effects);
    }

    /// Takes out what is answered and visible.
    fn settle(&mut self, effects: &mut Vec<Effect>) {
        let (confirmed, cv) = (self.confirmed, self.confirmed_cv);
        self.queue.retain(|pending| {
            let visible = pending.id.is_some_and(|id| id <= confirmed);
            let Some(answer) = pending.answer.filter(|_| visible) else { return true };
            if answer == Answer::Applied {
                effects.push(Effect::Confirmed { ticket: pending.ticket, cv });
            }
            false
        });
    }

    fn send_from(&mut self, from: usize, effects: &mut Vec<Effect>) {
        let mut last = self.last_id.unwrap_or(0);
        let due = self.queue.iter_mut().skip(from).map(|pending| {
            let id = *pending.id.get_or_insert_with(|| {
                last += 1;
                last
            });
            Mutation { id, ops: pending.ops.clone() }
        });
        let mut parts = Vec::new();
        self.limits.divide(due.collect(), &mut parts);
        self.last_id = Some(last);
        for part in parts {
            let mutations = part.unwrap_or_else(|(id, fault)| {
                self.refuse(id, fault, effects);
                // Its id is sent all the same, as the server takes no gap.
                vec![Mutation { id, ops: Vec::new() }]
            });
            effects.push(Effect::Send(push_of(mutations)));
        }
    }

    /// No message holds it. What the server has already it has, though.
    fn refuse(&mut self, id: u64, fault: Fault, effects: &mut Vec<Effect>) {
        if id <= self.counted {
            return;
        }
        let of_id = self.queue.iter_mut().find(|pending| pending.id == Some(id));
        let pending = of_id.expect("what is sent waits in the queue");
        pending.ops = Vec::new();
        if pending.answer.replace(Answer::Refused).is_none() {
            effects.push(Effect::Refused { ticket: pending.ticket, fault });
        }
    }
}

/// Whether the server leaves a client's count where it is when a mutation meets this: the same may be taken later.
fn advances_nothing(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::NotReady | ErrorCode::SchemaChanged | ErrorCode::Internal)
}

/// The message. An application gives JSON, and nothing here knows the columns' types.
pub(super) fn push_of(mutations: Vec<Mutation>) -> ClientMessage {
    ClientMessage::Push(Push { mutations, json_cells: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidegate_wire::codec::Codec;

    fn insert(text: &str) -> Vec<RowOp> {
        serde_json::from_value(json!([{"insert": "notes", "row": {"id": 1, "text": text}}]))
            .expect("an operation")
    }

    /// The ids that were sent, each with its number of operations.
    fn sent(effects: &[Effect]) -> Vec<(u64, usize)> {
        let pushes = effects.iter().filter_map(|effect| match effect {
            Effect::Send(ClientMessage::Push(push)) => Some(&push.mutations),
            _ => None,
        });
        pushes.flatten().map(|mutation| (mutation.id, mutation.ops.len())).collect()
    }

    /// Fails when it is sent again and again, and when its id is left out.
    #[test]
    fn a_mutation_that_no_message_holds_is_refused_and_those_after_it_go_on() {
        let (mut mutations, mut effects) = (Mutations::new(10), Vec::new());
        let announced = json!({"message_bytes_max": 200});
        mutations.limit(MessageLimits::announced(Codec::Json, announced.as_object().expect("an object")));
        let large = mutations.push(insert(&"a".repeat(200)), &mut effects).expect("there is room");
        mutations.push(insert("b"), &mut effects).expect("there is room");
        mutations.counted(0, &mut effects);
        let refused: Vec<u64> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Refused { ticket, fault } if fault.code == ErrorCode::MessageTooLarge => {
                    Some(*ticket)
                }
                _ => None,
            })
            .collect();
        assert_eq!((refused, sent(&effects)), (vec![large], vec![(1, 0), (2, 1)]));

        // On the next connection it is not refused once more; the server's count takes it out.
        effects.clear();
        mutations.disconnect();
        mutations.counted(1, &mut effects);
        assert_eq!(sent(&effects), [(1, 0), (2, 1)]);
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Refused { .. })));
        mutations.released(1, Cv(7), &mut effects);
        assert_eq!(mutations.id(large), None);
    }
}
