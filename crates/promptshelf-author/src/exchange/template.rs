//! Writes text and pieces in our template language. Text that looks like template syntax is escaped.

use promptshelf_core::{BodyPiece, Role, Select, Words};

const OPENINGS: &[&str] = &["{{", "{%", "{#"];

/// Returns a template that renders exactly this text.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match OPENINGS.iter().find(|opening| rest.starts_with(**opening)) {
            Some(opening) => {
                out.push_str(&format!("{{{{ \"{opening}\" }}}}"));
                rest = &rest[2..];
            }
            None if rest.len() == 1 => {
                // The following text may begin with a brace, too.
                out.push_str("{{ \"{\" }}");
                rest = "";
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

pub(super) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn role(role: Role) -> String {
    format!("{{{{ role(\"{}\") }}}}\n", role.as_str())
}

/// Returns words of an argument as a template. Quotation marks in the argument do not join words there.
fn of_words(Words { argument, select, before, otherwise }: &Words) -> String {
    let (condition, value) = match select {
        Select::All => (argument.clone(), argument.clone()),
        Select::Word(index) => {
            let words = format!("({argument} | split)");
            (format!("{argument} and {words} | length > {index}"), format!("{words}[{index}]"))
        }
        Select::From(index) => {
            let words = format!("({argument} | split)");
            (format!("{argument} and {words} | length > {index}"), format!("{words}[{index}:] | join(\" \")"))
        }
    };
    let otherwise = if otherwise.is_empty() { String::new() } else { format!("{{% else %}}{}", literal(otherwise)) };
    format!("{{% if {condition} %}}{}{{{{ {value} }}}}{otherwise}{{% endif %}}", literal(before))
}

/// Returns a body without a template language as a template.
pub(super) fn of(pieces: &[BodyPiece]) -> String {
    let mut out = String::new();
    let mut speaker = Role::User;
    for piece in pieces {
        match piece {
            BodyPiece::Text(text) => out.push_str(&literal(text)),
            BodyPiece::Argument(name) => out.push_str(&format!("{{{{ {name} }}}}")),
            BodyPiece::Words(words) => out.push_str(&of_words(words)),
            BodyPiece::Role(next) => {
                // A prompt begins with a message of the user by default.
                if !out.is_empty() || *next != speaker {
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push('\n');
                    }
                    out.push_str(&role(*next));
                }
                speaker = *next;
            }
            BodyPiece::Attach { path, .. } => {
                if !out.is_empty() && !out.ends_with('\n') {
                    out.push('\n');
                }
                out.push_str(&format!("{{{{ attach({}) }}}}\n", string(path)));
            }
        }
    }
    out
}
