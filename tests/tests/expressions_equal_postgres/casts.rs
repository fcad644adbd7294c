//! Casts, and what texts stand for.

use super::{
    outcome::{check, is_beyond_calendar, is_number_of_document},
    values::*,
};
use crate::support::expression::{Node, Outcome};

#[test]
fn casts() {
    let types = [
        "bool",
        "int4",
        "int8",
        "float8",
        "text",
        "bytea",
        "timestamptz",
        "date",
        "uuid",
        "numeric",
        "jsonb",
        "interval",
    ];
    let mut cases = Vec::new();
    for value in all_values() {
        for ty in types {
            cases.push(Node::Cast(boxed(&value), ty));
        }
    }
    let texts = [
        "",
        " ",
        "t",
        "T",
        "tr",
        "yes",
        "y",
        "on",
        "o",
        "off",
        "of",
        "no",
        "n",
        "0",
        "1",
        "2",
        " 12 ",
        "+5",
        "-",
        "--1",
        "1.",
        ".5",
        ".",
        "1e5",
        "1E-5",
        "1e",
        "e1",
        "0x1f",
        "1_000",
        "99999999999",
        "99999999999999999999",
        "-9223372036854775808",
        "9223372036854775808",
        "2147483648",
        "1e400",
        "1e-400",
        "1e308",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "+infinity",
        "Infinity",
        "1.50",
        "-0.0",
        "-0",
        "00012.3400",
        "1e-20",
        "123456789012345678901234567890.123",
        "12 34",
        "1,2",
        "2013-02-04",
        "2013-2-4",
        "20130204",
        "2013-02-30",
        "2013-13-01",
        "2/4/2013",
        "02/04/13",
        "Feb 4, 2013",
        "4 Feb 2013",
        "4-Feb-2013",
        "February 4 2013",
        "2013 Feb 4",
        "2013-02-04 BC",
        "0000-01-01",
        "10000-01-01 x",
        "2013-02-04 05",
        "2013-02-04 05:06",
        "2013-02-04T05:06:07Z",
        "2013-02-04 05:06:07.1234567",
        "2013-02-04 05:06:07+02",
        "2013-02-04 05:06:07 +02:30",
        "2013-02-04 05:06:07-0330",
        "2013-02-04 24:00:00",
        "2013-02-04 24:00:01",
        "2013-02-04 23:59:60",
        "2013-02-04 25:00",
        "2013-02-04 5:6:7 PM",
        "2013-02-04 12:30 am",
        "2013-02-04 13:00 pm",
        "2013-02-04 05:06:07 UTC",
        "epoch",
        "05:06:07",
        "1 day",
        "1 days ago",
        "1.5 days",
        "1.5 months",
        "1.5 years",
        "1.5 weeks",
        "2 weeks",
        "1 mon -2 days",
        "-1 day 2 hours",
        "1-2",
        "-1-2",
        "1 year 2",
        "1:2",
        "1:2:3",
        "1 02:03:04",
        "-00:00:01",
        "P1Y2M3DT4H5M6.5S",
        "PT1.5H",
        "P1W",
        "P",
        "@ 1 day",
        "1d2h",
        "1h30m",
        "3 decades",
        "1 century",
        "1 millennium",
        "100 ms",
        "5 us",
        "1 fortnight",
        "day",
        "1 day 1 day",
        "0.1 sec",
        "1 day ago 2",
        "1.5",
        "1e3 days",
        "67e55044-10b1-426f-9247-bb680e5fe0c8",
        "{67e55044-10b1-426f-9247-bb680e5fe0c8}",
        "67e5504410b1426f9247bb680e5fe0c8",
        "67E55044-10B1-426F-9247-BB680E5FE0C8",
        "67e5-5044-10b1-426f-9247-bb68-0e5f-e0c8",
        "67e55044-10b1-426f-9247",
        "{}",
        "{\"a\": 1}",
        "[1, 2",
        "[1, 2]",
        "\"x\"",
        "tru",
        "true",
        "{\"a\":1,\"a\":2}",
        "{\"b\":1,\"a\":[ 1 ]}",
        "\\x",
        "\\x1",
        "\\x0g",
        "\\xab CD",
        "a\\\\b",
        "a\\001b",
        "a\\b",
        "héllo",
    ];
    for value in texts {
        for ty in types {
            cases.push(Node::Cast(Box::new(text(value)), ty));
            cases.push(Node::Cast(Box::new(literal(value)), ty));
        }
    }
    for value in NUMBERS.into_iter().chain(["jsonb", "text", "bool"]).flat_map(values) {
        for (precision, scale) in [(5, 2), (10, 0), (3, 3), (4, -2), (2, 5), (38, 10)] {
            cases.push(Node::CastNumeric(boxed(&value), precision, scale));
        }
    }
    for value in [
        "0.1",
        "1e20",
        "1e22",
        "123456.789",
        "1e15",
        "999999999999999",
        "1e14",
        "-1e-4",
        "1e-5",
        "3.0",
        "1.7976931348623157e308",
        "5e-324",
        "0.30000000000000004",
    ] {
        let value = Node::Value("float8", Some(value.to_owned()));
        cases.extend(["text", "numeric", "int8", "int4"].map(|ty| Node::Cast(boxed(&value), ty)));
    }
    check(cases, |node, wanted, found| {
        // Hexadecimal digits of a float, a point alone and what follows `ago` in an interval are not read.
        let unread = ["'0x1f'", "'.'", "'1 day ago 2'"].iter().any(|text| node.sql().contains(text));
        unread && matches!(found, Outcome::Error(_))
            || is_beyond_calendar(wanted, found)
            || is_number_of_document(wanted, found)
    });
}
