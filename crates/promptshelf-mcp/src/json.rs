//! Reading and writing of single JSON values.
//!
//! Values that only some methods need are passed on as raw text and read on demand. That way one value that Rust
//! cannot represent (JSON allows strings that are not Unicode, RFC 8259, 8.2, and numbers without bound) makes only
//! its own member invalid, and not the whole message.
//!
//! Elsewhere: messages (`jsonrpc`), and the members of `params` (`request`).

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

/// Maximum number of members that [`entries`] reads, such as the arguments of one request. No prompt has as many.
/// Each member takes 48 bytes or more and can arrive in six, and each name may be compared with every argument of a
/// prompt.
pub(crate) const MAX_MEMBERS: usize = 1_024;

/// Deserializes a member that is present, even if it is `null`.
pub(crate) fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a string, borrowed if it has no escapes. `None` for any other value, and for a string that is not Unicode.
pub(crate) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    match memchr::memchr(b'\\', inside.as_bytes()) {
        None => Some(Cow::Borrowed(inside)),
        Some(_) => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

/// Returns whether a value is an object.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Deserializes an object that is present. Arrays are rejected: serde would read a struct from an array, one member
/// after the other.
pub(crate) fn present_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(Object(PhantomData)).map(Some)
}

/// Reads an object, not an array (see [`present_object`]).
pub(crate) fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    is_object(raw).then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// Reads the names and values of an object, in their order. `None` for any other value, and for an object with a
/// malformed value, with a name that is not Unicode, or with more than [`MAX_MEMBERS`] members.
pub(crate) fn entries<'a, V: Deserialize<'a>>(raw: &'a RawValue) -> Option<Vec<(Cow<'a, str>, V)>> {
    object::<Entries<'a, V>>(raw).map(|Entries(entries)| entries)
}

/// Reads an object like [`entries`], by name. Of members with the same name the last one counts.
pub(crate) fn members<'a, V: Deserialize<'a>>(raw: &'a RawValue) -> Option<BTreeMap<String, V>> {
    Some(entries(raw)?.into_iter().map(|(name, value)| (name.into_owned(), value)).collect())
}

struct Entries<'a, V>(Vec<(Cow<'a, str>, V)>);

/// A member's name, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Entries<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries<'a, V>, D::Error> {
        struct Object<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Object<V> {
            type Value = Vec<(Cow<'de, str>, V)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    if entries.len() == MAX_MEMBERS {
                        return Err(de::Error::custom("too many members"));
                    }
                    entries.push((name, value));
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(Object(PhantomData)).map(Entries)
    }
}

/// Appends a value to `out`. This crate serializes only string keys and finite numbers into memory, so an error
/// cannot occur; `null` is written if it does.
pub(crate) fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        tracing::error!(%error, "value cannot be serialized");
        out.extend_from_slice(b"null");
    }
}
