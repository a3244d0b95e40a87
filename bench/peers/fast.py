"""FastMCP, as its users write it, without sessions and with answers as JSON."""

import uvicorn
from fastmcp import FastMCP
from fastmcp.prompts import FunctionPrompt
from mcp_types import Completion

import shelf

app = FastMCP("fastmcp", list_page_size=shelf.page_size)


@app.prompt(name="one")
def one(change: str) -> str:
    return shelf.one(change)


@app.prompt(name="completed")
def completed(few: str, many: str) -> str:
    return f"Switch to {few}{many}."


@app.completion
async def complete(reference, argument, context) -> Completion:
    found = shelf.matching(argument.name, argument.value)
    return Completion(values=found[:100], total=len(found), has_more=len(found) > 100)


def listed(topic: str, tone: str = "") -> str:
    return f"Write about {topic} {tone}"


for at in range(shelf.count):
    app.add_prompt(
        FunctionPrompt.from_function(listed, name=shelf.listed_name(at), description=shelf.listed_description(at))
    )

if shelf.port == 0:
    app.run(show_banner=False)
else:
    served = app.http_app(json_response=True, stateless_http=True)
    uvicorn.run(served, host="127.0.0.1", port=shelf.port, log_level="error", access_log=False)
