// Takes screenshots of every view in both themes: `node screens.mjs FOLDER`.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { authorizing } from './authorizing.mjs';
import { browser, library, remove, serve, visit, write } from './harness.mjs';

const CODE =
  'def total(prices, discount):\n    sum = 0\n    for p in prices:\n        sum += p\n    return sum - sum * discount / 100\n';
const BROKEN =
  '---\ntitle: Release Notes\ndescription: Writes release notes\narguments:\n  - name: changes\n    desciption: The merged changes\n    required: true\n---\nWrite release notes for {{ chnages }}.\n';

const HONEST = 'Say plainly what you know.\nName it instead of guessing.\n';

/** The folder of the present screenshots. */
let shown = '';

/** @type {Record<string, { path: string, ready: (page: any) => Promise<unknown>, broken?: boolean, guarded?: boolean, edited?: boolean, size?: { width: number, height: number } }>} */
const VIEWS = {
  find: {
    path: '#/',
    ready: async (page) => {
      for (const name of ['Request Code Review', 'Write Tests'])
        await page.getByRole('button', { name: `Pin ${name}` }).click();
      await page.getByRole('heading', { level: 1 }).hover();
      await page.evaluate(() => window.scrollTo(0, 0));
    },
  },
  command: {
    path: '#/',
    ready: async (page) => {
      await page.getByRole('combobox', { name: /Search/ }).fill('/translate into=por');
      await page.locator('[role=option]').first().waitFor();
    },
  },
  palette: {
    path: '#/',
    ready: async (page) => {
      await page.waitForTimeout(1_200);
      await page.keyboard.press('Control+k');
      await page.locator('[role=option]').first().waitFor();
      await page.keyboard.type('co');
      await page.waitForTimeout(200);
    },
  },
  prompt: {
    path: `#/prompt/code_review?framework=fastapi&code=${encodeURIComponent(CODE)}`,
    ready: (page) => page.locator('.messages .prose').first().waitFor(),
  },
  media: {
    path: '#/prompt/read-chart',
    ready: (page) => page.locator('.messages img').waitFor(),
  },
  guided: {
    path: '#/prompt/new-service?purpose=Resize%20pictures%20for%20the%20shop',
    ready: async (page) => {
      await page.getByRole('radio', { name: 'Rust' }).check();
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByText('How will it run?').waitFor();
    },
  },
  editor: {
    path: '#/edit/write-tests.md',
    edited: true,
    ready: async (page) => {
      await page.locator('.messages .prose').first().waitFor();
      await page.locator('.cm-content').focus();
      await page.keyboard.press('Control+End');
      await page.keyboard.type('Use {{ st');
      await page.locator('.cm-tooltip-autocomplete li').first().waitFor();
      await page.locator('.cm-diagnostic, .edit-problems .problem').first().waitFor();
      await page.evaluate(() => window.scrollTo(0, 175));
    },
  },
  conflict: {
    path: '#/edit/_shared/honest.md',
    edited: true,
    ready: async (page) => {
      write(shown, { '_shared/honest.md': HONEST });
      await page.locator('.cm-content').filter({ hasNotText: 'sources' }).waitFor();
      await page.locator('.cm-content').focus();
      await page.keyboard.press('Control+End');
      await page.keyboard.type('Say what you are not sure of.');
      await page.locator('.edit-status', { hasText: 'kept' }).waitFor();
      write(shown, { '_shared/honest.md': `${HONEST}Name your sources.\n` });
      await page.locator('.conflict').waitFor();
      await page.locator('.note').waitFor({ state: 'detached' });
      await page.evaluate(() => window.scrollTo(0, 0));
    },
  },
  library: { path: '#/library', broken: true, ready: (page) => page.locator('.diagnostic').nth(1).waitFor() },
  server: { path: '#/server', ready: (page) => page.locator('.table-of dd').nth(12).waitFor() },
  resources: {
    path: '#/resources',
    ready: async (page) => {
      const files = page.getByRole('form', { name: 'Project file' });
      await files.getByRole('combobox', { name: /path/ }).fill('py');
      await page.locator('[role=option]').first().waitFor();
    },
  },
  'sign-in': { path: '#/', guarded: true, ready: (page) => page.getByText('back to this page').waitFor() },
  'sign-in-narrow': {
    path: '#/',
    guarded: true,
    size: { width: 400, height: 860 },
    ready: async (page) => {
      await page.getByText('back to this page').waitFor();
      await page.getByLabel('Bearer token').fill('of nobody');
      await page.keyboard.press('Enter');
      await page.getByText('Invalid token').waitFor();
    },
  },
  account: {
    path: '#/sign-in',
    guarded: true,
    ready: async (page) => {
      await signIn(page);
      await page.goto(`${there.url}#/sign-in`);
      await page.getByText('You are signed in as ada.').waitFor();
    },
  },
  'step-up': {
    path: '#/prompt/publish',
    guarded: true,
    ready: async (page) => {
      await signIn(page);
      await page.getByRole('button', { name: 'Sign in for more' }).waitFor();
    },
  },
  narrow: {
    path: `#/prompt/code_review?framework=fastapi&code=${encodeURIComponent(CODE)}`,
    size: { width: 400, height: 860 },
    ready: (page) => page.locator('.messages .prose').first().waitFor(),
  },
};

/** @param {any} page */
async function signIn(page) {
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'I am Ada' }).click();
  await page.getByRole('link', { name: 'You are signed in' }).waitFor();
}

const PUBLISH =
  '---\ntitle: Publish Release\ndescription: Writes what goes out with a release\naccess: { scopes: ["prompts:write"], visible: true }\n---\nWrite it.\n';
const there = await authorizing({ 'publish.md': PUBLISH });
const into = process.argv[2] ?? 'screens';
mkdirSync(into, { recursive: true });
const open = await browser();
for (const isBroken of [false, true]) {
  const folder = library(isBroken ? { 'release-notes.md': BROKEN } : {});
  const server = await serve(folder);
  const editing = await serve(folder, 0, ['--edit']);
  shown = folder;
  for (const [name, { path, ready, broken = false, guarded = false, edited = false, size }] of Object.entries(VIEWS)) {
    if (broken !== isBroken) continue;
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      const { page, context } = await visit(open, {
        colorScheme,
        viewport: size ?? { width: 1180, height: 800 },
        reducedMotion: 'reduce',
      });
      await page.goto((guarded ? there.url : edited ? editing.url : server.url) + path);
      const state = guarded ? 'sign-in' : 'live';
      await page.waitForFunction((wanted) => document.documentElement.dataset.connection === wanted, state);
      if (path === '#/' && !guarded) await page.locator('.row').first().waitFor();
      await ready(page);
      await page.waitForTimeout(300);
      await page.screenshot({ path: join(into, `${name}-${colorScheme}.png`) });
      await context.close();
    }
  }
  await Promise.all([server.stop(), editing.stop()]);
  remove(folder);
}
await there.stop();
await open.close();
