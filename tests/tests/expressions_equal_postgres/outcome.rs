//! Puts cases to both, and says what differs on purpose.

use crate::support::expression::{Node, Outcome};
use std::fmt::Write as _;
use tidegate_tests::postgres::Cluster;

/// Puts all cases to both and fails with those that differ.
pub(super) fn check(cases: Vec<Node>, tolerated: impl Fn(&Node, &Outcome, &Outcome) -> bool) {
    let cluster = Cluster::start();
    let mut client = cluster.connect();
    client
        .batch_execute(
            "create function outcome(expression text, out ty text, out value text, out fault text) as $$
             begin
               execute 'select pg_typeof(x)::text, x::text from (' || expression || ') as one'
                 into ty, value;
             exception when others then
               fault := sqlstate || ': ' || sqlerrm;
             end $$ language plpgsql",
        )
        .expect("the function is made");
    let (mut differences, mut count) = (String::new(), 0);
    for chunk in cases.chunks(500) {
        let texts: Vec<String> = chunk.iter().map(Node::sql).collect();
        let rows = client
            .query(
                "select o.ty, o.value, o.fault from unnest($1::text[]) with ordinality as e(sql, n),
                 lateral outcome(e.sql) as o order by n",
                &[&texts],
            )
            .expect("PostgreSQL answers");
        for ((node, sql), row) in chunk.iter().zip(&texts).zip(&rows) {
            let wanted = match row.get::<_, Option<String>>(2) {
                Some(fault) => Outcome::Error(fault),
                None => shown(row.get(0), row.get(1)),
            };
            for in_row in [true, false] {
                let found = node.evaluate(in_row);
                // Among constants a NULL may decide before what fails is computed.
                if !in_row && matches!(wanted, Outcome::Error(_)) {
                    continue;
                }
                if !agree(&wanted, &found) && !tolerated(node, &wanted, &found) {
                    count += 1;
                    if count <= 200 {
                        let _ = writeln!(
                            differences,
                            "{sql}\n    PostgreSQL {wanted:?}\n    found      {found:?}{}",
                            if in_row { "" } else { " (constants)" }
                        );
                    }
                    break;
                }
            }
        }
    }
    assert!(count == 0, "{count} of {} expressions differ:\n{differences}", cases.len());
}

/// Operators that PostgreSQL has for integers of 32 bits only, while all integer columns have 64 here.
pub(super) fn is_wider(wanted: &Outcome) -> bool {
    matches!(wanted, Outcome::Error(error) if error.starts_with("42883") && error.contains("bigint"))
}

/// Moments and dates here are within the years 0000, which is 1 BC, to 9999, and none is infinite.
pub(super) fn is_beyond_calendar(wanted: &Outcome, found: &Outcome) -> bool {
    let Outcome::Value(ty, Some(value)) = wanted else { return false };
    (ty == "date" || ty.starts_with("timestamp"))
        && (value.find('-').is_some_and(|at| at > 4)
            || (value.ends_with(" BC") && !value.starts_with("0001-"))
            || value.contains("infinity"))
        && matches!(found, Outcome::Error(_))
}

/// A document's numbers are doubles here where they are not integers of 64 bits.
pub(super) fn is_number_of_document(wanted: &Outcome, found: &Outcome) -> bool {
    match (wanted, found) {
        (Outcome::Value(ty, Some(wanted)), Outcome::Value(_, Some(found))) if ty == "jsonb" => {
            wanted.parse::<f64>().is_ok_and(|wanted| found.parse() == Ok(wanted))
        }
        (Outcome::Value(ty, Some(wanted)), Outcome::Error(_)) => {
            ty == "jsonb" && wanted.parse::<f64>().is_ok_and(f64::is_infinite)
        }
        _ => false,
    }
}

/// Types without a time zone are the one with it here, where the zone is UTC.
pub(super) fn shown(ty: String, value: Option<String>) -> Outcome {
    if ty != "timestamp without time zone" {
        return Outcome::Value(ty, value);
    }
    let value = value.map(|value| match value.strip_suffix(" BC") {
        Some(value) => format!("{value}+00 BC"),
        None => format!("{value}+00"),
    });
    Outcome::Value("timestamp with time zone".to_owned(), value)
}

pub(super) fn agree(wanted: &Outcome, found: &Outcome) -> bool {
    match (wanted, found) {
        (Outcome::Error(_), Outcome::Error(_)) => true,
        (Outcome::Value(ty, Some(wanted)), Outcome::Value(found_ty, Some(found))) => {
            ty == found_ty && (wanted == found || (ty == "jsonb" && is_same_json(wanted, found)))
        }
        (wanted, found) => wanted == found,
    }
}

/// Documents travel without spaces here, and their members in another order.
pub(super) fn is_same_json(wanted: &str, found: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    wanted.starts_with(['{', '[']) && parse(wanted).is_some() && parse(wanted) == parse(found)
}

pub(super) fn nothing(_: &Node, _: &Outcome, _: &Outcome) -> bool {
    false
}
