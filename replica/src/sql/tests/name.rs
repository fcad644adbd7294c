//! Names of columns without an alias, as PostgreSQL 15 shows them.

use super::bound;

#[test]
fn names() {
    for (expression, name) in [
        ("-a", "?column?"),
        ("a is null", "?column?"),
        ("a in (1)", "?column?"),
        ("exists(select 1)", "exists"),
        ("not exists(select 1)", "?column?"),
        ("(select max(id) from u)", "max"),
        ("(select 1)", "?column?"),
        ("(select id as zz from u limit 1)", "zz"),
        ("extract(year from at)", "extract"),
        ("substring(b from 1)", "substring"),
        ("trim(b)", "btrim"),
        ("trim(leading 'x' from b)", "ltrim"),
        ("position('x' in b)", "position"),
        ("date '2024-01-01'", "date"),
        ("a::numeric(3,1)", "a"),
        ("'1'::numeric(3,1)", "numeric"),
        ("'1'::double precision", "float8"),
        ("1::bigint", "int8"),
        ("nullif(a,1)", "nullif"),
        ("greatest(a,1)", "greatest"),
        ("row_number() over ()", "row_number"),
        ("ceil(f)", "ceil"),
        ("ceiling(f)", "ceiling"),
        ("f::text::int", "f"),
        ("upper(b)::text", "upper"),
        ("case when ok then lower(b) end", "case"),
        ("'x'::text || 'y'", "?column?"),
        ("date_trunc('day', at)", "date_trunc"),
        ("left(b, 2)", "left"),
        ("a between 1 and 2", "?column?"),
        ("'2024-01-01'::timestamptz", "timestamptz"),
        ("'2024-01-01'::timestamp with time zone", "timestamptz"),
        ("'a'::varchar", "varchar"),
        ("cast(b as text)", "b"),
        ("(a)", "a"),
        ("bool '1'", "bool"),
        ("'{}'::jsonb", "jsonb"),
        ("coalesce(a,1)::text", "coalesce"),
        ("a = any(array[1])", "?column?"),
        ("b like 'x'", "?column?"),
        ("1.5", "?column?"),
        ("length(b) + 1", "?column?"),
    ] {
        let names = bound(&format!("select {expression} from t")).map(|select| select.names);
        assert_eq!(names, Ok(vec![name.to_owned()]), "{expression}");
    }
}
