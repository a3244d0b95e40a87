"""A server made with FastMCP: pages of two prompts, a question in the middle of a request, and a list that changes."""

from typing import Literal

from fastmcp import Context, FastMCP
from mcp.types import Completion, PromptListChangedNotification

server = FastMCP("fastmcp-peer", list_page_size=2)


@server.prompt(description="Greets somebody in a language")
def greet(name: str, language: str = "en") -> str:
    return f"Greet {name} in {language}."


@server.prompt(description="Asks for a colour first")
async def asks(ctx: Context) -> str:
    answer = await ctx.elicit("Which colour?", response_type=Literal["red", "green"])
    return f"It is {answer.data}." if answer.action == "accept" else "It has no colour."


@server.prompt(description="Adds a prompt to the list")
async def grow(ctx: Context) -> str:
    @server.prompt(name="late", description="Added later")
    def late() -> str:
        return "Late."

    await ctx.send_notification(PromptListChangedNotification())
    return "Added."


# The last one of three pages.
for number in range(2):

    @server.prompt(name=f"more{number}")
    def more() -> str:
        return "More."


@server._mcp_server.completion()
async def complete(ref, argument, context) -> Completion:
    values = ["de", "en", "fr"] if argument.name == "language" else []
    return Completion(values=[value for value in values if value.startswith(argument.value)])


if __name__ == "__main__":
    server.run("stdio", show_banner=False)
