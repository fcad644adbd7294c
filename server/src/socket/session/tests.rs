use super::*;
use tidegate_wire::{
    model::{Cv, Epoch, Fingerprint},
    protocol::client::{Ack, Auth, Mutation, Ping, Resume, Unsubscribe},
};

const SECOND: Duration = Duration::from_secs(1);

fn limits() -> SessionLimits {
    SessionLimits {
        subscriptions_max: 2,
        message_bytes_max: 1_000,
        mutations_max: 2,
        client_id_bytes_max: 8,
        hello_timeout: 10 * SECOND,
        ping_interval: 15 * SECOND,
        silence_max: 45 * SECOND,
    }
}

fn new_session() -> Session {
    Session::new(limits(), Instant::now())
}

fn open(client_id: Option<&str>) -> Session {
    let mut session = new_session();
    session.receive(hello(client_id));
    session
}

fn hello(client_id: Option<&str>) -> ClientMessage {
    ClientMessage::Hello(Hello { client_id: client_id.map(str::to_owned), token: None })
}

fn by_name(sub: u64) -> ClientMessage {
    subscribe(Subscribe { sub: SubId(sub), name: Some("q".to_owned()), ..Subscribe::default() })
}

fn subscribe(message: Subscribe) -> ClientMessage {
    ClientMessage::Subscribe(Box::new(message))
}

fn push(ids: &[u64]) -> ClientMessage {
    let mutations = ids.iter().map(|id| Mutation { id: *id, ops: Vec::new() }).collect();
    ClientMessage::Push(Push { mutations, json_cells: false })
}

/// The one error among the effects, as code and subscription; nothing else may be there.
#[track_caller]
fn only_error(effects: &[Effect]) -> (ErrorCode, Option<SubId>) {
    match effects {
        [Effect::Send(ServerMessage::Error(error))] => (error.code, error.sub),
        other => panic!("{other:?}"),
    }
}

/// Subscribes and reports success, as the driver does.
#[track_caller]
fn start(session: &mut Session, sub: u64) {
    let effects = session.receive(by_name(sub));
    assert!(matches!(&effects[..], [Effect::Subscribe { sub: s, .. }] if *s == SubId(sub)), "{effects:?}");
    session.subscribed(SubId(sub));
}

#[test]
fn hello_is_welcomed() {
    assert_eq!(new_session().receive(hello(None)), [Effect::Welcome]);
}

#[test]
fn hello_with_a_client_id_subscribes_to_its_mutation_row() {
    let effects = new_session().receive(hello(Some("c-1")));
    let [Effect::Welcome, Effect::Subscribe { sub: SubId(0), request, resume: None }] = &effects[..] else {
        panic!("{effects:?}")
    };
    let query = json!({"table": "tidegate_client_mutations",
        "where": {"op": "=", "args": [{"col": "client_id"}, "c-1"]}});
    assert_eq!(request.source, QuerySource::Query(query));
}

#[test]
fn messages_before_hello_are_refused_and_the_connection_goes_on() {
    let mut session = new_session();
    for message in [
        ClientMessage::Unsubscribe(Unsubscribe { sub: SubId(1) }),
        ClientMessage::Auth(Auth { token: String::new() }),
        push(&[1]),
        ClientMessage::Ping(Ping { t: json!(1) }),
        ClientMessage::Ack(Ack { cv: Cv(1) }),
    ] {
        assert_eq!(only_error(&session.receive(message)), (ErrorCode::BadMessage, None));
    }
    assert_eq!(only_error(&session.receive(by_name(1))), (ErrorCode::BadMessage, Some(SubId(1))));
    assert_eq!(session.receive(hello(None)), [Effect::Welcome]);
    start(&mut session, 1);
}

#[test]
fn a_second_hello_is_refused_and_the_connection_goes_on() {
    let mut session = open(None);
    assert_eq!(only_error(&session.receive(hello(Some("c")))), (ErrorCode::BadMessage, None));
    start(&mut session, 1);
}

#[test]
fn a_client_id_of_wrong_length_is_refused_and_hello_may_come_again() {
    for (client_id, taken) in [("", false), ("12345678", true), ("123456789", false), ("a\0b", false)] {
        let mut session = new_session();
        let effects = session.receive(hello(Some(client_id)));
        if taken {
            assert_eq!(effects[0], Effect::Welcome);
        } else {
            assert_eq!(only_error(&effects), (ErrorCode::BadMessage, None), "{client_id:?}");
            assert_eq!(session.receive(hello(None)), [Effect::Welcome]);
        }
    }
}

