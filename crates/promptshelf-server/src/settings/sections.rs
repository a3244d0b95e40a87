//! The sections of `server.toml`: each setting is one field here, with its description. The JSON Schema, the reference in
//! the guide and the help of flags are derived from them.

use std::{collections::BTreeMap, fmt, num::NonZeroU32, sync::Arc, time::Duration};

use promptshelf_core::Access;
use promptshelf_mcp::RequestOptions;
use promptshelf_service::{AuditFileOptions, Limits};
use promptshelf_source::settings::{Bounded, FilePath, Given, Tables};
use promptshelf_store::{RolloutPlan, WebhookEvent};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::{Value, json};

use super::{
    Fixed, Traces, UsageSettings,
    value::{
        Address, AlgorithmName, CollectorUrl, Day, EvaluationName, Factor, HttpsUrl, Interval, Network, Prefix, Sha256,
        SourceName,
    },
};
use crate::http::{
    self, ConnectionLimits,
    auth::{IssuerOptions, SignInOptions},
    proxy::{ForwardedHeader, Proxies},
};

/// A setting that a flag of `serve`, or the variable that is named like the flag, can replace.
#[derive(Debug)]
pub struct Flag {
    /// The name of the flag, without dashes.
    pub name: &'static str,
    /// The kind of value, such as `FILE`; empty for a flag without a value.
    pub value: &'static str,
    /// The section and the key.
    pub key: [&'static str; 2],
    /// Whether the flag can be repeated. Its variable has the values with commas, and the name of the key.
    pub is_list: bool,
    /// The heading in the help, if it is not the general one.
    pub heading: Option<&'static str>,
    /// What the flag does besides setting the key.
    pub about: Option<&'static str>,
}

const fn flag(name: &'static str, value: &'static str, key: [&'static str; 2]) -> Flag {
    Flag { name, value, key, is_list: false, heading: None, about: None }
}

impl Flag {
    const fn list(self) -> Flag {
        Flag { is_list: true, ..self }
    }

    const fn below(self, heading: &'static str) -> Flag {
        Flag { heading: Some(heading), ..self }
    }

    const fn about(self, about: &'static str) -> Flag {
        Flag { about: Some(about), ..self }
    }

    /// Returns the name of the variable.
    #[must_use]
    pub fn variable(&self) -> String {
        // `--allow-host` names one host, and the variable all of them.
        let name = if self.is_list && self.name != "trust-proxy" { self.key[1] } else { self.name };
        format!("PROMPTSHELF_{}", name.replace('-', "_").to_uppercase())
    }

    /// Returns the value of the flag, else that of its variable, as a value of the key.
    pub(super) fn given(
        &self,
        flags: &BTreeMap<&'static str, Vec<String>>,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Option<Given> {
        let (name, words) = match flags.get(self.name) {
            Some(words) => (format!("--{}", self.name), words.clone()),
            None => {
                let variable = self.variable();
                let text = environment(&variable).filter(|text| !text.is_empty())?;
                let words = if self.is_list {
                    text.split(',').map(|part| part.trim().to_owned()).collect()
                } else {
                    vec![text]
                };
                (format!("{variable} in the environment"), words)
            }
        };
        Some(Given { path: self.key, name, words, is_list: self.is_list })
    }
}

const CHANNELS: &str = "Channels of a store";
const OVER_HTTP: &str = "Over HTTP (`promptshelf schema server` describes every key of server.toml)";
const SIGN_IN: &str = "Sign-in (over HTTP)";
const TLS: &str = "TLS and proxies (over HTTP)";

/// The settings that have a flag and a variable.
pub static FLAGS: &[Flag] = &[
    flag("http", "ADDRESS", ["http", "address"])
        .about("Serve over HTTP on this address; port 0 selects a free port [default on a terminal: 127.0.0.1:8080]"),
    flag("audit", "FILE", ["audit", "file"]),
    flag("traces", "URL", ["traces", "endpoint"]),
    flag("cache", "FOLDER", ["store", "cache"]).below(CHANNELS),
    flag("allow-remote", "", ["http", "allow-remote"]).below(OVER_HTTP),
    flag("api", "", ["api", "enabled"]).below(OVER_HTTP),
    flag("metrics", "ADDRESS", ["metrics", "listen"]).below(OVER_HTTP),
    flag("allow-host", "HOST", ["http", "allow-hosts"]).list().below(OVER_HTTP),
    flag("allow-origin", "ORIGIN", ["http", "allow-origins"]).list().below(OVER_HTTP),
    flag("max-body-bytes", "BYTES", ["http", "max-body-bytes"]).below(OVER_HTTP),
    flag("request-timeout", "SECONDS", ["http", "request-timeout"]).below(OVER_HTTP),
    flag("shutdown-timeout", "SECONDS", ["http", "shutdown-timeout"]).below(OVER_HTTP),
    flag("tokens", "FILE", ["auth", "tokens-file"]).below(SIGN_IN),
    flag("issuer", "URL", ["auth", "issuer"]).below(SIGN_IN),
    flag("resource", "URL", ["auth", "resource"]).below(SIGN_IN),
    flag("tls-certificate", "FILE", ["tls", "certificate"]).below(TLS),
    flag("tls-key", "FILE", ["tls", "key"]).below(TLS),
    flag("trust-proxy", "NETWORK", ["proxy", "trusted"]).list().below(TLS),
];

/// Returns the JSON Schema of `server.toml`. Descriptions name the flag and the variable of a setting, and say which need a
/// restart.
#[must_use]
pub fn schema() -> Value {
    let mut schema = promptshelf_source::settings::schema::<ServerSettings>("server.toml");
    for place in Fixed::PLACES {
        let setting = place.split('.').fold(&mut schema, |outer, key| &mut outer["properties"][key]);
        let about = setting["description"].as_str().unwrap_or_default();
        setting["description"] = json!(format!("{about} A change takes effect after a restart."));
    }
    for flag in FLAGS {
        let [section, key] = flag.key;
        let setting = &mut schema["properties"][section]["properties"][key];
        let about = setting["description"].as_str().unwrap_or_default();
        setting["description"] = json!(format!("{about} Flag: `--{}`; variable: `{}`.", flag.name, flag.variable()));
    }
    schema
}

/// Returns the description of the setting of each flag, without that of the flag itself.
#[must_use]
pub fn descriptions() -> BTreeMap<&'static str, String> {
    let schema = promptshelf_source::settings::schema::<ServerSettings>("server.toml");
    let about = |flag: &Flag| {
        let [section, key] = flag.key;
        let setting = &schema["properties"][section]["properties"][key];
        let key = setting["description"].as_str().unwrap_or_default().trim_end_matches('.').replace('\n', " ");
        let repeated = if flag.is_list { "; can be repeated" } else { "" };
        let default = match &setting["default"] {
            Value::Null => String::new(),
            default => format!(" [default: {default}]"),
        };
        let about = flag.about.map_or_else(|| format!("{key}{repeated}{default}"), str::to_owned);
        (flag.name, format!("{about} [env: {}]", flag.variable()))
    };
    FLAGS.iter().map(about).collect()
}

/// The largest request body that can be configured: 1 GiB.
pub(super) type BodyBytes = Bounded<1, { 1 << 30 }>;
/// The memory for all bodies or responses, in bytes.
type PoolBytes = Bounded<1, { 1 << 40 }>;
/// A time of up to one day, in seconds.
pub(super) type Seconds = Bounded<1, DAY>;
pub(super) type Count = Bounded<1, 1_000_000>;
pub(super) type Files = Bounded<1, 10_000>;

const DAY: u64 = 24 * 60 * 60;

const RETENTION_DAYS: u64 = 400;

const MIN_CALLERS: u64 = 5;

const TRACES_PERCENT: u8 = 100;

/// Settings of the operator.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ServerSettings {
    pub(super) http: Http,
    pub(super) auth: Auth,
    pub(super) tls: Tls,
    pub(super) proxy: Proxy,
    pub(super) limits: CallerLimits,
    pub(super) audit: Audit,
    pub(super) metrics: Metrics,
    pub(super) traces: TracesSection,
    pub(super) usage: UsageSection,
    pub(super) grants: Grants,
    pub(super) tools: Tools,
    pub(super) prompts: PromptRequests,
    /// Delivery profiles by name, for clients that show only a part of the protocol. Each is served at
    /// `/profiles/NAME/mcp`, and for a channel at `/channels/CHANNEL/profiles/NAME/mcp`.
    pub(super) profiles: BTreeMap<String, ProfileSection>,
    pub(super) discovery: DiscoverySection,
    pub(super) provenance: ProvenanceSection,
    pub(super) store: Store,
    /// Channels that are served next to the default one, by name, with the requirements for callers. The requirements
    /// of the default channel can be set here too. Another set of channels takes effect after a restart.
    pub(super) channels: BTreeMap<String, Requirements>,
    pub(super) api: Api,
    pub(super) rollout: RolloutSection,
    /// Sources of prompts that are served together, if the command line names no library, or a store. The first channel
    /// among them is the one of webhooks, rollouts and the API.
    pub(super) source: Tables<Source>,
    /// Evaluations of prompts, for `promptshelf evaluate`: programs that judge messages, often with a model. A server runs
    /// none of them.
    pub(super) evaluation: Tables<EvaluationSection>,
    /// Receivers of events of the store, if the library is a channel, or one of its sources is.
    pub(super) webhook: Tables<WebhookSection>,
    /// Access rules that bind every library. A library can restrict access further.
    // Names the section. Its rules are read by the reader that libraries use.
    #[schemars(schema_with = "promptshelf_source::settings::access_rules_schema")]
    access: IgnoredAny,
}

