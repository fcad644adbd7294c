//! The golden frames of `wire/vectors`: encoding gives their bytes, decoding gives the messages, and the server's
//! fast path for batches writes the same. `TIDEGATE_BLESS=1` writes the files anew.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json, json};
use std::{fmt::Debug, path::PathBuf};
use tidegate_wire::{
    codec::{BatchHead, Codec, OpsEncoder, encode_batch_head},
    model::{
        ColumnType, Cv, Epoch, Fingerprint, Layout, OpKind, PlaceMask, Seq, SubId, Value,
        commit::{Delete, Insert, RowOp, Update},
    },
    protocol::{
        Cell, ClientMessage, ErrorCode, ServerMessage,
        client::{Ack, Auth, Hello, Mutation, Ping, Push, Resume, Subscribe, Unsubscribe},
        server::{
            Batch, ErrorMessage, Faulted, Goaway, Op, Pong, Progress, PushError, PushResult, Subscribed,
            Welcome,
        },
    },
};

/// A message that may differ between the codecs in the forms of its cells.
struct Vector<M> {
    name: &'static str,
    of: Box<dyn Fn(Codec) -> M>,
    /// What a client shows after it, for frames of a session.
    shows: Option<Json>,
}

fn vector<M: Clone + 'static>(name: &'static str, message: M) -> Vector<M> {
    Vector { name, of: Box::new(move |_| message.clone()), shows: None }
}

fn check<M: Serialize + DeserializeOwned + Debug>(file: &str, about: &str, vectors: Vec<Vector<M>>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors").join(file);
    let mut frames = Vec::new();
    for Vector { name, of, shows } in vectors {
        let mut frame = Map::new();
        frame.insert("name".to_owned(), name.into());
        for codec in Codec::ALL {
            let message = of(codec);
            let mut bytes = Vec::new();
            codec.encode(&message, &mut bytes);
            let mut decoded = Vec::new();
            codec.decode(&bytes, |m: M| decoded.push(m)).expect(name);
            // By their text, since NaN is not equal to itself.
            assert_eq!(format!("{decoded:?}"), format!("[{message:?}]"), "{name}");
            match codec {
                Codec::Json => {
                    let text = String::from_utf8(bytes).expect("JSON is UTF-8");
                    frame.insert("json".to_owned(), text.into());
                }
                Codec::MessagePack => {
                    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    frame.insert("msgpack".to_owned(), hex.into());
                }
            }
        }
        if let Some(shows) = shows {
            frame.insert("shows".to_owned(), shows);
        }
        frames.push(Json::Object(frame));
    }
    let whole = sorted(json!({"about": about, "frames": frames}));
    let text = serde_json::to_string_pretty(&whole).expect("JSON") + "\n";
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the vectors can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the vectors are there");
    assert_eq!(text, golden, "{} differs; if that is meant, run with TIDEGATE_BLESS=1", path.display());
}

/// With members in key order, so that the files do not depend on the order in which they stand here.
fn sorted(mut json: Json) -> Json {
    json.sort_all_objects();
    json
}

fn object(json: Json) -> Map<String, Json> {
    match sorted(json) {
        Json::Object(object) => object,
        other => panic!("{other}"),
    }
}

const FP: Fingerprint = Fingerprint(0x0123_4567_89ab_cdef);

#[test]
fn client_messages() {
    let subscribe = |subscribe: Subscribe| ClientMessage::Subscribe(Box::new(subscribe));
    let query = sorted(
        json!({"table": "issues", "where": {"op": "=", "args": [{"col": "project"}, {"param": "p"}]},
        "order_by": [["created", "desc", "nulls last"]], "limit": 50,
        "related": [{"as": "author", "one": true, "on": [["author_id", "id"]], "query": {"table": "users"}}]}),
    );
    let resume = Resume { epoch: Epoch(7), cv: Cv(1_000_000), fp: FP };
    let ops = vec![
        RowOp::Insert(Insert {
            insert: "issues".to_owned(),
            row: object(json!({"id": 1, "title": "a", "score": 0.5, "closed": null})).into(),
        }),
        RowOp::Update(Update {
            update: "issues".to_owned(),
            key: object(json!({"id": 1})).into(),
            set: object(json!({"title": "b"})).into(),
        }),
        RowOp::Delete(Delete { delete: "issues".to_owned(), key: object(json!({"id": 1})).into() }),
    ];
    check(
        "client_messages.json",
        "Every kind of message from a client to the server.",
        vec![
            vector("hello", ClientMessage::Hello(Hello::default())),
            vector(
                "hello with client_id and token",
                ClientMessage::Hello(Hello {
                    client_id: Some("c-1".to_owned()),
                    token: Some("eyJ.e30.x".to_owned()),
                }),
            ),
            vector(
                "subscribe by query, with arguments",
                subscribe(Subscribe {
                    sub: SubId(1),
                    query: Some(query),
                    args: object(json!({"p": 7})),
                    ..Subscribe::default()
                }),
            ),
            vector(
                "subscribe by sql, resuming",
                subscribe(Subscribe {
                    sub: SubId(300),
                    sql: Some("select id from issues".to_owned()),
                    resume: Some(resume),
                    ..Subscribe::default()
                }),
            ),
            vector(
                "subscribe by name",
                subscribe(Subscribe {
                    sub: SubId(70_000),
                    name: Some("open_issues".to_owned()),
                    ..Subscribe::default()
                }),
            ),
            vector("unsubscribe", ClientMessage::Unsubscribe(Unsubscribe { sub: SubId(1) })),
            vector("auth", ClientMessage::Auth(Auth { token: "eyJ.e30.y".to_owned() })),
            vector(
                "push",
                ClientMessage::Push(Push { mutations: vec![Mutation { id: 1, ops }], json_cells: false }),
            ),
            vector("ping", ClientMessage::Ping(Ping { t: json!(1) })),
            vector("ack", ClientMessage::Ack(Ack { cv: Cv(u64::from(u32::MAX) + 1) })),
        ],
    );
}

