//! What needs no PostgreSQL: nothing panics, and what depends on more than the data is refused.

use super::*;
use crate::expr::{EvalError, ExistsProbe};
use proptest::prelude::*;
use tidegate_wire::model::Row;

struct NoExists;

impl ExistsProbe for NoExists {
    fn exists(&self, _: usize, _: &Row) -> std::result::Result<bool, EvalError> {
        Ok(false)
    }
}

const TYPES: [&str; 12] = [
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

fn column(number: usize) -> Operand {
    Operand::typed(Scalar::Column(number), TEXT)
}

/// Evaluates over two texts; whether it fails does not matter.
fn run(typed: std::result::Result<Typed, TypingError>, first: &str, second: &str) {
    let row = Row::from_values(&[Value::Text(first.into()), Value::Text(second.into())]);
    if let Ok(typed) = typed {
        let _ = typed.scalar.value(&row, &NoExists).map(|value| value.as_ref().to_value());
    }
}

/// Texts made of what the readers of numbers, dates, intervals, formats and patterns look for.
fn text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "0",
        "1",
        "9",
        "12",
        "2013",
        "99999999999",
        "9223372036854775807",
        "-",
        "+",
        ".",
        ":",
        " ",
        "/",
        "e",
        "E",
        "T",
        "Z",
        "P",
        "day",
        "days",
        "mon",
        "months",
        "years",
        "ago",
        "weeks",
        "Feb",
        "BC",
        "am",
        "PM",
        "nan",
        "infinity",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "*",
        "?",
        "|",
        "^",
        "$",
        "\\",
        "\\d",
        "[:alpha:]",
        "a",
        "é",
        "日",
        "%",
        "_",
        "\"",
        ",",
        "YYYY",
        "MM",
        "DD",
        "HH12",
        "HH24",
        "MI",
        "SS",
        "MS",
        "US",
        "FM",
        "TH",
        "Month",
        "Day",
        "J",
        "Q",
        "S",
        "PR",
        "9.9",
        "G",
        "D",
        "true",
        "null",
        "x",
        "0x",
        "@",
        "\u{0}",
        "\t",
        "#",
        "~",
        "&&",
        "--",
    ]);
    prop::collection::vec(words, 0..8).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_panics(first in text(), second in text()) {
        for name in TYPES {
            let ty = type_by_name(name).expect("a type");
            run(cast(column(0), ty), &first, &second);
            run(cast(Operand::Unknown(Some(first.clone())), ty), &first, &second);
        }
        let _ = number(&first);
        for name in ["to_timestamp", "to_date", "substring", "strpos", "btrim", "date_trunc"] {
            run(call(name, vec![column(0), column(1)]), &first, &second);
        }
        for op in ["~", "~*"] {
            run(binary(op, column(0), column(1)), &first, &second);
        }
        run(like(column(0), column(1), Some(column(1)), true), &first, &second);
        let json = || cast(column(0), JSON).map(Operand::Typed).expect("a cast");
        run(binary("#>>", json(), column(1)), &first, &second);
        let numbers = ["0", "-1.50", "123456789.987", "1e20"].map(|text| {
            cast(Operand::Unknown(Some(text.to_owned())), NUMERIC).map(Operand::Typed).expect("a number")
        });
        for number in numbers {
            run(call("to_char", vec![number, column(1)]), &first, &second);
        }
        let moment = cast(Operand::Unknown(Some("2013-02-04 15:06:07.5".to_owned())), TIMESTAMPTZ).expect("a moment");
        run(call("to_char", vec![Operand::Typed(moment), column(1)]), &first, &second);
    }

    #[test]
    fn no_number_panics(a in -1e6..1e6_f64, scale in 0..40_i64, digits in any::<i64>(), places in any::<i64>()) {
        let numeric = |text: String| cast(Operand::Unknown(Some(text)), NUMERIC).map(Operand::Typed).expect("a number");
        let (x, y) = (numeric(format!("{digits}e-{scale}")), numeric(format!("{a}")));
        for name in ["sqrt", "exp", "ln", "log", "round", "trunc", "floor", "ceil", "sign", "abs"] {
            run(call(name, vec![x.clone()]), "", "");
        }
        for name in ["power", "mod", "div", "log"] {
            run(call(name, vec![x.clone(), y.clone()]), "", "");
            run(call(name, vec![y.clone(), x.clone()]), "", "");
        }
        let places = Operand::typed(Scalar::Constant(Value::Int8(places)), INT8);
        for name in ["round", "trunc"] {
            run(call(name, vec![x.clone(), places.clone()]), "", "");
        }
        for op in ["+", "-", "*", "/", "%"] {
            run(binary(op, x.clone(), y.clone()), "", "");
            let day = cast(Operand::Unknown(Some("2013-02-04".to_owned())), DATE).map(Operand::Typed).expect("a date");
            run(binary(op, day, places.clone()), "", "");
            let month = cast(Operand::Unknown(Some("1 month 3 days".to_owned())), Type::Interval);
            run(binary(op, month.map(Operand::Typed).expect("an interval"), x.clone()), "", "");
        }
    }
}

#[test]
fn huge_exponents_do_not_run_away() {
    let numeric = |text: &str| {
        cast(Operand::Unknown(Some(text.to_owned())), NUMERIC).map(Operand::Typed).expect("a number")
    };
    for base in ["1", "-1", "1.0000000000000000001", "0.999999", "2", "-3", "1e4000", "1e-4000"] {
        for exponent in ["1e4000", "-1e4000", "1e18", "2147483647.5", "-2147483649", "0.5", "1e-4000"] {
            run(call("power", vec![numeric(base), numeric(exponent)]), "", "");
        }
    }
}

#[test]
fn what_changes_by_itself_is_refused_with_the_reason() {
    for name in ["now", "current_date", "current_timestamp", "random"] {
        let Err(TypingError::Unsupported(reason)) = call(name, Vec::new()) else {
            panic!("{name} is refused")
        };
        assert!(reason.contains("pass the value as a parameter"), "{reason}");
    }
    let Err(TypingError::Unsupported(reason)) =
        binary("~", column(0), Operand::Unknown(Some(r"(a)\1".to_owned())))
    else {
        panic!("a back-reference is refused")
    };
    assert!(reason.contains("back-references"), "{reason}");
}
