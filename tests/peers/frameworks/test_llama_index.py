"""LlamaIndex: the server's tools load, and a prompt becomes messages of a model."""

import unittest

from llama_index.core.llms import MockLLM
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

from common import ARGUMENTS, PROMPT, RENDERED, SERVER, STDIO_ARGUMENTS, http_server


class LlamaIndex(unittest.IsolatedAsyncioTestCase):
    async def use(self, client):
        self.assertEqual(await McpToolSpec(client=client).to_tool_list_async(), [])
        listed = await client.list_prompts()
        self.assertIn(PROMPT, [prompt.name for prompt in getattr(listed, "prompts", listed)])
        messages = await client.get_prompt(PROMPT, ARGUMENTS)
        # This model repeats its input.
        answer = await MockLLM().achat(messages)
        self.assertIn(RENDERED, answer.message.content)

    async def test_stdio(self):
        await self.use(BasicMCPClient(SERVER, args=STDIO_ARGUMENTS))

    async def test_http(self):
        with http_server() as url:
            await self.use(BasicMCPClient(url))