impl ServerSettings {
    /// Returns the options of HTTP. Only a server with several callers bounds the connections of one address.
    pub(super) fn http_options(
        &self,
        sign_in: Option<&SignInOptions>,
        has_tls: bool,
        is_shared: bool,
    ) -> http::Options {
        let mut options = http::Options::default();
        options.mcp.allowed_hosts.clone_from(&self.http.allow_hosts);
        options.mcp.allowed_origins.clone_from(&self.http.allow_origins);
        let seconds = |written: Option<Seconds>, usual: Duration| written.map_or(usual, |it| Duration::from_secs(it.0));
        options.request_timeout = seconds(self.http.request_timeout, options.request_timeout);
        options.mcp.request_timeout = options.request_timeout;
        options.shutdown_timeout = seconds(self.http.shutdown_timeout, options.shutdown_timeout);
        options.limits = self.limits.to_connection_limits(is_shared);
        options.limits.progress_timeout = seconds(self.http.progress_timeout, options.limits.progress_timeout);
        if let Some(bytes) = self.http.max_body_bytes {
            options.mcp.max_body_bytes = bytes.to_usize();
        }
        let trusted = self.proxy.trusted.iter().map(|network| network.0).collect();
        options.proxies = Proxies { trusted, header: self.proxy.header.into() };
        options.strict_transport_security = has_tls && self.tls.strict_transport_security.unwrap_or(true);
        let access = |(name, channel): (&String, &Requirements)| Some((name.clone(), Arc::new(channel.access()?)));
        options.channel_access = self.channels.iter().filter_map(access).collect();
        options.profiles = self.profiles.iter().map(|(name, profile)| (name.clone(), (*profile).into())).collect();
        options.discovery = http::Discovery {
            server_card: self.discovery.server_card,
            catalog: self.discovery.catalog,
            url: self.discovery.url.clone().map(|url| url.0).or_else(|| sign_in?.resource.clone()),
            is_tls: has_tls,
        };
        options
    }
}

