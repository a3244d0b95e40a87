// Accessibility, page weight, languages, narrow screens.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { browser, library, remove, serve, visit } from './harness.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const folder = library({ 'broken.md': '---\ndescription: x\n---\n{{ nobody }}\n' });
const TOKEN = 'token-of-ada';
const guarded = library(
  {
    'open.md': '---\ntitle: Open\ndescription: Is open\n---\nOpen.\n',
    'more.md': '---\ntitle: More\ndescription: x\naccess: { scopes: ["more"], visible: true }\n---\nMore.\n',
    '.server.toml': `[auth]\nissuer = "http://127.0.0.1:9"\nresource = "http://127.0.0.1:9/mcp"\npage-client-id = "page"\ntokens = [{ name = "ada", sha256 = "${createHash('sha256').update(TOKEN).digest('hex')}" }]\n`,
  },
  '',
);
/** @type {any} */
let open;
/** @type {any} */
let server;
/** @type {any} */
let closed;

before(async () => {
  [open, server, closed] = await Promise.all([browser(), serve(folder), serve(guarded)]);
});
after(async () => {
  await Promise.all([open?.close(), server?.stop(), closed?.stop()]);
  remove(folder);
  remove(guarded);
});

/** @param {any} page */
async function signIn(page) {
  await page.getByLabel('Bearer token').fill(TOKEN);
  await page.keyboard.press('Enter');
}

const review = '#/prompt/code_review?code=x&language=rust';
/** @type {Record<string, [string, (page: any) => Promise<unknown>]>} */
const VIEWS = {
  find: ['#/', (page) => page.getByText('12 prompts', { exact: true }).waitFor()],
  command: [
    '#/',
    async (page) => {
      await page.getByText('12 prompts', { exact: true }).waitFor();
      await page.getByRole('combobox', { name: /Search/ }).fill('/co');
      await page.locator('[role=option]').first().waitFor();
    },
  ],
  palette: [
    '#/',
    async (page) => {
      await page.getByText('12 prompts', { exact: true }).waitFor();
      await page.keyboard.press('Control+k');
      await page.locator('[role=option]').first().waitFor();
    },
  ],
  prompt: [review, (page) => page.locator('.messages .prose').first().waitFor()],
  completion: [
    review,
    async (page) => {
      await page.locator('.messages .prose').first().waitFor();
      await page.getByRole('combobox', { name: /Framework/ }).focus();
      await page.locator('[role=option]').first().waitFor();
    },
  ],
  problems: [
    '#/prompt/translate',
    async (page) => {
      await page.getByRole('button', { name: /^Copy/ }).click();
      await page.locator('.field .problem:visible').first().waitFor();
    },
  ],
  resources: [
    '#/prompt/onboarding?name=Ada',
    async (page) => {
      await page.getByRole('button', { name: 'Read Style guide' }).click();
      await page.locator('.followed', { hasText: 'function' }).waitFor();
    },
  ],
  sound: ['#/prompt/caption-sound', (page) => page.locator('audio').waitFor()],
  guided: [
    '#/prompt/new-service?purpose=x',
    (page) => page.getByText('What will the service be written in?').waitFor(),
  ],
  menu: [
    review,
    async (page) => {
      const passage = page.locator('.messages .prose p').first();
      await passage.selectText();
      await passage.click({ button: 'right' });
      await page.locator('.menu').waitFor();
    },
  ],
  library: ['#/library', (page) => page.locator('.diagnostic').first().waitFor()],
  shelf: [
    '#/resources',
    async (page) => {
      const files = page.getByRole('form', { name: 'Project file' });
      await files.getByRole('combobox', { name: /path/ }).focus();
      await page.locator('[role=option]').first().waitFor();
    },
  ],
  'signing in': ['closed', (page) => page.getByRole('heading', { name: 'Or use a token' }).waitFor()],
  'a problem with it': [
    'closed',
    async (page) => {
      await page.getByLabel('Bearer token').fill('not a token');
      await page.keyboard.press('Enter');
      await page.getByText('Invalid token').waitFor();
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.getByRole('alert').getByText('Sign-in is available at http://127.0.0.1:9 only.').waitFor();
    },
  ],
  'signed in': [
    'closed#/sign-in',
    async (page) => {
      await signIn(page);
      await page.getByRole('link', { name: 'You are signed in' }).click();
      await page.getByText('You are signed in as ada.').waitFor();
    },
  ],
  'what takes more': [
    'closed#/prompt/more',
    async (page) => {
      await signIn(page);
      await page.getByRole('button', { name: 'Sign in for more' }).waitFor();
    },
  ],
  server: ['#/server', (page) => page.locator('.table-of dd').nth(12).waitFor()],
};

