// What coding agents send to a model for files of `promptshelf sync`, next to what promptshelf renders: Claude Code,
// OpenCode, Gemini CLI and Codex, on Linux with x64.
//
//   node agents/agents.mjs [--server ../../target/debug/promptshelf]

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { parseArgs } from 'node:util';
import { PATIENCE } from '../server.mjs';
import { startModel } from './model.mjs';

const here = import.meta.dirname;
const { values } = parseArgs({
  options: { server: { type: 'string', default: join(here, '../../../target/debug/promptshelf') } },
  strict: false,
});
const promptshelf = resolve(values.server);
const modules = join(here, 'node_modules');
const skip = process.platform === 'linux' && process.arch === 'x64' ? false : 'needs the programs for Linux with x64';

const keys = (names) => names.map((name) => `  - { name: ${name}, required: true }\n`).join('');
const PROMPTS = {
  three: `---\ndescription: Three\narguments:\n${keys(['pr', 'priority', 'who'])}---\nReview #{{ pr }} with {{ priority }}, assign to {{ who }}; {{ pr }}x.\n`,
  one: `---\ndescription: One\narguments:\n${keys(['text'])}---\nSum up:\n\n{{ text }}\n`,
  backslashes: `---\ndescription: Backslashes\narguments:\n${keys(['text'])}---\nTwo \\\\{{ text }}, three \\\\\\{{ text }}, \\$HOME, \\\\$2M\n`,
  dollars: `---\ndescription: Dollars\narguments:\n${keys(['text'])}---\nCosts $5.00, {print $1}, $ARGUMENTS, $2M for {{ text }}\n`,
};
// A command as its author writes it, with one to four backslashes.
const ESCAPES = String.raw`0 $0 1 \$0 2 \\$0 3 \\\$0 4 \\\\$0, \$ARGUMENTS \\$ARGUMENTS \\\$ARGUMENTS, \$2M \\$2M \$HOME \$\$0 $\$0`;
const THREE = { pr: '456', priority: 'high', who: 'alice' };

let home;
let model;

before(async () => {
  home = await mkdtemp(join(tmpdir(), 'promptshelf-agents-'));
  model = await startModel();
  for (const [name, text] of Object.entries(PROMPTS)) await put(`prompts/${name}.md`, text);
});

after(async () => {
  await model?.close();
  await rm(home, { recursive: true, force: true });
});

async function put(path, text) {
  const file = join(home, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

/** Runs a program in the project; nothing of the user's own settings is read. */
function run(program, args, env = {}, cwd = join(home, 'project')) {
  return new Promise((done) => {
    const options = { cwd, env: { PATH: process.env.PATH, HOME: home, ...env }, timeout: 3 * PATIENCE };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      assert.equal(error, null, `${program} ${args.join(' ')}: ${stdout}${stderr}`);
      done(stdout);
    });
    child.stdin.end();
  });
}

async function sync(client) {
  await mkdir(join(home, 'project'), { recursive: true });
  await run(promptshelf, ['sync', '--client', client, '../prompts']);
}

function claude(line, folder) {
  const settings = {
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'none',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_TELEMETRY: '1',
  };
  return run(join(modules, '@anthropic-ai/claude-code-linux-x64/claude'), ['-p', line], settings, folder);
}

async function rendered(name, values, library = '../prompts') {
  const args = Object.entries(values).flatMap(([key, value]) => ['--arg', `${key}=${value}`]);
  return (await run(promptshelf, ['get', name, '-l', library, ...args])).trim();
}

/** Asserts that one message of the user is, or contains, the text of a prompt. */
function assertSent(expected, plain = (text) => text) {
  const texts = model.texts();
  const found = texts.some((text) => plain(text).includes(plain(expected)));
  assert.ok(found, `expected ${JSON.stringify(expected)} in ${JSON.stringify(texts, undefined, 1)}`);
}

test('Claude Code sends what promptshelf renders', { skip }, async () => {
  await sync('claude-code');
  await claude('/three 456 high alice');
  assertSent(await rendered('three', THREE));
  await claude('/one several words, and "quotes"');
  assertSent(await rendered('one', { text: 'several words, and "quotes"' }));
  await claude('/dollars it');
  assertSent(await rendered('dollars', { text: 'it' }));
  await claude('/backslashes it');
  assertSent(await rendered('backslashes', { text: 'it' }));
});

test('promptshelf fills in a command with backslashes as Claude Code does', { skip }, async () => {
  await put('project/.claude/commands/escapes.md', ESCAPES);
  await claude('/escapes ONE TWO');
  assertSent(await rendered('escapes', { arguments: 'ONE TWO' }, '.'));
});