/// The HTTP endpoint.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Http {
    /// The address to listen on, as host:port. Default: 127.0.0.1:8080.
    pub(super) address: Option<Address>,
    /// Accept connections from other machines without sign-in: anyone who reaches the port can read every prompt.
    pub(super) allow_remote: bool,
    /// Host names under which clients reach the server, besides localhost.
    pub(super) allow_hosts: Vec<String>,
    /// Web origins that may connect, such as `https://example.com`.
    pub(super) allow_origins: Vec<String>,
    /// The largest request body, in bytes.
    #[schemars(extend("default" = http::Options::default().mcp.max_body_bytes))]
    pub(super) max_body_bytes: Option<BodyBytes>,
    /// The time until an answer has to begin, in seconds. A later one is an error with status 504.
    #[schemars(extend("default" = http::Options::default().request_timeout.as_secs()))]
    pub(super) request_timeout: Option<Seconds>,
    /// The time in which a client has to send or take 32 KiB of a body or response, or the rest of it, in seconds.
    #[schemars(extend("default" = ConnectionLimits::default().progress_timeout.as_secs()))]
    pub(super) progress_timeout: Option<Seconds>,
    /// The time that open streams have to end at shutdown, in seconds.
    #[schemars(extend("default" = http::Options::default().shutdown_timeout.as_secs()))]
    pub(super) shutdown_timeout: Option<Seconds>,
}

/// Sign-in of callers over HTTP. Adding or removing the section takes effect after a restart.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Auth {
    /// Static tokens: lines of `promptshelf token new`.
    pub(super) tokens: Vec<Token>,
    /// A file of tokens for sign-in: a line for each, as `promptshelf token new` prints it.
    pub(super) tokens_file: Option<FilePath>,
    /// The issuer URL of the authorization server whose access tokens are accepted.
    pub(super) issuer: Option<HttpsUrl>,
    /// The exact URL under which clients reach the server; tokens have to be issued for it.
    pub(super) resource: Option<HttpsUrl>,
    /// Accepted values of the `aud` claim. Default: the resource URL.
    pub(super) audiences: Vec<String>,
    /// The URL of the issuer's keys. Default: found through the issuer's metadata.
    pub(super) jwks_uri: Option<HttpsUrl>,
    /// A file with the issuer's keys (a JSON Web Key Set), instead of fetching them. It is read again when it changes.
    pub(super) jwks_file: Option<FilePath>,
    /// A file with certificate authorities, as PEM, that are trusted for the issuer in addition to those of the system.
    pub(super) ca_file: Option<FilePath>,
    /// Subjects or names of callers who are refused, whatever their token: a list, or `{ file = "…" }` with one a line. A
    /// change takes effect within a second, also for open streams.
    pub(super) blocked_subjects: BlockedSubjects,
    /// Accept the tokens of the store (`promptshelf token create`), if the library is a channel. Default: true with other
    /// tokens or an issuer, else false.
    pub(super) store_tokens: Option<bool>,
    /// Accepted signature algorithms. Default: all asymmetric ones.
    pub(super) algorithms: Option<Vec<AlgorithmName>>,
    /// The difference between clocks that is tolerated, in seconds.
    #[schemars(extend("default" = IssuerOptions::new("").leeway.as_secs()))]
    pub(super) leeway: Option<Bounded<1, 600>>,
    /// The claim with a caller's name. Default: `sub`.
    pub(super) user_claim: Option<String>,
    /// The claim with a caller's roles; dots select members of objects. Default: `roles`.
    pub(super) roles_claim: Option<String>,
    /// Scopes that every request needs.
    pub(super) required_scopes: Vec<String>,
    /// Scopes that clients can request from the authorization server.
    pub(super) scopes_supported: Vec<String>,
    /// Scopes by the broader scope that includes them.
    pub(super) implies: BTreeMap<String, Vec<String>>,
    /// The public client of the page at the authorization server.
    pub(super) page_client_id: Option<String>,
}

