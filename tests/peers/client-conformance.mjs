// The official conformance suite against our own client: the suite serves and judges, the binary is the client.
// Scenarios with tools, which our client does not call, go through `prompts_as_tools.mjs`.
//
//   node client-conformance.mjs [--server target/debug/promptshelf] [--python python/.venv/bin/python]

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { parseArgs } from 'node:util';
import { promptsAsTools } from './prompts_as_tools.mjs';
import { PATIENCE } from './server.mjs';

const here = import.meta.dirname;
const { values } = parseArgs({
  options: {
    server: { type: 'string', default: join(here, '../../target/debug/promptshelf') },
    python: { type: 'string', default: join(here, 'python/.venv/bin/python') },
  },
});
const promptshelf = resolve(values.server);
const registeredClient = join(here, 'registered_client.mjs');
const suite = join(here, 'node_modules/@modelcontextprotocol/conformance');
const [MODERN, LEGACY] = ['2026-07-28', '2025-11-25'];

/** At a terminal, where Enter opens the page, once for each time it is asked. */
function signingIn(times, ...verb) {
  const enter = Array(times).fill("'Enter opens the page='").join(' ');
  return [values.python, join(here, 'python/at_a_terminal.py'), enter, '--', promptshelf, ...verb];
}

/** Every scenario that concerns a client of prompts, with the command that goes through it. */
const LISTED = [
  ['initialize', LEGACY, [promptshelf, 'list', '--url']],
  ['request-metadata', MODERN, [promptshelf, 'list', '--url']],
  ['http-standard-headers', MODERN, [promptshelf, 'list', '--url']],
  ['http-standard-headers', MODERN, [promptshelf, 'get', 'test_prompt', '--url']],
  ['http-standard-headers', MODERN, [promptshelf, 'resources', '--url']],
  ['http-standard-headers', MODERN, [promptshelf, 'resources', '--read', 'file:///path/to/file%20name.txt', '--url']],
  ['sse-retry', LEGACY, [promptshelf, 'get', 'test_reconnection', '--url'], { asTools: true }],
  ['auth/scope-step-up', MODERN, signingIn(2, 'get', 'test-tool', '--url'), { asTools: true }],
  ['auth/scope-step-up', LEGACY, signingIn(2, 'get', 'test-tool', '--url'), { asTools: true }],
  ['auth/2025-03-26-oauth-metadata-backcompat', '2025-03-26', [promptshelf, 'sign-in']],
  ['auth/2025-03-26-oauth-endpoint-fallback', '2025-03-26', [promptshelf, 'sign-in']],
];

/** What the suite tells a client to be in these; the others let it register. */
const CLIENTS = {
  'auth/basic-cimd': { PROMPTSHELF_CLIENT_ID: 'https://conformance-test.local/client-metadata.json' },
  'auth/pre-registration': {
    PROMPTSHELF_CLIENT_ID: 'pre-registered-client',
    PROMPTSHELF_CLIENT_SECRET: 'pre-registered-secret',
  },
};

const scenarios = [...LISTED];
for (const revision of [MODERN, LEGACY]) {
  const text = await readFile(join(suite, 'requirements', `${revision}.yaml`), 'utf8');
  const [, section] = /^client:\n((?: {2}- .*\n| *#.*\n|\n)+)/m.exec(text) ?? [];
  const names = [...(section ?? '').matchAll(/^ {2}- (auth\/\S+)/gm)].map((line) => line[1]);
  assert.ok(names.length > 10, `the suite's list of requirements for ${revision} reads differently now`);
  // All scenarios that a revision requires of clients with sign-in.
  for (const name of names) {
    if (!LISTED.some(([listed, of]) => listed === name && of === revision)) {
      const registered = CLIENTS[name]?.PROMPTSHELF_CLIENT_SECRET ? [process.execPath, registeredClient] : [];
      scenarios.push([name, revision, [...registered, promptshelf, 'sign-in']]);
    }
  }
}

// Each scenario has a server and processes of its own, and mostly waits for them.
describe('scenarios of the suite', { concurrency: 4 }, () => {
  for (const [scenario, revision, command, { asTools } = {}] of scenarios) {
    const verb = command.slice(command.indexOf(promptshelf) + 1).join(' ');
    it(`${scenario}, revision ${revision}: ${verb}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'promptshelf-conformance-'));
      const proxy = asTools ? await promptsAsTools() : undefined;
      const env = {
        ...process.env,
        XDG_STATE_HOME: join(folder, 'state'),
        BROWSER: `${process.execPath} ${join(here, 'browser.mjs')}`,
        TERM: 'xterm',
        ...CLIENTS[scenario],
        ...(proxy && { HTTP_PROXY: proxy.address }),
      };
      const args = [join(suite, 'dist/index.js'), 'client', '--scenario', scenario, '--spec-version', revision];
      args.push('--command', command.join(' '), '-o', folder);
      try {
        const said = await new Promise((done) => {
          execFile(process.execPath, args, { env, timeout: 3 * PATIENCE }, (_, stdout, stderr) =>
            done(stdout + stderr),
          );
        });
        assert.match(said, /OVERALL: PASSED/, said);
      } finally {
        proxy?.stop();
        await rm(folder, { recursive: true, force: true });
      }
    });
  }
});
