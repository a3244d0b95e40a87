//! Tools: none, a search for prompts, or one tool for each prompt.
//!
//! Agent frameworks call `tools/list` of every server and fail as a whole on "method not found". The capability is
//! therefore declared also without tools, and the list is empty. Only prompts that opted in are reached through tools,
//! so that descriptions do not fill a model's context.
//!
//! Elsewhere: search and access (`promptshelf-service`), and encoding (`to_wire`).

mod schema;

use std::{borrow::Cow, sync::Arc};

use promptshelf_core::{Prompt, RawArgumentValue, RawArguments};
use promptshelf_service::{MAX_FOUND, OpenPrompt, Rejection, View};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    Server,
    dispatch::{Context, Rendered},
    error_code::{WireError, echo},
    request::{self, Params},
    request_options::ToolMode,
    to_wire,
};

const FIND: &str = "find_prompt";

const USE: &str = "use_prompt";

const FOUND: usize = 10;

/// The largest length of a tool's name that all known clients accept, in bytes.
const MAX_TOOL_NAME: usize = 64;

impl Server {
    pub(crate) fn tools(&self) -> ToolMode {
        self.request_options().tools
    }

    pub(crate) fn list_tools(
        &self,
        context: Context<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let rejected = |rejection| WireError::rejected(&rejection, context.revision);
        let cursor = params.cursor()?;
        let (view, tools, next_cursor) = match self.tools() {
            ToolMode::Each => {
                let page = self.service().list_tools(context.caller, cursor.as_deref()).map_err(rejected)?;
                let tools = page.value().prompts.iter().map(one_tool).collect();
                (page.view().clone(), tools, page.value().next_cursor.clone())
            }
            // These lists have one page, so no cursor is valid.
            _ if cursor.is_some() => return Err(rejected(Rejection::InvalidCursor)),
            ToolMode::Search => {
                let view = self.service().tools(context.caller).map_err(rejected)?;
                let tools = vec![find_tool(), use_tool(&view)];
                (view, tools, None)
            }
            ToolMode::Disabled | ToolMode::Off => (self.service().view(context.caller), Vec::new(), None),
        };
        to_wire::tools::list(&view, tools, next_cursor.as_deref(), context.revision, out);
        Ok(())
    }

