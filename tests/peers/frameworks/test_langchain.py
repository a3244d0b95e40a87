"""LangChain: the tools of all servers load, and a prompt becomes messages of a chat model."""

import sys
import unittest

from langchain_core.language_models import GenericFakeChatModel
from langchain_mcp_adapters.client import MultiServerMCPClient

from common import ANSWER, ARGUMENTS, PROMPT, RENDERED, SERVER, STDIO_ARGUMENTS, http_server

OTHER_SERVER = """
from mcp.server.fastmcp import FastMCP
server = FastMCP("other")
@server.tool()
def add(a: int, b: int) -> int: return a + b
server.run("stdio")
"""


class LangChain(unittest.IsolatedAsyncioTestCase):
    async def test_tools_of_other_servers_and_prompts(self):
        with http_server() as url:
            client = MultiServerMCPClient(
                {
                    "stdio": {"transport": "stdio", "command": SERVER, "args": STDIO_ARGUMENTS},
                    "http": {"transport": "streamable_http", "url": url},
                    "other": {"transport": "stdio", "command": sys.executable, "args": ["-c", OTHER_SERVER]},
                }
            )
            self.assertEqual([tool.name for tool in await client.get_tools()], ["add"])
            for name in ["stdio", "http"]:
                messages = await client.get_prompt(name, PROMPT, arguments=ARGUMENTS)
                self.assertIn(RENDERED, messages[0].content)
                model = GenericFakeChatModel(messages=iter([ANSWER]))
                self.assertEqual((await model.ainvoke(messages)).content, ANSWER)
