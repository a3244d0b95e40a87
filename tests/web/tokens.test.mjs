// Tokens of the store on the page: created, shown once, and revoked by administrators.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser } from './harness.mjs';
import { enter, isAccessible } from './keyboard.mjs';
import { channels } from './store.mjs';

/** @type {any} */
let open;
/** @type {any} */
let shop;

before(async () => {
  const files = { 'hello.md': '---\ndescription: Greets\n---\nHello.\n' };
  [open, shop] = await Promise.all([browser(), channels(files, { settings: 'store-tokens = true\n' })]);
});
after(async () => {
  await Promise.all([open?.close(), shop?.stop()]);
});

/** Waits until a request with a token has a status. @param {string} token @param {number} expected */
async function until(token, expected) {
  for (;;) {
    const { status } = await fetch(`${shop.url}api/v1/prompts`, { headers: { Authorization: `Bearer ${token}` } });
    if (status === expected) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('a token is created with the keyboard alone, shown once, works, and ends when it is revoked', async () => {
  const { page, context, wrong } = await shop.as(open, 'root');
  await page.goto(`${shop.url}#/channels`);
  await page.getByRole('link', { name: 'Tokens' }).click();
  await page.getByText('The store has no tokens.').waitFor();
  await isAccessible(page, 'the empty view');
  await page.getByLabel('Name', { exact: true }).fill('ci <b>&amp;');
  await page.getByLabel('Scopes').fill('prompts:read');
  await enter(page, page.getByRole('button', { name: 'Create token' }));
  await page.getByText('The token is shown only now.').first().waitFor();
  const shown = page.locator('code').filter({ hasText: /psk_/ });
  const token = (await shown.textContent()).trim();
  assert.match(token, /^psk_\S+$/);
  const entry = page.getByRole('listitem').filter({ hasText: 'ci <b>&amp;' });
  await entry.getByText('valid').waitFor();
  await entry.getByText('created by root').waitFor();
  await entry.getByText('never').waitFor();
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), '');
  await isAccessible(page, 'a new token');
  await until(token, 200);
  // Nobody sees it again.
  await page.reload();
  await entry.getByText('valid').waitFor();
  assert.ok(!(await page.content()).includes(token));
  assert.ok(!JSON.stringify(await shop.api('root', '/tokens')).includes(token));

  const revoke = page.getByRole('button', { name: 'Revoke #1' });
  /** @type {string[]} */
  const asked = [];
  page.removeAllListeners('dialog');
  page.on('dialog', (/** @type {any} */ dialog) => {
    asked.push(dialog.message());
    (asked.length === 1 ? dialog.dismiss() : dialog.accept()).catch(() => {});
  });
  await revoke.click();
  await until(token, 200);
  await enter(page, revoke);
  await entry.getByText('revoked', { exact: true }).waitFor();
  assert.ok(asked.length === 2 && asked[0]?.includes('ci <b>&amp;'), asked.join());
  assert.equal(await revoke.count(), 0);
  await until(token, 401);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a scope that the caller cannot give, and a view without the scope, are explained', async () => {
  const root = await shop.as(open, 'root');
  await root.page.goto(`${shop.url}#/tokens`);
  for (const [scope, words] of [
    ['library:review', 'is created by who has the store'],
    ['library:evaluate', 'which your own sign-in does not have'],
  ]) {
    await root.page.getByLabel('Name', { exact: true }).fill('bot');
    await root.page.getByLabel('Scopes').fill(scope);
    await root.page.getByRole('button', { name: 'Create token' }).click();
    await root.page.getByText(words).waitFor();
  }
  assert.equal(
    (await shop.api('root', '/tokens')).items.filter((/** @type {any} */ one) => one.name === 'bot').length,
    0,
  );
  assert.deepEqual(root.wrong, []);
  await root.context.close();
  const ada = await shop.as(open, 'ada');
  await ada.page.goto(`${shop.url}#/tokens`);
  await ada.page.getByText('library:admin').first().waitFor();
  assert.deepEqual(ada.wrong, []);
  await ada.context.close();
});
