// The whole journey of an author and a reviewer with the keyboard alone, on PostgreSQL: from the empty page to a
// published, reviewed prompt and back to the version before.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser } from './harness.mjs';
import { enter, tabTo } from './keyboard.mjs';
import { postgres } from './postgres.mjs';
import { channels } from './store.mjs';

/** @type {any} */
let open;
/** @type {any} */
let database;
/** @type {any} */
let shop;

before(async () => {
  [open, database] = await Promise.all([browser(), postgres()]);
  shop = await channels({}, { database: database.url });
});
after(async () => {
  await Promise.all([open?.close(), shop?.stop()]);
  await database?.stop();
});

/** Proposes the drafts, and opens the proposal. @param {any} page @param {string} message */
async function propose(page, message) {
  await page.locator('.edit-status', { hasText: 'kept in this browser' }).waitFor();
  await page.keyboard.press('Control+s');
  await tabTo(page, page.getByLabel('The change and its reason'));
  await page.keyboard.type(message);
}

/** Finds the wanted review in the navigation, and approves. @param {any} page @param {string} message */
async function approve(page, message) {
  await page.goto(shop.url);
  await enter(page, page.getByRole('link', { name: 'Proposals 1 review wanted' }));
  await enter(page, page.getByRole('link', { name: message }));
  await page.locator('.diff').first().waitFor();
}

// req: S-212
test('a prompt is written, reviewed, published and rolled back with the keyboard alone', async () => {
  const [author, reviewer] = await Promise.all([shop.as(open, 'ada'), shop.as(open, 'rita')]);
  const { page } = author;
  await page.goto(shop.url);
  await enter(page, page.getByRole('link', { name: 'Edit', exact: true }));
  await enter(page, page.getByRole('link', { name: 'production' }));
  await enter(page, page.locator('summary', { hasText: 'New prompt' }));
  await tabTo(page, page.getByLabel('Path of the new file'));
  await page.keyboard.type('team/weekly');
  await enter(page, page.getByRole('button', { name: 'Create' }));
  await page.locator('.messages', { hasText: 'Help me with the weekly report' }).waitFor();
  await tabTo(page, page.locator('.cm-content'));
  await page.keyboard.press('Control+End');
  await page.keyboard.type('Be brief.');
  await propose(page, 'Weekly reports');

  // The database goes away: nothing is lost, and the same key works when it is back.
  await database.halt();
  await page.keyboard.press('Enter');
  await page.getByRole('alert').filter({ hasText: 'The database cannot be reached. Nothing was changed' }).waitFor();
  await database.resume();
  await enter(page, page.getByRole('button', { name: 'Propose' }));
  await enter(page, page.getByRole('link', { name: 'Proposal 1 was made.' }));
  await page.locator('.lacks').waitFor();

  // The reviewer comments on a line, and approves after the answer.
  await approve(reviewer.page, 'Weekly reports');
  const other = reviewer.page;
  await tabTo(other, other.getByRole('button', { name: /^Comment on line/ }).first());
  for (let left = 40; left > 0; left--) {
    const line = await other.evaluate(() => document.activeElement?.closest('tr')?.textContent);
    if (line?.includes('Be brief.')) break;
    await other.keyboard.press('ArrowDown');
  }
  await other.keyboard.press('Enter');
  await other.keyboard.type('How brief?');
  await other.keyboard.press('Tab');
  await other.keyboard.press('Enter');
  await other.locator('.diff .comment', { hasText: 'How brief?' }).waitFor();
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await enter(page, page.getByRole('button', { name: 'Show' }));
  await page.locator('.diff .comment', { hasText: 'How brief?' }).waitFor();
  await enter(other, other.getByRole('button', { name: 'Approve' }));
  await other.locator('.pill', { hasText: 'Published' }).waitFor();

  // A second version, of the published text.
  await page.goto(`${shop.url}#/edit/team/weekly.md?channel=production`);
  await tabTo(page, page.locator('.cm-content'));
  await page.keyboard.press('Control+End');
  await page.keyboard.type(' Or longer.');
  await propose(page, 'Permit length');
  await page.keyboard.press('Enter');
  await enter(page, page.getByRole('link', { name: 'Proposal 2 was made.' }));
  await approve(other, 'Permit length');
  await enter(other, other.getByRole('button', { name: 'Approve' }));
  await other.locator('.pill', { hasText: 'Published' }).waitFor();

  // Back to the version before.
  await page.goto(`${shop.url}#/history/production?prompt=team-weekly`);
  await enter(page, page.getByRole('link', { name: 'Roll back this prompt Revision 1' }));
  await page.getByText('This becomes a proposal').waitFor();
  await tabTo(page, page.getByLabel('Description'));
  await page.keyboard.type('Too long');
  await enter(page, page.getByRole('button', { name: 'Roll back to this' }));
  await page.getByRole('heading', { name: 'Too long' }).waitFor();
  await approve(other, 'Too long');
  await enter(other, other.getByRole('button', { name: 'Approve' }));
  await other.locator('.pill', { hasText: 'Published' }).waitFor();
  const { head } = await shop.api('ada', '/channels/production');
  assert.equal(head.revision, 3);
  for (const [text, found] of [
    ['Be brief.', 1],
    ['Or longer', 0],
  ]) {
    const { items: files } = await shop.api(
      'ada',
      `/channels/production/browse?text=${encodeURIComponent(String(text))}`,
    );
    assert.equal(files.length, found, String(text));
  }
  assert.deepEqual([...author.wrong, ...reviewer.wrong], []);
  await Promise.all([author.context.close(), reviewer.context.close()]);
});
