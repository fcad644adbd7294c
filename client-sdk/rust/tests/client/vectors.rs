//! The golden frames of `wire/vectors`, fed through a whole client.

use crate::server::within;
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use tidegate_client::{
    Client, ClientOptions, Codec, Query,
    transport::{Frame, memory},
};

/// Those that are whole sessions.
const FILES: [&str; 2] = ["session.json", "aggregates.json"];

fn frames(file: &str) -> Vec<Json> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../wire/vectors").join(file);
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    let mut json: Json = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(json["frames"].take()).expect("frames")
}

fn frame(json: &Json, codec: Codec) -> Frame {
    let text = |name: &str| json[name].as_str().expect("a string").to_owned();
    match codec {
        Codec::Json => Frame::of(codec, text("json").into_bytes()),
        Codec::MessagePack => {
            let hex = text("msgpack");
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
            Frame::of(codec, (0..hex.len()).step_by(2).map(byte).collect())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_shows_what_the_sessions_say() {
    for (codec, file) in Codec::ALL.into_iter().flat_map(|codec| FILES.map(|file| (codec, file))) {
        let (transport, mut server) = memory::pair();
        let options = ClientOptions::default().codec(codec);
        let client = Client::start("ws://test", options, transport.shared()).expect("an address");
        let mut view = client.open(Query::named("cells"));
        let connection = within(server.accept()).await.expect("a connection");
        let mut shown = json!([]);
        for json in frames(file) {
            assert!(connection.send_frame(frame(&json, codec)).await);
            let Some(shows) = json.get("shows") else { continue };
            if *shows != shown {
                within(view.next()).await.expect("a release");
                shown = shows.clone();
            }
            assert_eq!(view.rows().to_json(), shown, "{codec:?}, {file}: {}", json["name"]);
        }
    }
}
