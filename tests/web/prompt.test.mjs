// One prompt: form, completion, problems, the five kinds of content, and the ways to use it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { BINARY, library, site, visit } from './harness.mjs';

const TYPES = `---
title: Every Type
description: Has an argument of every type
arguments:
  - { name: line, title: Line, required: true, pattern: "^[a-z]+$" }
  - { name: text, title: Text, type: text }
  - { name: count, title: Count, type: integer, minimum: 1, maximum: 5, required: true }
  - { name: share, title: Share, type: number }
  - { name: sure, title: Sure, type: boolean, required: true }
  - { name: day, title: Day, type: date }
  - { name: words, title: Words, type: list }
  - { name: extra, title: Extra, type: json }
  - { name: city, title: City, enum: [Amsterdam, Barcelona, Copenhagen, Dublin, Edinburgh, Florence] }
---
{{ line }} {{ text }} {{ count }} {{ share }} {{ sure }} {{ day }} {{ words }} {{ extra }} {{ city }}
`;

const SECRET = `---
title: Ask a Service
description: Has an argument that nobody else may see
arguments:
  - { name: key, title: Key, required: true, sensitive: true }
  - { name: about, title: About, required: true }
---
Ask about {{ about }} with {{ key }}.
`;

const TALK = `---
title: Talk
description: Has two roles
arguments:
  - { name: tone, title: Tone }
  - { name: text, title: Text, required: true }
---
In a {{ tone }} tone: {{ text }}{{ role("assistant") }}Sure.
`;

const PROFILES = `[profiles.simple]
flatten-roles = true
merge-blocks = true
one-argument = true
`;

const folder = library({
  'every-type.md': TYPES,
  'secret.md': SECRET,
  'talk.md': TALK,
  '.server.toml': PROFILES,
});
const running = site(folder);

/** @param {string} name @param {any} [options] */
async function at(name, options) {
  const visited = await visit(running.open, options);
  await visited.page.goto(`${running.server.url}#/prompt/${name}`);
  await visited.page.getByRole('heading', { level: 1 }).waitFor();
  return visited;
}

