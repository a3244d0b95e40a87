// The journey of a new author with the mouse alone: from the empty page to a tested, reviewed and published prompt with
// an attachment, a copy, a new name, and back to the version before. The keyboard types texts into fields, nothing else.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser } from './harness.mjs';
import { channels } from './store.mjs';

/** @type {any} */
let open;
/** @type {any} */
let shop;

before(async () => {
  [open, shop] = await Promise.all([browser(), channels({})]);
});
after(async () => {
  await Promise.all([open?.close(), shop?.stop()]);
});

/** Types at the end of the text. @param {any} page @param {string} words */
async function append(page, words) {
  const lines = page.locator('.cm-line');
  await lines.last().click();
  const box = await lines.last().boundingBox();
  await page.mouse.click(box.x + box.width - 2, box.y + box.height - 2);
  await page.keyboard.insertText(words);
}

/** Replaces a word of a line that is double-clicked. @param {any} page @param {string} line @param {string} word @param {string} next */
async function replaceWord(page, line, word, next) {
  const [x, y] = await page
    .locator('.cm-line', { hasText: line })
    .evaluate((/** @type {HTMLElement} */ element, /** @type {string} */ word) => {
      const nodes = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      while (!nodes.nextNode()?.textContent?.includes(word));
      const range = document.createRange();
      const at = nodes.currentNode.textContent?.lastIndexOf(word) ?? 0;
      range.setStart(nodes.currentNode, at);
      range.setEnd(nodes.currentNode, at + word.length);
      const { left, top, width, height } = range.getBoundingClientRect();
      return [left + width / 2, top + height / 2];
    }, word);
  await page.mouse.dblclick(x, y);
  await page.keyboard.insertText(next);
}

/** Drops a file onto an element. @param {any} target @param {string} name @param {number[] | string} content @param {number} [size] */
function drop(target, name, content, size = 1) {
  return target.evaluate(
    (/** @type {HTMLElement} */ element, /** @type {any} */ [name, content, size]) => {
      const part = typeof content === 'string' ? content : new Uint8Array(content);
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(Array(size).fill(part), name));
      for (const type of ['dragover', 'drop'])
        element.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true, composed: true }));
    },
    [name, content, size],
  );
}

/** @param {any} page @param {string} message @param {number} id */
async function propose(page, message, id) {
  await page.getByRole('button', { name: 'Continue to the proposal' }).click();
  await page.getByLabel('The change and its reason').click();
  await page.keyboard.insertText(message);
  await page.getByRole('button', { name: 'Propose' }).click();
  await page.getByRole('link', { name: `Proposal ${id} was made.` }).click();
  await page.locator('.lacks', { hasText: 'a reviewer other than ada' }).waitFor();
}

/** @param {any} page @param {string} message */
async function approve(page, message) {
  await page.goto(shop.url);
  await page.getByRole('link', { name: /^Proposals 1/ }).click();
  await page.getByRole('link', { name: message }).click();
  await page.locator('.comparison .part').first().waitFor();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.pill', { hasText: 'Published' }).waitFor();
}

