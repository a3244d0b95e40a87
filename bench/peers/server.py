"""The Python SDK's low-level server, without sessions, answers as JSON; what can
be made ready is ready."""

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

import shelf

arguments = [
    types.PromptArgument(name="topic", description="What it is about", required=True),
    types.PromptArgument(name="tone", description="How it is to sound", required=False),
]
prompts = [
    types.Prompt(name=shelf.listed_name(at), description=shelf.listed_description(at), arguments=arguments)
    for at in range(shelf.count)
]


def said(text: str) -> types.PromptMessage:
    return types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))


async def list_prompts(_, params) -> types.ListPromptsResult:
    begin = int((params and params.cursor) or 0)
    end = min(begin + shelf.page_size, shelf.count)
    return types.ListPromptsResult(prompts=prompts[begin:end], next_cursor=str(end) if end < shelf.count else None)


async def get_prompt(_, params) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[said(shelf.one(**(params.arguments or {})))])


async def complete(_, params) -> types.CompleteResult:
    found = shelf.matching(params.argument.name, params.argument.value)
    return types.CompleteResult(
        completion=types.Completion(values=found[:100], total=len(found), has_more=len(found) > 100)
    )


server = Server("python", on_list_prompts=list_prompts, on_get_prompt=get_prompt, on_completion=complete)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if shelf.port == 0:
    anyio.run(over_stdio)
else:
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    uvicorn.run(app, host="127.0.0.1", port=shelf.port, log_level="error", access_log=False)
