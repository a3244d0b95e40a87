// The keyboard, and checks for people who depend on it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** The most presses: more than any view has controls. */
const MOST = 120;

/** Presses Tab until an element has the focus. @param {any} page @param {any} locator */
export async function tabTo(page, locator) {
  await locator.waitFor();
  for (let count = 0; count < MOST; count++) {
    await page.keyboard.press('Tab');
    const isThere = await locator.evaluate(
      (/** @type {HTMLElement} */ element) =>
        /** @type {Document | ShadowRoot} */ (element.getRootNode()).activeElement === element,
    );
    if (isThere) return;
  }
  assert.fail(`Tab does not reach ${locator}`);
}

/** Reaches a control with Tab and presses Enter. @param {any} page @param {any} locator */
export async function enter(page, locator) {
  await tabTo(page, locator);
  await page.keyboard.press('Enter');
}

/** Has axe look at the page as it is, which must fit the screen. @param {any} page @param {string} name */
export async function isAccessible(page, name) {
  // The script stays on the page while only the fragment of the address changes.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    /** @type {any} */ (window).axe.run(document, { resultTypes: ['violations'] }),
  );
  const found = violations.map(
    (/** @type {any} */ one) =>
      `${one.id}: ${one.nodes.map((/** @type {any} */ node) => `${node.html} ${node.failureSummary}`).join('\n')}`,
  );
  assert.deepEqual(found, [], name);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${name} scrolls sideways`);
}
