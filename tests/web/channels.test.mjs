// Channels on the page: review, history, rollback, conflicts, hostile texts, lost sign-in, and accessibility of the views.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { browser } from './harness.mjs';
import { enter, isAccessible } from './keyboard.mjs';
import { channels } from './store.mjs';

const GREET = `---
title: Greet
description: Greets a person
tags: [people]
owners: team-a
collections: [Starters]
arguments:
  - name: name
    description: The name, such as Ada
tests:
  - { name: polite, arguments: { name: Grace }, contains: [Grace] }
---
Greet {{ name }} politely.
{% include "_shared/style.md" %}
`;
const REQUIRED = GREET.replace('such as Ada\n', 'such as Ada\n    required: true\n').replace('politely', 'warmly');
const FILES = { 'people/greet.md': GREET, '_shared/style.md': 'Be brief.\n' };

/** @type {any} */
let open;
/** @type {any} */
let shop;

before(async () => {
  [open, shop] = await Promise.all([browser(), channels(FILES)]);
});
after(async () => {
  await Promise.all([open?.close(), shop?.stop()]);
});

test('a proposal is discussed, approved, found in the history and rolled back by two people', async () => {
  const author = await shop.as(open, 'ada');
  const reviewer = await shop.as(open, 'rita');
  const { id } = await shop.propose(
    'ada',
    { 'people/greet.md': REQUIRED, '_shared/style.md': 'Be brief and kind.\n' },
    'Ask for the name',
  );

  // The reviewer finds it by the number in the navigation.
  const { page } = reviewer;
  await page.goto(shop.url);
  await page.getByRole('link', { name: 'Proposals 1 review wanted' }).click();
  await page.getByRole('link', { name: 'Ask for the name' }).click();
  const sentence = page.getByText('name became required: callers that leave it out will fail');
  assert.equal(await sentence.locator('code').last().textContent(), 'name');
  await page.getByText('Affected through _shared/style.md').waitFor();
  // The same in another language.
  const german = await shop.as(open, 'rita', { locale: 'de' });
  await german.page.goto(`${shop.url}#/proposal/${id}`);
  await german.page.getByText('name ist jetzt erforderlich: Aufrufe ohne diesen Wert schlagen fehl.').waitFor();
  // Backticks of an author mark no code, and nothing is markup.
  const shown = await page.evaluate(async (/** @type {string} */ url) => {
    const { differenceParts } = await import(url);
    const words = (/** @type {string} */ code, /** @type {Record<string, string>} */ values) => {
      const found = document.createElement('p');
      found.append(...differenceParts({ impact: 'notice', code, values, text: 'by `hand`' }).flat());
      return [
        found.textContent,
        ...[...found.querySelectorAll('*')].map((one) => `${one.localName} ${one.textContent}`),
      ];
    };
    return [
      words('argument-default', { argument: 'name', text: '“`a` <b>b</b> \ue000\ue001”' }),
      words('choices-new', { argument: 'name', values: '`x`, `y`' }),
      words('of-the-future', {}),
    ];
  }, `${shop.url}assets/js/channels/difference-words.js`);
  assert.deepEqual(shown, [
    ['The default of name is now “`a` <b>b</b> \ue000\ue001”.', 'code name'],
    ['name also accepts x, y.', 'code name', 'code x', 'code y'],
    ['by hand', 'code hand'],
  ]);
  assert.deepEqual(german.wrong, []);
  await german.context.close();
  // The rendering with the values of the test, and with typed ones.
  const rendering = page.getByRole('group', { name: 'Rendering of people-greet' });
  await rendering.locator('.added', { hasText: 'Greet Grace warmly.' }).waitFor();
  await page.getByText('Values of the arguments').click();
  await page.getByLabel('name', { exact: true }).fill('Alan');
  await rendering.locator('.added', { hasText: 'Greet Alan warmly.' }).waitFor();
  const lines = page.getByRole('group', { name: 'Difference of people/greet.md' });
  await lines.getByRole('button', { name: 'Comment on line 12' }).first().click();
  await page.keyboard.type('Why warmly?');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.locator('.diff .comment', { hasText: 'Why warmly?' }).waitFor();

  // The author sees it at its line, and why approval is not hers.
  await author.page.goto(`${shop.url}#/proposal/${id}`);
  await author.page.locator('.diff .comment', { hasText: 'Why warmly?' }).waitFor();
  const approve = author.page.getByRole('button', { name: 'Approve' });
  assert.equal(await approve.getAttribute('aria-disabled'), 'true');
  await author.page.getByText('It needs a sign-in with library:review.').first().waitFor();
  await author.page.locator('.lacks', { hasText: '1 more approval is needed by a reviewer other than ada.' }).waitFor();
  await author.page.getByRole('textbox', { name: 'Comment', exact: true }).fill('Because people like it.');
  await author.page.getByRole('button', { name: 'Send comment' }).click();
  await author.page.locator('.comment', { hasText: 'Because people like it.' }).waitFor();

  // The reviewer is told of the answer, and approves: her approval meets the policy.
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await page.getByRole('button', { name: 'Show' }).click();
  await page.locator('.comment', { hasText: 'Because people like it.' }).waitFor();
  await page.getByRole('textbox', { name: 'Note' }).fill('Fine.');
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.pill', { hasText: 'Published' }).waitFor();

  // History has the author, the reviewer and the reason; any revision opens read-only.
  await author.page.goto(`${shop.url}#/history/production?prompt=people-greet`);
  const newest = author.page.locator('.revision').first();
  await newest.getByText('approved by rita').waitFor();
  assert.match((await newest.textContent()) ?? '', /Revision 2.*Live.*Ask for the name.*ada/s);
  await author.page.getByRole('link', { name: 'Open Revision 1' }).click();
  await author.page.getByRole('link', { name: 'people/greet.md' }).click();
  await author.page.locator('pre.whole', { hasText: 'politely' }).waitFor();
  assert.equal(await author.page.locator('main textarea, main [contenteditable]').count(), 0);

  // The rollback of the prompt is compared first, and becomes a proposal that another person approves.
  await author.page.goto(`${shop.url}#/history/production?prompt=people-greet`);
  await author.page.getByRole('link', { name: 'Roll back this prompt Revision 1' }).click();
  await author.page.getByText('name became optional').waitFor();
  await author.page.getByText('This becomes a proposal').waitFor();
  await author.page.getByLabel('Description').fill('Too warm');
  await author.page.getByRole('button', { name: 'Roll back to this' }).click();
  await author.page.getByRole('heading', { name: 'Too warm' }).waitFor();
  await page.goto(`${shop.url}#/proposals`);
  await page.getByRole('link', { name: 'Too warm' }).click();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.pill', { hasText: 'Published' }).waitFor();
  const { head } = await shop.api('ada', '/channels/production');
  assert.equal(head.revision, 3);
  const { items: files } = await shop.api('ada', '/channels/production/browse?text=politely');
  assert.deepEqual(
    files.map((/** @type {any} */ file) => file.path),
    ['people/greet.md'],
  );
  assert.deepEqual([...author.wrong, ...reviewer.wrong], []);
  await Promise.all([author.context.close(), reviewer.context.close()]);
});

