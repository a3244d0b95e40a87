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
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

/// Maximum number of members that [`Entries`] has, such as the arguments of one request. No prompt has as many.
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
        // Surrogates are left to serde.
        Some(_) => unescaped(inside).or_else(|| serde_json::from_str(raw.get()).ok()).map(Cow::Owned),
    }
}

/// Decodes what stands in the quotes of a string whose escapes have been checked; `None` if it has surrogates.
///
/// A second way in addition to serde, which needs four times as long: without this one a `prompts/get` of 100 kB of program
/// code takes a fifth more time, and more than with the official SDK.
fn unescaped(inside: &str) -> Option<String> {
    let text = inside.as_bytes();
    // Eight bytes are copied at a time. Those behind an escape are overwritten.
    let mut out = vec![0; text.len() + EIGHT];
    let (mut at, mut end) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let eight = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut last = [0; EIGHT];
            last[..rest.len()].copy_from_slice(rest);
            last
        });
        out[end..end + EIGHT].copy_from_slice(&eight);
        let plain = before_escape(eight).min(rest.len());
        (at, end) = (at + plain, end + plain);
        if plain == EIGHT || plain == rest.len() {
            continue;
        }
        let escape = *text.get(at + 1)?;
        at += 2;
        if escape == b'u' {
            let code = u32::from_str_radix(inside.get(at..at + 4)?, 16).ok()?;
            at += 4;
            end += char::from_u32(code)?.encode_utf8(&mut out[end..]).len();
            continue;
        }
        out[end] = match escape {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 0x08,
            b'f' => 0x0c,
            itself => itself,
        };
        end += 1;
    }
    out.truncate(end);
    String::from_utf8(out).ok()
}

const EIGHT: usize = size_of::<u64>();

/// Returns the number of bytes before the first backslash, all of them if there is none. A borrow of the subtraction marks
/// the lowest byte that is zero.
fn before_escape(eight: [u8; EIGHT]) -> usize {
    let of_each = |byte: u8| u64::from_le_bytes([byte; EIGHT]);
    let zero_if_backslash = u64::from_le_bytes(eight) ^ of_each(b'\\');
    let zeros = zero_if_backslash.wrapping_sub(of_each(1)) & !zero_if_backslash & of_each(0x80);
    (zeros.trailing_zeros() / u8::BITS) as usize
}

pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Deserializes an object that is present. Arrays are rejected: serde would read a struct from an array, one member
/// after the other.
pub(crate) fn present_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
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
    deserializer.deserialize_map(Object(PhantomData))
}

/// Reads an object, not an array (see [`present_object`]).
pub(crate) fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    is_object(raw).then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// The names and values of an object, in their order. Reading them fails only for malformed JSON.
#[derive(Debug)]
pub(crate) enum Entries<'a, V> {
    Read(Vec<(Cow<'a, str>, V)>),
    NotAnObject,
    /// A name that is not Unicode, or more than [`MAX_MEMBERS`] members.
    Unreadable,
}

/// Reads the members of an object, by name. Of members with the same name the last one counts. `None` for any other
/// value, and for an object with a malformed value, with a name that is not Unicode, or with more than [`MAX_MEMBERS`]
/// members.
pub(crate) fn members<'a, V: Deserialize<'a>>(raw: &'a RawValue) -> Option<BTreeMap<String, V>> {
    match serde_json::from_str(raw.get()).ok()? {
        Entries::Read(entries) => Some(entries.into_iter().map(|(name, value)| (name.into_owned(), value)).collect()),
        Entries::NotAnObject | Entries::Unreadable => None,
    }
}

impl<'de: 'a, 'a, V: Deserialize<'de>> Deserialize<'de> for Entries<'a, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries<'a, V>, D::Error> {
        struct AnyValue<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for AnyValue<V> {
            type Value = Entries<'de, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                // Raw names: decoding a name that is not Unicode would make the whole message invalid.
                while let Some(name) = map.next_key::<&'de RawValue>()? {
                    let Some(name) = text(name).filter(|_| entries.len() < MAX_MEMBERS) else {
                        map.next_value::<IgnoredAny>()?;
                        while map.next_entry::<&'de RawValue, IgnoredAny>()?.is_some() {}
                        return Ok(Entries::Unreadable);
                    };
                    entries.push((name, map.next_value()?));
                }
                Ok(Entries::Read(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Entries::NotAnObject)
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Entries::NotAnObject)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Entries::NotAnObject)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Entries::NotAnObject)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Entries::NotAnObject)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Entries::NotAnObject)
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Entries::NotAnObject)
            }
        }
        deserializer.deserialize_any(AnyValue(PhantomData))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_those_of_serde(
            parts in prop::collection::vec(
                prop_oneof![
                    8 => "[ -!#-\\[\\]-~äß€🦀\u{2028}]{0,40}",
                    1 => Just(r"\u".to_owned()),
                    8 => "\\\\[\"\\\\/bfnrt]",
                    8 => "\\\\u[0-9a-fA-F]{4}",
                    8 => Just(r"\ud83e\uDD80".to_owned()),
                    1 => Just(r"\u+0041".to_owned()),
                ],
                0..20,
            ),
        ) {
            let written = format!("\"{}\"", parts.concat());
            let read = serde_json::from_str::<&RawValue>(&written).ok().and_then(text);
            let expected: Option<String> = serde_json::from_str(&written).ok();
            prop_assert_eq!(read.as_deref(), expected.as_deref());
        }
    }
}
