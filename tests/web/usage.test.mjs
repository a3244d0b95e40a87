// Usage on the page: charts and their tables, prompts that deserve a look, and the effect of a proposal on callers.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { browser } from './harness.mjs';
import { channels } from './store.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const REVIEW =
  '---\ndescription: Reviews code\narguments:\n  - { name: language, description: Such as Rust }\n  - { name: lines, description: How many, type: integer }\n---\nReview {{ lines }} lines of {{ language }} code.\n';
const OLD = '---\ndescription: Old\ndeprecated: { message: It ends in May., replacement: review }\n---\nReview.\n';
const FILES = { 'review.md': REVIEW, 'old.md': OLD, 'unused.md': '---\ndescription: Not used\n---\nNothing.\n' };

/** @type {any} */
let open;
/** @type {any} */
let shop;

before(async () => {
  [open, shop] = await Promise.all([browser(), channels(FILES)]);
  const get = (/** @type {string} */ path) =>
    fetch(`${shop.url}api/v1/prompts/${path}`, {
      headers: { Authorization: 'Bearer token-of-rita', 'User-Agent': 'ci/1.0' },
    });
  for (const path of ['review?rendered=true', 'review?rendered=true&arguments.language=Rust', 'old?rendered=true']) {
    assert.equal((await get(path)).status, 200);
  }
  assert.equal((await get('review?rendered=true&arguments.lines=x')).status, 422);
});
after(async () => {
  await Promise.all([open?.close(), shop?.stop()]);
});

// The page renders prompts itself, which counts: this test comes first.
test('reviewers see the recent calls that a proposal breaks', async () => {
  const required = REVIEW.replace('Such as Rust', 'Such as Rust, required: true');
  const { id } = await shop.propose('ada', { 'review.md': required, 'old.md': null }, 'Ask for the language');
  const { page, context, wrong } = await shop.as(open, 'rita');
  await page.goto(`${shop.url}#/proposal/${id}`);
  await page.getByText('This change breaks calls of the last 30 days.').waitFor();
  await page.getByText('Affected calls of the last 30 days: 1 of 2, 1 client.').waitFor();
  await page.getByText('Affected calls of the last 30 days: 1 of 1, 1 client.').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('charts have tables, and lists name deprecated and unused prompts', async () => {
  const { page, context, wrong } = await shop.as(open, 'rita');
  await page.goto(shop.url);
  await page.getByRole('link', { name: 'Usage' }).click();
  await page.getByRole('img', { name: /^Calls by day: 4 in all/ }).waitFor();
  await page.getByRole('img', { name: /^Latency by day/ }).waitFor();
  await page.getByText('As a table').click();
  const days = page.getByRole('group', { name: 'Calls by day' }).locator('tbody tr');
  assert.equal(await days.count(), 30);
  await days.last().locator('td', { hasText: /^4$/ }).waitFor();
  await page
    .getByRole('group', { name: 'By client' })
    .getByRole('row', { name: /^ci 4 25% few/ })
    .waitFor();
  await page
    .getByRole('group', { name: 'Errors' })
    .getByRole('row', { name: /^invalid-arguments 1/ })
    .waitFor();
  await page.locator('section', { hasText: 'Deprecated and still used' }).getByRole('link', { name: 'old' }).waitFor();
  await page.locator('section', { hasText: 'Never used' }).getByRole('link', { name: 'unused' }).waitFor();
  await page.getByRole('group', { name: 'By prompt' }).getByRole('link', { name: 'review' }).click();
  await page.getByRole('heading', { name: 'Usage of review' }).waitFor();
  await page.getByRole('group', { name: 'By version' }).waitFor();
  await page.getByLabel('Period').selectOption('7');
  await page.getByRole('img', { name: /^Calls by day: 3 in all/ }).waitFor();
  await page.getByText('As a table').click();
  assert.equal(await days.count(), 7);
  // A deprecated prompt leads to its replacement.
  await page.goto(`${shop.url}#/prompt/old`);
  await page.getByText('It ends in May.').waitFor();
  await page.locator('.prompt-head').getByRole('link', { name: 'review' }).click();
  await page.getByRole('heading', { name: 'review' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the view of usage is accessible and fits small screens in every language', async () => {
  for (const [locale, colorScheme] of [
    ['en', 'light'],
    ['de', 'dark'],
    ['ja', 'light'],
    ['zh', 'dark'],
  ]) {
    const { page, context, wrong } = await shop.as(open, 'rita', {
      locale,
      colorScheme,
      viewport: { width: 320, height: 700 },
      reducedMotion: 'reduce',
    });
    await page.goto(`${shop.url}#/usage`);
    await page.locator('.chart').first().waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 320), `${locale} is too wide`);
    await page.evaluate(AXE);
    const violations = await page.evaluate(async () => {
      const { axe } = /** @type {any} */ (window);
      return (await axe.run(document)).violations.map((/** @type {any} */ one) => [one.id, one.nodes[0].html]);
    });
    assert.deepEqual(violations, []);
    assert.deepEqual(wrong, []);
    await context.close();
  }
});
