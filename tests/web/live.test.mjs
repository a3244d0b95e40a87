// A page that stays open while the library changes and the server goes.

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

test('a prompt that comes, changes or goes is seen at once', async () => {
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

test('an edit is shown in the open preview, and what changed is marked', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/prompt/hello`);
  await live(page);
  await page.locator('.messages', { hasText: 'Say hello.' }).waitFor();
  write(folder, { 'hello.md': HELLO.replace('Say hello.', 'Say good evening.') });
  await page.locator('.prose .changed', { hasText: 'Say good evening.' }).waitFor();
  assert.equal(await page.locator('.prose .changed').count(), 1);
  await page.locator('.badge', { hasText: 'Changed' }).waitFor();
  await page.locator('#said', { hasText: 'The prompt has changed.' }).waitFor({ state: 'attached' });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a broken edit is shown at its line, and the last good version stays', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/library`);
  await live(page);
  await page.locator('.lead', { hasText: 'Nothing is wrong.' }).waitFor();
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
  await page.locator('.lead', { hasText: 'Nothing is wrong.' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a dead server is told of, nothing typed is lost, and the page comes back with it', async () => {
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
  await page.getByText('The server does not answer. What you see is from before').waitFor();
  await page.getByRole('textbox', { name: 'What' }).fill('thrice');
  await page.getByText('What you have typed is still here.').waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'What' }).inputValue(), 'thrice');
  server = await serve(folder, port);
  // The page tries by itself as well, and may be quicker than the hand.
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

test('which clients stumble comes from the table of the program', async () => {
  write(folder, {
    'many.md':
      '---\ntitle: Many\ndescription: Asks\narguments:\n  - { name: a, description: x }\n  - { name: b, description: y }\n---\n{{ a }} {{ b }}\n',
  });
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/library`);
  const zed = page.locator('.stumbles details', { hasText: 'hides prompts of more than 1 argument' });
  await zed.waitFor();
  assert.match(
    (await zed.locator('summary').textContent()) ?? '',
    /^Zed hides prompts of more than 1 argument · 1 prompt$/,
  );
  await zed.locator('summary').click();
  await zed.getByText('As read in 2026-11: zed-industries/zed').waitFor();
  await page.locator('.stumbles details', { hasText: /Codex, .*shows no prompts/ }).waitFor();
  await zed.getByRole('link', { name: 'many' }).click();
  await page.getByRole('heading', { level: 1, name: 'Many' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});
