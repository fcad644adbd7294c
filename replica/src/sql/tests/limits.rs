//! Texts that are too large, nest too deeply, or are no texts a person would write.

use super::{bind_with, bound};
use serde_json::json;

fn refusal(text: &str) -> String {
    match bound(text) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.message,
    }
}

fn nested(levels: usize, open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn subqueries_nest_to_a_limit() {
    let in_lists = |levels| nested(levels, "select id from t where id in (", "select id from t", ")");
    let derived = |levels| nested(levels, "select id from (", "select id from t", ") d");
    assert_eq!(refusal(&in_lists(64)), "accepted");
    assert_eq!(refusal(&derived(64)), "accepted");
    let limit = "subqueries nest deeper than the limit of 64 levels";
    assert_eq!(refusal(&in_lists(65)), format!("{limit} (line 1, column 1951)"));
    assert_eq!(refusal(&derived(65)), format!("{limit} (line 1, column 1041)"));
}

#[test]
fn deep_nesting_is_refused() {
    for (open, inner, close) in [
        ("select id from t where id in (", "select id from t", ")"),
        ("select id from (", "select id from t", ") d"),
        ("(", "select id from t", ")"),
    ] {
        assert_eq!(refusal(&nested(3_000, open, inner, close)), "the query nests too deeply");
    }
    for (open, inner, close) in
        [("(", "1", ")"), ("lower(", "b", ")"), ("- ", "1", ""), ("case when true then ", "1", " end")]
    {
        let text = format!("select {} as x from t", nested(10_000, open, inner, close));
        assert_ne!(refusal(&text), "accepted", "{open}");
    }
}

#[test]
fn long_chains_of_operators_are_refused_or_flat() {
    let chain = |first: &str, link: &str, count| format!("{first}{}", link.repeat(count));
    let limit = "an expression nests deeper than the limit of 128 operators (line 1, column 8)";
    assert_eq!(refusal(&format!("select {} as x", chain("1", " + 1", 49_000))), limit);
    assert_eq!(refusal(&format!("select {} as x", chain("1", "::int8", 40_000))), limit);
    assert_eq!(refusal(&chain("select id from t where id = 1", " and id = 1", 20_000)), "accepted");
    assert_eq!(refusal(&chain("select id from t where id = 1", " or id = 1", 20_000)), "accepted");
}

#[test]
fn what_is_written_once_and_used_often_is_bounded() {
    let text = format!("select {} as x from t", nested(60, "(", "ok", " between true and true)"));
    let limit = "the query takes more than the limit of 1000000 steps to bind (line 1, column 68)";
    assert_eq!(refusal(&text), limit);
}

#[test]
fn texts_and_relations_are_bounded() {
    let limit = "a text of 1048577 bytes is longer than the limit of 1048576";
    assert_eq!(refusal(&"x".repeat(1_048_577)), limit);
    let words = refusal(&format!("select {}", "a, ".repeat(60_000)));
    assert!(words.starts_with("the text has more than the limit of 100000 words and signs"), "{words}");
    let relations = refusal(&format!("select id from t{}", " union all select id from t".repeat(2_000)));
    assert!(relations.starts_with("more than the limit of 1000 tables"), "{relations}");
    let tables: String = (0..500).map(|number| format!(", t t{number}")).collect();
    let columns = refusal(&format!("select t.id from t{tables}"));
    assert!(columns.starts_with("more than the limit of 1600 columns"), "{columns}");
    assert_eq!(refusal("select 'a\0b' as x"), "the text contains a NUL character");
}

/// Words of texts that mean something, shuffled, cut and repeated: none may panic.
#[test]
fn no_text_panics() {
    let texts = [
        "select a, count(*) filter (where ok) from t group by grouping sets ((a), rollup (a, b)) having sum(n) > 1",
        "select id, lag(a, 2) over (w order by b) from t window w as (partition by a) order by 1 limit 3 offset :p",
        "with w as (select a from t) select * from w full join u using (id) where x = any (select c from u)",
        "select distinct on (a) t.* from t left join lateral (select * from u where u.t_id = t.id) x on true",
        "select (a, b) in ((1, 'x'), (:p, null)), case when not exists (select 1) then 1.5 else a::numeric(3,1) end",
        "values (1, 2) union all select id, a from t except (select 1, 2 intersect select 3, 4) order by 2 desc",
        "select extract(year from at), interval '1 day', date '2024-01-01', substring(b from 1 for 2) from t",
        "select * from t natural join u, (values (1), (2)) v(k) where a <> all (:list) and b not like '%x' escape '!'",
    ];
    let words: Vec<&str> = texts.iter().flat_map(|text| text.split_inclusive([' ', '(', ')', ','])).collect();
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut accepted, rounds) = (0, 4_000);
    for _ in 0..rounds {
        let text = texts[next(texts.len())];
        let mut parts: Vec<&str> = text.split_inclusive([' ', '(', ')', ',']).collect();
        for _ in 0..=next(3) {
            let at = next(parts.len());
            match next(4) {
                0 => drop(parts.remove(at)),
                1 => parts.insert(at, words[next(words.len())]),
                2 => parts[at] = words[next(words.len())],
                _ => parts.truncate(at),
            }
            if parts.is_empty() {
                break;
            }
        }
        let args = json!({"p": 7, "list": [1, "x", null]});
        accepted += usize::from(bind_with(&parts.concat(), args, None).is_ok());
    }
    assert!(accepted > 0, "some of the texts still mean something");
}
