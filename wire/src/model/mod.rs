//! The vocabulary that all parts share; no protocol message is named here.

pub mod column_type;
pub mod commit;
pub mod document;
pub mod given;
pub mod ids;
pub mod json;
pub mod key;
pub mod layout;
pub mod numeric;
pub mod op_kind;
pub mod query;
pub mod row;
pub mod schema;
pub mod table_rules;
pub mod time;
pub mod value;

pub use column_type::ColumnType;
pub use given::{Given, GivenRow};
pub use ids::{Cv, Epoch, Fingerprint, PlaceMask, Seq, SubId};
pub use json::{DOCUMENT_LEVELS_MAX, json_fault, json_levels};
pub use key::{Direction, Nulls, Order};
pub use layout::{Layout, OrderColumn, PlaceLayout, PlaceValue, TableLayout};
pub use numeric::Numeric;
pub use op_kind::OpKind;
pub use row::Row;
pub use schema::{ColumnSchema, TableSchema};
pub use table_rules::TableRules;
pub use value::{Value, ValueRef};
