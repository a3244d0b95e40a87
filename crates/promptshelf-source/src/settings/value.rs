//! Types for values of settings: bounded numbers, text that need not be quoted, and lists.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::{fmt, path::PathBuf};

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize,
    de::{self, Deserializer, Unexpected, Visitor},
};

/// The names under which the deserializer recognizes [`AsWritten`], [`OneOrList`], [`Tables`] and
/// [`FilePath`].
pub(super) const AS_WRITTEN: &str = "AsWritten";
pub(super) const ONE_OR_LIST: &str = "OneOrList";
pub(super) const TABLES: &str = "Tables";
pub(super) const FILE_PATH: &str = "FilePath";

/// A whole number from `MIN` to `MAX`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded<const MIN: u64, const MAX: u64 = { u64::MAX }>(pub u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
    /// The number; a larger one than this machine can address is the largest that it can.
    #[must_use]
    pub fn to_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number, or the largest `u32` for a larger one.
    #[must_use]
    pub fn to_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    fn expected(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match MAX {
            u64::MAX => write!(f, "a whole number of at least {MIN}"),
            _ => write!(f, "a whole number from {MIN} to {MAX}"),
        }
    }
}

impl<const MIN: u64, const MAX: u64> std::str::FromStr for Bounded<MIN, MAX> {
    type Err = OutOfRange<MIN, MAX>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().parse().ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Bounded).ok_or_else(|| OutOfRange(text.to_owned()))
    }
}

/// The error of parsing a [`Bounded`] number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfRange<const MIN: u64, const MAX: u64>(String);

impl<const MIN: u64, const MAX: u64> fmt::Display for OutOfRange<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected ")?;
        Bounded::<MIN, MAX>::expected(f)?;
        write!(f, ", got `{}`", self.0)
    }
}

impl<const MIN: u64, const MAX: u64> std::error::Error for OutOfRange<MIN, MAX> {}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MIN: u64, const MAX: u64>;

        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Number<MIN, MAX> {
            type Value = Bounded<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Bounded::<MIN, MAX>::expected(f)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                if (MIN..=MAX).contains(&number) {
                    Ok(Bounded(number))
                } else {
                    Err(E::invalid_value(Unexpected::Unsigned(number), &self))
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                match u64::try_from(number) {
                    Ok(number) => self.visit_u64(number),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
                }
            }
        }

        deserializer.deserialize_u64(Number)
    }
}

#[cfg(feature = "schema")]
impl<const MIN: u64, const MAX: u64> JsonSchema for Bounded<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("From{MIN}To{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        match MAX {
            u64::MAX => json_schema!({ "type": "integer", "minimum": MIN }),
            _ => json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX }),
        }
    }
}

/// Text that need not be quoted: numbers and booleans are taken as they are written, as in `version = 1.10`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct AsWritten(pub String);

#[cfg(feature = "schema")]
impl JsonSchema for AsWritten {
    fn schema_name() -> Cow<'static, str> {
        AS_WRITTEN.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// A list; a single value stands for a list of one.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct OneOrList<T>(pub Vec<T>);

impl<T> Default for OneOrList<T> {
    fn default() -> OneOrList<T> {
        OneOrList(Vec::new())
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for OneOrList<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{ONE_OR_LIST}Of{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [item, { "type": "array", "items": item }] })
    }
}

/// The path of a file or folder. In a file it is relative to the folder of the file, and read as a path from the working
/// directory.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct FilePath(pub PathBuf);

/// A list of tables, written as sections with two brackets. Mistakes in it say so.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Tables<T>(pub Vec<T>);

impl<T> Default for Tables<T> {
    fn default() -> Tables<T> {
        Tables(Vec::new())
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for Tables<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{TABLES}Of{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<T>::json_schema(generator)
    }
}
