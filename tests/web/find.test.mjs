// Finding a prompt: search, commands, palette, quick actions, selected text.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser, large, library, remove, serve, visit } from './harness.mjs';

const small = library();
const many = large();
/** @type {any} */
let open;
/** @type {any} */
let server;
/** @type {any} */
let crowd;

before(async () => {
  [open, server, crowd] = await Promise.all([browser(), serve(small), serve(many)]);
});
after(async () => {
  await Promise.all([open?.close(), server?.stop(), crowd?.stop()]);
  remove(small);
  remove(many);
});

test('lists all prompts by folder, with titles, tags and icons', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(server.url);
  await page.getByText('12 prompts', { exact: true }).waitFor();
  await page.getByRole('link', { name: /Request Code Review/ }).waitFor();
  assert.equal(await page.locator('.folder h2', { hasText: 'git' }).count(), 1);
  assert.ok((await page.locator('.row img.picture').count()) >= 1);
  await page.getByRole('button', { name: /^debugging/ }).click();
  await page.getByText('2 prompts found').waitFor();
  assert.equal(await page.locator('.row').count(), 2);
  await page.getByRole('button', { name: /^debugging/ }).click();
  const field = page.getByRole('combobox', { name: /Search prompts/ });
  await field.fill('revw');
  await page.getByText('1 prompt found').waitFor();
  await field.fill('zzzz');
  await page.getByText('No match for “zzzz”.').waitFor();
  await page.getByRole('button', { name: 'Show all prompts' }).click();
  await page.getByText('12 prompts', { exact: true }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('loads 10,000 prompts page by page and renders only visible rows', async () => {
  const { page, context, wrong, asked } = await visit(open);
  await page.goto(crowd.url);
  await page.getByText('10,000 prompts', { exact: true }).waitFor();
  assert.ok(asked.filter((url) => url.endsWith('/mcp')).length >= 10);
  assert.ok((await page.locator('.row').count()) < 60);
  await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
  await page.getByRole('link', { name: /Task 09999/ }).waitFor();
  assert.ok((await page.locator('.row').count()) < 60);
  const field = page.getByRole('combobox', { name: /Search prompts/ });
  await field.fill('task 07771');
  await page.locator('.row').first().getByText('Task 07771').waitFor();
  // From the field into the list with the keyboard.
  await field.focus();
  await page.keyboard.press('ArrowDown');
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ''), /Task 07771/);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Task 07771' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a slash command is completed: its name, its arguments, their values', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(server.url);
  await page.getByText('12 prompts', { exact: true }).waitFor();
  await page.keyboard.press('/');
  const holds = (/** @type {string} */ text) =>
    page.waitForFunction((/** @type {string} */ wanted) => document.querySelector('input')?.value === wanted, text);
  await page.keyboard.type('transl');
  await page.getByRole('option', { name: /translate/ }).waitFor();
  await page.keyboard.press('Enter');
  await holds('/translate ');
  await page.getByRole('option', { name: /into=/ }).waitFor();
  await page.keyboard.type('in');
  await page.keyboard.press('Tab');
  await holds('/translate into=');
  await page.keyboard.type('portu');
  await page
    .getByRole('option', { name: /Portuguese/ })
    .first()
    .waitFor();
  await page.keyboard.press('Tab');
  await holds('/translate into=Portuguese ');
  await page.keyboard.type('text="The shelf is full."');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Translate' }).waitFor();
  await page.locator('.messages', { hasText: 'The shelf is full.' }).waitFor();
  assert.match(await page.locator('.messages').textContent(), /into Portuguese/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('ignores a late completion response for an earlier prefix', async () => {
  const { page, context, wrong } = await visit(open);
  /** @type {() => void} */
  let release = () => {};
  const released = new Promise((resolve) => (release = () => resolve(undefined)));
  let isHeld = false;
  await page.route(`${server.url}mcp`, async (route) => {
    const { method, params } = route.request().postDataJSON();
    if (method !== 'completion/complete' || params.argument.value !== 'p') return route.continue();
    const answer = await route.fetch();
    isHeld = true;
    await released;
    // The page may have aborted the request meanwhile.
    await route.fulfill({ response: answer }).catch(() => {});
  });
  await page.goto(server.url);
  await page.getByText('12 prompts', { exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('translate into=');
  await page.getByRole('option', { name: /Arabic/ }).waitFor();
  // From here on the test controls the page's timers.
  await page.clock.install();
  await page.keyboard.type('p');
  await page.clock.runFor(1000);
  while (!isHeld) await new Promise((resolve) => setTimeout(resolve, 10));
  await page.keyboard.type('ortu');
  release();
  await page.evaluate(() => fetch('/health').then((answer) => answer.text()));
  await page.keyboard.press('Tab');
  await page.waitForFunction(() => document.querySelector('input')?.value === '/translate into=Portuguese ');
  assert.deepEqual(wrong, []);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
});

test('the palette works by keyboard and restores the focus', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(server.url);
  await page.getByText('12 prompts', { exact: true }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Jump to a prompt or an action' }).waitFor();
  await page.keyboard.type('chart');
  await page.getByRole('option', { name: /Read a Chart/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Read a Chart' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('Control+k');
  await page.keyboard.type('dark col');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('offers pinned and recent prompts as quick actions', async () => {
  const { page, context } = await visit(open);
  await page.goto(server.url);
  await page.getByRole('button', { name: 'Pin Write Tests' }).click();
  await page.goto(`${server.url}#/prompt/read-chart`);
  await page.getByRole('button', { name: /^Copy/ }).click();
  await page.getByText('Copied: Text').first().waitFor();
  await page.goto(`${server.url}#/`);
  await page.reload();
  const quick = page.getByRole('region', { name: 'Quick actions' });
  await quick.getByRole('link', { name: 'Write Tests' }).waitFor();
  await quick.getByRole('link', { name: 'Read a Chart' }).waitFor();
  assert.deepEqual(await quick.getByRole('link').allTextContents(), ['WWrite Tests', 'RRead a Chart']);
  await context.close();
});

test('selected text is used in a prompt that takes text', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/prompt/read-chart`);
  const passage = page.locator('.prose p', { hasText: 'This chart shows' });
  await passage.waitFor();
  await passage.selectText();
  await passage.click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Use as Text in Translate' }).click();
  await page.getByRole('heading', { level: 1, name: 'Translate' }).waitFor();
  assert.match(await page.getByRole('textbox', { name: /Text/ }).inputValue(), /^This chart shows/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a slash command keeps values that the prompt does not know', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(server.url);
  await page.getByText('12 prompts', { exact: true }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('code_review stray code=x language=cobol colour=red');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Request Code Review' }).waitFor();
  await page.locator('.note', { hasText: 'Not used: stray.' }).waitFor();
  const language = page.locator('.field[data-argument="language"]');
  await language.locator('.problem:visible').waitFor();
  assert.equal(await language.getByRole('radio', { name: 'cobol' }).isChecked(), true);
  await page.locator('.field[data-argument="colour"]', { hasText: 'red' }).getByText('no such argument').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a long tag does not widen a narrow screen', async () => {
  const tag = 'a'.repeat(90);
  const folder = library({ 'tagged.md': `---\ntitle: Tagged\ndescription: x\ntags: [${tag}]\n---\nHello.\n` });
  const tagged = await serve(folder);
  const { page, context, wrong } = await visit(open, { viewport: { width: 360, height: 800 } });
  for (const path of ['#/', '#/prompt/tagged']) {
    await page.goto(tagged.url + path);
    await page.locator('.tag', { hasText: tag }).first().waitFor({ state: 'attached' });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, path);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`${tagged.url}#/`);
  const title = page.locator('.row', { hasText: 'Tagged' }).locator('.row-title');
  assert.ok((await title.evaluate((/** @type {Element} */ one) => one.clientWidth)) > 300, 'room for the title');
  assert.deepEqual(wrong, []);
  await context.close();
  await tagged.stop();
  remove(folder);
});
