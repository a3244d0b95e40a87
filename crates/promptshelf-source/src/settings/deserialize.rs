//! A serde deserializer over the located TOML tree, whose errors carry their place.

use std::{fmt, ops::Range, path::Path, sync::Arc};

use promptshelf_core::{Code, Diagnostic, Location, SourceText, nearest};
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor, value::StrDeserializer,
};

use super::value::{AS_WRITTEN, FILE_PATH, ONE_OR_LIST, TABLES};
use crate::format::{
    Node, Value, list,
    tree::{Entry, ScalarKind},
};

#[derive(Debug)]
pub(super) struct Mistake {
    code: Code,
    message: String,
    help: Option<String>,
    span: Option<Range<usize>>,
    path: Vec<usize>,
    keys: Vec<String>,
    /// Whether the innermost table is an item of [`Tables`](super::Tables).
    is_in_tables: bool,
    missing: Option<(&'static str, Range<usize>)>,
}

pub(crate) type RemovedKey = (String, Range<usize>);

impl Mistake {
    fn new(code: Code, message: impl Into<String>) -> Mistake {
        Mistake {
            code,
            message: message.into(),
            help: None,
            span: None,
            path: Vec::new(),
            keys: Vec::new(),
            is_in_tables: false,
            missing: None,
        }
    }

    fn wrong_type(expected: &str, node: &Node) -> Mistake {
        Mistake::new(Code::WrongType, format!("expected {expected}, found {}", node.kind())).at(&node.span)
    }

