//! What visitors write about flights: a table beside the recording's, with rules of its own, kept in bounds.
//!
//! Notes do not refer to flights by a foreign key, since nothing that a visitor writes may stand in the replay's way.
//! So notes can outlive their flight, and [`tend`] takes those away. It makes the table again when someone dropped it.

use std::time::Duration;
use tidegate_replica::{
    handle::Replica,
    query::{QueryError, QueryErrorKind},
};
use tidegate_wire::model::TableSchema;
use tokio_util::sync::CancellationToken;

/// How often notes are looked through.
const EVERY: Duration = Duration::from_secs(1);

/// Most notes that are kept when they are looked through; the oldest go first.
const NOTES_MAX: usize = 500;

/// Its rules are what the page's visitors see refused.
const TABLE: &str = r#"{
    "name": "notes",
    "columns": [
        {"name": "id", "type": "uuid"},
        {"name": "flight_id", "type": "int8"},
        {"name": "visitor", "type": "uuid"},
        {"name": "author", "type": "text"},
        {"name": "body", "type": "text"},
        {"name": "at", "type": "timestamptz"}
    ],
    "primary_key": ["id"],
    "checks": [
        {"name": "author_has_1_to_40_characters", "expression": "length(trim(author)) >= 1 and length(author) <= 40"},
        {"name": "note_has_1_to_280_characters", "expression": "length(trim(body)) >= 1 and length(body) <= 280"}
    ]
}"#;

/// The table.
///
/// # Panics
/// Never: a test reads the same text.
#[must_use]
pub fn table() -> TableSchema {
    serde_json::from_str(TABLE).expect("the table of notes is well described")
}

/// Looks through the notes again and again until it is stopped.
pub async fn tend(replica: Replica, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let sweeping = replica.clone();
        match tokio::task::spawn_blocking(move || sweep(&sweeping)).await {
            Ok(Ok(0)) => {}
            Ok(Ok(swept)) => tracing::debug!(swept, "took notes away"),
            // Either of the two tables: the flights come back with the week's next round.
            Ok(Err(error)) if error.kind == QueryErrorKind::UnknownTable => {
                if let Err(refusal) = replica.create_tables(vec![table()]).await {
                    tracing::warn!("cannot make the table of notes again: {refusal}");
                }
            }
            Ok(Err(error)) => tracing::warn!("cannot look through the notes: {}", error.message),
            Err(_) => return,
        }
    }
}

