// Mastra: an agent starts with the server attached, and uses a prompt.
//
//   node mastra.mjs [--server ../../../target/debug/promptshelf]

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Agent } from '@mastra/core/agent';
import { MCPClient } from '@mastra/mcp';
import { commandLine, serveHttp } from '../server.mjs';

const { server, library } = commandLine();
const ANSWER = 'A estante está cheia.';

/** A model that records its input and answers without a network. */
function localModel() {
  const calls = [];
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const model = {
    specificationVersion: 'v2',
    provider: 'local',
    modelId: 'local',
    supportedUrls: {},
    async doGenerate(options) {
      calls.push(options);
      return { content: [{ type: 'text', text: ANSWER }], finishReason: 'stop', usage, warnings: [] };
    },
    async doStream(options) {
      calls.push(options);
      const parts = [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: ANSWER },
        { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: 'stop', usage },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  };
  return { model, calls };
}

for (const protocolVersion of ['2026-07-28', 'legacy']) {
  test(`Mastra, ${protocolVersion}: an agent starts with the server attached and uses a prompt`, async () => {
    const http = await serveHttp(server, library);
    const mcp = new MCPClient({
      servers: {
        stdio: { command: server, args: ['serve', library, '--stdio'], protocolVersion },
        http: { url: http.url, protocolVersion },
      },
    });
    try {
      const { tools, errors } = await mcp.listToolsWithErrors();
      assert.deepEqual([tools, errors], [{}, {}]);
      const prompts = await mcp.prompts.list();
      for (const serverName of ['stdio', 'http']) {
        assert.ok(prompts[serverName].some(({ name }) => name === 'translate'));
        const args = { text: 'The shelf is full.', into: 'Portuguese' };
        const prompt = await mcp.prompts.get({ serverName, name: 'translate', args });
        const { text } = prompt.messages[0].content;
        assert.match(text, /<text>\nThe shelf is full\.\n<\/text>/);
        const { model, calls } = localModel();
        const agent = new Agent({ id: 'translator', name: 'translator', instructions: 'Translate.', model, tools });
        const result = await agent.generate(text);
        assert.equal(result.text, ANSWER);
        assert.match(JSON.stringify(calls[0].prompt), /The shelf is full\./);
      }
    } finally {
      await mcp.disconnect();
      await http.stop();
    }
  });
}