// req: S-238
test('a prompt is written, attached to, tested, reviewed, published, copied and rolled back with the mouse', async () => {
  const [author, reviewer] = await Promise.all([shop.as(open, 'ada'), shop.as(open, 'rita')]);
  const { page } = author;
  const text = page.locator('.cm-content');
  const unsaved = page.locator('.edit-propose li');
  const note = (/** @type {RegExp} */ words) => page.locator('.note', { hasText: words }).waitFor();
  await page.goto(shop.url);
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await page.getByRole('link', { name: 'production' }).click();
  await page.locator('summary', { hasText: 'New prompt' }).click();
  await page.getByLabel('Path of the new file').click();
  await page.keyboard.insertText('team/weekly');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('.messages', { hasText: 'Help me with the weekly report' }).waitFor();
  await append(page, 'Be brief.');
  await page.locator('.messages', { hasText: 'Be brief.' }).waitFor();

  // Files that are dropped onto the text are checked; their contents never get into the text.
  for (const [name, content, size, words] of /** @type {[string, number[] | string, number, RegExp][]} */ ([
    ['tool.exe', 'MZ', 1, /cannot be attached/],
    ['picture.png', '<svg>', 1, /other contents than its name/],
    ['prompt.md', [0, 159, 146, 150], 1, /has the name of a text file/],
    ['large.txt', 'x'.repeat(100_000), 31, /is larger than/],
    ['numbers.csv', 'week,count\n1,2\n', 1, /numbers\.csv is attached/],
  ])) {
    await drop(text, name, content, size);
    await note(words);
  }
  await text.filter({ hasText: 'attach("team/numbers.csv")' }).waitFor();
  await page.locator('.messages', { hasText: 'team/numbers.csv' }).waitFor();
  assert.doesNotMatch((await text.textContent()) ?? '', /week,count|<svg>|xxx/);
  // The starter's test expects one message: the author sees it fail, and corrects it.
  const run = page.getByRole('button', { name: 'Run tests' });
  await run.click();
  await page.locator('.edit-test', { hasText: 'the roles differ' }).waitFor();
  await replaceWord(page, 'roles: user', 'user', '[user, user]');
  await run.click();
  await page.getByText('1 test passed.').waitFor();
  await propose(page, 'Weekly reports', 1);
  await approve(reviewer.page, 'Weekly reports');

  // A copy, which gets another name and is deleted; and a second version of the published file.
  await page.goto(`${shop.url}#/edit/team/weekly.md?channel=production`);
  await text.filter({ hasText: 'Be brief.' }).waitFor();
  await page.getByRole('button', { name: 'Duplicate' }).click();
  await page.locator('.edit-path').getByRole('button', { name: 'Duplicate' }).click();
  await page.getByRole('heading', { level: 1, name: 'team/weekly-copy.md' }).waitFor();
  await text.filter({ hasText: 'Be brief.' }).waitFor();
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('New path').selectText();
  await page.keyboard.insertText('team/monthly.md');
  await page.locator('.edit-path').getByRole('button', { name: 'Rename' }).click();
  await page.getByRole('heading', { level: 1, name: 'team/monthly.md' }).waitFor();
  await text.filter({ hasText: 'Be brief.' }).waitFor();
  await page.getByRole('link', { name: 'All files' }).click();
  await unsaved.filter({ hasText: 'team/monthly.md' }).waitFor();
  assert.equal(await unsaved.count(), 1, 'the copy has one name');
  await unsaved.getByRole('link').click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete team/monthly.md now' }).click();
  await note(/^Deleted$/);
  await page.getByRole('link', { name: 'team/weekly.md' }).click();
  await replaceWord(page, 'Be brief', 'brief', 'brief or not');
  await page.locator('.edit-status', { hasText: 'kept in this browser' }).waitFor();
  await propose(page, 'Permit length', 2);
  await approve(reviewer.page, 'Permit length');

  // Back to the version before, found by browsing.
  await page.getByRole('navigation').getByRole('link', { name: 'Channels' }).click();
  await page.getByRole('link', { name: 'Browse production' }).click();
  await page.getByRole('link', { name: 'v2 team-weekly' }).click();
  await page.getByRole('link', { name: 'Roll back this prompt Revision 1' }).click();
  await page.getByText('This becomes a proposal').waitFor();
  await page.getByLabel('Description').click();
  await page.keyboard.insertText('Too long');
  await page.getByRole('button', { name: 'Roll back to this' }).click();
  await page.getByRole('heading', { name: 'Too long' }).waitFor();
  await approve(reviewer.page, 'Too long');
  const { items: files } = await shop.api('ada', '/channels/production/tree');
  assert.deepEqual(
    files.map((/** @type {any} */ file) => file.path),
    ['team/numbers.csv', 'team/weekly.md'],
  );
  const { total } = await shop.api('ada', '/channels/production/browse?text=brief%20or%20not');
  assert.equal(total, 0);
  assert.deepEqual([...author.wrong, ...reviewer.wrong], []);
  await Promise.all([author.context.close(), reviewer.context.close()]);
});
