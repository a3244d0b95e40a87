// Runs the walk-through of the guide, `docs/guide/src/serving/walkthrough.md`, command by command, and takes its
// screenshots in both themes: `node screens-walkthrough.mjs FOLDER`. It needs Python 3 and about three minutes.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { BINARY, browser, remove, visit, write } from './harness.mjs';

const ROOT = join(import.meta.dirname, '../..');
const PAGE = join(ROOT, 'docs/guide/src/serving/walkthrough.md');
/** Blocks of commands, files and settings, addresses of the page, screenshots, and names of files, in their order. */
const STEPS = /^```(\S+)\n([\s\S]*?)^```$|<(http:[^>]+)>|\/web-walk-(\w+)-light\.png|Write it as `([^`]+)`/gm;
/** An element of the complete view, the height of the picture, and an element to click. @type {Record<string, [string, number, string?]>} */
const VIEWS = {
  usage: ['.usage-lists .usage-table', 1370],
  impact: ['.recent', 1100],
  rollout: ['progress', 1030, 'summary'],
  errors: ['.usage-lists .usage-table', 1530],
};

const into = process.argv[2] ?? 'screens';
mkdirSync(into, { recursive: true });
const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (probe.address());
    probe.close(() => resolve(port));
  });
});
const folder = mkdtempSync(join(tmpdir(), 'promptshelf-walk-'));
symlinkSync(ROOT, join(folder, 'promptshelf'));
const walk = join(folder, 'walkthrough');
const env = {
  ...process.env,
  PATH: dirname(BINARY) + delimiter + process.env.PATH,
  PROMPTSHELF_STORE: 'sqlite:team.db',
  USER: 'ada',
};
/** @type {import('node:child_process').ChildProcess | undefined} */
let server;
let token = '';

async function stop() {
  const child = server;
  server = undefined;
  if (!child) return;
  const ended = new Promise((resolve) => child.on('exit', resolve));
  child.kill('SIGINT');
  await ended;
}

/** @param {string} command */
async function serve(command) {
  await stop();
  const child = spawn('sh', ['-c', `exec ${command}`], { cwd: walk, env, stdio: ['ignore', 'ignore', 'pipe'] });
  server = child;
  await new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.includes('listening on')) resolve(null);
    });
  });
}

/** @param {string} commands */
function run(commands) {
  const cwd = commands.startsWith('mkdir walkthrough') ? folder : walk;
  const output = execFileSync('sh', ['-ec', commands], { cwd, env, encoding: 'utf8' });
  token = /your own token, for the page: (\S+)/.exec(output)?.[1] ?? token;
  console.log(`${commands.replaceAll(/^/gm, '$ ')}${output}`);
}

/** @param {import('playwright-core').Browser} open @param {string} name @param {string} url */
async function shoot(open, name, url) {
  const [ready, height, click] = VIEWS[name];
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    const { page, context } = await visit(open, {
      colorScheme,
      viewport: { width: 1180, height },
      reducedMotion: 'reduce',
    });
    await context.addInitScript((token) => {
      sessionStorage.setItem('promptshelf.session', JSON.stringify({ token, scopes: [] }));
    }, token);
    await page.goto(url);
    await page.locator(ready).first().waitFor();
    if (click) await page.locator(click).first().click();
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(into, `web-walk-${name}-${colorScheme}.png`) });
    await context.close();
  }
}

const open = await browser();
try {
  let url = '';
  let file = '';
  const text = readFileSync(PAGE, 'utf8').replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`);
  for (const [, kind, block, address, view, named] of text.matchAll(STEPS)) {
    if (address) url = address;
    else if (named) file = named;
    else if (view) await shoot(open, view, url);
    else if (kind === 'sh' && block.startsWith('promptshelf serve')) await serve(block);
    else if (kind === 'sh') run(block);
    else if (kind === 'toml,server') write(walk, { 'server.toml': block });
    else if (kind.includes('file=')) write(walk, { [kind.split('file=')[1]]: block });
    else if (kind === 'markdown') write(walk, { [file]: block });
  }
} finally {
  await stop();
  await open.close();
  remove(folder);
}
