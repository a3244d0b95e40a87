"""The FastMCP client: tools are listed, and a prompt is used."""

import unittest

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from common import ARGUMENTS, PROMPT, RENDERED, SERVER, STDIO_ARGUMENTS, http_server


class FastMcp(unittest.IsolatedAsyncioTestCase):
    async def use(self, target):
        async with Client(target) as client:
            self.assertEqual(await client.list_tools(), [])
            self.assertIn(PROMPT, [prompt.name for prompt in await client.list_prompts()])
            prompt = await client.get_prompt(PROMPT, ARGUMENTS)
        self.assertIn(RENDERED, prompt.messages[0].content.text)

    async def test_stdio(self):
        await self.use(StdioTransport(SERVER, STDIO_ARGUMENTS))

    async def test_http(self):
        with http_server() as url:
            await self.use(url)