/**
 * @param {any} page
 * @param {object} options
 */
async function problems(page, options) {
  const found = await page.evaluate(
    (/** @type {object} */ options) =>
      /** @type {any} */ (window).axe.run(document, { resultTypes: ['violations'], ...options }),
    options,
  );
  return found.violations
    .filter((/** @type {any} */ one) => ['serious', 'critical'].includes(one.impact))
    .map(
      (/** @type {any} */ one) =>
        `${one.id}: ${one.nodes.map((/** @type {any} */ node) => `${node.html} ${node.any[0]?.message ?? ''}`).join('\n')}`,
    );
}

test('no view has a serious accessibility problem, in light and dark', async () => {
  for (const [name, [path, ready]] of Object.entries(VIEWS)) {
    const narrow = ['prompt', 'find', 'shelf', 'signing in'].includes(name);
    for (const width of narrow ? [1280, 380] : [1280]) {
      const { page, context, wrong } = await visit(open, {
        colorScheme: 'light',
        reducedMotion: 'reduce',
        viewport: { width, height: 900 },
      });
      await page.goto(path.startsWith('closed') ? closed.url + path.slice('closed'.length) : server.url + path);
      await ready(page);
      await page.evaluate(AXE);
      assert.deepEqual(await problems(page, {}), [], `${name} at ${width}, light`);
      // Only colours differ.
      await page.emulateMedia({ colorScheme: 'dark' });
      const dark = await problems(page, { runOnly: ['color-contrast'] });
      assert.deepEqual(dark, [], `${name} at ${width}, dark`);
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      assert.ok(wide <= 0, `${name} at ${width} scrolls sideways`);
      assert.deepEqual(wrong, [], name);
      await context.close();
    }
  }
});

test('the first paint needs less than 100 kB, and a second visit nothing', async () => {
  const { page, context } = await visit(open);
  // Delays the preloading of modules until the measurement is done.
  await page.addInitScript(() => {
    const start = window.setTimeout;
    // @ts-expect-error a partial implementation is enough here
    window.setTimeout = (call, wait, ...rest) => (wait === 1_000 ? 0 : start(call, wait, ...rest));
  });
  /** @type {Promise<number>[]} */
  const sizes = [];
  const counted = (/** @type {any} */ response) => {
    if (/\/assets\/|\/$/.test(response.url()))
      sizes.push(response.body().then((/** @type {any} */ body) => body.length));
  };
  page.on('response', counted);
  await page.goto(server.url, { waitUntil: 'commit' });
  await page.locator('.row').first().waitFor();
  page.off('response', counted);
  const weight = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  assert.ok(weight > 20_000 && weight < 100_000, `${weight} bytes`);
  const first = await fetch(`${server.url}assets/js/main.js`);
  const again = await fetch(`${server.url}assets/js/main.js`, {
    headers: { 'If-None-Match': first.headers.get('etag') ?? '' },
  });
  assert.equal(again.status, 304);
  await context.close();
});

test('switches between four languages without a reload', async () => {
  const { page, context, wrong } = await visit(open, { locale: 'de-DE' });
  await page.goto(server.url);
  await page.getByRole('heading', { level: 1, name: 'Was möchten Sie fragen?' }).waitFor();
  for (const [code, heading, lang] of [
    ['zh', '您想问什么？', 'zh-Hans'],
    ['ja', '何を尋ねますか？', 'ja'],
    ['en', 'What do you want to ask?', 'en'],
  ]) {
    await page.locator('select.language').selectOption(code);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), lang);
  }
  assert.deepEqual(wrong, []);
  await context.close();
});