#[test]
fn server_messages() {
    let error = |sub| {
        ServerMessage::Error(ErrorMessage {
            code: ErrorCode::BadQuery,
            message: "no such thing".to_owned(),
            sub,
        })
    };
    check(
        "server_messages.json",
        "Every kind of message from the server to a client that session.json does not show.",
        vec![
            vector("error", error(None)),
            vector("error about a subscription", error(Some(SubId(1)))),
            vector(
                "faulted",
                ServerMessage::Faulted(Faulted {
                    sub: SubId(1),
                    code: ErrorCode::QueryFaulted,
                    message: "division by zero".to_owned(),
                    retry: true,
                }),
            ),
            vector("push_result", ServerMessage::PushResult(PushResult { id: 5, error: None })),
            vector(
                "push_result of a refusal",
                ServerMessage::PushResult(PushResult {
                    id: 5,
                    error: Some(PushError {
                        code: ErrorCode::Conflict,
                        message: "issues has a row with id 1".to_owned(),
                    }),
                }),
            ),
            vector(
                "goaway",
                ServerMessage::Goaway(Goaway {
                    code: ErrorCode::ShuttingDown,
                    message: "the server is stopping".to_owned(),
                    retry_after_ms: 500,
                }),
            ),
            vector("pong", ServerMessage::Pong(Pong { t: json!({"any": [1, "thing"]}) })),
        ],
    );
}

/// The table that has every type.
const TYPES: [(&str, ColumnType); 11] = [
    ("id", ColumnType::Int8),
    ("flag", ColumnType::Bool),
    ("int8", ColumnType::Int8),
    ("float8", ColumnType::Float8),
    ("text", ColumnType::Text),
    ("bytea", ColumnType::Bytea),
    ("timestamptz", ColumnType::Timestamptz),
    ("date", ColumnType::Date),
    ("uuid", ColumnType::Uuid),
    ("numeric", ColumnType::Numeric),
    ("json", ColumnType::Json),
];

fn layout() -> Layout {
    let columns = |columns: &[(&str, ColumnType)]| -> Json {
        columns.iter().map(|(name, ty)| json!({"name": name, "type": ty})).collect()
    };
    let all: Vec<usize> = (0..TYPES.len()).collect();
    serde_json::from_value(json!({
        "tables": [{"name": "cells", "columns": columns(&TYPES), "key": [0]},
            {"name": "notes", "key": [0, 1], "columns": columns(&[("cell", ColumnType::Float8),
                ("no", ColumnType::Int8), ("text", ColumnType::Text)])}],
        "places": [
            {"parent": null, "as": null, "table": 0, "columns": all, "on": [],
                "order": [[2, "desc", "nulls first"], [0, "asc", "nulls last"]], "one": false},
            {"parent": 0, "as": "notes", "table": 1, "columns": [1, 2], "on": [[0, 0]],
                "order": [[1, "asc", "nulls last"]], "one": false},
            {"parent": 0, "as": "first", "table": 1, "columns": [2], "on": [[0, 0]],
                "order": [[1, "asc", "nulls last"]], "one": true}]}))
    .expect("a layout")
}

/// A row of the first table from the JSON forms of its values.
fn cells(values: Json) -> Vec<Value> {
    let values = values.as_array().expect("an array").clone();
    assert_eq!(values.len(), TYPES.len());
    values.iter().zip(TYPES).map(|(json, (_, ty))| Value::from_json(ty, json).expect("a value")).collect()
}

