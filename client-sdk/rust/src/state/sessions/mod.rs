//! Sessions of several subscriptions: random ones against results built from scratch, and the recorded ones in
//! `wire/vectors/sessions`, which every SDK plays.
//!
//! `TIDEGATE_BLESS=1 cargo test -p tidegate-client --lib sessions` records them anew.

mod player;
mod server;

use player::Player;
use proptest::prelude::*;
use serde_json::Value as Json;
use server::RandomServer;
use std::{fs, path::PathBuf};
use tidegate_wire::codec::Codec;

/// How many sessions are recorded; each is made from its number.
const RECORDED: u64 = 13;
const STEPS: usize = 28;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn view_equals_fresh_query_in_sessions(seed in any::<u64>()) {
        RandomServer::session(seed, STEPS);
    }
}

#[test]
fn the_recorded_sessions_show_what_they_say() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../wire/vectors/sessions");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::create_dir_all(&folder).expect("a folder");
        for seed in 1..=RECORDED {
            let lines: String =
                RandomServer::session(seed, STEPS).iter().map(|line| format!("{line}\n")).collect();
            fs::write(folder.join(format!("{seed:02}.ndjson")), lines).expect("the sessions can be written");
        }
    }
    let mut released = 0;
    for seed in 1..=RECORDED {
        let path = folder.join(format!("{seed:02}.ndjson"));
        let text = fs::read_to_string(&path).expect("the sessions are there");
        for codec in Codec::ALL {
            let mut player = Player::new(codec);
            for (number, line) in text.lines().enumerate() {
                let recorded: Json = serde_json::from_str(line).expect("JSON");
                let played = player.play(&recorded);
                assert_eq!(played.to_string(), line, "{}:{}, {codec:?}", path.display(), number + 1);
                released += usize::from(played.get("shows").is_some());
            }
        }
    }
    assert!(released > 200, "{released} released states");
}
