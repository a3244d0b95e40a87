// Guarded rollouts on the page: figures, changes by publishers, and what readers see.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser } from './harness.mjs';
import { enter, isAccessible } from './keyboard.mjs';
import { channels } from './store.mjs';

const FILES = { 'review.md': '---\ndescription: Reviews code\n---\nReview.\n' };
/** @type {any} */
let open;
/** @type {any} */
let shop;

before(async () => {
  [open, shop] = await Promise.all([browser(), channels(FILES)]);
  // A rollout goes around no review: its target has the policy of the channel.
  shop.run('policy', '--channel', 'staging', '--approvals', '1', '--four-eyes', 'on', '--tests', 'on', '--as', 'root');
});
after(async () => {
  await Promise.all([open?.close(), shop?.stop()]);
});

/** Begins the rollout, unless there is one. */
async function begun() {
  const { items: rollouts } = await shop.api('rita', '/rollouts');
  if (rollouts.length) return rollouts[0];
  const body = { to: 'staging', percent: 10, steps: '24h', stop: { errors: 2 } };
  return await shop.api('rita', '/channels/production/rollouts', { method: 'POST', body });
}

test('a publisher raises, stops and continues a rollout with the keyboard alone', async () => {
  await begun();
  const { page, context, wrong } = await shop.as(open, 'rita');
  await page.goto(`${shop.url}#/channels`);
  await page.getByRole('link', { name: 'Rollouts' }).click();
  const rollout = page.getByRole('article', { name: 'staging for callers of production' });
  await rollout.getByText('10% of the signed-in callers').waitFor();
  await rollout.getByText('Next step: 20%. 20 more calls of the new version are needed.').waitFor();
  await rollout.getByRole('row', { name: /^Failed calls – – 2×/ }).waitFor();
  await rollout.getByLabel('Share in per cent').fill('30');
  await rollout.getByLabel('Reason').fill('It looks good');
  await enter(page, page.getByRole('button', { name: 'Set the share' }));
  await rollout.getByText('30% of the signed-in callers').waitFor();
  // Another person stops it meanwhile: the page does not continue it by mistake.
  await page.route('**/api/v1/rollouts?*', (/** @type {any} */ route) => route.abort());
  await shop.api('root', '/channels/production/rollouts', {
    method: 'PATCH',
    body: { state: 'stopped', message: 'A complaint' },
  });
  await enter(page, page.getByRole('button', { name: 'Set the share' }));
  await page.getByText('It has changed in the meantime.').waitFor();
  await page.unroute('**/api/v1/rollouts?*');
  await page.getByRole('button', { name: 'Connect again' }).click();
  await rollout.getByText('Stopped: A complaint').waitFor();
  await rollout.getByText('History', { exact: true }).click();
  await rollout.getByRole('listitem').filter({ hasText: 'It looks good' }).getByText('rita').waitFor();
  await rollout.getByRole('listitem').filter({ hasText: 'Begun' }).getByText('rita').waitFor();
  assert.equal(await rollout.getByRole('listitem').count(), 3);
  await enter(page, page.getByRole('button', { name: 'Set the share' }));
  await rollout.getByText('Running').waitFor();
  await enter(page, page.getByRole('button', { name: 'Stop the rollout' }));
  await rollout.getByText('Stopped: stopped by hand').waitFor();
  const { history } = await begun();
  assert.deepEqual(
    history.map((/** @type {any} */ one) => `${one.kind} ${one.changedBy}`),
    ['stop rita', 'set rita', 'stop root', 'set rita', 'begin rita'],
  );
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a rollout that no server applies is shown as such', async () => {
  await begun();
  const { page, context, wrong } = await shop.as(open, 'ada', { locale: 'de' });
  await page.route('**/api/v1/rollouts?*', async (/** @type {any} */ route) => {
    const response = await route.fetch();
    const { items: rollouts } = await response.json();
    const changed = rollouts.map((/** @type {any} */ one) => ({
      ...one,
      state: 'running',
      unappliedSince: '2026-11-20T09:00:00Z',
    }));
    await route.fulfill({ response, json: { items: changed, next: null } });
  });
  await page.goto(`${shop.url}#/rollouts`);
  await page.getByText('Nicht angewendet').waitFor();
  await page.getByText('Kein laufender Server bedient den Kanal damit. Zuletzt angewendet:').waitFor();
  assert.deepEqual(wrong, []);
  await page.unrouteAll({ behavior: 'wait' });
  await context.close();
});

test('readers see why they cannot change it, on small screens too', async () => {
  await begun();
  for (const [locale, colorScheme] of [
    ['de', 'dark'],
    ['ja', 'light'],
  ]) {
    const { page, context, wrong } = await shop.as(open, 'ada', {
      locale,
      colorScheme,
      viewport: { width: 320, height: 700 },
      reducedMotion: 'reduce',
    });
    await page.goto(`${shop.url}#/rollouts`);
    await page.getByText('library:publish').waitFor();
    await page.locator('article details summary').click();
    await isAccessible(page, `rollouts in ${locale}`);
    assert.deepEqual(wrong, []);
    await context.close();
  }
});
