"""OpenAI Agents: an agent starts with the server attached, and uses a prompt."""

import unittest

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from common import ANSWER, ARGUMENTS, PROMPT, RENDERED, SERVER, STDIO_ARGUMENTS, http_server


class LocalModel(Model):
    """Records its input and answers without a network."""

    def __init__(self):
        self.received = ""
        self.tools = None

    async def get_response(self, system_instructions, input, model_settings, tools, *_, **__):
        self.received, self.tools = str(input), tools
        text = ResponseOutputText(type="output_text", text=ANSWER, annotations=[])
        message = ResponseOutputMessage(
            id="1", type="message", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


class OpenAiAgents(unittest.IsolatedAsyncioTestCase):
    async def use(self, server):
        set_tracing_disabled(True)
        async with server:
            listed = [prompt.name for prompt in (await server.list_prompts()).prompts]
            self.assertIn(PROMPT, listed)
            prompt = await server.get_prompt(PROMPT, ARGUMENTS)
            model = LocalModel()
            agent = Agent(name="translator", model=model, mcp_servers=[server])
            result = await Runner.run(agent, prompt.messages[0].content.text)
        self.assertEqual(result.final_output, ANSWER)
        self.assertIn("The shelf is full.", model.received)
        self.assertEqual(model.tools, [])
        self.assertIn(RENDERED, prompt.messages[0].content.text)

    async def test_stdio(self):
        await self.use(MCPServerStdio(params={"command": SERVER, "args": STDIO_ARGUMENTS}))

    async def test_http(self):
        with http_server() as url:
            await self.use(MCPServerStreamableHttp(params={"url": url}))
