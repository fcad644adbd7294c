//! What holds of the messages of any one connection, whatever the queries: checked on every message that a test sees.

use std::collections::HashMap;
use tidegate_wire::{
    model::{Epoch, Fingerprint},
    protocol::ServerMessage,
};

/// What is known of one connection's messages so far.
#[derive(Default)]
pub(crate) struct Laws {
    released: Option<u64>,
    epochs: HashMap<u64, Subscription>,
}

struct Subscription {
    epoch: Epoch,
    fp: Fingerprint,
    next_seq: u64,
    cv: u64,
    /// The snapshot's last part has come.
    complete: bool,
}

impl Laws {
    /// Looks at the next message.
    ///
    /// # Errors
    /// With the invariant's name and how it is broken.
    pub(crate) fn see(&mut self, message: &ServerMessage) -> Result<(), String> {
        match message {
            ServerMessage::Subscribed(subscribed) => {
                let (epoch, fp) = (subscribed.epoch, subscribed.fp);
                let fresh = Subscription { epoch, fp, next_seq: 0, cv: 0, complete: false };
                if let Some(old) = self.epochs.insert(subscribed.sub.0, fresh)
                    && old.epoch >= epoch
                {
                    return Err(format!("epochs: {epoch:?} after {:?} of sub {}", old.epoch, subscribed.sub));
                }
            }
            ServerMessage::Batch(batch) => {
                let (sub, cv, seq) = (batch.sub.0, batch.cv.0, batch.seq.0);
                let Some(own) = self.epochs.get_mut(&sub) else {
                    return Err(format!("a batch of sub {sub} before its subscribed"));
                };
                if own.epoch != batch.epoch || own.fp != batch.fp {
                    return Err(format!("sub {sub}: a batch of another epoch or fingerprint"));
                }
                if seq != own.next_seq {
                    return Err(format!("seq_is_gapless: sub {sub}: seq {seq}, expected {}", own.next_seq));
                }
                own.next_seq += 1;
                if own.complete {
                    if batch.ops.is_empty() {
                        return Err(format!("seq_is_gapless: sub {sub}: an empty batch used seq {seq}"));
                    }
                    // A large commit may come in several batches of its cv.
                    if cv < own.cv {
                        return Err(format!("sub {sub}: a batch of cv {cv} after one of cv {}", own.cv));
                    }
                    if self.released.is_some_and(|released| cv <= released) {
                        return Err(format!(
                            "progress_is_irrevocable: sub {sub}: a batch of cv {cv} after cv_min {:?}",
                            self.released
                        ));
                    }
                    if batch.more {
                        return Err(format!("sub {sub}: an incremental batch in parts"));
                    }
                } else {
                    if seq > 0 && cv != own.cv {
                        return Err(format!("sub {sub}: a snapshot's parts at cv {} and {cv}", own.cv));
                    }
                    own.complete = !batch.more;
                }
                own.cv = cv;
            }
            ServerMessage::Progress(progress) => {
                let cv_min = progress.cv_min.0;
                if self.released.is_some_and(|released| cv_min < released) {
                    return Err(format!(
                        "progress_is_irrevocable: cv_min {cv_min} after cv_min {:?}",
                        self.released
                    ));
                }
                self.released = Some(cv_min);
            }
            ServerMessage::Faulted(faulted) => {
                self.epochs.remove(&faulted.sub.0);
            }
            ServerMessage::Welcome(_)
            | ServerMessage::Error(_)
            | ServerMessage::PushResult(_)
            | ServerMessage::Goaway(_)
            | ServerMessage::Pong(_) => {}
        }
        Ok(())
    }

    /// The newest `cv_min`.
    pub(crate) fn released(&self) -> Option<u64> {
        self.released
    }
}
