// Servers, libraries and a browser for the tests of the page.

import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before } from 'node:test';
import { chromium } from 'playwright-core';

const ROOT = join(import.meta.dirname, '../..');
export const BINARY = process.env.PROMPTSHELF ?? join(ROOT, 'target/debug/promptshelf');
const BROWSER = process.env.CHROMIUM ?? '/usr/bin/chromium';
// These flags prevent requests to the browser vendor's servers.
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** How long anything may take before a test gives up: machines of CI are busy. */
export const PATIENCE = 120_000;

/** @param {Record<string, string>} files @param {string} [base] a library to begin with */
export function library(files = {}, base = 'examples/library') {
  const folder = mkdtempSync(join(tmpdir(), 'promptshelf-web-'));
  if (base) cpSync(join(ROOT, base), folder, { recursive: true });
  write(folder, files);
  return folder;
}

/** @param {string} folder @param {Record<string, string>} files */
export function write(folder, files) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

/** Ten thousand prompts in a hundred folders. */
export function large() {
  /** @type {Record<string, string>} */
  const files = {};
  for (let index = 0; index < 10_000; index++) {
    const folder = `team-${String(index % 100).padStart(2, '0')}`;
    const number = String(index).padStart(5, '0');
    files[`${folder}/task-${number}.md`] =
      `---\ntitle: Task ${number}\ndescription: Does piece of work ${number}\n---\nDo ${number}.\n`;
  }
  return library(files, '');
}

/**
 * Serves a library, with the `.server.toml` of its folder as the operator's settings if there is one.
 *
 * @param {string} folder @param {number} [port] @param {string[]} [flags] further arguments
 * @param {string | null} [served] a store instead of the folder, or null for the sources of the settings
 */
export async function serve(folder, port = 0, flags = [], served = folder) {
  const settings = join(folder, '.server.toml');
  const places = served === null ? [] : [served];
  const child = spawn(BINARY, ['serve', ...places, '--http', `127.0.0.1:${port}`, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      ...(served === null ? { XDG_STATE_HOME: join(folder, '.state') } : {}),
      PROMPTSHELF_LOG: 'error',
      PROMPTSHELF_CONFIG: existsSync(settings) ? settings : '',
    },
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const url = await new Promise((resolve, reject) => {
    const lines = createInterface({ input: child.stderr });
    let said = '';
    lines.on('line', (line) => {
      said += `${line}\n`;
      const found = /listening on (http:\/\/\S+)\/mcp/.exec(line);
      if (found) resolve(`${found[1]}/`);
    });
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
  return {
    url: String(url),
    port: Number(new URL(String(url)).port),
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

export async function browser() {
  return chromium.launch({ executablePath: BROWSER, args: FLAGS, timeout: PATIENCE });
}

/**
 * A page, and everything on it that should never happen.
 * @param {import('playwright-core').Browser} open
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
export async function visit(open, options = {}) {
  const context = await open.newContext({
    viewport: { width: 1280, height: 900 },
    locale: 'en-US',
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  /** @type {string[]} */
  const wrong = [];
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  page.on('pageerror', (error) => wrong.push(`error: ${error.name} ${error.message} ${error.stack}`));
  await page.exposeFunction('reportViolation', (/** @type {string} */ what) => wrong.push(`policy: ${what}`));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      // @ts-expect-error defined by the test
      window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  /** @type {string[]} */
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  return { page, context, wrong, asked };
}

/**
 * Starts a browser and a server of `folder` before the tests of a file, and ends both and removes the folder after them.
 *
 * @param {string} folder
 */
export function site(folder) {
  /** @type {{ open: any, server: any }} */
  const running = { open: undefined, server: undefined };
  before(async () => {
    [running.open, running.server] = await Promise.all([browser(), serve(folder)]);
  });
  after(async () => {
    await Promise.all([running.open?.close(), running.server?.stop()]);
    remove(folder);
  });
  return running;
}

/** @param {string} folder */
export function remove(folder) {
  rmSync(folder, { recursive: true, force: true });
}