test('changes by another person are shown before a decision, and nothing typed is lost', async () => {
  const { page, context, wrong } = await shop.as(open, 'rita');
  const { id } = await shop.propose('ada', { 'new.md': '---\ndescription: New\n---\nOne.\n' }, 'A new prompt');
  await page.goto(`${shop.url}#/proposal/${id}`);
  await page.locator('.diff .added', { hasText: 'One.' }).first().waitFor();
  await page.getByRole('textbox', { name: 'Note' }).fill('Looks good');
  // The author replaces the changes under the reviewer's eyes.
  const { head } = await shop.api('ada', '/channels/production');
  const current = await fetch(`${shop.url}api/v1/proposals/${id}`, {
    headers: { Authorization: 'Bearer token-of-ada' },
  });
  await shop.api('ada', `/proposals/${id}`, {
    method: 'PUT',
    match: current.headers.get('ETag'),
    body: {
      base: head.revision,
      message: 'A new prompt',
      changes: [{ path: 'new.md', before: null, content: { text: '---\ndescription: New\n---\nTwo.\n' } }],
    },
  });
  // A comment on the old changes is refused: they stay on the screen, and so does the text.
  const comment = page.getByRole('textbox', { name: 'Comment', exact: true });
  await comment.fill('Why one?');
  await page.getByRole('button', { name: 'Send comment' }).click();
  const refusal = page.locator('.talk-all').getByRole('alert').filter({ hasText: 'changed in the meantime' });
  await refusal.getByRole('button', { name: 'Show' }).waitFor();
  assert.equal(await comment.inputValue(), 'Why one?');
  await page.locator('.diff .added', { hasText: 'One.' }).first().waitFor();
  await page.getByRole('button', { name: 'Approve' }).click();
  const alarm = page.locator('.act').getByRole('alert').filter({ hasText: 'changed in the meantime' });
  await alarm.waitFor();
  assert.equal((await shop.api('ada', `/proposals/${id}`)).state, 'open');
  await alarm.getByRole('button', { name: 'Show' }).click();
  await page.locator('.diff .added', { hasText: 'Two.' }).first().waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'Note' }).inputValue(), 'Looks good');
  assert.equal(await comment.inputValue(), 'Why one?');

  // A second proposal changes the same file; the first one is published.
  const other = await shop.propose('ada', { 'new.md': '---\ndescription: New\n---\nThree.\n' }, 'Another new prompt');
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.locator('.pill', { hasText: 'Published' }).waitFor();
  await page.goto(`${shop.url}#/proposal/${other.id}`);
  await page.locator('.lacks', { hasText: 'new.md' }).waitFor();
  for (const name of ['Publish', 'Approve']) {
    const button = page.getByRole('button', { name, exact: true });
    assert.equal(await button.getAttribute('aria-disabled'), 'true', name);
  }

  // The token ends while the reviewer writes: signing in again keeps the text.
  await page.getByRole('textbox', { name: 'Note' }).fill('Please rebase');
  await page.evaluate(() =>
    sessionStorage.setItem('promptshelf.session', JSON.stringify({ token: 'ended', scopes: [] })),
  );
  await page.getByRole('button', { name: 'Reject' }).click();
  await page.getByText('Sign in to go on. Your input is kept.').first().waitFor();
  await page.locator('.notice').getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Bearer token').fill('token-of-rita');
  await page.keyboard.press('Enter');
  // The page leads back to the proposal.
  const note = page.getByRole('textbox', { name: 'Note' });
  await note.waitFor();
  assert.equal(await note.inputValue(), 'Please rebase');
  await page.getByRole('button', { name: 'Reject' }).click();
  await page.locator('.pill', { hasText: 'Rejected' }).first().waitFor();
  assert.equal((await shop.api('ada', `/proposals/${other.id}`)).reviews[0].note, 'Please rebase');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('an approval needs each confirmation, and one without them can be completed', async () => {
  const tone = (/** @type {string} */ values) =>
    `---\ndescription: Says it\narguments: [{ name: tone, enum: [${values}] }]\n---\nSay it {{ tone }}.\n`;
  const other = await channels({ 'say.md': tone('kind, brief') });
  other.run('policy', '--channel', 'production', '--breaking', 'off', '--as', 'root');
  const { id, digest } = await other.propose('ada', { 'say.md': tone('kind') }, 'Less to choose from');
  const { page, context, wrong } = await other.as(open, 'rita', { locale: 'de-DE' });
  await page.goto(`${other.url}#/proposal/${id}`);
  const approve = page.getByRole('button', { name: 'Zustimmen' });
  const box = page.getByRole('checkbox', { name: /^Ich bestätige/ });
  await approve.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('alert').filter({ hasText: 'Kreuzen Sie zuerst jedes Feld an.' }).waitFor();
  assert.ok(await box.evaluate((/** @type {Element} */ element) => element === document.activeElement));
  await isAccessible(page, 'an approval without its confirmation');
  assert.deepEqual((await other.api('rita', `/proposals/${id}`)).reviews, []);
  // Another client has sent the approval without the confirmation.
  await other.api('rita', `/proposals/${id}/reviews`, { method: 'POST', body: { verdict: 'approve', digest } });
  await page.reload();
  await page.locator('.lacks', { hasText: 'muss bestätigen' }).waitFor();
  await box.focus();
  await page.keyboard.press('Space');
  await approve.focus();
  await page.keyboard.press('Enter');
  await page.locator('.pill', { hasText: 'Veröffentlicht' }).waitFor();
  assert.deepEqual(wrong, []);
  await Promise.all([context.close(), other.stop()]);
});

