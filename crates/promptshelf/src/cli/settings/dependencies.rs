//! Settings of `server.toml` that need another one.
//!
//! A flag or a variable can supply either of them. A flag or variable that lacks the other setting is a mistake of the
//! command line, which the readers of the sections report.

use promptshelf_core::Code;

use super::{file::ServerFile, overrides::Overrides, sections::ServerSettings};
use crate::args::{HttpArguments, ServeArguments};

pub(super) fn check<E: Fn(&str) -> Option<String>>(
    file: &mut ServerFile,
    written: &ServerSettings,
    arguments: &ServeArguments,
    overrides: &Overrides<'_, E>,
) {
    sign_in(file, written, &arguments.over_http, overrides);
    tls(file, written, &arguments.over_http, overrides);
}

fn sign_in<E: Fn(&str) -> Option<String>>(
    file: &mut ServerFile,
    written: &ServerSettings,
    flags: &HttpArguments,
    overrides: &Overrides<'_, E>,
) {
    let auth = &written.auth;
    let is_replaced = overrides.replaces("issuer", flags.issuer.is_some());
    let has_resource =
        file.is_written(&["auth", "resource"]) || overrides.replaces("resource", flags.resource.is_some());
    if auth.issuer.is_some() && !is_replaced && !has_resource {
        let help =
            "set the URL that clients use, such as https://prompts.example.com/mcp; tokens have to be issued for it";
        missing(file, ("auth", "issuer"), "resource", help);
    }
    if auth.page_client_id.is_some() && !is_replaced && !file.is_written(&["auth", "issuer"]) {
        let help = "name the authorization server at which the page is registered";
        missing(file, ("auth", "page-client-id"), "issuer", help);
    }
    for (index, _) in auth.tokens.iter().enumerate().filter(|(_, token)| token.name.is_empty()) {
        let path = ["auth", "tokens", &index.to_string(), "name"];
        file.error(&path, Code::InvalidValue, "a token has an empty name").help =
            Some("use the name of its owner".to_owned());
    }
}

fn tls<E: Fn(&str) -> Option<String>>(
    file: &mut ServerFile,
    written: &ServerSettings,
    flags: &HttpArguments,
    overrides: &Overrides<'_, E>,
) {
    let has_certificate = overrides.replaces("tls-certificate", flags.tls_certificate.is_some());
    let has_key = overrides.replaces("tls-key", flags.tls_key.is_some());
    if written.tls.certificate.is_some() && !has_certificate && !has_key && !file.is_written(&["tls", "key"]) {
        missing(file, ("tls", "certificate"), "key", "name the file of the private key, as PEM");
    }
    if written.tls.key.is_some() && !has_certificate && !has_key && !file.is_written(&["tls", "certificate"]) {
        missing(file, ("tls", "key"), "certificate", "name the file of the certificate chain, as PEM");
    }
}

fn missing(file: &mut ServerFile, (section, key): (&str, &str), needed: &str, help: &str) {
    let message = format!("`{key}` in [{section}] needs `{needed}`");
    file.error(&[section, key], Code::MissingKey, message).help = Some(help.to_owned());
}
