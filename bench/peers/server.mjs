// The TypeScript SDK's low-level server, without sessions, answers as JSON; what
// can be made ready is ready. Copied beside its node_modules before it runs.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const [port, count, pageSize, folder] = process.argv.slice(2).map((word, at) => (at < 3 ? Number(word) : word));
const words = JSON.parse(readFileSync(join(import.meta.dirname, 'words.json'), 'utf8'));
const lines = (name) => readFileSync(join(folder, 'values', `${name}.txt`), 'utf8').trimEnd().split('\n');
const values = { few: lines('few'), many: lines('many') };
const prompts = Array.from({ length: count }, (_, at) => ({
  name: `prompt-${String(at).padStart(6, '0')}`,
  description: `Prompt number ${at} of a generated library, described in one sentence of usual length.`,
  arguments: [
    { name: 'topic', description: 'What it is about', required: true },
    { name: 'tone', description: 'How it is to sound', required: false },
  ],
}));

const text = (said) => ({ role: 'user', content: { type: 'text', text: said } });

function isSubsequence(typed, value) {
  let at = 0;
  for (const character of value) if (character === typed[at]) at += 1;
  return at === typed.length;
}

function factory() {
  const server = new Server({ name: 'typescript', version: '0' }, { capabilities: { prompts: {}, completions: {} } });
  server.setRequestHandler('prompts/list', ({ params }) => {
    const begin = Number(params?.cursor ?? 0);
    const end = Math.min(begin + pageSize, count);
    return { prompts: prompts.slice(begin, end), ...(end < count ? { nextCursor: String(end) } : {}) };
  });
  server.setRequestHandler('prompts/get', ({ params }) => ({
    messages: [text(words.oneBefore + params.arguments.change + words.oneAfter)],
  }));
  server.setRequestHandler('completion/complete', ({ params }) => {
    const found = values[params.argument.name].filter((value) => isSubsequence(params.argument.value, value));
    return { completion: { values: found.slice(0, 100), total: found.length, hasMore: found.length > 100 } };
  });
  return server;
}

if (port === 0) {
  serveStdio(factory);
} else {
  const handler = createMcpHandler(factory, { responseMode: 'json' });
  createServer(async (incoming, outgoing) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method, headers } = incoming;
    const url = `http://${headers.host}${incoming.url}`;
    const answer = await handler.fetch(new Request(url, { method, headers, body: Buffer.concat(chunks) }));
    const body = Buffer.from(await answer.arrayBuffer());
    const length = { 'content-length': String(body.length) };
    outgoing.writeHead(answer.status, { ...Object.fromEntries(answer.headers), ...length }).end(body);
  }).listen(port, '127.0.0.1');
}