    fn at(mut self, span: &Range<usize>) -> Mistake {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    fn below(mut self, index: usize, key: Option<&str>) -> Mistake {
        self.path.push(index);
        self.keys.extend(key.map(str::to_owned));
        self
    }

    pub(super) fn to_diagnostic(&self, source: &Arc<SourceText>) -> Diagnostic {
        let location = Location::new(source, self.span.clone().unwrap_or_default());
        let table: Vec<&str> = self.keys.iter().rev().map(String::as_str).collect();
        let message = match (self.code, table.split_last()) {
            (Code::UnknownKey | Code::MissingKey, Some(_)) if self.is_in_tables => {
                format!("{} in [[{}]]", self.message, table.join("."))
            }
            (Code::UnknownKey | Code::MissingKey, Some(_)) => format!("{} in [{}]", self.message, table.join(".")),
            (Code::UnknownKey | Code::MissingKey, None) | (_, None) => self.message.clone(),
            (_, Some((key, _))) => format!("`{key}`: {}", self.message),
        };
        let diagnostic = Diagnostic::error(self.code, location, message);
        let is_section = table.len() == 1 && self.code == Code::WrongType;
        match (&self.help, table.first()) {
            (Some(help), _) => diagnostic.help(help),
            (None, Some(key))
                if is_section && (self.is_in_tables || self.message.starts_with("expected a list of tables")) =>
            {
                diagnostic.help(format!("write `[[{key}]]`, with two brackets"))
            }
            (None, Some(key)) if is_section && self.message.starts_with("expected a table") => {
                diagnostic.help(format!("write it as a section, `[{key}]`"))
            }
            _ => diagnostic,
        }
    }

    pub(super) fn is_at(&self, path: [&str; 2]) -> bool {
        self.keys.iter().rev().take(2).map(String::as_str).eq(path)
    }

    /// Whether a key is missing only because an earlier mistake removed it.
    pub(super) fn follows_from(&self, removed: &[RemovedKey]) -> bool {
        let missing = self.missing.as_ref();
        missing.is_some_and(|(key, table)| removed.iter().any(|(name, place)| name == key && place == table))
    }

    /// Removes the offending key or list item. Returns `false` if the mistake concerns the file as a whole.
    pub(super) fn remove_from(&self, root: &mut Node, removed: &mut Vec<RemovedKey>) -> bool {
        let Some((last, parents)) = self.path.split_first() else { return false };
        let mut node = root;
        for index in parents.iter().rev() {
            let child = match &mut node.value {
                Value::Mapping(entries) => entries.get_mut(*index).map(|entry| &mut entry.node),
                Value::List(items) => items.get_mut(*index),
                Value::Scalar(_) => None,
            };
            let Some(child) = child else { return false };
            node = child;
        }
        let table = node.span.clone();
        match &mut node.value {
            Value::Mapping(entries) if *last < entries.len() => {
                removed.push((entries.remove(*last).key, table));
                true
            }
            Value::List(items) if *last < items.len() => {
                items.remove(*last);
                true
            }
            _ => false,
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Mistake {}

impl de::Error for Mistake {
    fn custom<T: fmt::Display>(message: T) -> Mistake {
        Mistake::new(Code::InvalidValue, message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Mistake {
        let found = match found {
            Unexpected::Bool(_) => "a boolean",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
            Unexpected::Str(_) => "text",
            Unexpected::Seq => "a list",
            _ => "a table",
        };
        Mistake::new(Code::WrongType, format!("expected {expected}, found {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Mistake {
        let found = match found {
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            Unexpected::Str(text) => format!("`{text}`"),
            other => other.to_string(),
        };
        Mistake::new(Code::InvalidValue, format!("expected {expected}, got {found}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Mistake {
        let known = list(expected.iter().copied());
        let help = nearest(variant, expected.iter().copied()).map(|near| format!("did you mean `{near}`?"));
        Mistake { help, ..Mistake::new(Code::InvalidValue, format!("expected one of {known}, got `{variant}`")) }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Mistake {
        let help = match nearest(field, expected.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known keys are {}", list(expected.iter().copied())),
        };
        Mistake { help: Some(help), ..Mistake::new(Code::UnknownKey, format!("unknown key `{field}`")) }
    }

    fn missing_field(field: &'static str) -> Mistake {
        let missing = Some((field, 0..0));
        Mistake { missing, ..Mistake::new(Code::MissingKey, format!("missing key `{field}`")) }
    }
}

#[derive(Clone, Copy)]
pub(super) struct NodeDeserializer<'n> {
    node: &'n Node,
    folder: &'n Path,
    is_path: bool,
    /// Takes numbers and booleans as text too, as in `version = 1.10`.
    as_written: bool,
    one_or_list: bool,
    is_tables: bool,
}

#[expect(clippy::result_large_err, reason = "mistakes are rare, and serde's methods return them unboxed as well")]
impl<'n> NodeDeserializer<'n> {
    pub(super) fn new(node: &'n Node, folder: &'n Path) -> NodeDeserializer<'n> {
        NodeDeserializer { node, folder, is_path: false, as_written: false, one_or_list: false, is_tables: false }
    }

    /// Returns the text of a value from outside of the file, which is read as whatever is expected.
    fn given(&self) -> Option<&'n str> {
        self.node.text().filter(|_| self.node.is_given())
    }

    fn text(&self) -> Result<&'n str, Mistake> {
        match &self.node.value {
            Value::Scalar(scalar) if scalar.kind == ScalarKind::Text || self.as_written => Ok(&scalar.text),
            Value::Scalar(_) => Err(Mistake::wrong_type("a string in quotes", self.node)),
            _ => Err(Mistake::wrong_type("text", self.node)),
        }
    }

    fn map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let Value::Mapping(entries) = &self.node.value else { return Err(Mistake::wrong_type("a table", self.node)) };
        let span = entries.first().map_or(&self.node.span, |entry| &entry.key_span);
        visitor.visit_map(Entries { entries, folder: self.folder, index: 0 }).map_err(|mut mistake| {
            if let (None, Some((_, table))) = (&mistake.span, &mut mistake.missing) {
                *table = self.node.span.clone();
            }
            mistake.at(span)
        })
    }
}

impl<'n> Deserializer<'n> for NodeDeserializer<'n> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let scalar = match &self.node.value {
            Value::Mapping(_) => return self.map(visitor),
            Value::List(_) => return self.deserialize_seq(visitor),
            Value::Scalar(scalar) => scalar,
        };
        let visited = match scalar.kind {
            _ if self.as_written => visitor.visit_borrowed_str(&scalar.text),
            ScalarKind::Boolean => visitor.visit_bool(scalar.text == "true"),
            ScalarKind::Integer => match (scalar.text.parse::<u64>(), scalar.text.parse::<i64>()) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => {
                    let message = format!("expected a whole number below 2^63, got {}", scalar.text);
                    Err(Mistake::new(Code::InvalidValue, message))
                }
            },
            ScalarKind::Float => visitor.visit_f64(scalar.text.parse().unwrap_or(f64::NAN)),
            ScalarKind::Text | ScalarKind::Null => visitor.visit_borrowed_str(&scalar.text),
        };
        visited.map_err(|mistake: Mistake| mistake.at(&self.node.span))
    }

    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let text = self.text()?;
        if self.is_path && !self.node.is_given() {
            let path = self.folder.join(text).into_os_string().into_string();
            let path = path.map_err(|_| {
                Mistake::new(Code::InvalidValue, "the folder of this file has a name that is not UTF-8")
                    .at(&self.node.span)
            });
            return visitor.visit_string(path?);
        }
        visitor.visit_borrowed_str(text).map_err(|mistake: Mistake| mistake.at(&self.node.span))
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_str(visitor)
    }

    fn deserialize_u64<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let Some(text) = self.given() else { return self.deserialize_any(visitor) };
        match text.trim().parse() {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => Err(de::Error::invalid_value(Unexpected::Str(text), &visitor)),
        }
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.given() {
            None => {}
            Some("true" | "1" | "yes") => return visitor.visit_bool(true),
            Some("false" | "0" | "no") => return visitor.visit_bool(false),
            Some(text) => {
                let message = format!("expected true or false, got `{text}`");
                return Err(Mistake::new(Code::InvalidValue, message));
            }
        }
        match &self.node.value {
            Value::Scalar(scalar) if scalar.kind == ScalarKind::Boolean => visitor.visit_bool(scalar.text == "true"),
            _ => Err(Mistake::wrong_type("`true` or `false`, without quotes", self.node)),
        }
    }