#[derive(Clone)]
struct RowOperation(OpKind, usize, u32, Vec<Value>);

/// A batch of subscription 1, epoch 7, checked against the fast path.
fn batch(name: &'static str, seq: u64, cv: u64, more: bool, ops: Vec<RowOperation>) -> Vector<ServerMessage> {
    let of = move |codec: Codec| {
        let (sub, epoch, seq, cv) = (SubId(1), Epoch(7), Seq(seq), Cv(cv));
        let operation = |op: &RowOperation| {
            let RowOperation(kind, table, places, values) = op;
            let (table, places) = (*table, PlaceMask(*places));
            let cells = values.iter().map(|value| Cell::from_value(value, codec)).collect();
            match kind {
                OpKind::Add => Op::Add { table, places, cells },
                OpKind::Edit => Op::Edit { table, places, cells },
                OpKind::Remove => Op::Remove { table, key: cells },
            }
        };
        let message = ServerMessage::Batch(Batch {
            sub,
            epoch,
            seq,
            cv,
            fp: FP,
            more,
            ops: ops.iter().map(operation).collect(),
        });
        let mut general = Vec::new();
        codec.encode(&message, &mut general);
        let mut fast = Vec::new();
        encode_batch_head(codec, &BatchHead { sub, epoch, seq, cv, fp: FP, more }, &mut fast);
        let mut encoder = OpsEncoder::new(codec);
        for RowOperation(kind, table, places, values) in &ops {
            encoder.push(*kind, *table, PlaceMask(*places), values.iter().map(Value::as_ref));
        }
        fast.extend(encoder.finish());
        assert_eq!(fast, general, "{name}: the fast path and the messages encode alike ({codec:?})");
        message
    };
    Vector { name, of: Box::new(of), shows: None }
}

fn welcome() -> Vector<ServerMessage> {
    vector(
        "welcome",
        ServerMessage::Welcome(Welcome {
            protocol: 1,
            server: "tidegate/0.1.0".to_owned(),
            conn: "c1".to_owned(),
            cv: Cv(41),
            limits: object(json!({"message_bytes_max": 4_194_304})),
        }),
    )
}

fn subscribed(Layout { tables, places }: Layout) -> Vector<ServerMessage> {
    vector(
        "subscribed",
        ServerMessage::Subscribed(Subscribed {
            sub: SubId(1),
            epoch: Epoch(7),
            fp: FP,
            tables,
            places,
            resumed: false,
        }),
    )
}

fn progress(name: &'static str, cv_min: u64, shows: Json) -> Vector<ServerMessage> {
    let message = ServerMessage::Progress(Progress { cv_min: Cv(cv_min) });
    Vector { shows: Some(shows), ..vector(name, message) }
}