/// Takes away notes on flights that are gone, and the oldest of too many, in one commit; how many it took. Without any
/// there is no commit. Blocking.
fn sweep(replica: &Replica) -> Result<u64, QueryError> {
    let statement = format!(
        "delete from notes
         where not exists (select 1 from flights where flights.id = notes.flight_id)
            or id in (select id from notes order by at desc, id desc offset {NOTES_MAX})"
    );
    let nothing = serde_json::Map::new();
    let answer = replica.sql(&statement, &nothing, &nothing, 0)?;
    Ok(answer.results.iter().filter_map(|result| result.affected).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use tidegate_replica::handle::ReplicaOptions;
    use tidegate_wire::model::Cv;
    use tokio::runtime::Runtime;

    /// A replica with the flights 1 and 2, and no notes.
    fn replica(runtime: &Runtime) -> Replica {
        let options = ReplicaOptions { workers: 1, ..ReplicaOptions::default() };
        let replica = Replica::start(options, Box::new(()), |_, _| ()).expect("it starts");
        runtime.block_on(replica.create_tables(vec![table()])).expect("the table is created");
        run(&replica, "create table flights (id bigint primary key); insert into flights values (1), (2)")
            .expect("flights");
        replica
    }

    fn run(replica: &Replica, statements: &str) -> Result<u64, QueryError> {
        let answer = replica.sql(statements, &Map::new(), &Map::new(), 0)?;
        Ok(answer.results.iter().filter_map(|result| result.affected).sum())
    }

    /// Writes a note in the minute `n`.
    fn note(replica: &Replica, n: usize, flight: u64, author: &str, body: &str) -> Result<u64, QueryError> {
        let uuid = format!("00000000-0000-4000-8000-{n:012}");
        let at = format!("2026-01-01T{:02}:{:02}:00Z", n / 60, n % 60);
        run(
            replica,
            &format!("insert into notes values ('{uuid}', {flight}, '{uuid}', '{author}', '{body}', '{at}')"),
        )
    }

    fn bodies(replica: &Replica) -> Vec<serde_json::Value> {
        let (nothing, text) = (Map::new(), "select body from notes order by at");
        let answer = replica.sql(text, &nothing, &nothing, NOTES_MAX).expect("notes");
        let rows = answer.results.into_iter().next().and_then(|result| result.rows).expect("rows").rows;
        rows.into_iter().flatten().collect()
    }

    #[test]
    fn notes_go_with_their_flight_in_one_commit() {
        let runtime = Runtime::new().expect("a runtime");
        let replica = replica(&runtime);
        for (n, flight) in [1, 1, 2].into_iter().enumerate() {
            note(&replica, n, flight, "Ada", &format!("note {n}")).expect("taken");
        }
        let before = replica.cv();
        assert_eq!(sweep(&replica).expect("swept"), 0);
        assert_eq!(replica.cv(), before, "nothing to do is no commit");
        run(&replica, "delete from flights where id = 1").expect("deleted, notes or not");
        assert_eq!(sweep(&replica).expect("swept"), 2);
        assert_eq!(replica.cv(), Cv(before.0 + 2), "the deletion, and one commit for both notes");
        assert_eq!(bodies(&replica), [json!("note 2")]);
        replica.shutdown();
    }

    #[test]
    fn the_oldest_of_too_many_notes_go() {
        let runtime = Runtime::new().expect("a runtime");
        let replica = replica(&runtime);
        for n in 0..NOTES_MAX + 3 {
            note(&replica, n, 1, "Ada", &n.to_string()).expect("taken");
        }
        assert_eq!(sweep(&replica).expect("swept"), 3);
        let left = bodies(&replica);
        assert_eq!((left.len(), &left[0]), (NOTES_MAX, &json!("3")));
        replica.shutdown();
    }

    #[test]
    fn notes_without_a_name_or_of_a_wrong_length_are_refused() {
        let runtime = Runtime::new().expect("a runtime");
        let replica = replica(&runtime);
        note(&replica, 0, 1, "Ada", &"é".repeat(280)).expect("280 characters are taken");
        let cases = [
            ("Ada", "é".repeat(281), "note_has_1_to_280_characters"),
            ("Ada", "   ".to_owned(), "note_has_1_to_280_characters"),
            (" ", "hello".to_owned(), "author_has_1_to_40_characters"),
            (&"x".repeat(41), "hello".to_owned(), "author_has_1_to_40_characters"),
        ];
        for (author, body, rule) in cases {
            let refused = note(&replica, 1, 1, author, &body).expect_err(rule);
            assert!(refused.message.contains(rule), "{}", refused.message);
        }
        replica.shutdown();
    }

    #[test]
    fn tending_makes_a_dropped_table_again_and_ends_when_it_is_told_to() {
        let runtime = Runtime::new().expect("a runtime");
        let replica = replica(&runtime);
        note(&replica, 0, 7, "Ada", "on a flight that there is not").expect("taken");
        let stop = CancellationToken::new();
        let tending = runtime.spawn(tend(replica.clone(), stop.clone()));
        while !bodies(&replica).is_empty() {
            std::thread::yield_now();
        }
        run(&replica, "drop table notes").expect("dropped");
        while note(&replica, 0, 1, "Ada", "on a table that was made again").is_err() {
            std::thread::yield_now();
        }
        stop.cancel();
        runtime.block_on(tending).expect("it ends in order");
        replica.shutdown();
    }
}
