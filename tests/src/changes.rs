//! Random statements that write rows and change tables, from a seed, against the tables that there are.
//!
//! What PostgreSQL leaves to chance is avoided: columns that are unique are not computed from what they held, as it
//! looks at them row by row; rows are joined by keys, so that no row is updated from several.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// A table as a statement may use it.
#[derive(Clone, Debug)]
pub struct TableView {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnView>,
    /// Its primary key, where it has one of its own.
    pub key: Vec<String>,
    /// The names of its constraints.
    pub constraints: Vec<String>,
    /// The names of its indexes.
    pub indexes: Vec<String>,
}

/// A column as a statement may use it.
#[derive(Clone, Debug)]
pub struct ColumnView {
    /// Its name.
    pub name: String,
    /// Its type, one of those the generator makes.
    pub ty: String,
    /// Whether it stands in a key, a unique constraint or a foreign key.
    pub is_ruled: bool,
}

/// Makes statements.
pub struct Changes {
    rng: ChaCha8Rng,
}

const TABLES: [&str; 4] = ["a", "b", "c", "d"];
const COLUMNS: [&str; 6] = ["k", "v", "w", "x", "y", "z"];
const TYPES: [&str; 4] = ["bigint", "text", "numeric", "boolean"];

impl Changes {
    /// The statements of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    fn pick<'p, T>(&mut self, of: &'p [T]) -> &'p T {
        &of[self.rng.random_range(0..of.len())]
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    /// The next text: one statement, or a transaction.
    pub fn next(&mut self, tables: &[TableView]) -> String {
        if tables.len() < 2 {
            return self.create(tables);
        }
        if !self.chance(15) {
            return self.statement(tables);
        }
        let count = self.rng.random_range(1..4);
        let mut text = "begin".to_owned();
        for _ in 0..count {
            text = format!("{text}; {}", self.statement(tables));
        }
        let end = if self.chance(80) { "commit" } else { "rollback" };
        format!("{text}; {end}")
    }

    fn statement(&mut self, tables: &[TableView]) -> String {
        match self.rng.random_range(0..100) {
            0..45 => self.insert(tables),
            45..62 => self.update(tables),
            62..72 => self.delete(tables),
            72..78 => self.create(tables),
            78..96 => self.alter(tables),
            96..98 => format!("drop table {}{}", self.pick(tables).name, self.cascade()),
            _ => format!("truncate {}{}", self.pick(tables).name, self.cascade()),
        }
    }

