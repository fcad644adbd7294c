//! Dates, moments, intervals, and formats.

use super::{
    outcome::{check, is_beyond_calendar, is_wider, nothing},
    values::*,
};
use crate::support::expression::{Node, Outcome};

#[test]
fn dates_and_intervals() {
    let rng = &mut rng();
    let mut cases = Vec::new();
    let others: Vec<Node> = ["int4", "int8", "float8", "numeric"].into_iter().flat_map(values).collect();
    for op in ["+", "-", "*", "/"] {
        for left in TEMPORAL {
            for right in TEMPORAL {
                for pair in combinations(&[values(left), values(right)], 150, rng) {
                    cases.push(binary(op, &pair[0], &pair[1]));
                }
            }
            for pair in combinations(&[values(left), others.clone()], 250, rng) {
                cases.push(binary(op, &pair[0], &pair[1]));
                cases.push(binary(op, &pair[1], &pair[0]));
            }
            for value in values(left) {
                for text in ["1 day", "2013-02-04", "2", "1.5"] {
                    cases.push(binary(op, &value, &literal(text)));
                    cases.push(binary(op, &literal(text), &value));
                }
            }
        }
    }
    for value in values("interval") {
        cases.push(Node::Unary("-", boxed(&value)));
    }
    for field in [
        "microseconds",
        "milliseconds",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
        "decade",
        "century",
        "millennium",
        "isoyear",
        "dow",
        "isodow",
        "doy",
        "epoch",
        "julian",
        "timezone",
        "fortnight",
    ] {
        for ty in TEMPORAL {
            for value in values(ty) {
                cases.push(Node::Extract(field, boxed(&value)));
                cases.push(Node::Call("date_part", vec![literal(field), value.clone()]));
                cases.push(Node::Call("date_trunc", vec![literal(field), value]));
            }
        }
    }
    for pair in combinations(&[values("timestamptz"), values("timestamptz")], 60, rng) {
        cases.push(Node::Extract("epoch", Box::new(binary("-", &pair[0], &pair[1]))));
    }
    let numbers = [0, 1, 2, 4, 12, 13, 28, 29, 31, 1900, 2000, 2023, 2024, -44];
    cases.extend(called(
        "make_date",
        &[integers(&numbers), integers(&numbers), integers(&numbers)],
        400,
        rng,
    ));
    cases.extend(called("to_timestamp", &[values("float8")], 20, rng));
    cases.extend(called("to_timestamp", &[values("int8")], 20, rng));
    check(cases, |node, wanted, found| {
        // A field that does not exist is refused before a row is seen, also one of NULL.
        let unknown =
            node.sql().contains("fortnight") && *wanted == Outcome::Value("numeric".to_owned(), None);
        unknown || is_wider(wanted) || is_beyond_calendar(wanted, found)
    });
}

