// Langfuse's official clients (JavaScript and Python) against a store, unchanged but for the address and the keys.
//
//   node langfuse/langfuse.mjs --python PYTHON [--server ../../target/debug/promptshelf]

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { LangfuseClient } from '@langfuse/client';
import { serveHttp } from '../server.mjs';

// The client logs every refusal with its stack.
console.error = () => {};

const run = promisify(execFile);
const { values } = parseArgs({
  options: { server: { type: 'string', default: '../../target/debug/promptshelf' }, python: { type: 'string' } },
});
const program = resolve(values.server);
const folder = await mkdtemp(join(tmpdir(), 'promptshelf-langfuse-'));
try {
  const store = `sqlite:${join(folder, 'team.db')}`;
  const library = join(folder, 'library');
  await cp(join(import.meta.dirname, 'library'), library, { recursive: true });
  await run(program, ['init', store, '--from', library]);
  await writeFile(join(library, 'greet.md'), 'Hi!\n');
  await run(program, ['publish', library, '--store', store, '-m', 'Shorter', '--as', 'ada']);
  const { stdout } = await run(program, ['token', 'new', 'ada', '--scope', 'prompts:read']);
  const [token] = /psk_\S+/.exec(stdout);
  const tokens = join(folder, 'tokens');
  await writeFile(tokens, `${stdout.split('\n').findLast((line) => /[0-9a-f]{64}/.test(line)).trim()}\n`);
  const server = await serveHttp(program, store, {}, '127.0.0.1:0', ['--tokens', tokens]);
  try {
    const baseUrl = server.url.origin;
    const client = new LangfuseClient({ publicKey: 'ada', secretKey: token, baseUrl });
    const greet = await client.prompt.get('greet');
    assert.deepEqual([greet.type, greet.version, greet.prompt, greet.labels], ['text', 2, 'Hi!', ['production', 'latest']]);
    assert.equal((await client.prompt.get('greet', { label: 'latest' })).version, 2);
    const old = await client.prompt.get('greet', { version: 1 });
    assert.equal(old.compile({ name: 'Ada & Bob' }), 'Hello, Ada & Bob!');
    const talk = await client.prompt.get('team/talk', { type: 'chat', label: 'production' });
    assert.deepEqual(talk.compile({ topic: 'shelves' }).map(({ role, content }) => [role, content]), [
      ['user', 'What about shelves?'],
      ['assistant', 'Let me think about shelves.'],
    ]);
    for (const missing of [['strict'], ['none'], ['greet', { label: 'other' }], ['greet', { version: 9 }]]) {
      await assert.rejects(client.prompt.get(...missing));
    }
    const fallback = await client.prompt.get('none', { fallback: 'Instead' });
    assert.ok(fallback.isFallback);
    const list = await client.api.prompts.list({ limit: 2 });
    assert.deepEqual([list.data.map(({ name }) => name), list.meta.totalItems], [['greet', 'strict'], 3]);
    const stranger = new LangfuseClient({ publicKey: 'bob', secretKey: token, baseUrl });
    await assert.rejects(stranger.prompt.get('greet'));
    const environment = { ...process.env, LANGFUSE_PUBLIC_KEY: 'ada', LANGFUSE_SECRET_KEY: token, LANGFUSE_BASE_URL: baseUrl };
    await run(values.python, [join(import.meta.dirname, 'check.py')], { env: environment });
  } finally {
    await server.stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
console.log('Langfuse: its JavaScript and Python clients read prompts');
