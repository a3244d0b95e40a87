// Servers made with the official SDKs for TypeScript and Python, and with FastMCP, as sources of the binary, below one
// endpoint.
//
//   node upstreams.mjs [--server target/debug/promptshelf] [--python python/.venv/bin/python]
//     [--fastmcp frameworks/.venv/bin/python]

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { parseArgs } from 'node:util';
import { PATIENCE, serveSettings } from './server.mjs';

const here = import.meta.dirname;
const { values } = parseArgs({
  options: {
    server: { type: 'string', default: join(here, '../../target/debug/promptshelf') },
    python: { type: 'string', default: join(here, 'python/.venv/bin/python') },
    fastmcp: { type: 'string', default: join(here, 'frameworks/.venv/bin/python') },
  },
});
const promptshelf = resolve(values.server);
const folder = await mkdtemp(join(tmpdir(), 'promptshelf-upstreams-'));
const state = { XDG_STATE_HOME: join(folder, 'state') };

const everything = join(here, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const sources = {
  ts: [process.execPath, everything, 'stdio'],
  py: [values.python, join(here, 'python/server.py')],
  fast: [values.fastmcp, join(here, 'python/fastmcp_server.py')],
};

/** Runs a program; resolves with its exit code and output. */
function run(program, ...args) {
  const options = { env: { ...process.env, ...state, TERM: 'xterm' }, timeout: 3 * PATIENCE };
  return new Promise((done) => {
    execFile(program, args, options, (error, stdout, stderr) => done({ code: error ? error.code : 0, stdout, stderr }));
  });
}

let url, stop;
const prompt = (name) => new RegExp(`^${name}\\t`, 'm');

/** Gets a prompt at a terminal, and types an answer at the question of its server. */
async function answered(name, answer) {
  const terminal = join(here, 'python/at_a_terminal.py');
  const get = [promptshelf, 'get', name, '--url', url];
  const { code, stdout } = await run(values.python, terminal, `: =${answer}`, '--', ...get);
  assert.equal(code, 0, stdout);
  return stdout;
}

async function printed(...args) {
  const { code, stdout, stderr } = await run(promptshelf, ...args, '--url', url);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** Repeats a check until it passes. */
async function eventually(check) {
  const deadline = Date.now() + 3 * PATIENCE;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((pause) => setTimeout(pause, 100));
    }
  }
}

before(async () => {
  const source = ([name, command]) =>
    `[[source]]\nname = "${name}"\nkind = "mcp"\ncommand = ${JSON.stringify(command)}\ntimeout = "60s"\ninterval = "1h"\n`;
  const settings = join(folder, 'server.toml');
  await writeFile(settings, Object.entries(sources).map(source).join('\n'));
  const served = await serveSettings(promptshelf, settings, state);
  [url, stop] = [served.url.href, served.stop];
  await eventually(async () => {
    const listed = await printed('list');
    for (const name of ['ts-args-prompt', 'py-greet', 'fast-greet']) {
      assert.match(listed, prompt(name));
    }
  });
});
after(async () => {
  // A server that runs still writes to the folder.
  await stop?.();
  await rm(folder, { recursive: true, force: true });
});

// Its prompts fit on a page, none of them asks, and its list does not change.
test('TypeScript: all prompts, completion and embedded resources', async () => {
  const listed = await printed('list');
  for (const name of ['args-prompt', 'completable-prompt', 'resource-prompt', 'simple-prompt']) {
    assert.match(listed, prompt(`ts-${name}`));
  }
  assert.equal(await printed('get', 'ts-args-prompt', '-a', 'city=New York'), "What's weather in New York?\n");
  const completed = ['suggest', 'ts-completable-prompt', 'name', 'A', '-a', 'department=Engineering'];
  assert.equal(await printed(...completed), 'Alice\n');
  const resource = ['get', 'ts-resource-prompt', '-a', 'resourceType=Text', '-a', 'resourceId=1', '--format', 'openai'];
  assert.match(await printed(...resource), /demo:\/\/resource\/dynamic\/text\/1/);
  await eventually(async () => {
    const read = await printed('resources', '--read', 'demo://resource/static/document/architecture.md');
    assert.match(read, /Architecture/i);
  });
});

test('Python: roles, and completion that knows the other arguments', async () => {
  const greeted = await printed('get', 'py-greet', '-a', 'name=Ada');
  assert.equal(greeted, '[user]\nGreet Ada in en.\n\n[assistant]\nGladly.\n');
  assert.equal(await printed('suggest', 'py-greet', 'name', '-a', 'language=de'), 'friend-de\n');
  const { code } = await run(promptshelf, 'get', 'py-greet', '--url', url);
  assert.equal(code, 8);
});

test('Python: a question before the prompt', async () => {
  const shown = await answered('py-asks', 'green');
  assert.match(shown, /The server of the source py asks: Which colour\?[^]*It is green\./);
});

test('FastMCP: all pages, and completion', async () => {
  const listed = await printed('list');
  for (const name of ['asks', 'greet', 'grow', 'more0', 'more1']) {
    assert.match(listed, prompt(`fast-${name}`));
  }
  assert.equal(await printed('get', 'fast-greet', '-a', 'name=Ada', '-a', 'language=de'), 'Greet Ada in de.\n');
  assert.equal(await printed('suggest', 'fast-greet', 'language', 'd'), 'de\n');
});

test('FastMCP: a question in the middle of a request', async () => {
  const shown = await answered('fast-asks', 'red');
  assert.match(shown, /The server of the source fast asks: Which colour\?[^]*It is red\./);
});

for (const source of ['py', 'fast']) {
  test(`a changed list of ${source}`, async () => {
    assert.doesNotMatch(await printed('list'), prompt(`${source}-late`));
    assert.equal(await printed('get', `${source}-grow`), 'Added.\n');
    // The list is read every hour otherwise.
    await eventually(async () => assert.match(await printed('list'), prompt(`${source}-late`)));
    assert.equal(await printed('get', `${source}-late`), 'Late.\n');
  });
}
