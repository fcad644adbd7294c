//! How much one message may hold: what the server announced.

use super::mutations::push_of;
use crate::error::Fault;
use serde_json::{Map, Value as Json};
use tidegate_wire::{
    codec::Codec,
    protocol::{ClientMessage, ErrorCode, client::Mutation, limits},
};

/// Most mutations that are gathered in one `push`, whatever the server takes.
const MUTATIONS_PER_PUSH: usize = 100;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageLimits {
    codec: Codec,
    message_bytes_max: usize,
    mutations_max: usize,
}

/// Mutations for one message, in order; or one that no message holds, by its id, and why.
pub(super) type Part = Result<Vec<Mutation>, (u64, Fault)>;

impl Default for MessageLimits {
    fn default() -> Self {
        Self::announced(Codec::MessagePack, &Map::new())
    }
}

impl MessageLimits {
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
    /// For a message that is too large.
    pub(super) fn check(&self, message: &ClientMessage) -> Result<(), Fault> {
        let mut encoded = Vec::new();
        self.codec.encode(message, &mut encoded);
        let (bytes, bytes_max) = (encoded.len(), self.message_bytes_max);
        if bytes <= bytes_max {
            return Ok(());
        }
        let message = format!(
            "it takes a message of {bytes} bytes, and the server takes {bytes_max} (limits.message_bytes_max)"
        );
        Err(Fault { code: ErrorCode::MessageTooLarge, message, retry: false })
    }

    /// Divides mutations into as many messages as it takes.
    pub(super) fn divide(&self, mut mutations: Vec<Mutation>, parts: &mut Vec<Part>) {
        let whole = match mutations.len() {
            0 => return,
            count if count > self.mutations_max => None,
            _ => Some(self.check(&push_of(mutations.clone()))),
        };
        match whole {
            Some(Ok(())) => parts.push(Ok(mutations)),
            Some(Err(fault)) if mutations.len() == 1 => parts.push(Err((mutations[0].id, fault))),
            Some(Err(_)) | None => {
                let rest = mutations.split_off(mutations.len() / 2);
                self.divide(mutations, parts);
                self.divide(rest, parts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        query::Query,
        state::{
            Effect,
            script::{Script, sent},
        },
    };
    use serde_json::json;
    use tidegate_wire::model::SubId;

    fn mutation(id: u64, text: usize) -> Mutation {
        let ops = json!([{"insert": "notes", "row": {"id": id, "text": "é".repeat(text)}}]);
        Mutation { id, ops: serde_json::from_value(ops).expect("an operation") }
    }

    fn limits(codec: Codec, announced: Json) -> MessageLimits {
        MessageLimits::announced(codec, announced.as_object().expect("an object"))
    }

    fn divided(limits: MessageLimits, mutations: Vec<Mutation>) -> Vec<Part> {
        let mut parts = Vec::new();
        limits.divide(mutations, &mut parts);
        parts
    }

    #[test]
    fn a_mutation_may_take_a_whole_message_and_no_more() {
        for codec in [Codec::MessagePack, Codec::Json] {
            let mutations = || vec![mutation(1, 300), mutation(2, 1)];
            let mut encoded = Vec::new();
            codec.encode(&push_of(vec![mutation(1, 300)]), &mut encoded);
            let bytes = encoded.len();
            let parts = divided(limits(codec, json!({ "message_bytes_max": bytes })), mutations());
            assert_eq!(parts, [Ok(vec![mutation(1, 300)]), Ok(vec![mutation(2, 1)])]);
            let parts = divided(limits(codec, json!({ "message_bytes_max": bytes - 1 })), mutations());
            let [Err((1, fault)), Ok(rest)] = &parts[..] else { panic!("{parts:?}") };
            assert_eq!((fault.code, rest), (ErrorCode::MessageTooLarge, &vec![mutation(2, 1)]));
            assert!(fault.message.contains(&format!("{bytes} bytes")), "{}", fault.message);
        }
    }

    #[test]
    fn many_are_divided_by_bytes_and_by_number() {
        let divided = |announced: Json, count: u64| {
            let limits = limits(Codec::Json, announced);
            let parts = divided(limits, (1..=count).map(|id| mutation(id, 100)).collect());
            let pushes = parts.into_iter().map(|part| {
                let mutations = part.expect("each fits");
                assert_eq!(limits.check(&push_of(mutations.clone())), Ok(()));
                mutations.iter().map(|it| it.id).collect::<Vec<_>>()
            });
            pushes.collect::<Vec<_>>()
        };
        assert_eq!(divided(json!({}), 3), [[1, 2, 3]]);
        assert_eq!(divided(json!({ "mutations_max": 2 }), 3), [vec![1], vec![2, 3]]);
        assert_eq!(divided(json!({ "message_bytes_max": 600 }), 4), [[1, 2], [3, 4]]);
        assert_eq!(divided(json!({}), 0), Vec::<Vec<u64>>::new());
        assert!(divided(json!({}), 250).iter().all(|ids| ids.len() <= MUTATIONS_PER_PUSH));
    }

    #[test]
    fn a_query_that_no_message_holds_ends_by_itself() {
        let mut script = Script::new();
        let large = || Query::sql("x".repeat(200));
        let mut effects = Vec::new();
        // Nobody knows the limit yet: it is sent.
        let early = script.state.subscribe(large(), &mut effects);
        assert_eq!(sent(&effects).len(), 1);
        script.send(
            json!({"welcome": {"protocol": 1, "server": "s", "conn": "1", "cv": 1, "limits": {"message_bytes_max": 200}}}),
        );
        let small = script.subscribe();
        effects.clear();
        let late = script.state.subscribe(large(), &mut effects);
        let ended = |effects: &[Effect]| -> Vec<(SubId, ErrorCode)> {
            let ended = effects.iter().filter_map(|effect| match effect {
                Effect::Ended { sub, fault } => Some((*sub, fault.code)),
                _ => None,
            });
            ended.collect()
        };
        assert_eq!((ended(&effects), sent(&effects).len()), (vec![(late, ErrorCode::MessageTooLarge)], 0));

        script.state.disconnect();
        effects.clear();
        script.state.connect(Codec::Json, None, &mut effects);
        assert_eq!(ended(&effects), [(early, ErrorCode::MessageTooLarge)]);
        let asked: Vec<Json> =
            sent(&effects).into_iter().filter(|message| message.get("subscribe").is_some()).collect();
        assert_eq!(asked, [json!({"subscribe": {"sub": small, "sql": "select"}})]);
    }
}
