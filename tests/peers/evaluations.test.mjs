// The programs of examples/evaluations, started by `promptshelf evaluate`, with a fake model endpoint on this machine.
//
// promptfoo is replaced by its recorded output (`promptfoo-output.json`), because it has 1,000 packages. With PROMPTFOO, the
// path of a real one, the same test runs it; RECORD=1 then replaces the recording.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

const repository = resolve(import.meta.dirname, '../..');
const adapters = join(repository, 'examples/evaluations');
const recording = join(import.meta.dirname, 'promptfoo-output.json');
const binary = process.env.PROMPTSHELF ?? join(repository, 'target/debug/promptshelf');

/** What the programs read. */
const VARIABLES = 'OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL OPENAI_JUDGE PROMPTFOO PROMPTFOO_REAL RECORD RECORDING SEEN'.split(' ');

/** A prompt with two cases. */
const HELLO = `---
description: Greets
arguments:
  - name: name
    required: true
tests:
  - name: Ada
    arguments: { name: Ada }
    contains: [Ada]
  - name: Bob
    arguments: { name: '{{ messages }} Bob' }
    contains: [Bob]
---
Say hello to {{ name }}.
`;

/** Starts an endpoint with Chat Completions that answers the last message. */
async function endpoint(context, answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await text(request));
    requests.push({ url: request.url, key: request.headers.authorization, ...body });
    const { status = 200, raw, content } = answer(body.messages.at(-1).content);
    const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }];
    const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(raw ?? JSON.stringify({ id: 'x', object: 'chat.completion', model: body.model, choices, usage }));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  context.after(() => server.close());
  return { requests, url: `http://127.0.0.1:${server.address().port}/v1` };
}

