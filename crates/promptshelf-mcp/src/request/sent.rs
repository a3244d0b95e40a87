//! Any value: what it says where that is asked for, else its kind.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use promptshelf_core::{RawArgumentValue, RawArguments};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// A value of any kind. `O` is what is kept of an object.
#[derive(Debug)]
pub(crate) enum Sent<'a, O = Unread> {
    /// Borrowed where it holds no escapes.
    Text(Cow<'a, str>),
    Object(O),
    /// Something else; the words say what, as JSON does.
    Other(&'static str),
}

impl<O> Sent<'_, O> {
    pub(crate) fn text(&self) -> Option<&str> {
        if let Sent::Text(text) = self { Some(text) } else { None }
    }
}

/// How the values of a message are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// All in one pass, which fails as a whole.
    Together,
    /// Each by itself, because one of them is such that it cannot be read: JSON
    /// has strings that are no Unicode (RFC 8259, 8.2) and numbers beyond any bound.
    Apart,
}

impl Way {
    /// What reads a value in this way.
    pub(crate) fn value<O>(self) -> Reader<O> {
        Reader(self, PhantomData)
    }
}

/// What reads the members of an object.
pub(crate) trait Members<'de>: Sized {
    fn read<A: MapAccess<'de>>(map: A, way: Way) -> Result<Self, A::Error>;
}

/// An object of which nobody asks more than that it is one.
#[derive(Debug)]
pub(crate) struct Unread;

impl<'de> Members<'de> for Unread {
    fn read<A: MapAccess<'de>>(mut map: A, _: Way) -> Result<Unread, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Unread)
    }
}

/// The most members of an object that are kept. Each takes 48 bytes and more
/// and can come in six: a body of nothing else would become many times its own size.
pub(super) const MAX_MEMBERS: usize = 1 << 16;

/// What there is instead of an object that cannot be read.
pub(super) const UNREADABLE: &str = "object that cannot be read";

/// The names and values of an object, in their order. Values that are no
/// strings are kept as such, so that they are reported together with other
/// problems.
impl<'de> Members<'de> for RawArguments<'de> {
    fn read<A: MapAccess<'de>>(mut map: A, way: Way) -> Result<RawArguments<'de>, A::Error> {
        let mut given = RawArguments::new();
        while let Some(Key(name)) = map.next_key::<Key<'de>>()? {
            check_room(given.len())?;
            let value = match map.next_value_seed(way.value())? {
                Sent::Text(text) => RawArgumentValue::Text(text),
                Sent::Object(Unread) => RawArgumentValue::Other("object"),
                Sent::Other(kind) => RawArgumentValue::Other(kind),
            };
            given.push(name, value);
        }
        Ok(given)
    }
}

/// Members with values of one type. Of a name that is there twice the last one counts.
impl<'de, V: Deserialize<'de>> Members<'de> for BTreeMap<String, V> {
    fn read<A: MapAccess<'de>>(mut map: A, _: Way) -> Result<BTreeMap<String, V>, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = map.next_entry()? {
            check_room(members.len())?;
            members.insert(name, value);
        }
        Ok(members)
    }
}

fn check_room<E: de::Error>(members: usize) -> Result<(), E> {
    if members < MAX_MEMBERS { Ok(()) } else { Err(E::custom("too many members")) }
}

/// The members of an object with values of one type; nothing where it is
/// another value, or has too many.
pub(crate) fn members<'a, V: Deserialize<'a>>(raw: &'a RawValue) -> Option<BTreeMap<String, V>> {
    match Way::Together.value().deserialize(&mut serde_json::Deserializer::from_str(raw.get())) {
        Ok(Sent::Object(members)) => Some(members),
        _ => None,
    }
}

/// The name of a member, borrowed where it holds no escapes.
#[derive(Deserialize)]
pub(crate) struct Key<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Reads one value.
pub(crate) struct Reader<O>(Way, PhantomData<O>);

impl<'de, O: Members<'de>> DeserializeSeed<'de> for Reader<O> {
    type Value = Sent<'de, O>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Sent<'de, O>, D::Error> {
        match self.0 {
            Way::Together => deserializer.deserialize_any(self),
            Way::Apart => {
                let raw = <&'de RawValue>::deserialize(deserializer)?.get();
                Ok(serde_json::Deserializer::from_str(raw).deserialize_any(self).unwrap_or_else(|_| unreadable(raw)))
            }
        }
    }
}

/// What is known of a value that cannot be read.
fn unreadable<'a, O>(raw: &str) -> Sent<'a, O> {
    Sent::Other(match raw.as_bytes().first() {
        Some(b'"') => "string that is no Unicode text",
        Some(b'{') => UNREADABLE,
        _ => "number",
    })
}

impl<'de, O: Members<'de>> Visitor<'de> for Reader<O> {
    type Value = Sent<'de, O>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        O::read(map, self.0).map(Sent::Object)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Sent::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Sent::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Sent::Other("array"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Sent::Other("boolean"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Sent::Other("number"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Sent::Other("number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Sent::Other("number"))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Sent::Other("null"))
    }
}
