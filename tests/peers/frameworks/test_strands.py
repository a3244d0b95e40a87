"""Strands: an agent starts with the server attached, and uses a prompt."""

import unittest

from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from strands import Agent
from strands.models import Model
from strands.tools.mcp import MCPClient

from common import ANSWER, ARGUMENTS, PROMPT, RENDERED, SERVER, STDIO_ARGUMENTS, http_server


class LocalModel(Model):
    """Records its input and answers without a network."""

    def __init__(self):
        self.received = None

    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *_, **__):
        raise NotImplementedError
        yield

    async def stream(self, messages, tool_specs=None, *_, **__):
        self.received = (messages[-1]["content"][0]["text"], tool_specs)
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": ANSWER}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


class Strands(unittest.TestCase):
    def use(self, transport):
        model = LocalModel()
        with MCPClient(transport) as client:
            listed = client.list_prompts_sync().prompts
            self.assertIn(PROMPT, [prompt.name for prompt in listed])
            prompt = client.get_prompt_sync(PROMPT, ARGUMENTS)
            agent = Agent(model=model, tools=client.list_tools_sync(), callback_handler=None)
            result = agent(prompt.messages[0].content.text)
        self.assertEqual(str(result).strip(), ANSWER)
        text, tools = model.received
        self.assertIn(RENDERED, text)
        self.assertFalse(tools)

    def test_stdio(self):
        self.use(lambda: stdio_client(StdioServerParameters(command=SERVER, args=STDIO_ARGUMENTS)))

    def test_http(self):
        with http_server() as url:
            self.use(lambda: streamable_http_client(url))

    def test_agent_starts_with_the_server(self):
        server = StdioServerParameters(command=SERVER, args=STDIO_ARGUMENTS)
        model = LocalModel()
        agent = Agent(model=model, tools=[MCPClient(lambda: stdio_client(server))], callback_handler=None)
        self.assertEqual(str(agent("Hello")).strip(), ANSWER)
        agent.cleanup()