/** A store with the prompt, and settings with one evaluation. */
async function team(context, program) {
  const folder = await mkdtemp(join(tmpdir(), 'evaluations-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'prompts'));
  await writeFile(join(folder, 'prompts/hello.md'), HELLO);
  const section = { name: 'quality', program: [process.execPath, ...program], thresholds: '{ score = 0.7 }' };
  const lines = [`name = "${section.name}"`, `program = ${JSON.stringify(section.program)}`];
  // Everything else of the command's environment stays away from the program.
  lines.push(`environment = ${JSON.stringify(VARIABLES)}`);
  const settings = `[[evaluation]]\n${lines.join('\n')}\ntimeout = "120s"\nthresholds = ${section.thresholds}\n`;
  await writeFile(join(folder, 'server.toml'), settings);
  const run = (args, env = {}) =>
    new Promise((done) => {
      const options = { cwd: folder, env: { ...process.env, PROMPTSHELF_STORE: 'sqlite:team.db', ...env } };
      execFile(binary, args, options, (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }));
    });
  for (const args of [['init'], ['publish', 'prompts', '-m', 'First', '--as', 'ada']]) {
    const { code, stderr } = await run(args);
    assert.equal(code, 0, stderr);
  }
  return { folder, evaluate: (env) => run(['evaluate', '--config', 'server.toml', '--json'], env) };
}

test('openai.mjs grades each case with the model and stores the mean', async (context) => {
  const { requests, url } = await endpoint(context, (message) => {
    const isGrade = message.startsWith('Grade the answer');
    return { content: isGrade ? (message.includes('Bob') ? 'I give it 0.5.' : '1') : `Hello, ${message.slice(13, -1)}!` };
  });
  const { folder, evaluate } = await team(context, [join(adapters, 'openai.mjs'), 'rubric.txt']);
  await writeFile(join(folder, 'rubric.txt'), 'It greets politely.');
  const env = { OPENAI_BASE_URL: `${url}/`, OPENAI_API_KEY: 'sk-fake', OPENAI_MODEL: 'fake-1', OPENAI_JUDGE: 'fake-2' };
  const { code, stdout, stderr } = await evaluate(env);
  assert.equal(code, 0, stdout + stderr);
  const [stored] = JSON.parse(stdout).evaluations;
  assert.deepEqual(stored.scores, { score: 0.75 });
  assert.equal(stored.model, 'fake-1, fake-2');
  assert.deepEqual(
    requests.map(({ url, key, model }) => [url, key, model]),
    ['fake-1', 'fake-2', 'fake-1', 'fake-2'].map((model) => ['/v1/chat/completions', 'Bearer sk-fake', model]),
  );
  assert.deepEqual(requests[2].messages, [{ role: 'user', content: 'Say hello to {{ messages }} Bob.' }]);
  assert.match(requests[3].messages[0].content, /Rubric:\nIt greets politely\.\n\nAnswer:\nHello, \{\{ messages \}\} Bob!/);
});

test('openai.mjs fails without a result for an endpoint that does not answer as expected', async (context) => {
  let answer = {};
  const { url } = await endpoint(context, () => answer);
  const { folder, evaluate } = await team(context, [join(adapters, 'openai.mjs'), 'rubric.txt']);
  await writeFile(join(folder, 'rubric.txt'), 'It greets.');
  const env = { OPENAI_BASE_URL: url, OPENAI_API_KEY: 'sk-fake', OPENAI_MODEL: 'fake-1' };
  for (const [given, expected] of [
    [{ status: 429, raw: '{"error":"slow down"}' }, 'status 429: {\\"error\\"'],
    [{ raw: '<h1>Log in</h1>' }, 'is not valid JSON'],
    [{ raw: '{"choices":[]}' }, 'answered without a message'],
    [{ content: 'very good, 11 of 10' }, 'expected a grade from 0 to 1'],
  ]) {
    answer = given;
    const { code, stdout } = await evaluate(env);
    assert.equal(code, 1, stdout);
    const { evaluations, errors } = JSON.parse(stdout);
    assert.deepEqual(evaluations, []);
    const message = JSON.stringify(errors);
    assert.ok(message.includes(expected.replaceAll('\\"', '\\\\\\"')) || message.includes(expected), message);
    assert.ok(!message.includes('sk-fake'), message);
  }
});

/** A program with the options of promptfoo, which keeps its configuration, and has the recorded output or a real one. */
const PROMPTFOO = `#!${process.execPath}
const { copyFileSync } = require('node:fs');
const { spawnSync } = require('node:child_process');
const { PROMPTFOO_REAL: real, RECORD, RECORDING: recording, SEEN: seen } = process.env;
const [command, ...words] = process.argv.slice(2);
const option = (name) => words[words.indexOf(name) + 1];
if (command !== 'eval') throw new Error(command);
copyFileSync(option('-c'), seen);
let status = 100;
if (real) status = spawnSync(real, [command, ...words], { stdio: 'inherit' }).status;
else copyFileSync(recording, option('-o'));
if (real && RECORD) copyFileSync(option('-o'), recording);
process.exit(status);
`;

test('promptfoo.mjs converts the results of promptfoo', async (context) => {
  const { requests, url } = await endpoint(context, () => ({ content: 'Hello, Ada!' }));
  const { folder, evaluate } = await team(context, [join(adapters, 'promptfoo.mjs'), 'answers.json']);
  const provider = { id: 'openai:chat:fake-1', config: { apiBaseUrl: url, apiKey: 'sk-fake', cost: 0.001 } };
  const contains = (value) => ({ type: 'contains', value });
  const config = {
    prompts: ['replaced'],
    providers: [provider],
    defaultTest: { assert: [contains('Hello')] },
    tests: [{ description: 'Bob', assert: [contains('Bob')] }],
  };
  await writeFile(join(folder, 'answers.json'), JSON.stringify(config));
  const [fake, seen] = [join(folder, 'promptfoo'), join(folder, 'seen.json')];
  await writeFile(fake, PROMPTFOO);
  await chmod(fake, 0o755);
  const real = process.env.PROMPTFOO;
  const env = { PROMPTFOO: fake, RECORDING: recording, SEEN: seen, HOME: folder, ...(real && { PROMPTFOO_REAL: real }) };
  const { code, stdout, stderr } = await evaluate(env);
  assert.equal(code, 0, stdout + stderr);
  const [stored] = JSON.parse(stdout).evaluations;
  assert.deepEqual(stored.scores, { passed: 0.5, score: 0.75 });
  assert.equal(stored.model, 'openai:chat:fake-1');
  if (real) {
    assert.deepEqual(
      requests.map(({ messages }) => messages).sort((a, b) => a[0].content.length - b[0].content.length),
      ['Ada', '{{ messages }} Bob'].map((name) => [{ role: 'user', content: `Say hello to ${name}.` }]),
    );
  }
  const sent = JSON.parse(await readFile(seen, 'utf8'));
  assert.deepEqual(sent.providers, [provider]);
  assert.deepEqual(
    sent.tests.map(({ description, assert: own, vars }) => [description, own, vars.messages[0].content]),
    [
      ['Ada', undefined, 'Say hello to Ada.'],
      ['Bob', [contains('Bob')], 'Say hello to {{ messages }} Bob.'],
    ],
  );
});