/// Callers who are refused.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub(super) enum BlockedSubjects {
    List(Vec<String>),
    File(SecretFile),
}

impl Default for BlockedSubjects {
    fn default() -> BlockedSubjects {
        BlockedSubjects::List(Vec::new())
    }
}

impl<'de> Deserialize<'de> for BlockedSubjects {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BlockedSubjects, D::Error> {
        struct ListOrFile;

        impl<'de> Visitor<'de> for ListOrFile {
            type Value = BlockedSubjects;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of subjects, or `{ file = \"…\" }`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<BlockedSubjects, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(BlockedSubjects::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BlockedSubjects, A::Error> {
                SecretFile::deserialize(MapAccessDeserializer::new(map)).map(BlockedSubjects::File)
            }
        }

        deserializer.deserialize_any(ListOrFile)
    }
}

/// A static token: the line that `promptshelf token new` prints.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Token {
    /// The caller's name in rules and records.
    pub(super) name: String,
    /// The SHA-256 hash of the token, in hexadecimal digits.
    pub(super) sha256: Sha256,
    /// The scopes of the token.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// The roles of its owner.
    #[serde(default)]
    pub(super) roles: Vec<String>,
    /// The day at whose beginning (UTC) the token expires, such as 2027-01-31.
    #[serde(default)]
    pub(super) expires: Option<Day>,
}

/// The certificate of the server and its key, as PEM. Adding or removing the section takes effect after a restart.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Tls {
    /// The certificate chain for HTTPS, as PEM. It is loaded again when it changes.
    pub(super) certificate: Option<FilePath>,
    /// The private key of the certificate, as PEM.
    pub(super) key: Option<FilePath>,
    /// Whether browsers are asked to use TLS only for this host name, for a year (HSTS). Default: true. Turn it off if
    /// other servers without TLS share the name.
    pub(super) strict_transport_security: Option<bool>,
}

/// Proxies that are trusted to report the address of a caller.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Proxy {
    /// Addresses or networks of proxies that are trusted to report a caller's address, such as 10.0.0.0/8.
    pub(super) trusted: Vec<Network>,
    /// The header that the proxies set.
    pub(super) header: HeaderName,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HeaderName {
    #[default]
    XForwarded,
    Forwarded,
}

impl From<HeaderName> for ForwardedHeader {
    fn from(name: HeaderName) -> ForwardedHeader {
        match name {
            HeaderName::XForwarded => ForwardedHeader::XForwarded,
            HeaderName::Forwarded => ForwardedHeader::Forwarded,
        }
    }
}

/// Limits for each caller, and for all connections together. Those of callers are in effect with sign-in, with
/// `allow-remote`, or if one of them is set.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CallerLimits {
    /// Requests in a minute, completion aside.
    #[schemars(extend("default" = Limits::default().requests_per_minute))]
    requests_per_minute: Option<Count>,
    /// Completion requests in a minute.
    #[schemars(extend("default" = Limits::default().completions_per_minute))]
    completions_per_minute: Option<Count>,
    /// Requests from one address in a minute.
    #[schemars(extend("default" = Limits::default().requests_per_minute_per_address))]
    requests_per_minute_per_address: Option<Count>,
    /// Requests that are processed at the same time.
    #[schemars(extend("default" = Limits::default().concurrent_requests))]
    concurrent_requests: Option<Count>,
    /// Subscriptions that are open at the same time.
    #[schemars(extend("default" = Limits::default().subscriptions))]
    subscriptions: Option<Count>,
    /// Open connections, at most as many as the process can open files.
    #[schemars(extend("default" = ConnectionLimits::default().connections))]
    connections: Option<Count>,
    /// Open connections of one address. Default: 1024, or all while only this machine can connect.
    connections_per_address: Option<Count>,
    /// Bytes of request bodies in flight, without those up to 32 KiB.
    #[schemars(extend("default" = ConnectionLimits::default().request_bytes))]
    request_bytes: Option<PoolBytes>,
    /// Bytes of responses that clients have not taken yet, without those up to 32 KiB.
    #[schemars(extend("default" = ConnectionLimits::default().response_bytes))]
    response_bytes: Option<PoolBytes>,
}