    fn cascade(&mut self) -> &'static str {
        if self.chance(40) { " cascade" } else { "" }
    }

    fn literal(&mut self, ty: &str) -> String {
        if self.chance(12) {
            return "null".to_owned();
        }
        match ty {
            "bigint" => self.rng.random_range(-2..6).to_string(),
            "text" => format!("'{}'", self.pick(&["", "a", "b", "ab", "Ä"])),
            "numeric" => (*self.pick(&["0", "1.5", "-2", "3.25", "7"])).to_owned(),
            _ => (*self.pick(&["true", "false"])).to_owned(),
        }
    }

    /// A value for a column, sometimes of another type that it takes too.
    fn value(&mut self, ty: &str) -> String {
        match ty {
            _ if self.chance(5) => "default".to_owned(),
            "text" if self.chance(10) => self.literal("bigint"),
            "bigint" if self.chance(10) => self.literal("numeric"),
            "numeric" if self.chance(20) => self.literal("bigint"),
            "bigint" if self.chance(3) => "'x'".to_owned(),
            ty => self.literal(ty),
        }
    }

    fn create(&mut self, tables: &[TableView]) -> String {
        let name = *self.pick(&TABLES);
        let exists = if self.chance(10) { "if not exists " } else { "" };
        let count = self.rng.random_range(2..5);
        let mut items = Vec::new();
        for column in &COLUMNS[..count] {
            let ty = if *column == "k" { "bigint" } else { *self.pick(&TYPES) };
            items.push(self.column(column, ty, tables));
        }
        let mut constraints = Vec::new();
        match self.rng.random_range(0..10) {
            0..5 => constraints.push("primary key (k)".to_owned()),
            5 => constraints.push("primary key (k, v)".to_owned()),
            6 => constraints.push("constraint own primary key (k)".to_owned()),
            _ => {}
        }
        if self.chance(15) {
            constraints.push("unique (k, v)".to_owned());
        }
        if self.chance(10) {
            constraints.push("check (k < 5 or k is null)".to_owned());
        }
        items.extend(constraints);
        format!("create table {exists}{name} ({})", items.join(", "))
    }

    fn column(&mut self, name: &str, ty: &str, tables: &[TableView]) -> String {
        let mut text = format!("{name} {ty}");
        if self.chance(25) {
            let value = self.literal(ty);
            text.push_str(&format!(" default {value}"));
        }
        if self.chance(10) {
            text.push_str(" not null");
        }
        if self.chance(8) {
            text.push_str(" unique");
        }
        if ty == "bigint" && self.chance(10) {
            text.push_str(&format!(" check ({name} <> 4)"));
        }
        if ty == "bigint" && name != "k" && self.chance(35) && !tables.is_empty() {
            text.push_str(&self.references(tables));
        }
        text
    }

    fn references(&mut self, tables: &[TableView]) -> String {
        let parent = self.pick(tables).clone();
        let column = if self.chance(30) { " (k)" } else { "" };
        let mut text = format!(" references {}{column}", parent.name);
        for event in ["delete", "update"] {
            if self.chance(60) {
                let actions = ["cascade", "set null", "set default", "no action", "cascade"];
                text.push_str(&format!(" on {event} {}", self.pick(&actions)));
            }
        }
        text
    }

    fn insert(&mut self, tables: &[TableView]) -> String {
        let table = self.pick(tables).clone();
        let mut columns: Vec<ColumnView> = table.columns.clone();
        let listed = self.chance(50);
        if listed && columns.len() > 1 && self.chance(50) {
            let at = self.rng.random_range(0..columns.len());
            columns.remove(at);
        }
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let list = if listed { format!(" ({})", names.join(", ")) } else { String::new() };
        let source = match self.rng.random_range(0..10) {
            0 => "default values".to_owned(),
            1 => {
                let other = self.pick(tables).clone();
                let items: Vec<String> = columns
                    .iter()
                    .map(|column| {
                        let same = other.columns.iter().find(|own| own.ty == column.ty);
                        match same {
                            Some(own) if self.chance(70) => own.name.clone(),
                            _ => self.literal(&column.ty),
                        }
                    })
                    .collect();
                format!("select {} from {} where k < 3", items.join(", "), other.name)
            }
            _ => {
                let rows = self.rng.random_range(1..4);
                let rows: Vec<String> = (0..rows)
                    .map(|_| {
                        let cells: Vec<String> =
                            columns.iter().map(|column| self.value(&column.ty)).collect();
                        format!("({})", cells.join(", "))
                    })
                    .collect();
                format!("values {}", rows.join(", "))
            }
        };
        let list = if source == "default values" { String::new() } else { list };
        let conflict = match self.rng.random_range(0..10) {
            0 => " on conflict do nothing".to_owned(),
            1 | 2 => {
                let target = if table.key.is_empty() { "k".to_owned() } else { table.key.join(", ") };
                let target = match self.chance(20) {
                    true => table.constraints.first().map(|name| format!("on constraint {name}")),
                    false => None,
                }
                .unwrap_or(format!("({target})"));
                if self.chance(40) {
                    format!(" on conflict {target} do nothing")
                } else {
                    let set = self.set(&table, "excluded.");
                    let filter =
                        if self.chance(30) { format!(" where {}.k < 3", table.name) } else { String::new() };
                    format!(" on conflict {target} do update set {set}{filter}")
                }
            }
            _ => String::new(),
        };
        format!("insert into {}{list} {source}{conflict}{}", table.name, self.returning(&table))
    }

    fn returning(&mut self, table: &TableView) -> String {
        if self.chance(75) {
            return String::new();
        }
        let first = &table.columns[0].name;
        format!(" returning {}", self.pick(&["*", first.as_str(), &format!("{first} as one, 1 + 1 as two")]))
    }

    /// Assignments; `other` is what stands before the columns of other rows.
    fn set(&mut self, table: &TableView, other: &str) -> String {
        let column = self.pick(&table.columns).clone();
        let free: Vec<&ColumnView> = table.columns.iter().filter(|own| !own.is_ruled).collect();
        let is_number = |column: &ColumnView| column.ty == "bigint" || column.ty == "numeric";
        match free.iter().find(|own| is_number(own)) {
            Some(own) if self.chance(50) => {
                let (table, name) = (&table.name, &own.name);
                let other = if other.is_empty() { format!("{table}.") } else { other.to_owned() };
                format!("{name} = {table}.{name} + coalesce({other}{name}, 1)")
            }
            _ => format!("{} = {}", column.name, self.value(&column.ty)),
        }
    }

    fn filter(&mut self, table: &TableView, tables: &[TableView]) -> String {
        let column = self.pick(&table.columns).clone();
        let name = format!("{}.{}", table.name, column.name);
        match self.rng.random_range(0..8) {
            0 => String::new(),
            1 => format!(" where {name} is null"),
            2 => {
                let other = self.pick(tables);
                format!(" where {}.k in (select o.k from {} o where o.k > 0)", table.name, other.name)
            }
            3 => format!(" where {}.k between 1 and 3", table.name),
            _ => {
                let value = self.literal(&column.ty);
                format!(" where {name} = {value}")
            }
        }
    }

    fn update(&mut self, tables: &[TableView]) -> String {
        let table = self.pick(tables).clone();
        let set = self.set(&table, "");
        let filter = self.filter(&table, tables);
        let keyed: Vec<TableView> =
            tables.iter().filter(|other| other.key == ["k"] && other.name != table.name).cloned().collect();
        if self.chance(20) && !keyed.is_empty() {
            let other = self.pick(&keyed).name.clone();
            let returning = if self.chance(30) {
                format!(" returning {}.k, o.k as other", table.name)
            } else {
                String::new()
            };
            return format!(
                "update {} set {set} from {other} o where o.k = {}.k{returning}",
                table.name, table.name
            );
        }
        format!("update {} set {set}{filter}{}", table.name, self.returning(&table))
    }

    fn delete(&mut self, tables: &[TableView]) -> String {
        let table = self.pick(tables).clone();
        let filter = self.filter(&table, tables);
        if self.chance(15) {
            let other = self.pick(tables).name.clone();
            return format!(
                "delete from {} using {other} o where o.k = {}.k and o.k > 1",
                table.name, table.name
            );
        }
        if self.chance(10) {
            let name = &table.name;
            return format!(
                "with gone as (select k from {name} where k > 2) delete from {name} where k in (select k from gone)"
            );
        }
        format!("delete from {}{filter}{}", table.name, self.returning(&table))
    }

    fn alter(&mut self, tables: &[TableView]) -> String {
        let table = self.pick(tables).clone();
        let name = table.name.clone();
        let column = self.pick(&table.columns).clone();
        let own = column.name.clone();
        let new = *self.pick(&COLUMNS);
        match self.rng.random_range(0..16) {
            0..4 => {
                let ty = *self.pick(&TYPES);
                let exists = if self.chance(20) { "if not exists " } else { "" };
                let column = self.column(new, ty, tables);
                format!("alter table {name} add column {exists}{column}")
            }
            4 | 5 if own != "k" => format!("alter table {name} drop column {own}{}", self.cascade()),
            6 if own != "k" => format!("alter table {name} rename column {own} to {new}"),
            7 => format!("alter table {name} rename to {}", self.pick(&TABLES)),
            8 => {
                let value = self.literal(&column.ty);
                format!("alter table {name} alter column {own} set default {value}")
            }
            9 => format!("alter table {name} alter column {own} drop default"),
            10 => format!("alter table {name} alter {own} {} not null", self.pick(&["set", "drop"])),
            11 => match self.rng.random_range(0..4) {
                0 => format!("alter table {name} add primary key (k)"),
                1 => format!("alter table {name} add check ({own} is not null)"),
                2 => format!("alter table {name} add constraint u unique ({own})"),
                _ => {
                    let references = self.references(tables);
                    format!("alter table {name} add foreign key ({own}){references}")
                }
            },
            12 | 13 if !table.constraints.is_empty() => {
                let constraint = self.pick(&table.constraints).clone();
                format!("alter table {name} drop constraint {constraint}{}", self.cascade())
            }
            14 if !table.indexes.is_empty() => format!("drop index {}", self.pick(&table.indexes)),
            _ => {
                let unique = if self.chance(30) { "unique " } else { "" };
                let desc = if self.chance(30) { " desc" } else { "" };
                format!("create {unique}index on {name} ({own}{desc})")
            }
        }
    }
}
