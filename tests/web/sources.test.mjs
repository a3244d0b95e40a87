// The states of the sources of a server with several.

import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, library, PATIENCE, remove, serve, visit } from './harness.mjs';

const PROMPT = '---\ndescription: Greets\n---\nHello!\n';
const DEEP = 'with-a-long-name-that-has-to-be-broken-on-a-narrow-screen';
const SOURCE = (/** @type {string} */ name) =>
  `[[source]]\nname = "${name}"\nkind = "folder"\npath = "${name}/${DEEP}"\n\n`;
const folder = library(
  {
    [`team/${DEEP}/hello.md`]: PROMPT,
    [`later/${DEEP}/hello.md`]: PROMPT,
    '.server.toml': SOURCE('team') + SOURCE('later') + SOURCE('gone'),
  },
  '',
);
/** @type {any} */
let open;
/** @type {any} */
let server;

before(async () => {
  [open, server] = await Promise.all([browser(), serve(folder, 0, [], null)]);
});
after(async () => {
  await Promise.all([open?.close(), server?.stop()]);
  remove(folder);
});

/** @type {Record<string, [string, string, string]>} the heading, and the words for `current` and `failed` */
const WORDS = {
  en: ['Sources', 'current', 'not served'],
  de: ['Quellen', 'aktuell', 'nicht angeboten'],
  ja: ['ソース', '最新', '提供なし'],
  zh: ['来源', '最新', '未提供'],
};

for (const [language, [heading, current, failed]] of Object.entries(WORDS)) {
  test(`sources are listed with their states, ${language}`, async () => {
    const viewport = { width: 320, height: 900 };
    const { page, context, wrong } = await visit(open, { locale: language, viewport });
    await page.goto(`${server.url}#/server`);
    const section = page.locator('section', { has: page.getByRole('heading', { name: heading, exact: true }) }).last();
    const rows = section.locator('dl > div');
    await rows.nth(2).waitFor();
    const texts = await rows.allInnerTexts();
    assert.equal(texts.length, 3);
    assert.ok(texts[0].includes('team') && texts[0].includes(current), texts[0]);
    assert.ok(texts[2].includes('gone') && texts[2].includes(failed), texts[2]);
    assert.match(texts[2], /there is no folder/);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    assert.equal(overflow, 0, 'nothing is wider than the screen');
    assert.deepEqual(wrong, []);
    await context.close();
  });
}

test('a source that was removed is served as it was, and says so', async () => {
  const { page, context, wrong } = await visit(open);
  rmSync(join(folder, 'later'), { recursive: true });
  const row = page.locator('dl > div', { hasText: 'later' }).last();
  await page.goto(`${server.url}#/server`);
  const behind = row.filter({ hasText: 'last good version' });
  for (const deadline = Date.now() + PATIENCE; (await behind.count()) === 0; ) {
    assert.ok(Date.now() < deadline, (await row.textContent()) ?? '');
    await page.reload();
    await row.waitFor();
  }
  assert.match((await row.textContent()) ?? '', /1 prompt.*Since .*there is no folder/s);
  assert.deepEqual(wrong, []);
  await context.close();
});
