// Hostile prompts: nothing of them may run, fetch or deceive.

import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { test } from 'node:test';
import { library, site, visit } from './harness.mjs';

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="alert('svg')"><script>alert('svg script')</script><image href="https://evil.example/svg.png"/><rect width="40" height="40"/></svg>`;
const ATTACK = `---
title: "<img src=x onerror=alert('title')>"
description: "</code><script>alert('description')</script> paid \u202Eecnalab\u202C"
icons: [evil.svg]
tags: ["<b onclick=alert(1)>"]
arguments:
  - name: code
    title: "<svg onload=alert('argument')>"
    description: "<a href='javascript:alert(1)'>x</a>"
    type: text
---
<script>alert('script')</script>
<img src=x onerror="alert('img')">
<iframe srcdoc="<script>alert('frame')</script>"></iframe>

[click](javascript:alert('link')) [data](data:text/html,<script>alert(1)</script>) [tab](java\tscript:alert(1))
![picture](https://evil.example/beacon.png) <https://evil.example>
[ok](https://example.com/path)

Transfer to \u202Ereversed\u202C account\u200B and \u{E0041}\u{E0042} tags.

{{ attach("evil.svg") }}

{{ attach("page.html") }}

{{ code }}
`;

const BROKEN = `---\ndescription: "<script>alert('diagnostic')</script>"\n---\n{{ "<img src=x onerror=alert(9)>" | nothing }}\n`;

const folder = library(
  { 'attack.md': ATTACK, 'broken.md': BROKEN, 'evil.svg': SVG, 'page.html': "<script>alert('embedded')</script>" },
  '',
);
const running = site(folder);

// req: S-18
test('a hostile prompt runs nothing, fetches nothing and hides nothing', async () => {
  const { page, context, wrong, asked } = await visit(running.open);
  await page.goto(running.server.url);
  await page.locator('.row', { hasText: '<img src=x' }).waitFor();
  await page.locator('.row .hidden-mark', { hasText: 'U+202E' }).waitFor();
  await page.getByRole('combobox', { name: /Search prompts/ }).fill('/att');
  await page.locator('[role=option]').first().waitFor();
  await page.goto(
    `${running.server.url}#/prompt/attack?code=${encodeURIComponent("<script>alert('value')</script>`` {{ x }}")}`,
  );
  const messages = page.locator('.messages');
  await messages.getByText("alert('script')").first().waitFor();
  assert.equal(await messages.locator('script, iframe, object, embed, form, svg:not(.glyph)').count(), 0);
  const links = await messages
    .locator('a')
    .evaluateAll((/** @type {HTMLAnchorElement[]} */ all) => all.map((one) => one.href));
  assert.deepEqual(
    links,
    ['https://evil.example/', 'https://example.com/path'].filter((href) => links.includes(href)),
  );
  assert.ok(links.includes('https://example.com/path'));
  assert.equal(await messages.locator('img').count(), 0, 'no picture from elsewhere');
  assert.match((await page.locator('img.picture').getAttribute('src')) ?? '', /^data:image.svg/);
  for (const mark of ['U+202E', 'U+202C', 'U+200B', 'U+E0041'])
    assert.ok((await messages.locator('.hidden-mark', { hasText: mark }).count()) > 0, mark);
  assert.match((await page.locator('.facts').textContent()) ?? '', /hidden characters/);
  for (const details of await messages.locator('details summary').all()) await details.click();
  await messages.locator('pre', { hasText: "alert('embedded')" }).waitFor();
  await page.getByText('As plain text').click();
  await messages.locator('pre.raw').first().waitFor();
  await page.keyboard.press('Control+k');
  await page.locator('[role=option]').first().waitFor();
  await page.keyboard.press('Escape');
  await page.goto(`${running.server.url}#/library`);
  await page.locator('.diagnostic').first().waitFor();
  await page.goto(`${running.server.url}#/server`);
  await page.getByRole('heading', { level: 1, name: 'Server' }).waitFor();
  assert.deepEqual(wrong, [], 'no dialog, no error, and nothing that the policy had to stop');
  assert.ok(
    asked.every((url) => url.startsWith(running.server.url) || url.startsWith('data:')),
    'nothing is asked of anybody else',
  );
  await context.close();
});

// req: S-18
test('the Content-Security-Policy blocks injected content', async () => {
  const { page, context, wrong } = await visit(running.open);
  const answer = await page.goto(running.server.url);
  const policy = answer?.headers()['content-security-policy'] ?? '';
  for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"])
    assert.ok(policy.includes(rule), rule);
  assert.equal(answer?.headers()['x-content-type-options'], 'nosniff');
  assert.equal(answer?.headers()['referrer-policy'], 'no-referrer');
  const stopped = await page.evaluate(() => {
    try {
      document.body.innerHTML = '<img src=x onerror=alert(1)>';
      return false;
    } catch {
      return true;
    }
  });
  assert.ok(stopped, 'markup from text is an error');
  assert.ok(wrong.every((what) => what.startsWith('policy:')));
  await context.close();
});

test('a page of another origin can read nothing', async () => {
  for (const path of [
    '',
    'library/diagnostics',
    'library/prompts',
    'library/changes',
    'library/clients',
    'sign-in',
    'assets/js/main.js',
  ]) {
    const answer = await fetch(running.server.url + path, { headers: { Origin: 'https://evil.example' } });
    assert.equal(answer.status, 403, path);
  }
});

test('long and pathological text renders in linear time', async () => {
  const strange = [
    '*'.repeat(50_000),
    '`'.repeat(50_000),
    '['.repeat(50_000),
    '> '.repeat(5_000),
    '_a'.repeat(25_000),
    '| a '.repeat(10_000),
    `${'- '.repeat(3_000)}x`,
  ];
  const { page, context, wrong } = await visit(running.open);
  await page.goto(`${running.server.url}#/prompt/attack`);
  await page.locator('.messages .prose').first().waitFor();
  // A check with more than linear cost runs into the test's time limit.
  const shown = await page.evaluate(async (texts) => {
    const { markdown } = await import(`${location.origin}/assets/js/text/markdown.js`);
    return texts.map((text) => markdown(text.repeat(10)).length > 0);
  }, strange);
  assert.ok(shown.every(Boolean));
  assert.ok(Buffer.byteLength(strange.join('')) > 200_000);
  assert.deepEqual(wrong, []);
  await context.close();
});