    fn deserialize_f64<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let number = match &self.node.value {
            Value::Scalar(scalar) if matches!(scalar.kind, ScalarKind::Integer | ScalarKind::Float) => {
                scalar.text.parse::<f64>().ok().filter(|number| number.is_finite())
            }
            _ => None,
        };
        let number = number.ok_or_else(|| Mistake::wrong_type("a number", self.node))?;
        visitor.visit_f64(number).map_err(|mistake: Mistake| mistake.at(&self.node.span))
    }

    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(self, name: &'static str, visitor: V) -> Result<V::Value, Mistake> {
        let as_written = self.as_written || name == AS_WRITTEN;
        let one_or_list = self.one_or_list || name == ONE_OR_LIST;
        let is_tables = self.is_tables || name == TABLES;
        let is_path = self.is_path || name == FILE_PATH;
        visitor
            .visit_newtype_struct(NodeDeserializer { as_written, one_or_list, is_tables, is_path, ..self })
            .map_err(|mistake| mistake.at(&self.node.span))
    }

    fn deserialize_seq<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let (items, is_list) = match &self.node.value {
            Value::List(items) => (&**items, true),
            Value::Scalar(_) if self.one_or_list => (std::slice::from_ref(self.node), false),
            _ if self.is_tables => return Err(Mistake::wrong_type("a list of tables", self.node)),
            _ => return Err(Mistake::wrong_type("a list", self.node)),
        };
        visitor
            .visit_seq(Items { items, folder: self.folder, is_list, is_tables: self.is_tables, index: 0 })
            .map_err(|mistake| mistake.at(&self.node.span))
    }

    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.map(visitor)
    }

    fn deserialize_struct<V: Visitor<'n>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.map(visitor)
    }

    fn deserialize_enum<V: Visitor<'n>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_enum(Variant(self.text()?)).map_err(|mistake| mistake.at(&self.node.span))
    }

    fn deserialize_ignored_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        <W: Visitor<'n>>
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct Entries<'n> {
    entries: &'n [Entry],
    folder: &'n Path,
    index: usize,
}

impl<'n> MapAccess<'n> for Entries<'n> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, Mistake> {
        let Some(entry) = self.entries.get(self.index) else { return Ok(None) };
        let name: StrDeserializer<'_, Mistake> = entry.key.as_str().into_deserializer();
        seed.deserialize(name).map(Some).map_err(|mistake| mistake.at(&entry.key_span).below(self.index, None))
    }

    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let index = self.index;
        self.index += 1;
        let Some(entry) = self.entries.get(index) else { return Err(Mistake::new(Code::Syntax, "missing value")) };
        let value = seed.deserialize(NodeDeserializer::new(&entry.node, self.folder));
        value.map_err(|mistake| mistake.at(&entry.node.span).below(index, Some(&entry.key)))
    }
}

struct Items<'n> {
    items: &'n [Node],
    folder: &'n Path,
    is_list: bool,
    is_tables: bool,
    index: usize,
}

impl<'n> SeqAccess<'n> for Items<'n> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, Mistake> {
        let Some(item) = self.items.get(self.index) else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(NodeDeserializer::new(item, self.folder)).map(Some).map_err(|mistake| {
            let mut mistake = mistake.at(&item.span);
            mistake.is_in_tables |= self.is_tables && mistake.keys.is_empty();
            // A single value in the place of a list is removed with its key.
            if self.is_list { mistake.below(index, None) } else { mistake }
        })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.index)
    }
}

struct Variant<'n>(&'n str);

impl<'n> EnumAccess<'n> for Variant<'n> {
    type Error = Mistake;
    type Variant = Variant<'n>;

    fn variant_seed<V: DeserializeSeed<'n>>(self, seed: V) -> Result<(V::Value, Variant<'n>), Mistake> {
        let name: StrDeserializer<'_, Mistake> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'n> VariantAccess<'n> for Variant<'n> {
    type Error = Mistake;

    fn unit_variant(self) -> Result<(), Mistake> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'n>>(self, _: T) -> Result<T::Value, Mistake> {
        Err(Mistake::new(Code::WrongType, "expected one word"))
    }

    fn tuple_variant<V: Visitor<'n>>(self, _: usize, _: V) -> Result<V::Value, Mistake> {
        Err(Mistake::new(Code::WrongType, "expected one word"))
    }

    fn struct_variant<V: Visitor<'n>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Mistake> {
        Err(Mistake::new(Code::WrongType, "expected one word"))
    }
}
