//! A block by itself: columns, names, where and its slots, order, limit, distinct.

use super::means;

#[test]
fn select() {
    means(&[
        (
            "select * from t",
            "id, a, b, n, f, ok, at -> project(table0, [$0:int8, $1:int8, $2:text, $3:numeric, $4:float8, $5:bool, $6:timestamptz])",
        ),
        (
            "select id, a + 1 as x, 'k' from t where a = 3 and b = :q and n > 1.5 order by a desc nulls last, lower(b) limit 5 offset :p",
            r#"id, x, ?column? -> top(project(filter(table0, and($1 = d0, $2 = d1, $3 > "1.5")), [$0:int8, ($1 + 1):int8, 'k':text, $1:int8, lower($2):text]), [], [$3 desc nulls last, $4], 7, 5) order 3 desc nulls last, 4 slots int8 3, text 'x'"#,
        ),
        (
            "select id from t where b = :auth.sub and a = :a.b",
            "id -> project(filter(table0, and($2 = d0, $1 = d1)), [$0:int8]) slots text 'ann', int8 1",
        ),
        (
            "select id from t where 3 = a and (a = 4 or a = 5)",
            "id -> project(filter(table0, and(d0 = $1, or($1 = 4, $1 = 5))), [$0:int8]) slots int8 3",
        ),
        ("select id from t where a = :frac", r#"id -> project(filter(table0, $1 = "1.5"), [$0:int8])"#),
        ("select id from t where a = null", "id -> project(filter(table0, unknown), [$0:int8])"),
        (
            "select id from t where (b = 'x' and a = 2)",
            "id -> project(filter(table0, and($2 = d0, $1 = d1)), [$0:int8]) slots text 'x', int8 2",
        ),
        ("select id from t limit :none", "id -> project(table0, [$0:int8])"),
        ("select id from t fetch first 2 rows only", "id -> top(project(table0, [$0:int8]), [], [], 0, 2)"),
        ("select id from t offset 3", "id -> top(project(table0, [$0:int8]), [], [], 3, all)"),
        ("select distinct a from t order by a", "a -> distinct(project(table0, [$1:int8])) order 0"),
        (
            "select distinct on (a) a, b from t order by a, at desc",
            "a, b -> top(project(table0, [$1:int8, $2:text, $6:timestamptz]), [$0], [$0, $2 desc], 0, 1) order 0, 2 desc",
        ),
        (
            "select distinct on (a) a, 1 as one from t order by 1, one",
            "a, one -> top(project(table0, [$1:int8, 1:int8]), [$0], [$0, $1], 0, 1) order 0, 1",
        ),
        (
            "select id as a2, a from t order by a2, 2, a + 1",
            "a2, a -> project(table0, [$0:int8, $1:int8, ($1 + 1):int8]) order 0, 1, 2",
        ),
        (
            "select id from t order by a + 1 nulls first",
            "id -> project(table0, [$0:int8, ($1 + 1):int8]) order 1 nulls first",
        ),
        (r#"select 1 as "A", 2 as a"#, "A, a -> project(values(()), [1:int8, 2:int8])"),
        (
            "select lower(b), b::int8, 1::int, case when ok then 1 end, case when ok then 1 else a end, coalesce(b, 'x'), not true as n, true from t",
            "lower, b, int4, case, a, coalesce, n, ?column? -> project(table0, [lower($2):text, int8($2):int8, 1:int8, case($5: 1, null):int8, case($5: 1, $1):int8, coalesce($2, 'x'):text, not(true):bool, true:bool])",
        ),
        (
            r#"select "Key" from "Odd" where "Key" = '00000000-0000-0000-0000-000000000001' and raw = :none"#,
            r#"Key -> project(filter(table2, and($0 = d0, unknown)), [$0:uuid]) slots uuid "00000000-0000-0000-0000-000000000001""#,
        ),
        ("select public.t.id from public.t", "id -> project(table0, [$0:int8])"),
        ("select :p + 1 as x, :p || 'a' as y", "x, y -> project(values(()), [8:int8, '7a':text])"),
        ("select all id from t where ok", "id -> project(filter(table0, $5), [$0:int8])"),
    ]);
}