impl CallerLimits {
    /// The limits of callers, if at least one is configured; the others keep their defaults.
    pub(super) fn to_limits(&self) -> Option<Limits> {
        let mut limits = Limits::default();
        let mut is_configured = false;
        for (configured, limit) in [
            (self.requests_per_minute, &mut limits.requests_per_minute),
            (self.completions_per_minute, &mut limits.completions_per_minute),
            (self.requests_per_minute_per_address, &mut limits.requests_per_minute_per_address),
            (self.concurrent_requests, &mut limits.concurrent_requests),
            (self.subscriptions, &mut limits.subscriptions),
        ] {
            if let Some(number) = configured.and_then(|count| NonZeroU32::new(count.to_u32())) {
                *limit = number;
                is_configured = true;
            }
        }
        is_configured.then_some(limits)
    }

    /// The limits of connections. Only a server with several callers bounds the connections of one address.
    pub(super) fn to_connection_limits(&self, is_shared: bool) -> ConnectionLimits {
        let mut limits = ConnectionLimits::default();
        let number = |configured: Option<Count>| configured.map(Count::to_usize);
        limits.connections = number(self.connections).unwrap_or(limits.connections);
        let of_address = if is_shared { limits.connections_per_address } else { limits.connections };
        limits.connections_per_address = number(self.connections_per_address).unwrap_or(of_address);
        let bytes = |configured: Option<PoolBytes>| configured.map(PoolBytes::to_usize);
        limits.request_bytes = bytes(self.request_bytes).unwrap_or(limits.request_bytes);
        limits.response_bytes = bytes(self.response_bytes).unwrap_or(limits.response_bytes);
        limits
    }
}

/// The record of requests. Adding or removing the section takes effect after a restart.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Audit {
    /// The file that every request is recorded in: caller, method and outcome, never contents.
    pub(super) file: Option<FilePath>,
    /// The size at which the next file begins, in bytes.
    #[schemars(extend("default" = AuditFileOptions::new("").max_bytes))]
    pub(super) max_bytes: Option<Bounded<1, { 1 << 40 }>>,
    /// The number of older files that are kept.
    #[schemars(extend("default" = AuditFileOptions::new("").keep))]
    pub(super) keep: Option<Files>,
    /// The number of days that older files are kept, even if there are more than `keep`.
    pub(super) keep_days: Option<Bounded<1, 36_500>>,
    /// The consequence of records that cannot be written: `count` answers and counts them, `refuse` answers only
    /// after the record is on disk.
    pub(super) on_loss: OnLoss,
}

impl Audit {
    pub(super) fn settings(&self) -> Option<AuditFileOptions> {
        let mut options = AuditFileOptions::new(&self.file.as_ref()?.0);
        options.max_bytes = self.max_bytes.map_or(options.max_bytes, |bytes| bytes.0);
        options.keep = self.keep.map_or(options.keep, Files::to_u32);
        options.keep_for = self.keep_days.map(|days| Duration::from_secs(days.0 * DAY));
        options.on_loss = match self.on_loss {
            OnLoss::Count => promptshelf_service::OnLoss::Count,
            OnLoss::Refuse => promptshelf_service::OnLoss::Refuse,
        };
        Some(options)
    }
}

/// The consequence of records that cannot be written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OnLoss {
    #[default]
    Count,
    Refuse,
}

/// Metrics for Prometheus.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Metrics {
    /// The address that serves Prometheus metrics at `/metrics`, as host:port.
    pub(super) listen: Option<Address>,
}

/// Figures about the use of prompts: who calls which prompt how often. No contents and no values are kept.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct UsageSection {
    /// Count calls: in the store, or in memory for a folder over HTTP. A change takes a restart.
    pub(super) enabled: bool,
    /// The age at which figures are removed, in days. A change takes a restart.
    #[schemars(extend("default" = RETENTION_DAYS))]
    pub(super) retention_days: Option<Bounded<1, 3_650>>,
    /// The least number of distinct callers that is shown. A change takes a restart.
    #[schemars(extend("default" = MIN_CALLERS))]
    pub(super) min_callers: Option<Count>,
}

impl Default for UsageSection {
    fn default() -> UsageSection {
        UsageSection { enabled: true, retention_days: None, min_callers: None }
    }
}