#[test]
fn an_undecodable_frame_closes_with_1008() {
    let mut session = open(None);
    let effects = session.undecodable("not JSON");
    assert_eq!(only_error(&effects[..1]), (ErrorCode::BadMessage, None));
    assert_eq!(effects[1..], [Effect::Close { code: 1008, reason: "bad_message" }]);
    assert!(session.is_closed() && session.receive(by_name(1)).is_empty() && session.too_large().is_empty());
}

#[test]
fn a_frame_of_the_wrong_type_closes_with_1008() {
    let effects = open(None).wrong_frame_type("binary");
    assert_eq!(only_error(&effects[..1]), (ErrorCode::BadMessage, None));
    assert_eq!(effects[1..], [Effect::Close { code: 1008, reason: "bad_message" }]);
}

#[test]
fn a_message_too_large_closes_with_1009() {
    let effects = open(None).too_large();
    assert_eq!(only_error(&effects[..1]), (ErrorCode::MessageTooLarge, None));
    assert_eq!(effects[1..], [Effect::Close { code: 1009, reason: "message_too_large" }]);
}

#[test]
fn sub_0_is_refused() {
    let mut session = open(None);
    assert_eq!(only_error(&session.receive(by_name(0))), (ErrorCode::BadMessage, Some(SubId(0))));
    let unsubscribe = ClientMessage::Unsubscribe(Unsubscribe { sub: SubId(0) });
    assert_eq!(only_error(&session.receive(unsubscribe)), (ErrorCode::BadMessage, Some(SubId(0))));
}

#[test]
fn a_sub_is_never_reused() {
    let mut session = open(None);
    start(&mut session, 1);
    assert_eq!(only_error(&session.receive(by_name(1))), (ErrorCode::BadMessage, Some(SubId(1))));
    let unsubscribe = ClientMessage::Unsubscribe(Unsubscribe { sub: SubId(1) });
    assert_eq!(session.receive(unsubscribe), [Effect::Unsubscribe(SubId(1))]);
    assert_eq!(only_error(&session.receive(by_name(1))), (ErrorCode::BadMessage, Some(SubId(1))));
    start(&mut session, 2);
    session.ended(SubId(2));
    assert_eq!(only_error(&session.receive(by_name(2))), (ErrorCode::BadMessage, Some(SubId(2))));
}

#[test]
fn a_refused_subscribe_leaves_its_number_free() {
    let mut session = open(None);
    session.receive(by_name(1));
    session.refused(SubId(1));
    start(&mut session, 1);
}

#[test]
fn exactly_one_of_query_sql_and_name_is_needed() {
    let mut session = open(None);
    let (query, sql, name) = (Some(json!({"table": "t"})), Some("select".to_owned()), Some("n".to_owned()));
    let base = Subscribe { sub: SubId(1), ..Subscribe::default() };
    for message in [
        base.clone(),
        Subscribe { query: query.clone(), sql: sql.clone(), ..base.clone() },
        Subscribe { query: query.clone(), name: name.clone(), ..base.clone() },
        Subscribe { sql: sql.clone(), name: name.clone(), ..base.clone() },
        Subscribe { query, sql, name, ..base },
    ] {
        assert_eq!(only_error(&session.receive(subscribe(message))), (ErrorCode::BadMessage, Some(SubId(1))));
    }
    start(&mut session, 1);
}

#[test]
fn arguments_of_the_token_are_forbidden() {
    let mut session = open(None);
    for name in ["auth.sub", "auth"] {
        let args = Map::from_iter([(name.to_owned(), json!("me"))]);
        let message = Subscribe { sub: SubId(1), name: Some("q".to_owned()), args, ..Subscribe::default() };
        assert_eq!(only_error(&session.receive(subscribe(message))), (ErrorCode::Forbidden, Some(SubId(1))));
    }
    start(&mut session, 1);
}

