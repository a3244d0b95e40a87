// Takes screenshots of the views of usage in both themes, with a month of made-up traffic: `node screens-usage.mjs FOLDER`.
// It needs the program `sqlite3`.

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { browser } from './harness.mjs';
import { channels } from './store.mjs';

const REVIEW =
  '---\ntitle: Review code\ndescription: Reviews code\narguments:\n  - name: framework\n    description: Such as axum\n---\nReview this {{ framework }} code.\n';
const PLAIN = (/** @type {string} */ title) => `---\ntitle: ${title}\ndescription: ${title}\n---\n${title}.\n`;
const FILES = {
  'review.md': REVIEW,
  'quick-review.md':
    '---\ntitle: Quick review\ndescription: Reviews code in one sentence\ndeprecated: { message: It is removed in May., replacement: review }\n---\nReview.\n',
  'commit.md': PLAIN('Commit message'),
  'explain.md': PLAIN('Explain code'),
  'release-notes.md': PLAIN('Release notes'),
  'translate.md': PLAIN('Translate'),
};
/** Client, its share of the calls, and the share of its calls without `framework`. @type {[string, number, number][]} */
const CLIENTS = [
  ['editor', 0.46, 0.5],
  ['terminal', 0.27, 0.3],
  ['ci', 0.15, 0.4],
  ['chat', 0.08, 0],
  ['notebook', 0.04, 0],
];
/** @type {[string, number][]} */
const PROMPTS = [
  ['review', 90],
  ['commit', 60],
  ['explain', 35],
  ['quick-review', 9],
];
const DAY = 24 * 60 * 60;

/** A number below 2^28 as a sequence of 7 bits. @param {number} number */
function varint(number) {
  const bytes = [];
  for (let rest = number; ; rest >>= 7) {
    bytes.push(rest < 128 ? rest : (rest & 127) | 128);
    if (rest < 128) return bytes;
  }
}

/** Rows of usage, as `crates/promptshelf-core/src/usage.rs` writes them. */
function rows() {
  const today = Math.floor(Date.now() / 1000 / DAY) * DAY;
  const all = [];
  for (let ago = 30; ago >= 0; ago--) {
    const start = today - ago * DAY;
    const weekday = new Date(start * 1000).getUTCDay();
    const season = (weekday === 0 || weekday === 6 ? 0.25 : 1) * (1 + (30 - ago) / 60) * (0.85 + ((ago * 7) % 5) / 16);
    for (const [prompt, calls] of PROMPTS) {
      for (const [client, share, without] of CLIENTS) {
        const count = Math.round(calls * share * season);
        const failed = Math.round(count * (client === 'notebook' ? 0.4 : ago === 9 ? 0.2 : 0.02));
        for (const [outcome, number] of /** @type {const} */ ([
          ['ok', count - failed],
          ['invalid-arguments', failed],
        ])) {
          if (number <= 0) continue;
          // Classes of latencies: four for each doubling.
          const slow = Math.ceil(number * 0.06);
          const latencies = Buffer.from([18, ...varint(number), ago > 8 && ago < 12 ? 30 : 24, ...varint(slow)]);
          const callers = Buffer.alloc(8 * Math.min(40, number));
          // Hashes are spread evenly.
          for (let index = 0; index < callers.length / 8; index++)
            callers.writeBigUInt64BE(
              BigInt.asUintN(64, BigInt(index + 1 + client.length * 100) * 0x9e3779b97f4a7c15n),
              index * 8,
            );
          const left = JSON.stringify(prompt === 'review' ? { framework: Math.round(number * without) } : {});
          const version = prompt === 'review' && ago > 14 ? 1 : 2;
          all.push(
            `INSERT OR REPLACE INTO ps_usage (start, span, channel, prompt, version, client, client_version, protocol, method, outcome, count, latencies, callers, left_out) VALUES (${start}, 3600, 'production', '${prompt}', ${version}, '${client}', '1.0', '2025-11-25', 'prompts/get', '${outcome}', ${number}, x'${latencies.toString('hex')}', x'${callers.toString('hex')}', '${left}');`,
          );
        }
      }
    }
  }
  return all.join('\n');
}

const into = process.argv[2] ?? 'screens';
mkdirSync(into, { recursive: true });
const [open, shop] = await Promise.all([browser(), channels(FILES)]);
execFileSync('sqlite3', ['-cmd', '.timeout 10000', shop.file], { input: rows(), stdio: ['pipe', 'ignore', 'inherit'] });
const required = REVIEW.replace('Such as axum\n', 'Such as axum\n    required: true\n');
const { id } = await shop.propose('ada', { 'review.md': required, 'quick-review.md': null }, 'Ask for the framework');

/** @type {Record<string, [string, string, number, number]>} address, an element of the complete view, width and height */
const VIEWS = {
  usage: ['#/usage', '.usage-names', 1180, 1420],
  'usage-prompt': ['#/usage/review', '.usage-lists .usage-table', 1180, 900],
  'usage-narrow': ['#/usage', '.usage-names', 320, 1500],
  impact: [`#/proposal/${id}`, '.recent', 1180, 1180],
  deprecated: ['#/prompt/quick-review', '.messages', 1180, 560],
};
for (const [name, [path, ready, width, height]] of Object.entries(VIEWS)) {
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    const { page, context } = await shop.as(open, 'rita', {
      colorScheme,
      viewport: { width, height },
      reducedMotion: 'reduce',
    });
    await page.goto(shop.url + path);
    await page.locator(ready).first().waitFor();
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(into, `${name}-${colorScheme}.png`) });
    await context.close();
  }
}
await Promise.all([open.close(), shop.stop()]);