    pub(crate) async fn call_tool(
        &self,
        context: Context<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let name = params.name()?;
        let given = params.arguments()?;
        let unknown = || WireError::invalid_params(format!("Unknown tool: {}", echo(&name)));
        let outcome = match (self.tools(), &*name) {
            (ToolMode::Search, FIND) => self.find(context, given, out),
            (ToolMode::Search, USE) => self.use_prompt(context, given, params, out).await,
            (ToolMode::Each, name) => {
                let view = self.service().view(context.caller);
                let prompt = view.tools().find(|prompt| tool_name(prompt) == name).ok_or_else(unknown)?;
                let open = self
                    .service()
                    .open_tool(context.caller, prompt.name().as_str())
                    .map_err(|rejection| WireError::rejected(&rejection, context.revision))?;
                self.render_tool(context, open, given, params, out).await
            }
            _ => return Err(unknown()),
        };
        match outcome {
            // The model can correct its arguments only if it sees the reason (2025-11-25, *Tools / Error handling*).
            Err(error) if error.is_for_model => {
                to_wire::tools::failed(&self.service().view(context.caller), &error.message, context.revision, out);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn find(&self, context: Context<'_>, given: &RawArguments<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
        refuse_others(given, &["query", "limit"])?;
        let query = match given.get("query") {
            Some(RawArgumentValue::Text(query)) => query,
            None => "",
            Some(other) => {
                return Err(WireError::for_model(format!("`query` must be a string, got a JSON {}", other.kind())));
            }
        };
        let limit = match given.get("limit") {
            None => FOUND,
            Some(RawArgumentValue::Text(limit)) => count_arguments(limit, MAX_FOUND)?,
            Some(RawArgumentValue::Other(limit)) => count_arguments(limit, MAX_FOUND)?,
        };
        let found = self
            .service()
            .find_tools(context.caller, query, limit)
            .map_err(|rejection| WireError::rejected(&rejection, context.revision))?;
        let prompts: Vec<Value> = found.value().prompts.iter().map(|prompt| described(prompt)).collect();
        let result = json!({ "prompts": prompts, "total": found.value().total });
        to_wire::tools::found(found.view(), &result, context.revision, out);
        Ok(())
    }

    async fn use_prompt(
        &self,
        context: Context<'_>,
        given: &RawArguments<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        refuse_others(given, &["name", "arguments"])?;
        let name = match given.get("name") {
            Some(RawArgumentValue::Text(name)) => name,
            Some(other) => {
                return Err(WireError::for_model(format!("`name` must be a string, got a JSON {}", other.kind())));
            }
            None => return Err(WireError::for_model(format!("`name` is missing; {FIND} returns the names"))),
        };
        let open = self
            .service()
            .open_tool(context.caller, name)
            .map_err(|rejection| WireError::rejected(&rejection, context.revision))?;
        let given = nested_arguments(given.get("arguments"))?;
        self.render_tool(context, open, &given, params, out).await
    }

    async fn render_tool(
        &self,
        context: Context<'_>,
        open: OpenPrompt,
        given: &RawArguments<'_>,
        params: &Params<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let names: Vec<&str> = open.prompt().arguments().iter().map(promptshelf_core::Argument::name).collect();
        refuse_others(given, &names)?;
        let given = as_text(given);
        match self.render(context, open, &given, params).await? {
            Rendered::Question(question) => out.extend_from_slice(&question),
            Rendered::Prompt(answer) => to_wire::tools::rendered(&answer, context.revision, out),
        }
        Ok(())
    }
}

fn described(prompt: &Prompt) -> Value {
    let mut described = json!({ "name": prompt.name().as_str(), "arguments": schema::of(prompt) });
    if let Some(title) = prompt.title() {
        described["title"] = json!(title);
    }
    if let Some(description) = prompt.description() {
        described["description"] = json!(description);
    }
    described
}

fn find_tool() -> Value {
    json!({
        "name": FIND,
        "title": "Find a prompt",
        "description": "Searches the prompt library. Returns matching prompts, best first, each with the JSON Schema of its arguments.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "Words that describe the task; without them, the first prompts are returned." },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_FOUND, "default": FOUND, "description": "The largest number of prompts." },
            },
            "additionalProperties": false,
        },
    })
}

fn use_tool(view: &View) -> Value {
    let (mut name, mut arguments) = (json!({ "type": "string" }), json!({ "type": "object" }));
    name["description"] = json!(format!("The name of the prompt, as {FIND} returns it."));
    arguments["description"] = json!("The arguments of the prompt.");
    if let Some(prompts) = schema::of_few(view) {
        name["enum"] = prompts.iter().map(|(prompt, _)| prompt.name().as_str()).collect();
        // Below the top level: several providers of models refuse alternatives of whole inputs.
        let of_prompt = |(prompt, mut schema): (&Arc<Prompt>, Value)| {
            schema["title"] = json!(prompt.name().as_str());
            schema
        };
        arguments["anyOf"] = prompts.into_iter().map(of_prompt).collect();
    }
    json!({
        "name": USE,
        "title": "Use a prompt",
        "description": "Renders a prompt of the library. Returns its messages, whose instructions apply to the current task.",
        "inputSchema": {
            "type": "object",
            "properties": { "name": name, "arguments": arguments },
            "required": ["name"],
            "additionalProperties": false,
        },
    })
}

fn one_tool(prompt: &Arc<Prompt>) -> Value {
    let mut tool = json!({ "name": tool_name(prompt), "inputSchema": schema::of(prompt) });
    if let Some(title) = prompt.title() {
        tool["title"] = json!(title);
    }
    if let Some(description) = prompt.description().or(prompt.title()) {
        tool["description"] = json!(description);
    }
    tool
}

/// Returns the name of a prompt's tool: its own, if every client accepts that. Otherwise other characters are replaced,
/// and the end is a digest of the name, so that two prompts never share a tool.
fn tool_name(prompt: &Prompt) -> String {
    let name = prompt.name().as_str();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() <= MAX_TOOL_NAME && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let digest: String = Sha256::digest(name).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = plain.take(MAX_TOOL_NAME - digest.len() - 1).collect();
    format!("{plain}_{digest}")
}

/// Refuses names that a closed schema does not have.
fn refuse_others(given: &RawArguments<'_>, known: &[&str]) -> Result<(), WireError> {
    match given.names().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(other) if known.is_empty() => {
            Err(WireError::for_model(format!("Unknown argument: `{}`; expected no arguments", echo(other))))
        }
        Some(other) => Err(WireError::for_model(format!(
            "Unknown argument: `{}`; expected one of {}",
            echo(other),
            known.join(", ")
        ))),
    }
}

/// Reads a number from 1 to `most`.
fn count_arguments(json: &str, most: usize) -> Result<usize, WireError> {
    let number = json.trim().parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| WireError::for_model(format!("`limit` must be a whole number from 1 to {most}")))
}

/// Returns the values as texts. `null` means that an argument is left out.
fn as_text<'a>(given: &'a RawArguments<'_>) -> RawArguments<'a> {
    let text = |(name, value): (&'a str, &'a RawArgumentValue<'_>)| {
        let value = match value {
            RawArgumentValue::Text(text) => RawArgumentValue::Text(Cow::Borrowed(&**text)),
            RawArgumentValue::Other(json) if json == "null" => return None,
            // A string that is not Unicode stays invalid.
            RawArgumentValue::Other(json) if json.starts_with('"') => RawArgumentValue::Other(Cow::Borrowed(&**json)),
            RawArgumentValue::Other(json) => RawArgumentValue::Text(Cow::Borrowed(&**json)),
        };
        Some((Cow::Borrowed(name), value))
    };
    given.iter().filter_map(text).collect()
}

/// Reads an object inside of the arguments. Some models send it as a text with JSON.
fn nested_arguments<'a>(value: Option<&'a RawArgumentValue<'_>>) -> Result<RawArguments<'a>, WireError> {
    let json: &str = match value {
        None => return Ok(RawArguments::new()),
        Some(RawArgumentValue::Other(json)) if json == "null" => return Ok(RawArguments::new()),
        Some(RawArgumentValue::Other(json)) => json,
        Some(RawArgumentValue::Text(text)) => text,
    };
    let malformed = || WireError::for_model("`arguments` must be an object with the arguments of the prompt");
    request::arguments_of(json).ok_or_else(malformed)
}
