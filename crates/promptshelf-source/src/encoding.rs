//! Texts in other encodings than UTF-8.

/// The advice for a file whose text [`decoded`] returns.
pub const CONVERTIBLE: &str = "`check --fix` converts it to UTF-8";

/// Returns the text of a file in UTF-16 with a byte order mark, or in a code page of Windows for Latin letters: if all the
/// languages that have the letters of the text agree on it. `ê` in the western code page is `ę` in the central European one.
#[must_use]
pub fn decoded(bytes: &[u8]) -> Option<String> {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    // UTF-32 has them, and no text.
    let text = |text: Option<String>| text.filter(|text| !text.contains('\0'));
    match bytes {
        [0xff, 0xfe, rest @ ..] => text(units(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => text(units(rest, u16::from_be_bytes)),
        // A part of it is UTF-8.
        bytes if bytes.utf8_chunks().any(|chunk| !chunk.valid().is_ascii()) => None,
        bytes if std::str::from_utf8(bytes).is_ok() => None,
        // A text has no such bytes.
        bytes if bytes.iter().any(|byte| matches!(byte, 0..=8 | 14..=31 | 127)) => None,
        bytes if bytes.windows(3).any(|bytes| bytes.iter().all(|byte| *byte >= 0x80)) => None,
        bytes => {
            let mut texts = LANGUAGES.iter().filter_map(|(page, letters)| in_language(bytes, page, letters));
            let text = texts.next()?;
            texts.all(|other| other == text).then_some(text)
        }
    }
}

/// Returns the text of a language; `None` if it has other letters.
fn in_language(bytes: &[u8], page: &str, letters: &str) -> Option<String> {
    let character = |byte: &u8| match byte {
        0..=0x7f => Some(char::from(*byte)),
        byte => page.chars().nth(usize::from(byte - 0x80)).filter(|c| {
            let small = c.to_lowercase().next().unwrap_or(*c);
            SIGNS.contains(*c) || letters.contains(small)
        }),
    };
    bytes.iter().map(character).collect()
}

/// What texts have besides letters.
const SIGNS: &str = "\u{a0}€‚„…‘’“”•–—™‹›«»§©®°±µ·";

/// The characters from 0x80 to 0xff of the code pages, `\0` where there is none.
const CENTRAL_EUROPEAN: &str = "€\0‚\0„…†‡\0‰Š‹ŚŤŽŹ\0‘’“”•–—\0™š›śťžź\u{a0}ˇ˘Ł¤Ą¦§¨©Ş«¬\u{ad}®Ż°±˛ł´µ¶·¸ąş»Ľ˝ľż\
     ŔÁÂĂÄĹĆÇČÉĘËĚÍÎĎĐŃŇÓÔŐÖ×ŘŮÚŰÜÝŢßŕáâăäĺćçčéęëěíîďđńňóôőö÷řůúűüýţ˙";
const WESTERN: &str = "€\0‚ƒ„…†‡ˆ‰Š‹Œ\0Ž\0\0‘’“”•–—˜™š›œ\0žŸ\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿\
     ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ";
const BALTIC: &str = "€\0‚\0„…†‡\0‰\0‹\0¨ˇ¸\0‘’“”•–—\0™\0›\0¯˛\0\u{a0}\0¢£¤\0¦§Ø©Ŗ«¬\u{ad}®Æ°±²³´µ¶·ø¹ŗ»¼½¾æ\
     ĄĮĀĆÄÅĘĒČÉŹĖĢĶĪĻŠŃŅÓŌÕÖ×ŲŁŚŪÜŻŽßąįāćäåęēčéźėģķīļšńņóōõö÷ųłśūüżž˙";

/// Languages with the letters that they have besides `a` to `z`.
const LANGUAGES: [(&str, &str); 18] = [
    (WESTERN, "äöüß"),
    (WESTERN, "àâæçéèêëîïôœùûüÿ"),
    (WESTERN, "áéíñóúü¡¿ªº"),
    (WESTERN, "áâãàçéêíóôõúü"),
    (WESTERN, "àèéìíîòóùú"),
    (WESTERN, "àçéèíïóòúü"),
    (WESTERN, "æøåéèêóòâô"),
    (WESTERN, "åäöéü"),
    (WESTERN, "áéëïóöüèê"),
    (CENTRAL_EUROPEAN, "ąćęłńóśźż"),
    (CENTRAL_EUROPEAN, "áčďéěíňóřšťúůýž"),
    (CENTRAL_EUROPEAN, "áäčďéíĺľňóôŕšťúýž"),
    (CENTRAL_EUROPEAN, "áéíóöőúüű"),
    (CENTRAL_EUROPEAN, "čćđšž"),
    (CENTRAL_EUROPEAN, "ăâîşţ"),
    (BALTIC, "ąčęėįšųūž"),
    (BALTIC, "āčēģīķļņšūž"),
    (BALTIC, "äõöüšž"),
];
