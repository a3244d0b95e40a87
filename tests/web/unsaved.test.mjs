// Unsaved work: nothing of it is lost by an ended token, a publish by another person, a second tab or a closed one.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser } from './harness.mjs';
import { channels } from './store.mjs';

const HELLO = '---\ntitle: Hello\ndescription: Greets\n---\nSay hello.\n{% include "_style.md" %}\n';
const FILES = {
  'hello.md': HELLO,
  '_style.md': 'Be brief.\n',
  'call.md': '---\ndescription: Calls\n---\n{{ prompt("hello") }}\n',
};

/** @type {any} */
let open;
/** @type {any} */
let shop;

before(async () => {
  [open, shop] = await Promise.all([browser(), channels(FILES)]);
});
after(async () => {
  await Promise.all([open?.close(), shop?.stop()]);
});

const text = (/** @type {any} */ page) => page.locator('.cm-content');
const isKept = (/** @type {any} */ page) => page.locator('.edit-status', { hasText: 'kept in this browser' }).waitFor();

/** @param {any} page @param {string} path @param {string} words */
async function write(page, path, words) {
  await page.goto(`${shop.url}#/edit/${path}?channel=production`);
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type(words);
}

// req: S-213
test('an ended token and a publish by another person lose nothing', async () => {
  const { page, context, wrong } = await shop.as(open, 'ada');
  await write(page, 'hello.md', 'Mine.');
  await isKept(page);
  await page.evaluate(() =>
    sessionStorage.setItem('promptshelf.session', JSON.stringify({ token: 'ended', scopes: [] })),
  );
  await page.keyboard.type(' And more.');
  await page.locator('.notice').getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Bearer token').fill('token-of-ada');
  await page.keyboard.press('Enter');
  await text(page).filter({ hasText: 'Mine. And more.' }).waitFor();

  // Another person publishes meanwhile.
  const theirText = { 'hello.md': HELLO.replace('hello', 'good day') };
  const { id, digest } = await shop.propose('rita', theirText, 'Good day');
  await shop.api('root', `/proposals/${id}/reviews`, { method: 'POST', body: { verdict: 'approve', digest } });
  await text(page).focus();
  await page.keyboard.press('Control+s');
  await page.getByLabel('The change and its reason').fill('Say more');
  await page.getByRole('button', { name: 'Propose' }).click();
  await page.getByRole('alert').getByRole('link', { name: 'hello.md' }).click();
  const conflict = page.getByRole('region', { name: 'Changed in the meantime' });
  await conflict.waitFor();
  const [base, theirs, mine] = await conflict.locator('pre').allTextContents();
  assert.match(base, /Say hello\.\n/);
  assert.match(theirs, /Say good day\.\n/);
  assert.match(mine, /Say hello\.[\s\S]*Mine\. And more\./);
  await page.getByRole('button', { name: 'Keep my text' }).click();
  await isKept(page);
  await page.keyboard.press('Control+s');
  const marks = page.locator('.edit-files').getByText('Unsaved');
  await marks.waitFor();
  await page.getByLabel('The change and its reason').fill('Say more');
  await page.getByRole('button', { name: 'Propose' }).click();
  await page.locator('.edit-propose', { hasText: 'Proposal 3 was made.' }).waitFor();
  await marks.waitFor({ state: 'detached' });
  await page.locator('.edit-propose', { hasText: 'Proposal 3 was made.' }).waitFor();
  const contents = await shop.api('ada', '/proposals/3/contents');
  assert.match(JSON.stringify(contents), /Say hello\.\\n.*Mine\. And more\./);
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-213
test('two tabs with one file, and a tab that is closed while its author types, lose nothing', async () => {
  const { page, context, wrong } = await shop.as(open, 'rita');
  await write(page, 'call.md', 'First tab.');
  await isKept(page);
  const other = await context.newPage();
  other.on('dialog', (/** @type {any} */ dialog) => dialog.accept().catch(() => {}));
  await write(other, 'call.md', ' Second tab.');
  await isKept(other);
  await page.bringToFront();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type(' Once more.');
  const conflict = page.getByRole('region', { name: 'Changed in the meantime' });
  await conflict.getByText('Another tab has a different unsaved text').waitFor();
  const sides = await conflict.locator('pre').allTextContents();
  assert.match(sides[1], /First tab\. Second tab\./);
  assert.match(sides[2], /First tab\. Once more\./);
  await page.getByRole('button', { name: 'Keep my text' }).click();
  await conflict.waitFor({ state: 'detached' });
  await isKept(page);
  await other.close();

  // Closed within the moment in which the text is not in the database yet: the browser asks, or the text is there.
  /** @type {string[]} */
  const asked = [];
  page.removeAllListeners('dialog');
  page.on('dialog', (/** @type {any} */ dialog) => {
    asked.push(dialog.type());
    dialog.accept().catch(() => {});
  });
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type(' Last word.');
  const closed = page.waitForEvent('close');
  await page.close({ runBeforeUnload: true });
  await closed;
  const third = await context.newPage();
  await third.goto(`${shop.url}#/edit/call.md?channel=production`);
  await text(third).waitFor();
  const found = await text(third).textContent();
  assert.ok(asked.includes('beforeunload') || found?.includes('Last word.'), found ?? '');
  assert.match(found ?? '', /First tab\. Once more\./);
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-211
test('a rename on a channel changes references; names that other systems cannot hold are refused', async () => {
  const { page, context, wrong } = await shop.as(open, 'root', { locale: 'de-DE' });
  await page.goto(`${shop.url}#/edit?channel=production`);
  await page.locator('.edit-new summary').click();
  const path = page.getByLabel('Pfad der neuen Datei');
  for (const [name, reason] of [
    ['aux.md', /^Ein Teil des Pfads ist unter Windows der Name eines Geräts\.$/],
    ['a:b.md', /^Der Pfad hat ein Zeichen, das nicht jedes Dateisystem erlaubt\.$/],
    ['HELLO.md', /gibt es schon/],
  ]) {
    await path.fill(String(name));
    await page.keyboard.press('Enter');
    await page.locator('.edit-new .problem', { hasText: reason }).waitFor();
  }
  await page.goto(`${shop.url}#/edit/hello.md?channel=production`);
  await text(page).waitFor();
  await page.getByRole('button', { name: 'Umbenennen' }).click();
  await page.getByLabel('Neuer Pfad').fill('people/greet.md');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'people/greet.md' }).waitFor();
  await text(page).filter({ hasText: 'include' }).waitFor();
  await page.keyboard.press('Control+s');
  const proposing = page.locator('.edit-propose');
  await proposing.locator('li', { hasText: 'call.md' }).waitFor();
  await page.locator('#edit-message').fill('Move');
  await proposing.getByRole('button').click();
  await proposing.getByRole('link', { name: /Vorschlag/ }).click();
  await page.locator('.diff .added', { hasText: 'prompt("people-greet")' }).first().waitFor();
  const id = page.url().split('/').pop();
  const { changes } = await shop.api('root', `/proposals/${id}`);
  assert.deepEqual(
    changes.map((/** @type {any} */ one) => [one.path, one.after === null || one.after === undefined]),
    [
      ['call.md', false],
      ['hello.md', true],
      ['people/greet.md', false],
    ],
  );
  assert.deepEqual(wrong, []);
  await context.close();
});
