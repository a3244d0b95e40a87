"""Pydantic AI: an agent runs with the server as a toolset, and uses a prompt."""

import unittest

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from common import ANSWER, ARGUMENTS, PROMPT, RENDERED, SERVER, STDIO_ARGUMENTS, http_server


class PydanticAi(unittest.IsolatedAsyncioTestCase):
    async def use(self, toolset):
        received = []

        def local_model(messages, info):
            received.append((str(messages[-1].parts[-1].content), info.function_tools))
            return ModelResponse(parts=[TextPart(ANSWER)])

        async with toolset:
            self.assertIn(PROMPT, [prompt.name for prompt in await toolset.list_prompts()])
            prompt = await toolset.get_prompt(PROMPT, ARGUMENTS)
            agent = Agent(FunctionModel(local_model), toolsets=[toolset])
            result = await agent.run(prompt.messages[0].content.content)
        self.assertEqual(result.output, ANSWER)
        ((text, tools),) = received
        self.assertIn(RENDERED, text)
        self.assertEqual(tools, [])

    async def test_stdio(self):
        await self.use(MCPToolset(StdioTransport(SERVER, STDIO_ARGUMENTS)))

    async def test_http(self):
        with http_server() as url:
            await self.use(MCPToolset(url))