#[test]
fn subscriptions_are_bounded_and_ended_ones_make_room() {
    let mut session = open(None);
    start(&mut session, 1);
    start(&mut session, 2);
    assert_eq!(only_error(&session.receive(by_name(3))), (ErrorCode::TooManySubscriptions, Some(SubId(3))));
    session.ended(SubId(1));
    start(&mut session, 3);
    session.receive(ClientMessage::Unsubscribe(Unsubscribe { sub: SubId(2) }));
    start(&mut session, 4);
}

#[test]
fn a_resume_point_is_passed_on() {
    let resume = Resume { epoch: Epoch(4), cv: Cv(9), fp: Fingerprint(5) };
    let message =
        Subscribe { sub: SubId(1), name: Some("q".to_owned()), resume: Some(resume), ..Subscribe::default() };
    let effects = open(None).receive(subscribe(message));
    let [Effect::Subscribe { resume, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(*resume, Some(ResumePoint { epoch: Some(Epoch(4)), cv: Cv(9), fp: Fingerprint(5) }));
}

#[test]
fn unsubscribing_from_what_is_not_there_has_no_answer() {
    let mut session = open(None);
    assert!(session.receive(ClientMessage::Unsubscribe(Unsubscribe { sub: SubId(7) })).is_empty());
    start(&mut session, 7);
}

#[test]
fn a_push_without_a_client_id_is_refused_mutation_by_mutation() {
    let effects = open(None).receive(push(&[1, 2]));
    let refused: Vec<_> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Send(ServerMessage::PushResult(PushResult { id, error: Some(error) })) => {
                (*id, error.code)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(refused, [(1, ErrorCode::BadMessage), (2, ErrorCode::BadMessage)]);
}

#[test]
fn mutations_are_applied_in_order_and_bounded() {
    let mut session = open(Some("c"));
    let effects = session.receive(push(&[3, 4]));
    let ids: Vec<_> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Mutate { client_id, id, .. } if &**client_id == "c" => *id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [3, 4]);
    assert_eq!(only_error(&session.receive(push(&[5, 6, 7]))), (ErrorCode::BadMessage, None));
}

#[test]
fn ping_is_answered_with_what_it_carried() {
    let effects = open(None).receive(ClientMessage::Ping(Ping { t: json!({"a": [1]}) }));
    assert_eq!(effects, [Effect::Send(ServerMessage::Pong(Pong { t: json!({"a": [1]}) }))]);
}

#[test]
fn ack_and_auth_have_no_answer() {
    let mut session = open(None);
    assert!(session.receive(ClientMessage::Ack(Ack { cv: Cv(1) })).is_empty());
    assert!(session.receive(ClientMessage::Auth(Auth { token: "t".to_owned() })).is_empty());
    assert!(session.claims().is_empty());
}

#[test]
fn hello_has_a_deadline() {
    let mut session = new_session();
    let opened_at = session.opened_at;
    assert_eq!(session.next_tick(), opened_at + 10 * SECOND);
    assert!(session.tick(opened_at + 9 * SECOND).is_empty());
    // Talking otherwise does not move it.
    session.heard(opened_at + 9 * SECOND);
    let effects = session.tick(opened_at + 10 * SECOND);
    assert_eq!(only_error(&effects[..1]), (ErrorCode::BadMessage, None));
    assert_eq!(effects[1..], [Effect::Close { code: 1008, reason: "no hello" }]);
}

#[test]
fn a_silent_client_is_pinged_and_then_closed() {
    let mut session = open(None);
    let opened_at = session.opened_at;
    assert_eq!(session.tick(opened_at + 15 * SECOND), [Effect::Ping]);
    assert!(session.tick(opened_at + 16 * SECOND).is_empty());
    assert_eq!(session.next_tick(), opened_at + 30 * SECOND);
    assert_eq!(session.tick(opened_at + 30 * SECOND), [Effect::Ping]);
    let closed = [Effect::Close { code: 1001, reason: "no sign of life" }];
    assert_eq!(session.tick(opened_at + 45 * SECOND), closed);
    assert!(session.is_closed());
}

#[test]
fn a_client_that_answers_pings_stays() {
    let mut session = open(None);
    let mut now = session.opened_at;
    for _ in 0..10 {
        now += 15 * SECOND;
        assert_eq!(session.tick(now), [Effect::Ping]);
        now += SECOND;
        session.heard(now);
        assert_eq!(session.next_tick(), now + 15 * SECOND);
    }
    assert!(!session.is_closed());
}
