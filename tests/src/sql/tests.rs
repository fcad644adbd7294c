//! The generator keeps its promises, by PostgreSQL's account.

use super::{Case, Layers, Reference, Refused};
use crate::postgres::Cluster;
use std::collections::BTreeMap;

/// Enough for every construct to occur.
const SEEDS: u64 = 200;

#[test]
fn a_seed_makes_one_case() {
    for seed in 0..5 {
        assert_eq!(Case::generate(seed, Layers::ALL), Case::generate(seed, Layers::ALL));
    }
    assert_ne!(Case::generate(1, Layers::ALL), Case::generate(2, Layers::ALL));
}

#[test]
fn postgres_takes_what_is_generated() {
    let cluster = Cluster::start();
    let mut client = cluster.connect();
    let (mut queries, mut answers, mut empty, mut always_empty, mut faults, mut changing) =
        (0, 0, 0, 0, 0, 0);
    let mut sizes = BTreeMap::<usize, usize>::new();
    let mut refused = BTreeMap::<String, (usize, String)>::new();
    let mut texts = String::new();
    for seed in 0..SEEDS {
        let case = Case::generate(seed, Layers::ALL);
        let mut reference = Reference::new(&mut client, &case.tables);
        let statements: Vec<_> = case.questions.iter().map(super::Question::statement).collect();
        let mut seen: Vec<Vec<super::Answer>> = vec![Vec::new(); statements.len()];
        let mut taken = vec![true; statements.len()];
        for commit in &case.commits {
            assert!(reference.apply(commit), "seed {seed}: {commit}");
            for (index, statement) in statements.iter().enumerate() {
                if !taken[index] {
                    continue;
                }
                match reference.ask(statement) {
                    Ok(answer) => {
                        answers += 1;
                        empty += usize::from(answer.rows.is_empty());
                        *sizes.entry(answer.rows.len().next_power_of_two()).or_default() += 1;
                        seen[index].push(answer);
                    }
                    Err(Refused::Evaluating(_)) => faults += 1,
                    Err(Refused::Text(message)) => {
                        taken[index] = false;
                        let kind: String = message.chars().filter(|it| !it.is_ascii_digit()).collect();
                        let entry = refused.entry(kind).or_insert((0, statement.postgres.clone()));
                        entry.0 += 1;
                    }
                }
            }
        }
        queries += statements.len();
        for (index, statement) in statements.iter().enumerate() {
            always_empty += usize::from(seen[index].iter().all(|answer| answer.rows.is_empty()));
            changing += usize::from(seen[index].windows(2).any(|pair| pair[0] != pair[1]));
            texts.push_str(&statement.sql);
            texts.push('\n');
        }
    }
    let count: usize = refused.values().map(|(count, _)| count).sum();
    println!(
        "{queries} queries, {count} refused, {always_empty} always empty, {changing} change; {answers} answers, {empty} \
         empty, {faults} faults; sizes {sizes:?}"
    );
    for (message, (count, example)) in &refused {
        println!("{count} × {message}: {example}");
    }
    let words = "where |order by|limit|offset|distinct on|select distinct|group by|having|count(|sum(|avg(|min(|max(|\
                 bool_and|stddev|filter (where|string_agg|array_agg|json_agg|rollup|cube|grouping sets|grouping(|\
                 left join|right join|full join|cross join|using (|lateral|exists (|not exists| in (select|\
                 not in (select|= any (|<> all (|> all (|with w|with recursive w|union (|union all|intersect (|intersect all|except (|\
                 except all|values (|over (|row_number|rank()|lag(|lead(|first_value|last_value|nth_value|ntile(|percent_rank|cume_dist|rows between|\
                 range between|groups between|partition by|case |coalesce|nullif|greatest|like|ilike|~|date_trunc|\
                 extract|interval|to_char|is distinct from|between|:p1|select *";
    let mut rare = Vec::new();
    for word in words.split('|') {
        let times = texts.lines().filter(|line| line.contains(word)).count();
        print!("{word}: {times}  ");
        if times * 400 < queries {
            rare.push(word);
        }
    }
    println!();
    assert!(count * 100 <= queries, "PostgreSQL refuses too many");
    assert!(always_empty * 4 <= queries, "too many show nothing");
    assert!(faults * 100 <= answers, "too many fail");
    assert!(rare.len() <= 5, "these hardly occur: {rare:?}");
}
