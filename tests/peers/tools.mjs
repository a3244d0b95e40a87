// Prompts as tools, with the official clients of both generations, in both eras and over both transports.
//
//   node tools.mjs [--server target/debug/promptshelf]

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PATIENCE, commandLine, serveHttp } from './server.mjs';

const { server } = commandLine();
const REVIEW = `---
description: Reviews a change
tool: true
arguments:
  - name: language
    enum: [rust, go]
    required: true
  - name: count
    type: integer
---
{{ count }} of {{ language }}.{{ role("assistant") }}Fine.
`;

let folder;
let served;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'promptshelf-tools-'));
  await writeFile(join(folder, 'review.md'), REVIEW);
  await writeFile(join(folder, 'quiet.md'), '---\ndescription: Did not opt in\n---\nQuiet.\n');
  served = await serveHttp(server, folder, {}, '127.0.0.1:0', ['--tools']);
});
after(async () => {
  await served?.stop();
  await rm(folder, { recursive: true, force: true });
});

const command = () => ({ command: server, args: ['serve', folder, '--stdio', '--tools'], stderr: 'ignore' });
const v2 = (mode) => new Client({ name: 'tools', version: '1.0.0' }, { versionNegotiation: { mode } });
const PEERS = [
  ['generation 2, modern, HTTP', () => v2({ pin: '2026-07-28' }), () => new StreamableHTTPClientTransport(served.url)],
  ['generation 2, modern, stdio', () => v2({ pin: '2026-07-28' }), () => new StdioClientTransport(command())],
  ['generation 2, legacy, HTTP', () => v2('legacy'), () => new StreamableHTTPClientTransport(served.url)],
  ['generation 1, HTTP', () => new ClientV1({ name: 'tools', version: '1.0.0' }), () => new HttpV1(served.url)],
  ['generation 1, stdio', () => new ClientV1({ name: 'tools', version: '1.0.0' }), () => new StdioV1(command())],
];

describe('prompts as tools', { concurrency: false }, () => {
  for (const [title, create, connect] of PEERS) {
    test(title, { timeout: PATIENCE }, async () => {
      const client = create();
      await client.connect(connect());
      try {
        const { tools } = await client.listTools();
        assert.deepEqual(tools.map((tool) => tool.name), ['find_prompt', 'use_prompt']);
        assert.deepEqual(tools[1].inputSchema.properties.name.enum, ['review']);
        const found = await client.callTool({ name: 'find_prompt', arguments: { query: 'review a change' } });
        assert.equal(found.structuredContent.total, 1);
        assert.deepEqual(JSON.parse(found.content[0].text), found.structuredContent);
        const call = (name, values) => client.callTool({ name: 'use_prompt', arguments: { name, arguments: values } });
        const used = await call('review', { language: 'rust', count: 2 });
        assert.deepEqual(used.content.map((block) => block.text), ['[user]\n2 of rust.', '[assistant]\nFine.']);
        assert.equal(used.structuredContent.messages[1].role, 'assistant');
        for (const [name, values] of [['review', { language: 'cobol' }], ['quiet', {}]]) {
          assert.equal((await call(name, values)).isError, true, name);
        }
        await assert.rejects(client.callTool({ name: 'review', arguments: {} }), { code: -32602 });
      } finally {
        await client.close();
      }
    });
  }
});
