// Our own client, as the binary has it, against servers made with the official
// SDKs: TypeScript (generation 1, both transports) and Python (generation 2), and
// against the conformance suite's servers for clients.
//
//   node host.mjs [--server target/debug/promptshelf] [--python python/.venv/bin/python]

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { parseArgs } from 'node:util';
import { PATIENCE, within } from './server.mjs';

const here = import.meta.dirname;
const { values } = parseArgs({
  options: {
    server: { type: 'string', default: join(here, '../../target/debug/promptshelf') },
    python: { type: 'string', default: join(here, 'python/.venv/bin/python') },
  },
});
const promptshelf = resolve(values.server);
const modules = join(here, 'node_modules/@modelcontextprotocol');
const everything = join(modules, 'server-everything/dist/index.js');

/** Runs a program; gives its exit code and what it printed. */
function run(program, args, env = {}) {
  return new Promise((done) => {
    const options = { env: { ...process.env, ...env }, timeout: 3 * PATIENCE };
    execFile(program, args, options, (error, stdout, stderr) => done({ code: error ? error.code : 0, stdout, stderr }));
  });
}

/** What a verb prints; it must end well. */
async function printed(...args) {
  const { code, stdout, stderr } = await run(promptshelf, args);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function freePort() {
  const probe = createServer();
  await new Promise((listening) => probe.listen(0, '127.0.0.1', listening));
  const { port } = probe.address();
  await new Promise((closed) => probe.close(closed));
  return port;
}

/** Starts a server that says on stderr when it listens. */
async function listening(program, args, env, ready) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
  const heard = new Promise((found, failed) => {
    createInterface({ input: child.stderr }).on('line', (line) => ready.test(line) && found());
    child.once('exit', (code) => failed(new Error(`the server ended with ${code}`)));
  });
  await within(heard, () => 'the server does not say that it listens');
  return () => {
    child.removeAllListeners('exit');
    child.kill();
  };
}

/** What the TypeScript SDK's example server has, whichever way it is reached. */
function typescript(title, target) {
  test(`${title}: prompts, completions and resources`, async () => {
    const list = await printed('list', ...target());
    assert.match(list, /^args-prompt\tArguments Prompt\t<city> \[state\]\t/m);
    const weather = await printed('get', 'args-prompt', '-a', 'city=New York', ...target());
    assert.equal(weather, "What's weather in New York?\n");
    const completed = ['complete', 'completable-prompt', 'name', 'A', '-a', 'department=Engineering'];
    assert.equal(await printed(...completed, ...target()), 'Alice\n');
    const resource = await printed(
      ...['get', 'resource-prompt', '-a', 'resourceType=Text', '-a', 'resourceId=1', '--format', 'openai'],
      ...target(),
    );
    assert.match(resource, /demo:\/\/resource\/dynamic\/text\/1/);
    assert.match(await printed('resources', ...target()), /^demo:\/\/resource\/static\/document\/architecture\.md\t/m);
  });
}

typescript('TypeScript, stdio', () => ['--', process.execPath, everything, 'stdio']);
let url;
let stopTypescript;
before(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}/mcp`;
  const env = { PORT: String(port) };
  stopTypescript = await listening(process.execPath, [everything, 'streamableHttp'], env, /listening on port/i);
});
after(() => stopTypescript?.());
typescript('TypeScript, Streamable HTTP', () => ['--url', url]);

const python = ['--', values.python, join(here, 'python/server.py')];

test('Python, stdio: prompts, roles and completions that know the other arguments', async () => {
  assert.match(await printed('list', ...python), /^greet\t\t<name> \[language\]\tGreets somebody in a language$/m);
  const greeted = await printed('get', 'greet', '-a', 'name=Ada', ...python);
  assert.equal(greeted, '[user]\nGreet Ada in en.\n\n[assistant]\nGladly.\n');
  assert.equal(await printed('complete', 'greet', 'name', '-a', 'language=de', ...python), 'friend-de\n');
  assert.equal(await printed('resources', '--read', 'docs://note', ...python), 'Remember the milk.\n');
});

test('Python, stdio: images and resources', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'promptshelf-host-'));
  try {
    const media = await printed('get', 'media', '--format', 'markdown', '--out', folder, ...python);
    assert.match(media, /!\[image, image\/png, 70 bytes\]\(<.*\.png>\)/);
    assert.match(media, /Remember the milk\./);
    assert.equal((await readdir(folder)).length, 1);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('Python, stdio: a question in between is asked at a terminal, answered and declined', async () => {
  const terminal = join(here, 'python/at_a_terminal.py');
  const get = ['--', promptshelf, 'get', 'asks', ...python];
  const answered = await run(values.python, [terminal, 'colour: =green', ...get], { TERM: 'xterm' });
  assert.equal(answered.code, 0, answered.stdout);
  assert.match(answered.stdout, /Which colour\?[^]*It is green\./);
  const cancelled = await run(values.python, [terminal, 'colour: =\x03', ...get], { TERM: 'xterm' });
  assert.equal(cancelled.code, 11, cancelled.stdout);
});

test('the Python SDK and the TypeScript SDK refuse what we tell apart', async () => {
  const code = async (...args) => (await run(promptshelf, args)).code;
  const node = ['--', process.execPath, everything, 'stdio'];
  assert.equal(await code('get', 'no-such-prompt', ...node), 7);
  assert.equal(await code('get', 'args-prompt', ...node), 8);
});

/** The conformance suite serves, and judges what a client sends. */
for (const [scenario, ...verb] of [
  ['initialize', 'list', '--url'],
  ['request-metadata', 'list', '--url'],
  ['http-standard-headers', 'list', '--url'],
  ['http-standard-headers', 'get', 'test_prompt', '--url'],
  ['http-standard-headers', 'resources', '--url'],
  ['http-standard-headers', 'resources', '--read', 'file:///path/to/file%20name.txt', '--url'],
]) {
  test(`conformance: ${scenario} with ${verb[0]} ${verb[1]}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'promptshelf-host-'));
    try {
      const suite = join(modules, 'conformance/dist/index.js');
      const command = [promptshelf, ...verb].join(' ');
      const args = [suite, 'client', '--scenario', scenario, '--command', command, '-o', folder];
      const { stdout, stderr } = await run(process.execPath, args);
      assert.match(stdout + stderr, /OVERALL: PASSED/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}
