//! How much one `push` may hold: what the server announced on the connection.

use super::mutations::push_of;
use crate::error::Fault;
use serde_json::{Map, Value as Json};
use tidegate_wire::{
    codec::Codec,
    protocol::{ErrorCode, client::Mutation, limits},
};

/// Most mutations that are gathered in one `push`, whatever the server takes.
const MUTATIONS_PER_PUSH: usize = 100;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushLimits {
    codec: Codec,
    message_bytes_max: usize,
    mutations_max: usize,
}

impl Default for PushLimits {
    fn default() -> Self {
        Self::announced(Codec::MessagePack, &Map::new())
    }
}

impl PushLimits {
    /// Those of a `welcome`; the protocol's own where it is silent.
    pub(crate) fn announced(codec: Codec, announced: &Map<String, Json>) -> Self {
        let number = |name: &str, default: usize| {
            announced
                .get(name)
                .and_then(Json::as_u64)
                .map_or(default, |it| usize::try_from(it).unwrap_or(usize::MAX))
        };
        let mutations_max = number("mutations_max", limits::MUTATIONS_MAX).clamp(1, MUTATIONS_PER_PUSH);
        Self {
            codec,
            message_bytes_max: number("message_bytes_max", limits::MESSAGE_BYTES_MAX),
            mutations_max,
        }
    }

    /// # Errors
    /// For a mutation that is too large for a message of its own.
    pub(super) fn check(&self, mutation: &Mutation) -> Result<(), Fault> {
        let (bytes, bytes_max) = (self.bytes(std::slice::from_ref(mutation)), self.message_bytes_max);
        if bytes <= bytes_max {
            return Ok(());
        }
        let message = format!(
            "the mutation takes a message of {bytes} bytes, and the server takes {bytes_max} (limits.message_bytes_max); \
             divide it"
        );
        Err(Fault { code: ErrorCode::MessageTooLarge, message, retry: false })
    }

    /// Calls `each` with as many of the mutations at a time as a message takes, in order.
    pub(super) fn divide(&self, mut mutations: Vec<Mutation>, each: &mut dyn FnMut(Vec<Mutation>)) {
        let is_small =
            mutations.len() <= self.mutations_max && self.bytes(&mutations) <= self.message_bytes_max;
        match mutations.len() {
            0 => {}
            count if count > 1 && !is_small => {
                let rest = mutations.split_off(count / 2);
                self.divide(mutations, each);
                self.divide(rest, each);
            }
            _ => each(mutations),
        }
    }

    /// Bytes of the message that holds them.
    fn bytes(&self, mutations: &[Mutation]) -> usize {
        let mut bytes = Vec::new();
        self.codec.encode(&push_of(mutations.to_vec()), &mut bytes);
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mutation(id: u64, text: usize) -> Mutation {
        let ops = json!([{"insert": "notes", "row": {"id": id, "text": "é".repeat(text)}}]);
        Mutation { id, ops: serde_json::from_value(ops).expect("an operation") }
    }

    fn limits(codec: Codec, announced: Json) -> PushLimits {
        PushLimits::announced(codec, announced.as_object().expect("an object"))
    }

    #[test]
    fn a_mutation_may_take_a_whole_message_and_no_more() {
        for codec in [Codec::MessagePack, Codec::Json] {
            let large = mutation(1, 300);
            let bytes = limits(codec, json!({})).bytes(std::slice::from_ref(&large));
            assert!(limits(codec, json!({ "message_bytes_max": bytes })).check(&large).is_ok());
            let fault = limits(codec, json!({ "message_bytes_max": bytes - 1 }))
                .check(&large)
                .expect_err("too large");
            assert_eq!(fault.code, ErrorCode::MessageTooLarge);
            assert!(fault.message.contains(&format!("{bytes} bytes")), "{}", fault.message);
        }
    }

    #[test]
    fn many_are_divided_by_bytes_and_by_number() {
        let divided = |announced: Json, count: u64| {
            let limits = limits(Codec::Json, announced);
            let mut pushes = Vec::new();
            limits.divide((1..=count).map(|id| mutation(id, 100)).collect(), &mut |mutations| {
                assert!(limits.bytes(&mutations) <= limits.message_bytes_max);
                pushes.push(mutations.iter().map(|it| it.id).collect::<Vec<_>>());
            });
            pushes
        };
        assert_eq!(divided(json!({}), 3), [[1, 2, 3]]);
        assert_eq!(divided(json!({ "mutations_max": 2 }), 3), [vec![1], vec![2, 3]]);
        assert_eq!(divided(json!({ "message_bytes_max": 600 }), 4), [[1, 2], [3, 4]]);
        assert_eq!(divided(json!({}), 0), Vec::<Vec<u64>>::new());
        assert!(divided(json!({}), 250).iter().all(|ids| ids.len() <= MUTATIONS_PER_PUSH));
    }
}