test('a proposal of a looser policy has a title, and shows what it changes', async () => {
  const other = await channels(FILES);
  const policy = '/channels/production/policy';
  const present = await fetch(`${other.url}api/v1${policy}`, { headers: { Authorization: 'Bearer token-of-root' } });
  const match = present.headers.get('ETag') ?? '';
  const before = await present.json();
  const body = { ...before, approvals: 0, roles: { ...before.roles, review: ['lead'] } };
  const { id } = await other.api('root', policy, { method: 'PUT', match, body });
  const { page, context, wrong } = await other.as(open, 'rita', { locale: 'de-DE' });
  await page.goto(`${other.url}#/proposals`);
  await page.getByRole('link', { name: `#${id} Änderung der Regeln` }).click();
  await page.getByRole('heading', { level: 1, name: `#${id} Änderung der Regeln` }).waitFor();
  const sides = page.locator('.comparison dd');
  await sides.first().waitFor();
  assert.deepEqual(await sides.locator('strong').allTextContents(), [
    '1 Zustimmung',
    '0 Zustimmungen',
    'Prüfung: lead',
  ]);
  assert.match((await sides.last().textContent()) ?? '', /0 Zustimmungen, Vier-Augen-Prinzip/);
  await isAccessible(page, 'a proposal of a policy');
  assert.deepEqual(wrong, []);
  await Promise.all([context.close(), other.stop()]);
});