impl UsageSection {
    pub(super) fn settings(&self) -> Option<UsageSettings> {
        let days = self.retention_days.map_or(RETENTION_DAYS, |days| days.0);
        let min_callers = self.min_callers.map_or(MIN_CALLERS, |callers| callers.0);
        self.enabled.then(|| UsageSettings { retention: Duration::from_secs(days * DAY), min_callers })
    }
}

/// Traces for an OpenTelemetry collector.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TracesSection {
    /// The URL of the OpenTelemetry collector that traces are sent to over OTLP/HTTP, such as http://127.0.0.1:4318.
    pub(super) endpoint: Option<CollectorUrl>,
    /// The percentage of traces that are sent.
    #[schemars(extend("default" = TRACES_PERCENT))]
    pub(super) percent: Option<Bounded<1, 100>>,
}

impl TracesSection {
    pub(super) fn settings(&self) -> Option<Traces> {
        let percent = self.percent.map_or(TRACES_PERCENT, |percent| u8::try_from(percent.0).unwrap_or(100));
        self.endpoint.as_ref().map(|endpoint| Traces { endpoint: endpoint.0.clone(), percent })
    }
}

/// Access of libraries to files outside of their folders.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Grants {
    /// Folders that `[roots]` of a library may point to or below.
    pub(super) roots: Vec<FilePath>,
}

/// The store, if the library is a channel. Its address is an argument or `PROMPTSHELF_STORE`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Store {
    /// The folder for copies of the channels, so that a restart serves without the database.
    pub(super) cache: Option<FilePath>,
}

/// The management API of a store.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Api {
    /// Serve `/api/v1` for a store. Default: true with sign-in, false without, where every caller could change the
    /// store.
    pub(super) enabled: Option<bool>,
    /// The bytes that each caller may store in a day, in uploads and open proposals, without publishing them.
    #[schemars(extend("default" = crate::api::Api::UNPUBLISHED_BYTES))]
    pub(super) unpublished_bytes: Option<PoolBytes>,
}

/// The provenance of prompts, if the library is a channel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ProvenanceSection {
    /// Send version, digest, channel, revision and approvers of each prompt to clients, in `_meta`. The audit and traces
    /// have them in any case.
    pub(super) enabled: bool,
}

impl Default for ProvenanceSection {
    fn default() -> ProvenanceSection {
        ProvenanceSection { enabled: true }
    }
}

/// A delivery profile: the changes of results.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct ProfileSection {
    /// Make every message one of the user, below a line with its role if there are several roles.
    pub(super) flatten_roles: bool,
    /// Join consecutive texts of one role.
    pub(super) merge_blocks: bool,
    /// Replace embedded resources and links by text.
    pub(super) inline_resources: bool,
    /// Fill in missing descriptions and empty prompts.
    pub(super) fill_blanks: bool,
    /// Shorten names to 32 of the characters `a-z`, `0-9`, `_` and `-`.
    pub(super) short_names: bool,
    /// Show one argument; others are written before its value, as `name=value`.
    pub(super) one_argument: bool,
}

impl From<ProfileSection> for promptshelf_mcp::Profile {
    fn from(section: ProfileSection) -> promptshelf_mcp::Profile {
        let ProfileSection { flatten_roles, merge_blocks, inline_resources, fill_blanks, short_names, one_argument } =
            section;
        promptshelf_mcp::Profile {
            flatten_roles,
            merge_blocks,
            inline_resources,
            fill_blanks,
            short_names,
            one_argument,
        }
    }
}

/// Public documents by which clients find the server. Their formats are drafts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DiscoverySection {
    /// Serve the server card at `/mcp/server-card`.
    pub(super) server_card: bool,
    /// Serve a catalog with the server card at `/.well-known/ai-catalog.json`.
    pub(super) catalog: bool,
    /// The URL of `/mcp` in both. Default: `resource` in `[auth]`, otherwise the host of the request.
    pub(super) url: Option<HttpsUrl>,
}

/// Requests for prompts over MCP.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PromptRequests {
    /// What happens to an argument that the prompt does not have: `ignore` renders without it, because some clients send
    /// more than a prompt declares; `refuse` is an error with the most similar name. The HTTP API and the command line
    /// refuse in any case, and usage counts such calls.
    pub(super) unknown_arguments: UnknownArguments,
}

/// What happens to arguments that a prompt does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum UnknownArguments {
    #[default]
    Ignore,
    Refuse,
}

/// Prompts as tools, for clients without prompts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Tools {
    /// `search` for the tools `find_prompt` and `use_prompt`, or `each` for one tool for each prompt, in small libraries.
    /// Only prompts with `tool: true` are reached through them.
    pub(super) mode: ToolMode,
    /// Answer `tools/list` also without tools, because agent frameworks fail as a whole if one server does not. With false
    /// there are no tools in any mode, and the method is not found.
    pub(super) enabled: bool,
}

