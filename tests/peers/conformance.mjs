// The official conformance suites against the library of
// tests/fixtures/conformance. conformance-baseline.json lists expected failures with
// reasons; everything else must pass, and listed checks must still fail, so that the
// list stays current.
//
//   node conformance.mjs [--server target/debug/promptshelf] [--library tests/fixtures/conformance]
//                        [--url http://…/mcp] [--results FILE] [--verbose]

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { baseline, judge } from './verdict.mjs';
import { serveHttp } from './server.mjs';

const modules = join(import.meta.dirname, 'node_modules');
const repository = resolve(import.meta.dirname, '../..');
const NEW = join(modules, '@modelcontextprotocol/conformance');
const OLD = join(modules, 'conformance-0.1');

/** The scenarios of the extension for skills, which no revision requires. */
const SKILLS = ['enumeration', 'manifest', 'directory'].map((part) => `sep-2640-skills-${part}`);

/** The runs: a title that the baseline knows, the suite and the options of each call of it. */
const RUNS = [
  ...['2026-07-28', '2025-11-25'].map((revision) => ({
    title: `0.2.0-alpha.12, revision ${revision}`,
    suite: NEW,
    options: [['--requirements', revision]],
    scored: () => requirements(revision),
  })),
  ...['2026-07-28', '2025-11-25'].map((revision) => ({
    title: `0.2.0-alpha.12, skills, revision ${revision}`,
    suite: NEW,
    // The older revision is not one that the extension is specified for.
    options: SKILLS.map((scenario) => ['--scenario', scenario, '--spec-version', revision, '--force']),
    scored: async () => new Set(SKILLS),
  })),
  { title: '0.1.16, active suite', suite: OLD, options: [['--suite', 'active']], scored: undefined },
];

/** Every scenario that a revision requires; the suite runs some more that it does not score. */
async function requirements(revision) {
  const text = await readFile(join(NEW, 'requirements', `${revision}.yaml`), 'utf8');
  const [, section] = /^server:\n((?: {2}- .*\n| *#.*\n|\n)+)/m.exec(text) ?? [];
  const names = [...(section ?? '').matchAll(/^ {2}- (\S+)/gm)].map((line) => line[1]);
  if (names.length === 0) throw new Error(`the suite's list of requirements for ${revision} reads differently now`);
  return new Set(names);
}

/** Runs one suite and gives back each scenario's checks. */
async function run(suite, options, url) {
  const folder = await mkdtemp(join(tmpdir(), 'promptshelf-conformance-'));
  try {
    const output = await new Promise((done, failed) => {
      const args = [join(suite, 'dist/index.js'), 'server', '--url', url, ...options, '-o', folder];
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
      const said = [];
      child.stdout.on('data', (chunk) => said.push(chunk));
      child.stderr.on('data', (chunk) => said.push(chunk));
      child.once('error', failed);
      child.once('close', () => done(Buffer.concat(said).toString()));
    });
    const results = new Map();
    for (const entry of await readdir(folder)) {
      // server-<scenario>-2026-01-31T12-00-00-000Z
      const [, scenario] = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry) ?? [];
      if (scenario) results.set(scenario, JSON.parse(await readFile(join(folder, entry, 'checks.json'), 'utf8')));
    }
    return { results, output };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    server: { type: 'string', default: join(repository, 'target/debug/promptshelf') },
    library: { type: 'string', default: join(repository, 'tests/fixtures/conformance') },
    url: { type: 'string' },
    results: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});
const served = values.url ? { url: values.url, stop: async () => {} } : await serveHttp(values.server, values.library);
const found = [];
let right = 0;
let wrong = 0;
try {
  for (const { title, suite, options, scored } of RUNS) {
    const results = new Map();
    let output = '';
    for (const call of options) {
      const ran = await run(suite, call, String(served.url));
      for (const [scenario, checks] of ran.results) results.set(scenario, checks);
      output += ran.output;
    }
    const counted = (await scored?.()) ?? new Set(results.keys());
    const verdict = judge(results, counted, baseline(title));
    console.log(`\n${title}: ${verdict.passing} of ${counted.size} scenarios pass`);
    for (const line of values.verbose ? [...verdict.lines, ...verdict.problems] : verdict.problems) {
      console.log(`  ${line}`);
    }
    if (results.size === 0) console.log(output);
    found.push({ title, passing: verdict.passing, scenarios: verdict.scenarios });
    right += counted.size - verdict.wrong;
    wrong += verdict.wrong;
  }
} finally {
  await served.stop();
}
if (values.results) await writeFile(values.results, `${JSON.stringify(found, null, 2)}\n`);
console.log(`\n${right} scenarios ended as expected, ${wrong} did not`);
process.exitCode = wrong === 0 ? 0 : 1;