test('the focus stays in the view after a comment, an approval and a withdrawal', async () => {
  const other = await channels(FILES);
  other.run('policy', '--channel', 'production', '--approvals', '2', '--as', 'root');
  const { id } = await other.propose('ada', { 'people/greet.md': REQUIRED }, 'Ask for the name');
  const [author, reviewer] = await Promise.all([other.as(open, 'ada'), other.as(open, 'rita')]);
  const hasFocus = (/** @type {any} */ page, /** @type {any} */ locator) =>
    locator
      .elementHandle()
      .then((/** @type {any} */ element) =>
        page.waitForFunction((/** @type {Element} */ element) => element === document.activeElement, element),
      );
  const { page } = reviewer;
  await page.goto(`${other.url}#/proposal/${id}`);
  await page.locator('.diff').first().waitFor();
  await page.getByRole('textbox', { name: 'Comment', exact: true }).fill('On the whole.');
  await enter(page, page.getByRole('button', { name: 'Send comment' }));
  await hasFocus(page, page.locator('.talk-all .comment', { hasText: 'On the whole.' }));
  const lines = page.getByRole('group', { name: 'Difference of people/greet.md' });
  await lines.getByRole('button', { name: 'Comment on line 12' }).first().click();
  await page.keyboard.type('At a line.');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await hasFocus(page, page.locator('.diff .comment', { hasText: 'At a line.' }));
  await page.getByRole('button', { name: 'Approve' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('.words', { hasText: 'rita' }).waitFor();
  await hasFocus(page, page.getByRole('heading', { level: 1 }));
  await author.page.goto(`${other.url}#/proposal/${id}`);
  await author.page.getByRole('button', { name: 'Withdraw' }).focus();
  await author.page.keyboard.press('Enter');
  await author.page.locator('.pill', { hasText: 'Withdrawn' }).waitFor();
  await hasFocus(author.page, author.page.getByRole('heading', { level: 1 }));
  assert.deepEqual([...author.wrong, ...reviewer.wrong], []);
  await Promise.all([author.context.close(), reviewer.context.close(), other.stop()]);
});

// req: S-520
test('a proposal names its errors and failed tests', async () => {
  const { page, context, wrong } = await shop.as(open, 'rita');
  const { id } = await shop.propose(
    'ada',
    {
      'broken.md': '---\ndescription: Breaks\n---\n{{ nobody }}\n',
      'bye.md': '---\ndescription: Parts\ntests: [{ name: short, contains: [farewell] }]\n---\nGoodbye.\n',
    },
    'Broken prompts',
  );
  await page.goto(`${shop.url}#/proposal/${id}`);
  const items = page.locator('.proposal-head .words li');
  await items.filter({ hasText: 'broken.md:4:' }).filter({ hasText: 'nobody' }).waitFor();
  await items.filter({ hasText: 'the test bye / short failed' }).getByText('failed', { exact: true }).waitFor();
  await page.locator('.in-words').waitFor();
  assert.equal(await page.getByText('broken.md:4:').count(), 1);
  await shop.api('ada', `/proposals/${id}`, { method: 'DELETE', match: '*' }).catch(() => {});
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-170
test('texts of one author run nothing in the browser of another', async () => {
  const { page, context, wrong, asked } = await shop.as(open, 'rita');
  const attack = `---
name: attack
title: "<img src=x onerror=alert('title')>"
description: "</code><script>alert('description')</script> \u202Eecnalab\u202C"
tags: ["<b onclick=alert(1)>"]
owners: ["<img src=x onerror=alert('owner')>"]
collections: ["javascript:alert('collection')"]
arguments: [{ name: code, title: "<svg onload=alert(1)>" }]
---
<script>alert('text')</script> [link](javascript:alert('link')) ![beacon](https://evil.example/b.png)
{{ code }}
`;
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert('svg')"><script>alert('svg')</script></svg>`;
  const name = `a' onmouseover='alert(1)' & "attack".md`.replaceAll('"', '’');
  const path = `javascript(alert)/${name}`;
  const message = `<img src=x onerror=alert('message')>\n<script>alert('second line')</script>`;
  const { id, digest } = await shop.propose('ada', { [path]: attack, 'evil.svg': picture }, message);
  const comment = (/** @type {object} */ place) =>
    shop.api('ada', `/proposals/${id}/comments`, {
      method: 'POST',
      body: { digest, text: `<script>alert('comment')</script> [x](javascript:alert(1))`, ...place },
    });
  await comment({});
  await comment({ path, line: { side: 'after', number: 3 } });
  for (const [view, shown] of [
    ['#/proposals', '<img src=x'],
    [`#/proposal/${id}`, "alert('comment')"],
    [`#/proposal/${id}`, "<script>alert('text')</script>"],
    [`#/proposal/${id}`, 'U+202E'],
  ]) {
    await page.goto(shop.url + view);
    await page.locator('main').getByText(shown).first().waitFor();
  }
  await shop.api('rita', `/proposals/${id}/reviews`, {
    method: 'POST',
    body: { verdict: 'approve', digest, note: "<script>alert('note')</script>" },
  });
  const { head } = await shop.api('rita', '/channels/production');
  for (const [view, shown] of [
    ['#/history/production', '<img src=x'],
    [`#/revision/production/${head.revision}?path=evil.svg`, "<script>alert('svg')"],
    [`#/revision/production/${head.revision}?path=${encodeURIComponent(path)}`, '<script>alert'],
    [`#/compare/production?from=${head.revision - 1}&to=${head.revision}`, 'onmouseover'],
    ['#/browse/production?text=script', "<img src=x onerror=alert('title')>"],
    ['#/browse/production?folder=%3Cimg%20src=x%20onerror=alert(1)%3E&tag=%3Cscript%3E', '<script>'],
    ['#/browse/production?owner=%3Cimg%20src=x%20onerror=alert(%27owner%27)%3E', "@<img src=x onerror=alert('owner')>"],
    ['#/browse/production', "javascript:alert('collection')"],
    ['#/history/%3Cimg%20src=x%20onerror=alert(1)%3E', '<img src=x'],
    ['#/channels', 'production'],
  ]) {
    await page.goto(shop.url + view);
    await page.locator('main').getByText(shown).first().waitFor();
    assert.equal(
      await page.locator('main script, main iframe, main img, main object, main svg:not(.glyph)').count(),
      0,
      view,
    );
    assert.equal(
      await page.locator('main a[href^="javascript" i], main [onclick], main [onload], main [onmouseover]').count(),
      0,
      view,
    );
  }
  assert.deepEqual(wrong, [], 'no dialog, no error, and nothing that the policy had to stop');
  assert.ok(
    asked.every((/** @type {string} */ url) => url.startsWith(shop.url)),
    'nothing is requested elsewhere',
  );
  await context.close();
});

// req: S-198
test('results of evaluations are compared, and run nothing', async () => {
  const { page, context, wrong } = await shop.as(open, 'rita');
  const { id, digest } = await shop.propose(
    'ada',
    { 'people/cheer.md': GREET.replace('Greet {{', 'Cheer {{') },
    'Cheers',
  );
  const compared = () => shop.api('ada', `/proposals/${id}/evaluations`);
  const [{ name, after }] = (await compared()).prompts;
  const store = (/** @type {number} */ score, /** @type {string} */ reason) =>
    shop.api('ci', '/channels/production/evaluations', {
      method: 'POST',
      body: {
        evaluation: 'quality',
        prompt: name,
        digest: after,
        scores: { score },
        thresholds: { score: 0.8 },
        cases: [
          { name: 'polite', score, passed: score > 0.8, reason },
          { name: 'brief', score: 1, passed: true, reason: 'same' },
        ],
        model: 'fake-1',
        cost: 0.25,
      },
    });
  await store(0.95, 'fine');
  await page.goto(`${shop.url}#/proposal/${id}`);
  const results = page.locator('section', { hasText: 'Evaluations' });
  await results.getByText(`${name} / quality`).waitFor();
  await results.getByText('score – → 0.95 · fake-1 · cost 0.25').waitFor();
  await shop.api('rita', `/proposals/${id}/reviews`, { method: 'POST', body: { verdict: 'approve', digest } });

  const changed = GREET.replace('Greet {{', 'Cheer loudly {{');
  const next = await shop.propose('ada', { 'people/cheer.md': changed }, 'Louder cheers');
  const [newer] = (await shop.api('ada', `/proposals/${next.id}/evaluations`)).prompts;
  assert.equal(newer.before, after);
  const result = { evaluation: 'quality', prompt: name, digest: newer.after, scores: { score: 0.7 } };
  const reason = `<img src=x onerror=alert('model')>`;
  const cases = [
    { name: 'polite', score: 0.4, passed: false, reason },
    { name: 'brief', score: 1, passed: true },
  ];
  const body = { ...result, thresholds: { score: 0.8 }, cases };
  await shop.api('ci', '/channels/production/evaluations', { method: 'POST', body });
  await page.goto(`${shop.url}#/proposal/${next.id}`);
  await results.getByText('score 0.95 → 0.7').waitFor();
  await results.getByText('1 case with another result').click();
  await results.getByText('0.95 passed → 0.4 failed').waitFor();
  await results.getByText("<img src=x onerror=alert('model')>").waitFor();
  assert.equal(await page.locator('main img, main script').count(), 0);
  assert.deepEqual(wrong, []);
  const verdict = { verdict: 'reject', digest: next.digest };
  await shop.api('rita', `/proposals/${next.id}/reviews`, { method: 'POST', body: verdict });
  await context.close();
});

// req: S-173
test('a reader without the scopes sees no proposal, and the reason', async () => {
  const { page, context, wrong } = await shop.as(open, 'reader');
  await shop.propose('ada', { 'secret-plan.md': '---\ndescription: x\n---\nSecret plan.\n' }, 'Secret plan');
  for (const view of ['#/channels', '#/proposals', '#/proposal/1', '#/history/production', '#/browse/production']) {
    await page.goto(shop.url + view);
    await page.getByText('library:read').first().waitFor();
    assert.doesNotMatch((await page.locator('body').textContent()) ?? '', /secret.plan/i, view);
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

test('an event that was given up is listed, and sent again by an administrator', async () => {
  let status = 500;
  /** @type {string[]} */
  const received = [];
  const receiver = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    received.push(body);
    response.writeHead(status).end();
  });
  await new Promise((ready) => receiver.listen(0, '127.0.0.1', () => ready(null)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (receiver.address());
  const settings = `[[webhook]]
url = "http://127.0.0.1:${port}/secret"
events = ["proposed"]
format = "slack"
allow-private = true
retry-for = "1s"
`;
  const other = await channels(FILES, { settings });
  const until = async (/** @type {() => Promise<boolean>} */ isTrue) => {
    while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  await until(async () => (await other.api('root', '/webhooks')).items.length === 1);
  await other.propose('ada', { 'people/greet.md': REQUIRED }, 'Ask for the name');
  await until(async () => (await other.api('root', '/webhooks/dead-letters')).items.length === 1);
  status = 204;
  const failed = received.length;
  const { page, context, wrong } = await other.as(open, 'root');
  await page.goto(`${other.url}#/channels`);
  await page.getByRole('link', { name: 'Webhooks' }).click();
  await page.getByText('the status 500').waitFor();
  await isAccessible(page, '#/webhooks');
  await page.getByRole('button', { name: 'Send again' }).click();
  await page.getByText('No event was given up.').waitFor();
  await until(async () => received.length > failed);
  assert.equal(received.at(-1), received[0]);
  assert.equal(await page.getByText('secret').count(), 0);
  assert.deepEqual(wrong, []);
  await Promise.all([context.close(), other.stop()]);
  receiver.closeAllConnections();
  receiver.close();
});

test('every view of channels is accessible, also on a narrow screen', async () => {
  const { id } = await shop.propose('ada', { 'people/greet.md': REQUIRED }, 'Ask again');
  /** @type {[string, string][]} */
  const views = [
    ['#/channels', '.matrix'],
    ['#/proposals?state=all', '.proposal'],
    [`#/proposal/${id}`, '.renderings .diff'],
    ['#/history/production', '.revision'],
    ['#/revision/production/1?path=people/greet.md', 'pre.whole'],
    ['#/compare/production?from=0&to=1', '.diff'],
    ['#/compare/staging?promote=production', '.choice'],
    ['#/browse/production?text=brief', '.found-line'],
    ['#/browse/production?owner=team-a', '.standings'],
  ];
  const { page, context, wrong } = await shop.as(open, 'rita', { locale: 'de-DE', reducedMotion: 'reduce' });
  for (const [view, ready] of views) {
    // One rendering of each view, in both sizes and both colours.
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.goto(shop.url + view);
    await page.locator(ready).first().waitFor();
    await isAccessible(page, view);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 320, height: 700 });
    await isAccessible(page, `${view}, dark and narrow`);
  }
  // The server's reasons are in the language of the page.
  await page.goto(`${shop.url}#/proposal/${id}`);
  await page.locator('.lacks', { hasText: '1 weitere Zustimmung fehlt, und nicht von ada.' }).waitFor();
  await page.getByText('Das kann nur, wer den Vorschlag gemacht hat.').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});