/// The tools of a server.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ToolMode {
    #[default]
    Off,
    Search,
    Each,
}

impl Default for Tools {
    fn default() -> Tools {
        Tools { mode: ToolMode::Off, enabled: true }
    }
}

impl ServerSettings {
    /// What single requests depend on; the flag `--tools` asks for a search.
    pub(super) fn requests(&self, is_search_requested: bool) -> RequestOptions {
        let mut options = RequestOptions::with_tools(match self.tools.mode {
            ToolMode::Off if is_search_requested => promptshelf_mcp::ToolMode::Search,
            _ if !self.tools.enabled => promptshelf_mcp::ToolMode::Disabled,
            ToolMode::Off => promptshelf_mcp::ToolMode::Off,
            ToolMode::Search => promptshelf_mcp::ToolMode::Search,
            ToolMode::Each => promptshelf_mcp::ToolMode::Each,
        });
        options.refuses_unknown_arguments = self.prompts.unknown_arguments == UnknownArguments::Refuse;
        options
    }
}

/// The requirements of a channel or source. It does not exist for callers who do not meet them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Requirements {
    /// Scopes: a caller's token must have all of them.
    pub(super) scopes: Vec<String>,
    /// Roles: a caller must have one of them.
    pub(super) roles: Vec<String>,
    /// Names of callers who need none of the roles.
    pub(super) users: Vec<String>,
}

impl Requirements {
    /// Returns the requirements, unless there are none.
    pub(super) fn access(&self) -> Option<Access> {
        let Requirements { scopes, roles, users } = self.clone();
        let is_restricted = !(scopes.is_empty() && roles.is_empty() && users.is_empty());
        is_restricted.then_some(Access { scopes, roles, users, visible: false })
    }
}

pub(super) type Prompts = Bounded<1, 1_000_000>;

/// One source of prompts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Source {
    /// The name of the source in records, metrics and `_meta`: lower-case letters, digits, `-` and `_`.
    pub(super) name: SourceName,
    /// The kind of source: `folder`, `git`, `store` or `mcp`.
    pub(super) kind: Kind,
    /// The text before the name of each prompt. Default: the name of the source and `-`. Empty for none.
    #[serde(default)]
    pub(super) prefix: Option<Prefix>,
    /// Requirements for everything in the source. Rules of the source itself can only add to them.
    #[serde(default)]
    pub(super) access: Option<Requirements>,
    /// The largest number of prompts. A state with more is not served. Default: 10000 for `mcp`, otherwise as many as the
    /// library allows.
    #[serde(default)]
    pub(super) max_prompts: Option<Prompts>,
    /// The place of the source: a store and its channel such as `sqlite:team.db#production`, a repository such as
    /// `git+https://git.example.com/prompts.git`, or an MCP endpoint.
    #[serde(default)]
    pub(super) url: Option<String>,
    /// For `folder` the folder of prompt files; for `git` a folder inside of the repository.
    #[serde(default)]
    pub(super) path: Option<String>,
    /// For `git`: the branch, tag or commit.
    #[serde(default)]
    pub(super) r#ref: Option<String>,
    /// For `mcp`: the program and its arguments, instead of a URL.
    #[serde(default)]
    pub(super) command: Option<Vec<String>>,
    /// The time between two looks at a place that does not report changes, such as `60s` or `5m`. Default: 60s.
    #[serde(default)]
    pub(super) interval: Option<Interval>,
    /// For `mcp` and `git`: the time for one answer of the other server. Default: 10s for `mcp`, 120s for `git`.
    #[serde(default)]
    pub(super) timeout: Option<Interval>,
    /// For `git`: the file with the secret of webhooks.
    #[serde(default)]
    pub(super) webhook_secret: Option<SecretFile>,
    /// For `git` and `mcp`: the file with a token, or for `git` with `USER:PASSWORD`.
    #[serde(default)]
    pub(super) credentials: Option<SecretFile>,
    /// For `mcp`: the OAuth client with which the server requests its tokens, instead of `credentials`.
    #[serde(default)]
    pub(super) oauth: Option<OAuthSection>,
    /// For `git`: the file with the public keys of trusted authors, in the format of `allowed_signers`.
    #[serde(default)]
    pub(super) signers: Option<SecretFile>,
    /// For `mcp`: whether a new or changed definition waits for `promptshelf source approve NAME`.
    #[serde(default)]
    pub(super) approve_changes: Option<bool>,
}

/// A file that only the operator and the server read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretFile {
    /// The path of the file.
    pub(super) file: FilePath,
}

