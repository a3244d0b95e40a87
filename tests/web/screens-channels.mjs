// Takes screenshots of the views of channels in both themes: `node screens-channels.mjs FOLDER`.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { browser } from './harness.mjs';
import { channels } from './store.mjs';

const GREET =
  '---\ntitle: Greet\ndescription: Greets a person\ntags: [people]\nowners: team-support\ncollections: Starters\narguments:\n  - { name: name, description: "The name, such as Ada" }\ntests:\n  - { name: polite, arguments: { name: Ada }, contains: [Ada] }\n---\nGreet {{ name }} politely.\n{% include "_shared/style.md" %}\n';
const REVIEW =
  '---\ntitle: Review code\ndescription: Reviews code\ntags: [code]\nowners: team-platform\ncollections: Starters\narguments:\n  - name: language\n    description: Such as Rust\n  - { name: code, description: The code, type: text, required: true }\ntests:\n  - { name: short, arguments: { language: Rust, code: "let a = 1;" }, contains: [Rust] }\n---\nReview this {{ language }} code.\n{% include "_shared/style.md" %}\n\n{{ code | fence }}\n';
const STYLE = 'Be brief.\nUse plain words.\n';
const FILES = { 'people/greet.md': GREET, 'code/review.md': REVIEW, '_shared/style.md': STYLE };
const TESTS = '---\ntitle: Write tests\ndescription: Writes tests\ntags: [code]\n---\nWrite tests.\n';

const into = process.argv[2] ?? 'screens';
mkdirSync(into, { recursive: true });
const [open, shop] = await Promise.all([browser(), channels(FILES)]);
shop.publish('staging', { ...FILES, 'code/tests.md': TESTS }, 'Try prompts for tests');
const review = { verdict: 'approve', note: 'Reads well.' };
const first = await shop.propose('ada', { 'people/greet.md': GREET.replace('politely', 'warmly') }, 'Greet warmly');
await shop.api('rita', `/proposals/${first.id}/reviews`, { method: 'POST', body: { ...review, digest: first.digest } });
const required = REVIEW.replace('Such as Rust\n', 'Such as Rust\n    required: true\n');
const { id, digest } = await shop.propose(
  'ada',
  { 'code/review.md': required, '_shared/style.md': 'Be brief and kind.\nUse plain words.\n' },
  'Ask for the language',
);
await shop.api('rita', `/proposals/${id}/comments`, {
  method: 'POST',
  body: { digest, path: 'code/review.md', line: { side: 'after', number: 10 }, text: 'Every caller sends it today.' },
});

/** @type {Record<string, [string, string]>} address, and an element that is there when the view is complete */
const VIEWS = {
  channels: ['#/channels', '.matrix'],
  proposals: ['#/proposals?state=all', '.proposal'],
  proposal: [`#/proposal/${id}`, '.renderings .diff >> nth=1'],
  history: ['#/history/production', '.revision'],
  revision: ['#/revision/production/2?path=code/review.md', 'pre.whole'],
  compare: ['#/compare/production?from=1&to=2', '.renderings .diff'],
  promote: ['#/compare/production?promote=staging', '.choice'],
  browse: ['#/browse/production', '.standings'],
};
for (const [name, [path, ready]] of Object.entries(VIEWS)) {
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    const size = { width: 1180, height: name === 'proposal' ? 1250 : 760 };
    const { page, context } = await shop.as(open, 'rita', { colorScheme, viewport: size, reducedMotion: 'reduce' });
    await page.goto(shop.url + path);
    await page.locator(ready).first().waitFor();
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(into, `${name}-${colorScheme}.png`) });
    await context.close();
  }
}
await Promise.all([open.close(), shop.stop()]);
