//! The column types, and the names PostgreSQL users know them by.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A column's type. Its JSON and MessagePack forms are listed in `docs/protocol.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// `true` or `false`.
    Bool,
    /// 64-bit signed integer.
    Int8,
    /// IEEE 754 double; NaN equals itself and is the greatest, −0 equals 0.
    Float8,
    /// UTF-8 without NUL, compared bytewise.
    Text,
    /// Bytes.
    Bytea,
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamptz,
    /// Days since 1970-01-01.
    Date,
    /// 128-bit UUID.
    Uuid,
    /// Exact decimal, with NaN and ±Infinity.
    Numeric,
    /// A JSON document, compared as PostgreSQL's `jsonb`.
    Json,
}

impl ColumnType {
    /// The canonical name, as it travels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Float8 => "float8",
            Self::Text => "text",
            Self::Bytea => "bytea",
            Self::Timestamptz => "timestamptz",
            Self::Date => "date",
            Self::Uuid => "uuid",
            Self::Numeric => "numeric",
            Self::Json => "json",
        }
    }

    /// The type a PostgreSQL type name maps to, or `None` for a type that is not supported.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        Some(match lower.as_str() {
            "bool" | "boolean" => Self::Bool,
            "int8" | "int4" | "int2" | "bigint" | "integer" | "int" | "smallint" => Self::Int8,
            "float8" | "float4" | "real" | "double precision" | "double" | "float" => Self::Float8,
            "text" | "varchar" | "character varying" | "char" | "character" | "bpchar" => Self::Text,
            "bytea" => Self::Bytea,
            "timestamptz" | "timestamp" | "timestamp with time zone" | "timestamp without time zone" => {
                Self::Timestamptz
            }
            "date" => Self::Date,
            "uuid" => Self::Uuid,
            "numeric" | "decimal" => Self::Numeric,
            "json" | "jsonb" => Self::Json,
            _ => return None,
        })
    }

    /// Whether values of the type are numbers, which compare with each other exactly.
    #[must_use]
    pub fn is_number(self) -> bool {
        matches!(self, Self::Int8 | Self::Float8 | Self::Numeric)
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