test('each type has its field, and all problems are shown together', async () => {
  const { page, context, wrong } = await at('every-type');
  assert.equal(await page.getByLabel('Count').getAttribute('type'), 'number');
  assert.equal(await page.getByLabel('Day').getAttribute('type'), 'date');
  assert.equal(await page.getByLabel('City').evaluate((/** @type {Element} */ one) => one.tagName), 'SELECT');
  assert.equal(await page.getByRole('radiogroup', { name: /Sure/ }).getByRole('radio').count(), 2);
  await page.getByText('Fill in these to see the result: Line, Count, Sure.').waitFor();
  await page.getByLabel('Line').fill('UPPER');
  await page.getByLabel('Count').fill('9');
  await page.getByRole('button', { name: 'Copy Text' }).click();
  await page.getByText('Check 3 fields.').waitFor();
  assert.equal(await page.locator('.field .problem:visible').count(), 3);
  assert.equal(
    await page.evaluate(() => document.activeElement?.closest('.field')?.getAttribute('data-argument')),
    'line',
  );
  assert.equal(await page.getByLabel('Line').getAttribute('aria-invalid'), 'true');
  await page.getByLabel('Line').fill('lower');
  await page.getByLabel('Count').fill('3');
  await page.getByRole('radio', { name: 'Yes' }).check();
  await page.getByLabel('City').selectOption('Dublin');
  await page.locator('.messages', { hasText: 'lower' }).filter({ hasText: 'Dublin' }).waitFor();
  assert.match(await page.locator('.messages').textContent(), /3.*true.*Dublin/s);
  assert.equal(await page.locator('.field .problem:visible').count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('completion uses the other fields as context and is debounced', async () => {
  const { page, context, wrong } = await at('code_review');
  /** @type {any[]} */
  const asked = [];
  page.on('request', (/** @type {any} */ request) => {
    if (request.headers()['mcp-method'] === 'completion/complete') asked.push(request.postDataJSON().params);
  });
  await page.getByRole('radio', { name: 'Rust' }).check();
  const field = page.getByRole('combobox', { name: /Framework/ });
  await field.focus();
  await page.getByRole('option', { name: 'axum' }).waitFor();
  asked.length = 0;
  // Set in one step, so that no typing pause occurs on a busy machine.
  await field.evaluate((/** @type {HTMLInputElement} */ input) => {
    for (const text of ['r', 'ro', 'roc']) {
      input.value = text;
      input.dispatchEvent(new Event('input'));
    }
  });
  await page.getByRole('option', { name: 'axum' }).waitFor({ state: 'detached' });
  await page.getByRole('option', { name: 'rocket' }).waitFor();
  assert.equal(asked.length, 1, 'one question for three letters');
  assert.equal(asked[0].context.arguments.language, 'rust');
  await page.keyboard.press('ArrowDown');
  assert.ok(await field.getAttribute('aria-activedescendant'));
  await page.keyboard.press('Enter');
  assert.equal(await field.inputValue(), 'rocket');
  assert.equal(await field.getAttribute('aria-expanded'), 'false');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a dropped file becomes the text of its field', async () => {
  const { page, context } = await at('code_review');
  const area = page.getByRole('textbox', { name: /Code/ });
  const transfer = await page.evaluateHandle(() => {
    const files = new DataTransfer();
    files.items.add(new File(['def add(a, b):\n    return a - b\n'], 'add.py'));
    files.items.add(new File([new Uint8Array([0, 255, 254])], 'add.pyc'));
    return files;
  });
  await area.dispatchEvent('drop', { dataTransfer: transfer });
  await page.locator('.messages', { hasText: 'return a - b' }).waitFor();
  assert.equal(await area.inputValue(), 'def add(a, b):\n    return a - b\n');
  await context.close();
});

test('renders all five kinds of content', async () => {
  const { page, context, wrong } = await at('read-chart');
  const image = page.locator('.messages img');
  await image.waitFor();
  assert.ok(
    await image.evaluate((/** @type {HTMLImageElement} */ one) => one.decode().then(() => one.naturalWidth > 100)),
  );
  await page.goto(`${running.server.url}#/prompt/caption-sound`);
  const sound = page.locator('.messages audio');
  await sound.waitFor();
  await page.waitForFunction(() => /** @type {HTMLAudioElement} */ (document.querySelector('audio')).duration > 0);
  await page.goto(`${running.server.url}#/prompt/analyze-project?file=${encodeURIComponent('file:///src/main.py')}`);
  const embedded = page.locator('details.resource', { hasText: 'src/main.py' });
  await embedded.locator('summary').click();
  await embedded.locator('pre', { hasText: 'import' }).waitFor();
  await page.goto(`${running.server.url}#/prompt/onboarding?name=Ada`);
  await page.getByRole('button', { name: 'Read Style guide' }).click();
  await page.locator('.followed', { hasText: 'A function does one thing' }).waitFor();
  await page.getByText('Ada joins our team').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('copies a prompt as text, API messages, shell command and link', async () => {
  const { page, context, wrong } = await at('translate?text=It%27s%20full.&into=German');
  await page.locator('.messages', { hasText: "It's full." }).waitFor();
  const copied = async (/** @type {string} */ format) => {
    await page.locator('.use label', { hasText: new RegExp(`^${format}$`) }).click();
    await page.getByRole('button', { name: `Copy ${format}` }).click();
    await page.getByText(`Copied: ${format}`).first().waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  assert.match(await copied('Text'), /^Translate the text/);
  assert.equal(JSON.parse(await copied('OpenAI'))[0].role, 'user');
  assert.match(JSON.parse(await copied('Anthropic'))[0].content, /into German/);
  assert.equal(JSON.parse(await copied('MCP'))[0].content.type, 'text');
  const command = await copied('Command');
  assert.equal(command, `promptshelf get ${running.server.url}mcp translate 'text=It'\\''s full.' into=German`);
  // In a folder that has nothing to do with the library.
  const pasted = { cwd: tmpdir(), env: { ...process.env, PATH: `${dirname(BINARY)}:${process.env.PATH}` } };
  assert.match(execFileSync('sh', ['-c', command], { ...pasted, encoding: 'utf8' }), /It's full\./);
  const curl = await copied('curl');
  const answer = JSON.parse(execFileSync('sh', ['-c', `${curl} -s`], { encoding: 'utf8' }));
  assert.match(answer.result.messages[0].content.text, /It's full\./);
  const link = await copied('Link');
  const other = await visit(running.open);
  await other.page.goto(link);
  await other.page.locator('.messages', { hasText: "It's full." }).waitFor();
  assert.ok(
    other.asked.every((url) => !url.includes('full')),
    'what a link holds is not sent as an address',
  );
  assert.deepEqual([...wrong, ...other.wrong], []);
  await other.context.close();
  // Text has no place for an image.
  await page.goto(`${running.server.url}#/prompt/read-chart`);
  await page.locator('.messages img').waitFor();
  await copied('Text');
  await page.getByText('Copied: Text. 1 file is not part of it').first().waitFor();
  await context.close();
});

test('a value that a field does not offer stays visible at the field', async () => {
  const { page, context, wrong } = await at(
    'every-type?line=lower&count=many&sure=perhaps&day=tomorrow&city=Paris&share=half&wordz=a%0Ab',
  );
  const field = (/** @type {string} */ name) => page.locator(`.field[data-argument="${name}"]`);
  // The server refuses the values, each at its field.
  await page.getByText('Check 5 fields.').waitFor();
  for (const name of ['count', 'sure', 'day', 'city', 'share']) await field(name).locator('.problem:visible').waitFor();
  assert.equal(await page.getByLabel('Count').inputValue(), 'many');
  assert.equal(await page.getByLabel('Day').inputValue(), 'tomorrow');
  assert.equal(await page.getByLabel('City').inputValue(), 'Paris');
  assert.equal(await page.getByRole('radio', { name: 'perhaps' }).isChecked(), true);
  // An unknown argument is shown with its value, and not sent.
  const unknown = field('wordz');
  await unknown.getByText('This prompt has no such argument. It is not used.').waitFor();
  assert.equal(await unknown.locator('pre').textContent(), 'a\nb');
  await page.getByLabel('Count').fill('3');
  await page.getByRole('radio', { name: 'Yes' }).check();
  await page.getByLabel('Day').fill('2026-01-02');
  await page.getByLabel('City').selectOption('Dublin');
  await page.getByLabel('Share').fill('0.5');
  await page.locator('.messages', { hasText: 'lower 3 0.5 true 2026-01-02' }).waitFor();
  assert.equal(await page.locator('.field:not(.unknown) .problem:visible').count(), 0);
  await unknown.getByRole('button', { name: 'Remove wordz' }).click();
  await unknown.waitFor({ state: 'detached' });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a value outside the choices is named before the form is complete', async () => {
  const { page, context, wrong } = await at('every-type?city=Paris');
  await page.locator('.field[data-argument="city"]').getByText('“Paris” is not a possible value.').waitFor();
  await page.getByText('Fill in these to see the result: Line, Count, Sure.').waitFor();
  assert.equal(await page.getByLabel('City').inputValue(), 'Paris');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a value of several lines keeps its line breaks', async () => {
  const { page, context, wrong } = await at('onboarding?name=Ada%0ALovelace');
  await page.locator('.messages', { hasText: 'Lovelace' }).waitFor();
  assert.equal(await page.getByRole('textbox', { name: /^Name/ }).inputValue(), 'Ada\nLovelace');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('sensitive values are masked and left out of commands and links', async () => {
  const { page, context, wrong } = await at('secret');
  assert.equal(await page.getByLabel('Key').getAttribute('type'), 'password');
  await page.getByLabel('Key').fill('open-sesame');
  await page.getByLabel('About').fill('caves');
  await page.locator('.messages', { hasText: 'Ask about caves with open-sesame.' }).waitFor();
  for (const format of ['Command', 'curl', 'Link']) {
    await page.getByRole('radio', { name: format }).check();
    const shown = page.locator('.use-text', { hasText: 'caves' });
    await shown.waitFor();
    assert.doesNotMatch(await shown.textContent(), /sesame/);
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

test('completes resource template variables and reads the resource', async () => {
  const { page, context, wrong } = await visit(running.open);
  await page.goto(`${running.server.url}#/resources`);
  const logs = page.getByRole('form', { name: 'Recent logs' });
  await logs.getByRole('button', { name: /^Read/ }).click();
  await logs.locator('.followed pre').waitFor();
  const files = page.getByRole('form', { name: 'Project file' });
  const field = files.getByRole('combobox', { name: /path/ });
  await field.fill('main');
  // Waits until the suggestions belong to the typed text.
  await page.waitForFunction(() => document.querySelectorAll('[role=option]').length === 1);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await files.locator('code', { hasText: /^file:\/\/\/src\/main\.py$/ }).waitFor();
  await field.press('Enter');
  await files.locator('.followed pre', { hasText: 'import' }).waitFor();
  await field.fill('nothing.py');
  await field.press('Enter');
  await files.getByText('Resource not found: file:///nothing.py').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a preview shows what clients get under a delivery profile', async () => {
  const { page, context, wrong } = await at('talk');
  await page.getByRole('textbox', { name: 'Tone' }).fill('dry');
  await page.getByRole('textbox', { name: 'Text' }).fill('hello');
  await page.locator('article.turn.assistant').getByText('Sure.').waitFor();
  await page.getByLabel('Client profile').selectOption('simple');
  const listed = page.locator('.listed');
  await listed.getByText('/profiles/simple/mcp').waitFor();
  assert.match((await listed.textContent()) ?? '', /text \*.*Write other values before it: tone=…/);
  assert.equal(await listed.getByRole('listitem').count(), 1);
  await page.getByText('[assistant]').waitFor();
  assert.equal(await page.locator('article.turn').count(), 1);
  await page.getByRole('radio', { name: 'curl' }).check();
  await page.locator('.use-text').getByText('/profiles/simple/mcp').waitFor();
  // The choice survives, the values do not.
  await page.reload();
  await page.getByRole('textbox', { name: 'Text' }).fill('hello');
  await page.getByText('[assistant]').waitFor();
  await page.getByLabel('Client profile').selectOption('');
  await page.locator('article.turn.assistant').waitFor();
  assert.equal(await listed.isVisible(), false);
  assert.deepEqual(wrong, []);
  await context.close();
});
