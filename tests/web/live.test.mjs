// An open page while the library changes and the server disappears.

import assert from 'node:assert/strict';
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, library, remove, serve, visit, write } from './harness.mjs';

const HELLO = '---\ntitle: Hello\ndescription: Greets\n---\n# Greeting\n\nSay hello.\n\nBe kind.\n';
const folder = library({ 'hello.md': HELLO }, '');
/** @type {any} */
let open;
/** @type {any} */
let server;

before(async () => {
  [open, server] = await Promise.all([browser(), serve(folder)]);
});
after(async () => {
  await Promise.all([open?.close(), server?.stop()]);
  remove(folder);
});

/** @param {any} page */
const live = (page) => page.waitForFunction(() => document.documentElement.dataset.connection === 'live');

test('shows added, changed and removed prompts immediately', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(server.url);
  await live(page);
  await page.getByText('1 prompt', { exact: true }).waitFor();
  write(folder, { 'new.md': '---\ntitle: Brand New\ndescription: Is new\n---\nNew.\n' });
  await page.getByRole('link', { name: /Brand New/ }).waitFor();
  unlinkSync(join(folder, 'new.md'));
  await page.getByText('1 prompt', { exact: true }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('marks changes of an edit in the open preview', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/prompt/hello`);
  await live(page);
  await page.locator('.messages', { hasText: 'Say hello.' }).waitFor();
  write(folder, { 'hello.md': HELLO.replace('Say hello.', 'Say good evening.') });
  await page.locator('.prose .changed', { hasText: 'Say good evening.' }).waitFor();
  assert.equal(await page.locator('.prose .changed').count(), 1);
  await page.locator('.badge', { hasText: 'Changed' }).waitFor();
  await page.locator('#announcer', { hasText: 'The prompt has changed.' }).waitFor({ state: 'attached' });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('shows a broken edit at its line and keeps the last good version', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/library`);
  await live(page);
  await page.locator('.lead', { hasText: 'No problems found.' }).waitFor();
  write(folder, { 'hello.md': HELLO.replace('Say hello.', 'Say {{ greeting }}.') });
  const card = page.locator('.diagnostic', { hasText: 'undeclared-argument' });
  await card.waitFor();
  assert.equal(await card.locator('.line.hit mark').textContent(), 'greeting');
  assert.match((await card.locator('.where').textContent()) ?? '', /hello\.md:7:8/);
  await page
    .getByRole('link', { name: /Library/ })
    .locator('.count', { hasText: '1' })
    .waitFor();
  await page.goto(`${server.url}#/prompt/hello`);
  await page.locator('.messages', { hasText: /Say (hello|good evening)/ }).waitFor();
  write(folder, { 'hello.md': HELLO });
  await page.goto(`${server.url}#/library`);
  await page.locator('.lead', { hasText: 'No problems found.' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('reports a lost server, keeps input and reconnects', async () => {
  write(folder, {
    'ask.md':
      '---\ntitle: Ask\ndescription: Asks\narguments:\n  - { name: what, title: What, required: true }\n---\nAsk {{ what }}.\n',
  });
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/prompt/ask`);
  await live(page);
  await page.getByRole('textbox', { name: 'What' }).fill('twice');
  await page.getByText('Ask twice.').waitFor();
  const { port } = server;
  await server.stop();
  await page.getByText('The server does not respond. This is its last known state').waitFor();
  // The pauses between attempts grow; within a long one the seconds are counted.
  const counted = await page.evaluate(async () => {
    const seconds = () => Number(/(\d+) s/.exec(document.querySelector('.countdown')?.textContent ?? '')?.[1]);
    /** @type {number[]} */
    const seen = [];
    while (seen.length < 3) {
      const now = seconds();
      if (seen.at(-1) !== now) seen.push(now);
      // Only a count down within one pause counts.
      if (seen.length > 1 && now !== seen[seen.length - 2] - 1) seen.splice(0, seen.length - 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return seen;
  });
  assert.deepEqual(counted, [counted[0], counted[0] - 1, counted[0] - 2]);
  await page.getByRole('textbox', { name: 'What' }).fill('thrice');
  await page.locator('.problem', { hasText: 'Your input is kept.' }).waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'What' }).inputValue(), 'thrice');
  server = await serve(folder, port);
  // The page retries on its own and may be faster than the click.
  await page
    .getByRole('button', { name: 'Connect again' })
    .click({ timeout: 3000 })
    .catch(() => {});
  await live(page);
  await page.locator('.notice').waitFor({ state: 'hidden' });
  await page.getByText('Ask thrice.').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('any number of windows works, and follows changes, also after the first is closed', async () => {
  const { page, context, wrong } = await visit(open);
  const windows = [page];
  while (windows.length < 7) windows.push(await context.newPage());
  for (const one of windows) {
    await one.goto(`${server.url}#/prompt/hello`);
    await live(one);
  }
  const last = windows[6];
  const shows = (/** @type {any} */ one, /** @type {string} */ words) =>
    one.locator('.messages', { hasText: words }).waitFor();
  await last.goto(`${server.url}#/prompt/ask?what=seven`);
  await shows(last, 'Ask seven.');
  await last.goto(`${server.url}#/prompt/hello`);
  write(folder, { 'hello.md': HELLO.replace('Say', 'Now say') });
  for (const one of windows) await shows(one, 'Now say');
  await page.close();
  write(folder, { 'hello.md': HELLO.replace('Say', 'Still say') });
  for (const one of windows.slice(1)) await shows(one, 'Still say');
  write(folder, { 'hello.md': HELLO });
  assert.deepEqual(wrong, []);
  await context.close();
});

test("shows client incompatibilities from the server's table", async () => {
  write(folder, {
    'many.md':
      '---\ntitle: Many\ndescription: Asks\narguments:\n  - { name: a, description: x }\n  - { name: b, description: y }\n---\n{{ a }} {{ b }}\n',
  });
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/library`);
  const zed = page.locator('.incompatibilities details', { hasText: 'hides prompts with more than 1 argument' });
  await zed.waitFor();
  assert.match(
    (await zed.locator('summary').textContent()) ?? '',
    /^Zed hides prompts with more than 1 argument · 1 prompt$/,
  );
  await zed.locator('summary').click();
  await zed.getByText('Source, read in 2026-11: zed-industries/zed').waitFor();
  await page.locator('.incompatibilities details', { hasText: /Codex, .*show no prompts/ }).waitFor();
  await zed.getByRole('link', { name: 'many' }).click();
  await page.getByRole('heading', { level: 1, name: 'Many' }).waitFor();
  const german = await visit(open, { locale: 'de-DE' });
  await german.page.goto(`${server.url}#/library`);
  const told = german.page.locator('.incompatibilities summary');
  await told.filter({ hasText: /^Zed verbirgt Prompts mit mehr als 1 Angabe/ }).waitFor();
  await told.filter({ hasText: /Codex, .* zeigen keine Prompts/ }).waitFor();
  assert.deepEqual([...wrong, ...german.wrong], []);
  await Promise.all([context.close(), german.context.close()]);
});

test('counts a load for the start and for each change', async () => {
  const folder = library({ 'hello.md': HELLO }, '');
  const other = await serve(folder);
  const { page, context, wrong } = await visit(open);
  await page.goto(`${other.url}#/library`);
  await live(page);
  await page.getByText('Loaded 1 time since the server started.').waitFor();
  write(folder, { 'hello.md': HELLO.replace('hello', 'good evening') });
  await page.getByText('Loaded 2 times since the server started.').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
  await other.stop();
  remove(folder);
});
