// Runs promptfoo as an evaluation: promptfoo.mjs CONFIG.json
//
// CONFIG.json is a configuration of promptfoo without prompts: `providers`, and `defaultTest` with assertions for every
// case. A test of its `tests` adds assertions to the case that its `description` names. PROMPTFOO is the program, by
// default `promptfoo`.

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { messagesOf } from './openai.mjs';

/** Returns the configuration for one run. @param {any} config @param {any[]} cases */
export function configuration(config, cases) {
  const { prompts: _, tests = [], ...rest } = config;
  const own = (/** @type {string} */ name) => tests.find((/** @type {any} */ test) => test.description === name) ?? {};
  return {
    ...rest,
    // promptfoo fills in texts as templates, but not the members of an object.
    prompts: ['{{ messages | dump | safe }}'],
    tests: cases.map(({ name, messages }) => ({
      ...own(name),
      description: name,
      vars: { ...own(name).vars, messages: messagesOf(messages) },
    })),
  };
}

/** Converts the results of promptfoo. @param {any} output @param {any[]} cases */
export function verdict(output, cases) {
  const { results, stats } = output.results;
  if (stats.errors > 0 || results.length === 0) {
    const failed = results.find((/** @type {any} */ result) => result.error && !result.gradingResult);
    throw new Error(`promptfoo had ${stats.errors} errors: ${failed?.error ?? 'no result'}`);
  }
  // Several providers give several results of one case: the worst one counts for the case.
  const byCase = cases.map(({ name }, index) => {
    const own = results.filter((/** @type {any} */ result) => result.testIdx === index);
    const worst = own.reduce((/** @type {any} */ a, /** @type {any} */ b) => (b.score < a.score ? b : a));
    return {
      name,
      score: worst.score,
      passed: own.every((/** @type {any} */ result) => result.success),
      reason: worst.gradingResult?.reason ?? '',
    };
  });
  const mean = (/** @type {number[]} */ numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;
  const models = new Set(results.map((/** @type {any} */ result) => result.provider.label || result.provider.id));
  return {
    scores: {
      score: mean(results.map((/** @type {any} */ result) => result.score)),
      passed: mean(results.map((/** @type {any} */ result) => (result.success ? 1 : 0))),
    },
    cases: byCase,
    model: [...models].sort().join(', ').slice(0, 200),
    cost: results.reduce((/** @type {number} */ sum, /** @type {any} */ result) => sum + (result.cost ?? 0), 0),
  };
}

/** Runs promptfoo. @param {string} program @param {string[]} args */
function run(program, args) {
  return new Promise((resolve, reject) => {
    const env = { PROMPTFOO_DISABLE_TELEMETRY: '1', PROMPTFOO_DISABLE_UPDATE: '1', ...process.env };
    execFile(program, args, { env, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      // 100 stands for assertions that failed.
      if (error && error.code !== 100) reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
      else resolve(undefined);
    });
  });
}

async function main() {
  const file = process.argv[2];
  if (!file) throw new Error('expected the file of a promptfoo configuration, as JSON');
  const { cases } = JSON.parse(await text(process.stdin));
  const config = JSON.parse(await readFile(file, 'utf8'));
  const folder = await mkdtemp(join(tmpdir(), 'evaluation-'));
  try {
    const [input, output] = [join(folder, 'config.json'), join(folder, 'output.json')];
    await writeFile(input, JSON.stringify(configuration(config, cases)));
    const options = ['--no-cache', '--no-table', '--no-write', '--no-progress-bar'];
    await run(process.env.PROMPTFOO ?? 'promptfoo', ['eval', '-c', input, '-o', output, ...options]);
    console.log(JSON.stringify(verdict(JSON.parse(await readFile(output, 'utf8')), cases)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
