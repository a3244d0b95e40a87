// The binary as a client of servers made with the official
// SDKs: TypeScript (generation 1, both transports), Python (generation 2) and Rust
// (both transports, both eras).
//
//   node host.mjs [--server target/debug/promptshelf] [--python python/.venv/bin/python]
//                 [--rust target/debug/examples/official-server]

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
    rust: { type: 'string', default: join(here, '../../target/debug/examples/official-server') },
  },
});
const promptshelf = resolve(values.server);
const modules = join(here, 'node_modules/@modelcontextprotocol');
/** Nothing of whoever runs this is read, and nothing stays. */
const state = await mkdtemp(join(tmpdir(), 'promptshelf-state-'));
const everything = join(modules, 'server-everything/dist/index.js');

/** Runs a program; gives its exit code and what it printed. */
function run(program, args, env = {}) {
  return new Promise((done) => {
    const options = { env: { ...process.env, XDG_STATE_HOME: state, ...env }, timeout: 3 * PATIENCE };
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
    createInterface({ input: child.stderr }).on('line', (line) => ready.test(line) && found(line));
    child.once('exit', (code) => failed(new Error(`the server ended with ${code}`)));
  });
  const line = await within(heard, () => 'the server does not say that it listens');
  const stop = () => {
    child.removeAllListeners('exit');
    child.kill();
  };
  return { line, stop };
}

/** What the TypeScript SDK's example server has, whichever way it is reached. */
function typescript(title, target) {
  test(`${title}: prompts, completions and resources`, async () => {
    const list = await printed('list', ...target());
    assert.match(list, /^args-prompt\tArguments Prompt\t<city> \[state\]\t/m);
    const weather = await printed('get', 'args-prompt', '-a', 'city=New York', ...target());
    assert.equal(weather, "What's weather in New York?\n");
    const completed = ['suggest', 'completable-prompt', 'name', 'A', '-a', 'department=Engineering'];
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
let url, rustUrl;
const stops = [];
before(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}/mcp`;
  const env = { PORT: String(port) };
  const typescript = await listening(process.execPath, [everything, 'streamableHttp'], env, /listening on port/i);
  stops.push(typescript.stop);
  const rust = await listening(values.rust, ['--http'], {}, /listening on/);
  stops.push(rust.stop);
  [rustUrl] = /http:\S+/.exec(rust.line);
});
after(async () => {
  stops.forEach((stop) => stop());
  await rm(state, { recursive: true, force: true });
});
typescript('TypeScript, Streamable HTTP', () => ['--url', url]);

const PYTHON = ['--', values.python, join(here, 'python/server.py')];
const atTerminal = (...args) => run(values.python, [join(here, 'python/at_a_terminal.py'), ...args], { TERM: 'xterm' });

/** What the servers in `python/` and `rust/` have alike. */
function peer(title, target) {
  test(`${title}: prompts, roles and completions that know the other arguments`, async () => {
    // The Rust SDK sorts arguments alphabetically.
    const listed = /^greet\t\t(<name> \[language\]|\[language\] <name>)\tGreets somebody in a language$/m;
    assert.match(await printed('list', ...target()), listed);
    const greeted = await printed('get', 'greet', '-a', 'name=Ada', ...target());
    assert.equal(greeted, '[user]\nGreet Ada in en.\n\n[assistant]\nGladly.\n');
    assert.equal(await printed('suggest', 'greet', 'name', '-a', 'language=de', ...target()), 'friend-de\n');
    assert.equal(await printed('resources', '--read', 'docs://note', ...target()), 'Remember the milk.\n');
  });

  test(`${title}: images and resources`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'promptshelf-host-'));
    try {
      const media = await printed('get', 'media', '--format', 'markdown', '--out', folder, ...target());
      assert.match(media, /!\[image, image\/png, \d+ bytes\]\(<.*\.png>\)/);
      assert.match(media, /Remember the milk\./);
      assert.equal((await readdir(folder)).length, 1);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}

peer('Python, stdio', () => PYTHON);
peer('Rust, stdio', () => ['--', values.rust]);
peer('Rust, stdio, of revision 2025-06-18', () => ['--', values.rust, '2025-06-18']);
peer('Rust, Streamable HTTP', () => ['--url', rustUrl]);

test('Python: a question in between is asked at a terminal, answered and declined', async () => {
  const get = ['--', promptshelf, 'get', 'asks', ...PYTHON];
  const answered = await atTerminal('colour: =green', ...get);
  assert.equal(answered.code, 0, answered.stdout);
  assert.match(answered.stdout, /Which colour\?[^]*It is green\./);
  const cancelled = await atTerminal('colour: =\x03', ...get);
  assert.equal(cancelled.code, 11, cancelled.stdout);
});

for (const [title, target] of [
  ['stdio', () => ['--', values.rust]],
  ['Streamable HTTP', () => ['--url', rustUrl]],
  ['stdio, of revision 2025-06-18', () => ['--', values.rust, '2025-06-18']],
  ['stdio, of revision 2025-11-25', () => ['--', values.rust, '2025-11-25']],
]) {
  test(`Rust, ${title}: a question in between is asked at a terminal, answered and declined`, async () => {
    const get = ['--', promptshelf, 'get', 'asks', ...target()];
    const answers = ['colour: =green', 'coats (whole number): =3', 'Enter sends this='];
    const answered = await atTerminal(...answers, ...get);
    assert.equal(answered.code, 0, answered.stdout);
    assert.match(answered.stdout, /Which colour\?[^]*It is green, 3 times\./);
    const declined = await atTerminal('colour: =\x04', ...get);
    assert.match(declined.stdout, /It has no colour\./);
  });
}

test('what the SDKs refuse is told apart', async () => {
  const code = async (...args) => (await run(promptshelf, args)).code;
  const node = ['--', process.execPath, everything, 'stdio'];
  assert.equal(await code('get', 'no-such-prompt', ...node), 7);
  assert.equal(await code('get', 'args-prompt', ...node), 8);
  assert.equal(await code('get', 'no-such-prompt', '--', values.rust), 7);
  assert.equal(await code('get', 'greet', '--', values.rust), 8);
});
