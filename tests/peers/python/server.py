"""A server made with the official Python SDK: one prompt for everything that a
client of prompts can meet."""

import base64

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.prompts.base import AssistantMessage, UserMessage
from mcp.types import (
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    InputRequiredResult,
    TextResourceContents,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)

server = MCPServer("python-peer")


@server.prompt(description="Greets somebody in a language")
def greet(name: str, language: str = "en") -> list:
    return [UserMessage(f"Greet {name} in {language}."), AssistantMessage("Gladly.")]


@server.prompt(description="An image and an embedded resource")
def media() -> list:
    resource = TextResourceContents(uri="docs://note", mime_type="text/plain", text="Remember the milk.")
    return [
        UserMessage(Image(data=PNG, format="png")),
        UserMessage(EmbeddedResource(type="resource", resource=resource)),
    ]


@server.prompt(description="Asks for a colour first")
async def asks(ctx: Context) -> list | InputRequiredResult:
    answers = ctx.input_responses or {}
    if "colour" not in answers:
        schema = {
            "type": "object",
            "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
            "required": ["colour"],
        }
        question = ElicitRequest(params=ElicitRequestFormParams(message="Which colour?", requested_schema=schema))
        return InputRequiredResult(input_requests={"colour": question}, request_state="asked")
    return [UserMessage(f"It is {answers['colour'].content['colour']}.")]


@server.prompt(description="Adds a prompt to the list")
async def grow(ctx: Context) -> list:
    @server.prompt(name="late", description="Added later")
    def late() -> list:
        return [UserMessage("Late.")]

    await ctx.notify_prompts_changed()
    return [UserMessage("Added.")]


@server.completion()
async def complete(ref, argument, context):
    known = (context.arguments or {}) if context else {}
    values = ["de", "en", "fr"] if argument.name == "language" else [f"friend-{known.get('language', 'of-all')}"]
    return Completion(values=[value for value in values if value.startswith(argument.value)])


@server.resource("docs://note", mime_type="text/plain")
def note() -> str:
    return "Remember the milk."


if __name__ == "__main__":
    server.run("stdio")