#[test]
fn formats() {
    let rng = &mut rng();
    let mut cases = Vec::new();
    let formats: Vec<Node> = [
        "YYYY-MM-DD HH24:MI:SS",
        "YYYY-MM-DD\"T\"HH24:MI:SS.MS",
        "HH12:MI AM",
        "hh:mi pm",
        "Mon DD, YYYY",
        "Month",
        "MONTH|",
        "month|",
        "FMMonth DD",
        "Day",
        "DAY|",
        "day|",
        "FMDay",
        "Dy dy DY",
        "DDD",
        "FMDDD",
        "IW IYYY",
        "Q",
        "Q\"th quarter\"",
        "US",
        "YY Y",
        "YYY",
        "Y,YYY",
        "D ID",
        "WW W",
        "J",
        "CC",
        "AD",
        "bc B.C.",
        "TZ OF",
        "FMHH24:FMMI",
        "DDth",
        "DDTH FMDDth",
        "RM rm FMRM",
        "SSSS",
        "YYYYMMDDHH24MISS",
        "text \"quoted YYYY\" MM",
        "\\\"YYYY\\\"",
        "mon",
        "yyyy-mm-dd",
        "FMMM/FMDD",
        "",
        "HH24hMI",
        "P.M.",
        "IDDD",
        "I IY IYY",
    ]
    .into_iter()
    .map(text)
    .collect();
    cases.extend(called("to_char", &[values("timestamptz"), formats.clone()], 1_000, rng));
    cases.extend(called("to_char", &[values("date"), formats], 300, rng));
    let numbers: Vec<Node> = [
        "9",
        "99",
        "999.99",
        "FM999.99",
        "000.00",
        "FM000.00",
        "9990.99",
        "9,999",
        "FM9,999,999",
        "0,000.0",
        "999,999,999.999",
        "S999",
        "999S",
        "MI999",
        "999MI",
        "FM999MI",
        "SG999",
        "PL999",
        "999PL",
        "999PR",
        "FM999PR",
        "FM9999990.00",
        "FM9999990.099",
        "9.9",
        "FM9.9",
        "0.9",
        ".99",
        "FM.99",
        "\"x\"999",
        "9 9 9",
        "99.",
        "$999.99",
        "90",
        "09",
        "9G999D99",
        "S0.0",
        "FMS99.9",
        "990.0S",
        "9999999999999999999999",
    ]
    .into_iter()
    .map(text)
    .collect();
    let mut subjects = Vec::new();
    for (ty, texts) in [
        ("int4", &["0", "1", "-1", "12", "-485", "1485", "123456"][..]),
        ("int8", &["0", "-5", "1234567890123"]),
        (
            "numeric",
            &[
                "0",
                "0.1",
                "-0.1",
                "12",
                "148.5",
                "-148.55",
                "0.005",
                "1234567.891",
                "99.995",
                "-0.001",
                "0.5",
            ],
        ),
        ("float8", &["0", "0.1", "-0.1", "148.5", "-1234.567", "99.995", "0.5", "1e10"]),
    ] {
        subjects.extend(texts.iter().map(|text| Node::Value(ty, Some((*text).to_owned()))));
        subjects.push(Node::Value(ty, None));
    }
    cases.extend(called("to_char", &[subjects, numbers], 3_000, rng));
    for (value, format) in [
        ("2013-02-04", "YYYY-MM-DD"),
        ("04 Feb 2013", "DD Mon YYYY"),
        ("20130204", "YYYYMMDD"),
        ("2013/2/4", "YYYY-MM-DD"),
        ("February 4, 2013", "Month DD, YYYY"),
        ("13-02-04", "YY-MM-DD"),
        ("2013-13-01", "YYYY-MM-DD"),
        ("2013-02-30", "YYYY-MM-DD"),
        ("2013 035", "YYYY DDD"),
        ("2013-02-04 05:06:07", "YYYY-MM-DD HH24:MI:SS"),
        ("2013-02-04 05:06 PM", "YYYY-MM-DD HH:MI AM"),
        ("2013-02-04 12:06 am", "YYYY-MM-DD HH12:MI am"),
        ("2013-02-04 25:06", "YYYY-MM-DD HH24:MI"),
        ("2013-02-04 05:06:07.123", "YYYY-MM-DD HH24:MI:SS.MS"),
        ("2013-02-04 05:06:07.5", "YYYY-MM-DD HH24:MI:SS.US"),
        ("x", "YYYY"),
        ("", "YYYY"),
        ("2013", "YYYY"),
        ("05:06", "HH24:MI"),
        ("  2013-02-04", "YYYY-MM-DD"),
        ("2013-02", "YYYY-MM"),
        ("2013-feb-04", "YYYY-MON-DD"),
        ("1/2/2013", "MM/DD/YYYY"),
        ("2013-02-04T05:06:07Z", "YYYY-MM-DD\"T\"HH24:MI:SS\"Z\""),
    ] {
        cases.push(Node::Call("to_date", vec![text(value), text(format)]));
        cases.push(Node::Call("to_timestamp", vec![text(value), text(format)]));
    }
    check(cases, nothing);
}
