//! The OpenAPI document of declared operations.

use http::StatusCode;
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, openapi::path::ParameterIn};

use crate::{
    Nothing, PageQuery, Problem, RawBody,
    operation::{Detail, JSON, Operation, PREFIX, Returns, TypeSchema, type_schema},
};

/// The description of operations, to which a server adds those that it has.
#[derive(Clone, Debug)]
pub struct Document {
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
    recorded: Vec<&'static str>,
}

impl Default for Document {
    fn default() -> Document {
        let mut document = Document { paths: Map::new(), schemas: Map::new(), recorded: Vec::new() };
        document.place(type_schema::<Problem>());
        document
    }
}

impl Document {
    /// Returns the names in the audit of the operations that were added.
    #[must_use]
    pub fn recorded(&self) -> &[&'static str] {
        &self.recorded
    }

    /// Adds an operation.
    pub fn add<O: Operation>(&mut self) {
        let spec = O::SPEC;
        self.recorded.extend(spec.is_recorded().then_some(spec.audit));
        let mut parameters = Vec::new();
        for parameter in spec.parameters {
            let schema = self.place((parameter.schema)());
            parameters.push(described(parameter.name, "path", true, schema, parameter.description));
        }
        parameters.extend(O::Query::into_params(|| Some(ParameterIn::Query)).iter().map(to_json));
        let mut responses = Map::new();
        for detail in spec.details {
            match *detail {
                Detail::Header { name, description, is_required } => {
                    let kind = if is_required { json!("string") } else { json!(["string", "null"]) };
                    parameters.push(described(name, "header", is_required, json!({ "type": kind }), description));
                }
                Detail::OfLibrary => {}
                Detail::Response(returns) => self.respond(&mut responses, returns),
                Detail::Page => {
                    for name in ["cursor", "limit"] {
                        parameters.push(json!({ "$ref": format!("#/components/parameters/{name}") }));
                    }
                    responses.insert("400".to_owned(), json!({ "$ref": "#/components/responses/InvalidRequest" }));
                }
            }
        }
        if spec.happens_once() && !responses.contains_key("422") {
            let content = Some(("application/problem+json", type_schema::<Problem> as fn() -> TypeSchema));
            let description = "The key was used for another change";
            self.respond(&mut responses, Returns { status: 422, description, content });
        }
        if !responses.keys().any(|status| status.starts_with('2')) {
            let content = Some((JSON, type_schema::<O::Answer> as fn() -> TypeSchema));
            self.respond(&mut responses, Returns { status: 200, description: "", content });
            if spec.method == http::Method::GET {
                self.respond(&mut responses, Returns { status: 304, description: "", content: None });
            }
        }
        responses.insert("default".to_owned(), refusal("A refusal or an error (RFC 9457)"));
        let (summary, description) = spec.summary.split_once("\n\n").unwrap_or((spec.summary, ""));
        let security =
            spec.scopes.iter().map(|set| json!({ "token": set.iter().map(|one| one.as_str()).collect::<Value>() }));
        let mut operation = json!({
            "tags": [spec.tag],
            "summary": one_line(summary),
            "operationId": snake_case(spec.name),
            "responses": responses,
            "security": security.collect::<Value>(),
        });
        if !description.is_empty() {
            operation["description"] = one_line(description).into();
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if std::any::TypeId::of::<O::Body>() != std::any::TypeId::of::<Nothing>() {
            let schema = self.place(type_schema::<O::Body>());
            let is_raw = std::any::TypeId::of::<O::Body>() == std::any::TypeId::of::<RawBody>();
            let media = if is_raw { RawBody::MEDIA_TYPE } else { JSON };
            operation["requestBody"] = json!({ "content": { media: { "schema": schema } }, "required": true });
        }
        let path = format!("{PREFIX}{}", spec.path.replace("{*", "{"));
        let item = self.paths.entry(path).or_insert_with(|| json!({}));
        item[spec.method.as_str().to_ascii_lowercase()] = operation;
    }

    /// Returns the document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "promptshelf",
                "description":
                    "Prompts for programs, and channels of prompt libraries: versions, review, promotion and rollback.",
                "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
                "version": env!("CARGO_PKG_VERSION"),
            },
            "paths": self.paths,
            "components": {
                "schemas": self.schemas,
                "parameters": page_parameters(),
                "responses": {
                    "InvalidRequest": refusal("The query is invalid; `invalid-cursor` if the cursor is not one of this list"),
                },
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "A token of the server's sign-in: a static one, or a JWT of its authorization server. \
                                        Not needed where the server has no sign-in. Each operation names the scopes that \
                                        it needs.",
                    },
                },
            },
        })
    }

    fn respond(&mut self, responses: &mut Map<String, Value>, returns: Returns) {
        let Returns { status, description, content } = returns;
        let usual = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let description = if description.is_empty() { usual.unwrap_or_default() } else { description };
        let mut response = json!({ "description": description });
        if let Some((media, schema)) = content {
            let schema = self.place(schema());
            response["content"] = json!({ media: { "schema": schema } });
        }
        responses.insert(status.to_string(), response);
    }

    fn place(&mut self, schema: TypeSchema) -> Value {
        for (name, component) in schema.components {
            self.schemas.entry(name).or_insert_with(|| to_json(&component));
        }
        to_json(&schema.place)
    }
}

/// The parameters of every operation that answers with a page, by name.
fn page_parameters() -> Map<String, Value> {
    let parameters = PageQuery::into_params(|| Some(ParameterIn::Query));
    parameters.into_iter().map(|parameter| (parameter.name.clone(), to_json(&parameter))).collect()
}

fn refusal(description: &str) -> Value {
    json!({
        "description": description,
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    })
}

fn described(name: &str, place: &str, is_required: bool, schema: Value, description: &str) -> Value {
    let mut parameter = json!({ "name": name, "in": place, "required": is_required, "schema": schema });
    if !description.is_empty() {
        parameter["description"] = description.into();
    }
    parameter
}

fn to_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