#[test]
fn session() {
    use OpKind::{Add, Edit, Remove};
    let max = cells(json!([
        1, true, i64::MAX, "NaN", "é \"quoted\"\n", "AP8=", "2013-02-04T05:00:00.123456Z", "1969-12-31",
        "67e55044-10b1-426f-9247-bb680e5fe0c8", "-12.500", {"a": [1, null], "b": "x"}]));
    let min = cells(json!([
        2,
        false,
        i64::MIN,
        5.0,
        "",
        "",
        "2013-02-04T05:00:00Z",
        "2013-02-04",
        "00000000-0000-0000-0000-000000000000",
        "NaN",
        [1.5]
    ]));
    let nulls = cells(json!([3, null, null, null, null, null, null, null, null, null, null]));
    let other = cells(json!([
        -4,
        true,
        0,
        "-Infinity",
        "x".repeat(40),
        "/w==",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "123456789012345678901234567890",
        true
    ]));
    let note =
        |cell: f64, no: i64, text: &str| vec![Value::Float8(cell), Value::Int8(no), Value::Text(text.into())];
    let show = |values: &[Value], notes: Json, first: Json| {
        let mut row: Map<String, Json> =
            values.iter().zip(TYPES).map(|(value, (name, _))| (name.to_owned(), value.to_json())).collect();
        row.insert("notes".to_owned(), notes);
        row.insert("first".to_owned(), first);
        Json::Object(row)
    };
    let mut changed = min.clone();
    changed[4] = Value::Text("now".into());
    let two_notes = json!([{"no": 1, "text": "one"}, {"no": 2, "text": "two"}]);
    let before = json!([
        show(&nulls, json!([]), json!(null)),
        show(&max, two_notes.clone(), json!({"text": "one"})),
        show(&other, json!([]), json!(null)),
        show(&min, json!([]), json!(null))
    ]);
    let after = json!([
        show(&max, json!([{"no": 2, "text": "two"}]), json!({"text": "two"})),
        show(&other, json!([]), json!(null)),
        show(&changed, json!([{"no": 9, "text": "nine"}]), json!({"text": "nine"}))
    ]);
    check(
        "session.json",
        "One connection's frames in order, for a client that subscribed as 1. After a frame with \"shows\", the \
         client shows exactly that: an empty list also before the first release.",
        vec![
            welcome(),
            subscribed(layout()),
            batch(
                "the snapshot's first part: every type",
                0,
                42,
                true,
                vec![
                    RowOperation(Add, 0, 1, max),
                    RowOperation(Add, 0, 1, min),
                    RowOperation(Add, 0, 1, nulls),
                ],
            ),
            progress("progress below the snapshot", 41, json!([])),
            batch(
                "the snapshot's last part",
                1,
                42,
                false,
                vec![
                    RowOperation(Add, 0, 1, other),
                    RowOperation(Add, 1, 6, note(1.0, 2, "two")),
                    RowOperation(Add, 1, 6, note(1.0, 1, "one")),
                ],
            ),
            Vector {
                shows: Some(json!([])),
                ..batch(
                    "every operation",
                    2,
                    43,
                    false,
                    vec![
                        RowOperation(Edit, 0, 1, changed),
                        RowOperation(Remove, 0, 0, vec![Value::Int8(3)]),
                        RowOperation(Remove, 1, 0, vec![Value::Float8(1.0), Value::Int8(1)]),
                    ],
                )
            },
            progress("progress releases the snapshot alone", 42, before),
            batch(
                "another batch of the same commit",
                3,
                43,
                false,
                vec![RowOperation(Add, 1, 6, note(2.0, 9, "nine"))],
            ),
            batch("an empty batch", 4, 43, false, vec![]),
            progress("progress", 43, after),
        ],
    );
}

#[test]
fn aggregates() {
    use OpKind::{Add, Edit, Remove};
    let layout: Layout = serde_json::from_value(json!({
        "tables": [
            {"name": "issues", "columns": [{"name": "id", "type": "int8"}], "key": [0]},
            {"name": "?n", "columns": [{"name": "?1", "type": "int8"}, {"name": "?", "type": "int8"}], "key": [0]},
            {"name": "?s", "columns": [{"name": "?1", "type": "int8"}, {"name": "?", "type": "numeric"}], "key": [0]}],
        "places": [
            {"parent": null, "as": null, "table": 0, "columns": [0], "on": [],
                "order": [[0, "asc", "nulls last"]], "one": false},
            {"parent": 0, "as": "n", "table": 1, "columns": [1], "on": [[0, 0]],
                "order": [[0, "asc", "nulls last"]], "one": true, "value": {"or": 0}},
            {"parent": 0, "as": "s", "table": 2, "columns": [1], "on": [[0, 0]],
                "order": [[0, "asc", "nulls last"]], "one": true, "value": {"or": null}}]}))
    .expect("a layout");
    let issue = |id| vec![Value::Int8(id)];
    let count = |id, count| vec![Value::Int8(id), Value::Int8(count)];
    let sum = |id, sum| {
        vec![Value::Int8(id), Value::from_json(ColumnType::Numeric, &json!(sum)).expect("a number")]
    };
    check(
        "aggregates.json",
        "One connection's frames in order, for a client that subscribed as 1 to a query whose related queries are \
         aggregated. After a frame with \"shows\", the client shows exactly that.",
        vec![
            welcome(),
            subscribed(layout),
            batch(
                "one issue with rows to aggregate, one without",
                0,
                42,
                false,
                vec![
                    RowOperation(Add, 0, 1, issue(1)),
                    RowOperation(Add, 0, 1, issue(2)),
                    RowOperation(Add, 1, 2, count(1, 2)),
                    RowOperation(Add, 2, 4, sum(1, "12.50")),
                ],
            ),
            progress(
                "a value, or what stands there without one",
                42,
                json!([
                    {"id": 1, "n": 2, "s": "12.50"},
                    {"id": 2, "n": 0, "s": null}
                ]),
            ),
            batch(
                "values change, come and go",
                1,
                43,
                false,
                vec![
                    RowOperation(Edit, 1, 2, count(1, 3)),
                    RowOperation(Add, 1, 2, count(2, 1)),
                    RowOperation(Remove, 2, 0, issue(1)),
                ],
            ),
            progress(
                "the values of the second commit",
                43,
                json!([
                    {"id": 1, "n": 3, "s": null},
                    {"id": 2, "n": 1, "s": null}
                ]),
            ),
        ],
    );
}
