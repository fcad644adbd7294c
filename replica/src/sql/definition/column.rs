//! A column's definition: its type, its default, and the constraints that stand beside it.

use super::{Defined, Definer, constraint::Naming};
use crate::{
    expr::{Scalar, typing::Type},
    sql::{
        parameters::Meeting,
        place::{Place, Result, start},
        scope::{Scope, folded},
        select::{Block, Clause},
        type_name::Target,
        write::assigned,
    },
};
use sqlparser::ast::{self, CharacterLength, ColumnOption, DataType, Expr};
use std::rc::Rc;
use tidegate_wire::model::{
    ColumnSchema, ColumnType, TableSchema,
    table_rules::{Check, Unique},
};

/// A column's type, the precision of a numeric, and the length of a text.
type DeclaredType = (ColumnType, Option<(u32, i32)>, Option<u64>);

impl Definer<'_> {
    /// Adds a column to a schema, behind those that show, with the constraints of its definition; gives its position.
    pub(super) fn add_column(&self, schema: &mut TableSchema, column: &ast::ColumnDef) -> Defined<usize> {
        let place = Place::from(column.name.span);
        let name = folded(&column.name);
        if schema.column(&name).is_some() {
            super::taken::<()>("column", &name, place)?;
        }
        let (ty, precision, length) = self.column_type(&column.data_type, place)?;
        let at = schema.shown().len();
        // A key column becomes not null when the key is made.
        let mut made = ColumnSchema { name: name.clone(), ty, nullable: true, default: None, precision };
        for option in &column.options {
            match &option.option {
                ColumnOption::NotNull => made.nullable = false,
                ColumnOption::Default(expr) => made.default = self.default(expr, &made)?,
                _ => {}
            }
        }
        schema.columns.insert(at, made);
        for key in &mut schema.primary_key {
            *key += usize::from(*key >= at);
        }
        if let Some(length) = length {
            let naming = Naming { schema, taken: self.taken_names() };
            let rule = naming.free(&format!("{}_{name}_length", schema.name));
            let expression = format!("length(\"{}\") <= {length}", name.replace('"', "\"\""));
            schema.rules.checks.push(Check { name: rule, expression, renamed: Default::default() });
        }
        for option in &column.options {
            self.add_option(schema, &name, option, place)?;
        }
        Ok(at)
    }

    fn add_option(
        &self,
        schema: &mut TableSchema,
        column: &str,
        option: &ast::ColumnOptionDef,
        place: Place,
    ) -> Defined<()> {
        let name = option.name.as_ref().map(folded);
        match &option.option {
            ColumnOption::Null if schema.column(column).is_some_and(|at| !schema.columns[at].nullable) => {
                place.bad(format_args!("column {column} is both null and not null"))?;
            }
            ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_) => {}
            ColumnOption::PrimaryKey(_) => self.add_key(schema, name, vec![column.to_owned()], place)?,
            ColumnOption::Unique(unique)
                if unique.nulls_distinct == ast::NullsDistinctOption::NotDistinct =>
            {
                place.unsupported("nulls not distinct")?;
            }
            ColumnOption::Unique(_) => {
                let unique = Unique { name: String::new(), columns: vec![column.to_owned()], index: false };
                self.add_unique(schema, name, unique, place)?;
            }
            ColumnOption::Check(check) => {
                self.add_check(schema, name.or_else(|| check.name.as_ref().map(folded)), check)?;
            }
            ColumnOption::ForeignKey(key) => {
                self.add_foreign_key(schema, name, vec![column.to_owned()], key, place)?;
            }
            ColumnOption::Generated { .. } | ColumnOption::Identity(_) => {
                place.unsupported("a generated column")?;
            }
            ColumnOption::Collation(_) => place.unsupported("collate")?,
            other => {
                let text = other.to_string().to_lowercase();
                place.unsupported(format_args!("{text} for a column"))?;
            }
        }
        Ok(())
    }

    /// What a column is declared as.
    fn column_type(&self, data_type: &DataType, place: Place) -> Result<DeclaredType> {
        let length = match data_type {
            DataType::Varchar(length)
            | DataType::CharacterVarying(length)
            | DataType::CharVarying(length)
            | DataType::Character(length)
            | DataType::Char(length) => match length {
                Some(CharacterLength::IntegerLength { length, unit: None }) => Some(*length),
                Some(_) => return place.unsupported(format_args!("type {data_type}")),
                None if matches!(data_type, DataType::Character(_) | DataType::Char(_)) => Some(1),
                None => return Ok((ColumnType::Text, None, None)),
            },
            _ => None,
        };
        if length.is_some() {
            return Ok((ColumnType::Text, None, length));
        }
        match self.binder().type_name(data_type, place)? {
            Target::Type(Type::Column(ty)) => Ok((ty, None, None)),
            Target::Type(Type::Int4) => Ok((ColumnType::Int8, None, None)),
            Target::Type(Type::Interval) => place.unsupported("a column of type interval"),
            Target::Numeric(precision, scale) => {
                if !(1..=1_000).contains(&precision) || !(-1_000..=1_000).contains(&scale) {
                    return place
                        .bad("a numeric's precision is from 1 to 1000, its scale from -1000 to 1000");
                }
                Ok((ColumnType::Numeric, Some((precision, scale)), None))
            }
        }
    }

    /// The value of a default, in JSON; `None` for NULL.
    pub(super) fn default(&self, expr: &Expr, column: &ColumnSchema) -> Result<Option<serde_json::Value>> {
        let place = start(expr);
        let mut binder = self.binder();
        let mut block = Block::new(Rc::new(Scope::default()), Clause::Constant);
        let operand = binder.term(expr, &mut block)?.beside(Some(Type::Column(column.ty)), Meeting::Own)?;
        match assigned(operand, column, place)? {
            Scalar::Constant(value) if value.is_null() => Ok(None),
            Scalar::Constant(value) => Ok(Some(value.to_json())),
            _ => place.bad(format_args!("the default of column {} has no value", column.name)),
        }
    }
}