test('promptshelf reads commands and skills as Claude Code does', { skip }, async () => {
  const words = { arg1: 'ONE', arg2: 'TWO', arg3: 'THREE' };
  const all = { arguments: 'ONE TWO THREE' };
  const commands = {
    zero: ['description: zero based', 'First $0 second $ARGUMENTS[1] second $1 third $2', words],
    price: ['description: prices', 'Costs $5.00, $2M. Task: $ARGUMENTS', all],
    named: ['arguments: [what, how]', 'Do $what $how', { what: 'ONE', how: 'TWO' }],
    colon: ['description: Tells stories. Words: scene, plot', 'Colon $ARGUMENTS', all],
    star: ['description: *important* review\nallowed-tools: *', 'Star $ARGUMENTS', all],
    tick: ['description: `git` helper\nargument-hint: [a] [b]', 'Tick $ARGUMENTS', all],
    twice: ['description: one\ndescription: "two" or three', 'Twice $ARGUMENTS', all],
    bare: ['description: no placeholder', 'Nothing is used', {}],
  };
  for (const [name, [keys, text]] of Object.entries(commands)) await put(`project/.claude/commands/${name}.md`, `---\n${keys}\n---\n${text}\n`);
  await put('project/.claude/skills/pdf/SKILL.md', '---\nname: pdf\ndescription: Fills: forms\n---\nFill in $ARGUMENTS\n');
  for (const [name, [, , values]] of Object.entries({ ...commands, pdf: ['', '', all] })) {
    await claude(`/${name} ${Object.keys(values).length ? 'ONE TWO THREE' : ''}`);
    assertSent(await rendered(name, values, '.'));
  }
});

test('Claude Code sends what `export` wrote', { skip }, async () => {
  await run(promptshelf, ['export', '--format', 'claude', '--to', '../exported', '-l', '../prompts']);
  await claude('/three 456 high alice', join(home, 'exported'));
  assertSent(await rendered('three', THREE));
});

test('OpenCode sends what promptshelf renders', { skip }, async () => {
  await sync('opencode');
  const provider = { npm: '@ai-sdk/openai-compatible', options: { baseURL: `${model.url}/v1`, apiKey: 'none' }, models: { m: {} } };
  const settings = { model: 'stand-in/m', small_model: 'stand-in/m', autoupdate: false, share: 'disabled', provider: { 'stand-in': provider } };
  await put('project/opencode.json', JSON.stringify(settings));
  const opencode = (name, ...words) =>
    run(join(modules, 'opencode-linux-x64/bin/opencode'), ['run', '--command', name, ...words], {
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
    });
  await opencode('three', '456', 'high', 'alice');
  assertSent(await rendered('three', THREE));
  await opencode('one', 'several', 'words');
  assertSent(await rendered('one', { text: 'several words' }));
  // It has no escape, so that a space is added after each `$`.
  await opencode('dollars', 'it');
  assertSent(await rendered('dollars', { text: 'it' }), (text) => text.replaceAll('$ ', '$'));
  // A command of another author: words count from one, the last placeholder takes all further words.
  await put('project/.opencode/commands/reads.md', '---\ndescription: Reads: words\n---\nFirst $1, rest $2.\n');
  await put('project/.opencode/commands/whole.md', '---\ndescription: whole\n---\nAll: $ARGUMENTS.\n');
  await opencode('reads', 'ONE', 'TWO', 'THREE');
  assertSent(await rendered('reads', { arg1: 'ONE', arg2: 'TWO THREE' }, '.'));
  await opencode('whole', 'ONE', 'TWO');
  assertSent(await rendered('whole', { arguments: 'ONE TWO' }, '.'));
});

test('Gemini CLI sends what promptshelf renders', { skip }, async () => {
  await sync('gemini-cli');
  const settings = { security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } }, general: { enableAutoUpdate: false } };
  await put('.gemini/settings.json', JSON.stringify(settings));
  const gemini = (line) =>
    run(process.execPath, [join(modules, '@google/gemini-cli/bundle/gemini.js'), '-m', 'gemini-2.5-flash', '-p', line], {
      GEMINI_API_KEY: 'none',
      GOOGLE_GEMINI_BASE_URL: model.url,
    });
  await gemini('/dollars several words');
  assertSent(await rendered('dollars', { text: 'several words' }));
  await put('project/.gemini/commands/git/reads.toml', "description = 'd'\nprompt = 'Twice {{args}} and {{ args }} {{args}}, $1'\n");
  await gemini('/git:reads several words');
  assertSent(await rendered('git-reads', { args: 'several words' }, '.'));
});

test('Codex sends what promptshelf renders, with the name of the argument in brackets', { skip }, async () => {
  await sync('codex');
  const settings = `model = "m"\nmodel_provider = "stand-in"\n[model_providers.stand-in]\nname = "stand-in"\nbase_url = "${model.url}/v1"\nwire_api = "responses"\nrequires_openai_auth = false\n`;
  await put('.codex/config.toml', settings);
  await run(join(modules, '.bin/codex'), ['exec', '--skip-git-repo-check', 'Use $dollars now']);
  assertSent(await rendered('dollars', { text: '[text]' }));
});
