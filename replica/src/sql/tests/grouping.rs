//! Grouping, aggregates and grouping sets.

use super::{bound, means, show};

#[test]
fn an_element_of_grouping_sets_may_begin_with_parentheses() {
    for (text, plain) in [
        ("select count(*) from t group by rollup ((a) + 1)", "rollup (((a) + 1))"),
        ("select count(*) from t group by cube (((id))::text, (a, ok))", "cube ((((id))::text), (a, ok))"),
        (
            "select count(*) from t group by grouping sets ((a) + (1), (a, ok), ())",
            "grouping sets (((a) + (1)), (a, ok), ())",
        ),
    ] {
        let (before, _) = text.split_once("group by ").expect("it groups");
        let meant = |text: &str| show::select(&bound(text).unwrap_or_else(|error| panic!("{text}: {error}")));
        assert_eq!(meant(text), meant(&format!("{before}group by {plain}")), "{text}");
    }
}

#[test]
fn grouping() {
    means(&[
        ("select count(*) from t", "count -> project(aggregate(table0, [], [Count():int8]), [$0:int8])"),
        (
            "select a, count(*), sum(n) from t group by a having count(*) > 1 order by 2 desc",
            "a, count, sum -> project(filter(aggregate(table0, [$1:int8], [Count():int8, Sum($3):numeric]), $1 > 1), [$0:int8, $1:int8, $2:numeric]) order 1 desc",
        ),
        ("select a from t group by 1", "a -> project(aggregate(table0, [$1:int8], []), [$0:int8])"),
        (
            "select a + 1 as k, max(b) from t group by k",
            "k, max -> project(aggregate(table0, [($1 + 1):int8], [Max($2):text]), [$0:int8, $1:text])",
        ),
        (
            "select a as b, count(*) from t group by b, a",
            "b, count -> project(aggregate(table0, [$2:text, $1:int8], [Count():int8]), [$1:int8, $2:int8])",
        ),
        (
            "select a + 1 + id as s from t group by a + 1, id",
            "s -> project(aggregate(table0, [($1 + 1):int8, $0:int8], []), [($0 + $1):int8])",
        ),
        (
            "select t.id, t.b, count(u.id) from t left join u on u.t_id = t.id group by t.id",
            "id, b, count -> project(aggregate(left join(table0, table1, $8 = $0), [$0:int8, $2:text], [Count($7):int8]), [$0:int8, $1:text, $2:int8])",
        ),
        (
            "select count(distinct a) filter (where ok) as c, string_agg(b, ',' order by id desc) as s, avg(a) as m, sum(1) as one, sum(a) as big, json_agg(b) as j from t",
            "c, s, m, one, big, j -> project(aggregate(table0, [], [Count(distinct $1):int8 filter $5, StringAgg($2, ','):text order $0 desc, Average($1):numeric, Sum(1):int8, Sum($1):numeric, JsonAgg($2):json]), [$0:int8, $1:text, $2:numeric, $3:int8, $4:numeric, $5:json])",
        ),
        (
            "select bool_and(ok) as a, every(ok) as b, min(at) as c, stddev(f) as d, var_pop(a) as e, count(ok) as f from t",
            "a, b, c, d, e, f -> project(aggregate(table0, [], [BoolAnd($5):bool, Min($6):timestamptz, StddevSample($4):float8, VariancePop($1):numeric, Count($5):int8]), [$0:bool, $0:bool, $1:timestamptz, $2:float8, $3:numeric, $4:int8])",
        ),
        (
            "select a, b, count(*), grouping(a, b) as g from t group by rollup (a, b)",
            "a, b, count, g -> project(concat(project(aggregate(table0, [$1:int8, $2:text], [Count():int8]), [$0:int8, $1:text, $2:int8, 0:int8]), project(aggregate(table0, [$1:int8], [Count():int8]), [$0:int8, null:text, $1:int8, 1:int8]), project(aggregate(table0, [], [Count():int8]), [null:int8, null:text, $0:int8, 3:int8])), [$0:int8, $1:text, $2:int8, $3:int8])",
        ),
        (
            "select a, b, sum(n) as s from t group by grouping sets ((a), (b), ())",
            "a, b, s -> project(concat(project(aggregate(table0, [$1:int8], [Sum($3):numeric]), [$0:int8, null:text, $1:numeric]), project(aggregate(table0, [$2:text], [Sum($3):numeric]), [null:int8, $0:text, $1:numeric]), project(aggregate(table0, [], [Sum($3):numeric]), [null:int8, null:text, $0:numeric])), [$0:int8, $1:text, $2:numeric])",
        ),
        (
            "select a, count(*) as c from t group by a, cube (b, ok)",
            "a, c -> project(concat(aggregate(table0, [$1:int8, $2:text, $5:bool], [Count():int8]), project(aggregate(table0, [$1:int8, $2:text], [Count():int8]), [$0:int8, $1:text, null:bool, $2:int8]), project(aggregate(table0, [$1:int8, $5:bool], [Count():int8]), [$0:int8, null:text, $1:bool, $2:int8]), project(aggregate(table0, [$1:int8], [Count():int8]), [$0:int8, null:text, null:bool, $1:int8])), [$0:int8, $3:int8])",
        ),
        (
            "select count(*) from t where ok group by () having count(*) > 0",
            "count -> project(filter(aggregate(filter(table0, $5), [], [Count():int8]), $0 > 0), [$0:int8])",
        ),
        (
            "select a from t group by a having count(*) > 1 order by count(*)",
            "a -> project(filter(aggregate(table0, [$1:int8], [Count():int8]), $1 > 1), [$0:int8, $1:int8]) order 1",
        ),
        (
            "select a, (select count(*) from u where u.t_id = t.a) as n from t group by a",
            "a, n -> project(lookup(aggregate(table0, [$1:int8], []), {$0:int8 | project(aggregate(filter(table1, $1 = d0), [], [Count():int8]), [$0:int8])}), [$0:int8, $1:int8])",
        ),
        (
            "select (select max(id) from u where u.t_id = t.a) as k, count(*) from t group by 1",
            "k, count -> project(aggregate(lookup(table0, {$1:int8 | project(aggregate(filter(table1, $1 = d0), [], [Max($0):int8]), [$0:int8])}), [$7:int8], [Count():int8]), [$0:int8, $1:int8])",
        ),
        (
            "select sum((select max(id) from u where u.t_id = t.id)) as s from t",
            "s -> project(aggregate(lookup(table0, {$0:int8 | project(aggregate(filter(table1, $1 = d0), [], [Max($0):int8]), [$0:int8])}), [], [Sum($7):numeric]), [$0:numeric])",
        ),
        (
            "select b, max(n) from t group by b having max(n) > (select avg(n) from t) order by max(n) + 1",
            r#"b, max -> project(filter(lookup(aggregate(table0, [$2:text], [Max($3):numeric]), { | project(aggregate(table0, [], [Average($3):numeric]), [$0:numeric])}), $1 > $2), [$0:text, $1:numeric, ($1 + "1"):numeric]) order 2"#,
        ),
    ]);
}