/// A client that is registered at an authorization server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct OAuthSection {
    /// The issuer identifier of the authorization server. The secret is sent to no other one.
    pub(super) issuer: String,
    /// The client identifier.
    pub(super) client_id: String,
    /// The file with the client secret.
    pub(super) client_secret: SecretFile,
    /// The scopes to request. Default: those that the other server names.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

/// The kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Folder,
    Git,
    Store,
    Mcp,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::Folder => "folder",
            Kind::Git => "git",
            Kind::Store => "store",
            Kind::Mcp => "mcp",
        }
    }
}

/// One receiver of events of the store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WebhookSection {
    /// The https URL that events are sent to.
    pub(super) url: SecretUrl,
    /// The events: `published`, `rolled-back`, `proposed`, `reviewed`, `broken`, `policy-changed`, `rollout-started`,
    /// `rollout-step`, `rollout-stopped` and `rollout-finished`.
    #[schemars(with = "Vec<Event>")]
    pub(super) events: Vec<WebhookEvent>,
    /// The file with the key of the signature, at least 16 bytes in its first line. Only `format = "slack"` does without.
    #[serde(default)]
    pub(super) secret: Option<SecretFile>,
    /// Permit plain http, and addresses that are not public: those of this machine and of private networks.
    /// Default: false.
    #[serde(default)]
    pub(super) allow_private: bool,
    /// `json` for the event, or `slack` for a sentence as `{"text": …}`.
    #[serde(default)]
    pub(super) format: Format,
    /// Send events through the proxy of the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`). It resolves the name of
    /// the host, so that this server cannot check that the address is public. Default: false.
    #[serde(default)]
    pub(super) proxy: bool,
    /// The time after an event during which its delivery is repeated, such as `30m` or `12h`. Default: 24h.
    #[serde(default)]
    pub(super) retry_for: Option<Interval>,
}

/// A URL that may be secret.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct SecretUrl(pub(super) String);

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretUrl")
    }
}

/// The format of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    #[default]
    Json,
    Slack,
}

/// What new rollouts have if nobody decides otherwise: `promptshelf rollout start` begins one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RolloutSection {
    /// The first share, and the size of each step, in per cent. Default: 10.
    pub(super) percent: Option<Bounded<1, 100>>,
    /// The time between two steps, such as `1h`. Without it, only people change the share.
    pub(super) steps: Option<Interval>,
    /// The bounds above which a rollout is stopped. Default: `{ errors = "2x" }`.
    pub(super) stop: Option<StopSection>,
}

impl RolloutSection {
    pub(super) fn plan(&self) -> RolloutPlan {
        let mut plan = RolloutPlan::default();
        if let Some(percent) = &self.percent {
            plan.percent = u8::try_from(percent.0).unwrap_or(plan.percent);
        }
        plan.steps = self.steps.as_ref().map(|steps| steps.0);
        if let Some(stop) = &self.stop {
            plan.errors = stop.errors.as_ref().map(|factor| factor.0);
            plan.declined = stop.declined.as_ref().map(|factor| factor.0);
            plan.latency = stop.latency.as_ref().map(|factor| factor.0);
        }
        plan
    }
}

/// The bounds of a rollout: factors such as `2x`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct StopSection {
    /// The factor by which the share of failed calls may be higher.
    pub(super) errors: Option<Factor>,
    /// The factor by which the share of declined and cancelled forms may be higher.
    pub(super) declined: Option<Factor>,
    /// The factor by which calls may be slower.
    pub(super) latency: Option<Factor>,
}

/// One evaluation of prompts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EvaluationSection {
    /// The name of the evaluation in policies and results: lower-case letters, digits, `-`, `_` and `.`.
    pub(super) name: EvaluationName,
    /// The program and its arguments. It runs in the folder of this file, and a path of the program is relative to it. It
    /// reads cases as JSON from stdin, and prints scores as JSON.
    pub(super) program: Vec<String>,
    /// The names of variables of the environment that the program gets, such as `OPENAI_API_KEY`. Otherwise it has those of
    /// every program only: `PATH`, `HOME`, `TMPDIR`, the language and the like.
    #[serde(default)]
    pub(super) environment: Vec<String>,
    /// The time for one prompt, such as `60s` or `5m`; the program and all that it started are killed afterwards.
    /// Default: 60s.
    #[serde(default)]
    pub(super) timeout: Option<Interval>,
    /// The least score that passes, by name. Scores without a threshold are stored and do not count.
    #[serde(default)]
    pub(super) thresholds: BTreeMap<String, f64>,
    /// The amount by which a score can be lower than that of the served version, where a policy refuses regressions.
    #[serde(default)]
    pub(super) tolerance: f64,
}

/// An event that a webhook wants.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "the schema of the type of the store")]
enum Event {
    Published,
    RolledBack,
    Proposed,
    Reviewed,
    Broken,
    PolicyChanged,
    RolloutStarted,
    RolloutStep,
    RolloutStopped,
    RolloutFinished,
}
