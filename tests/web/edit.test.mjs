// The editor: a folder that is edited with the keyboard, conflicts, drafts and hostile contents.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, library, remove, serve, visit, write } from './harness.mjs';
import { isAccessible, tabTo } from './keyboard.mjs';

const HELLO = '---\ntitle: Hello\ndescription: Greets\n---\nSay hello.\n';
const EDIT = ['--edit'];

const folder = library({ 'hello.md': HELLO }, '');
/** @type {any} */
let open;
/** @type {any} */
let server;

before(async () => {
  [open, server] = await Promise.all([browser(), serve(folder, 0, EDIT)]);
});
after(async () => {
  await Promise.all([open?.close(), server?.stop()]);
  remove(folder);
});

const onDisk = (/** @type {string} */ path) => readFileSync(join(folder, path), 'utf8');
const text = (/** @type {any} */ page) => page.locator('.cm-content');

test('an author writes, tests and saves a prompt with the keyboard alone', async () => {
  const { page, context, wrong, asked } = await visit(open);
  await page.goto(server.url);
  const link = page.getByRole('link', { name: 'Edit', exact: true });
  await link.waitFor();
  await page.waitForFunction(() => document.documentElement.dataset.connection === 'live');
  await page.locator('.row').first().waitFor();
  assert.deepEqual(
    asked.filter((url) => /vendor|\/edit/.test(url)),
    [],
    'the first view loads no code of the editor',
  );
  await tabTo(page, link);
  await page.keyboard.press('Enter');
  await tabTo(page, page.locator('summary', { hasText: 'New prompt' }));
  await page.keyboard.press('Enter');
  await tabTo(page, page.getByLabel('Path of the new file'));
  await page.keyboard.type('team/weekly');
  await tabTo(page, page.getByRole('button', { name: 'Create' }));
  await page.keyboard.press('Enter');
  await page.locator('.messages', { hasText: 'Help me with the weekly report' }).waitFor();
  await page.getByLabel(/^Text of team\/weekly\.md/).waitFor();
  await tabTo(page, page.getByRole('textbox', { name: 'topic' }));
  await page.keyboard.type('the big report');
  await page.locator('.messages', { hasText: 'Help me with the big report' }).waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('Be brief about {{ to');
  await page.locator('.cm-tooltip-autocomplete li', { hasText: 'topic' }).first().waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.cm-tooltip-autocomplete').waitFor({ state: 'detached' });
  await page.keyboard.press('Control+Space');
  await page.locator('.cm-tooltip-autocomplete li[aria-selected]', { hasText: 'topic' }).waitFor();
  // CodeMirror ignores keys in the first 75 ms of a list, which may be meant for the text.
  await page.waitForTimeout(200);
  await page.keyboard.press('Enter');
  await page.keyboard.type(' }}.');
  await page.locator('.messages', { hasText: 'Be brief about the big report.' }).waitFor();
  // A movement of the cursor ends the step that is undone, however fast the typing was.
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Control+End');
  await page.keyboard.type(' Oops');
  await page.locator('.messages', { hasText: 'Oops' }).waitFor();
  await page.keyboard.press('Control+z');
  await page.locator('.messages', { hasText: 'Oops' }).waitFor({ state: 'detached' });
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.closest('.edit-text') ?? null), null, 'no trap');
  await page.keyboard.press('Control+s');
  await page.locator('.edit-status', { hasText: /^Saved$/ }).waitFor();
  assert.match(onDisk('team/weekly.md'), /title: "Weekly"\n[\s\S]*Be brief about \{\{ topic \}\}\.$/);
  await tabTo(page, page.getByRole('button', { name: 'Run tests' }));
  await page.keyboard.press('Enter');
  await page.getByText('1 test passed.').waitFor();
  await isAccessible(page, 'a file');
  await tabTo(page, page.getByRole('button', { name: 'Rename' }));
  await page.keyboard.press('Enter');
  await page.getByLabel('New path').fill('weekly.md');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'weekly.md', exact: true }).waitFor();
  assert.equal(existsSync(join(folder, 'team/weekly.md')), false);
  await page.setViewportSize({ width: 320, height: 800 });
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
  await page.locator('.messages', { hasText: 'Help me with the weekly report' }).waitFor();
  await isAccessible(page, 'a file at 320 px');
  await page.goto(`${server.url}#/edit`);
  await page.getByRole('link', { name: 'weekly.md' }).waitFor();
  await isAccessible(page, 'the files at 320 px');
  assert.deepEqual(wrong, [], 'no error, and nothing that the policy had to stop');
  await context.close();
});

test('no way of naming or saving a file takes its prompt out of service without a word', async () => {
  const home = library(
    {
      'refund.md': HELLO,
      '_tone.md': 'Write kindly.\n',
      'mail.md': '---\ndescription: Mails\n---\nHi.\n{% include "_tone.md" %}\n',
      'logo.txt': 'Old logo.\n',
    },
    '',
  );
  const own = await serve(home, 0, EDIT);
  const { page, context, wrong } = await visit(open);
  const served = async () =>
    (await (await page.request.get(`${own.url}api/v1/prompts`)).json()).items
      .map((/** @type {any} */ prompt) => prompt.name)
      .sort();
  await page.goto(`${own.url}#/edit/refund.md`);
  // A name without an ending keeps the ending of the file.
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('New path').fill('refund-letter');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'refund-letter.md', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Duplicate' }).click();
  await page.getByLabel('Path of the copy').fill('second v1.2/refund');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'second v1.2/refund.md', exact: true }).waitFor();
  assert.deepEqual(await served(), ['mail', 'refund-letter']);
  // Another file of the same name: nothing is replaced, and the author chooses.
  await page.goto(`${own.url}#/edit/mail.md`);
  await page.locator('.messages', { hasText: 'Write kindly.' }).waitFor();
  const attach = (/** @type {string} */ content) =>
    page
      .locator('input[type=file]')
      .setInputFiles({ name: 'logo.txt', mimeType: 'text/plain', buffer: Buffer.from(content) });
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await attach('New logo.\n');
  await isAccessible(page, 'the choice of a file');
  await page.getByRole('button', { name: 'Keep both' }).click();
  await text(page).filter({ hasText: 'attach("logo-2.txt")' }).waitFor();
  await attach('Third logo.\n');
  await page.getByRole('button', { name: 'Use the existing file' }).click();
  await text(page).filter({ hasText: 'attach("logo.txt")' }).waitFor();
  assert.equal(readFileSync(join(home, 'logo.txt'), 'utf8'), 'Old logo.\n');
  assert.equal(readFileSync(join(home, 'logo-2.txt'), 'utf8'), 'New logo.\n');
  await page.keyboard.press('Control+s');
  await page.locator('.edit-status', { hasText: /^Saved$/ }).waitFor();
  // A new partial is empty.
  await page.goto(`${own.url}#/edit`);
  await page.locator('summary', { hasText: 'New prompt' }).click();
  await page.getByLabel('Path of the new file').fill('_shared/closing');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByLabel(/^Text of _shared\/closing\.md/).waitFor();
  assert.equal((await text(page).textContent()).trim(), '');
  // An error of a partial stands in the prompt that it breaks, with the way there; the preview says that it is older.
  await page.goto(`${own.url}#/edit/_tone.md`);
  await text(page).filter({ hasText: 'Write kindly.' }).waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('About {{ topic }}.');
  await page.keyboard.press('Control+s');
  await page.locator('.edit-status', { hasText: 'Saved, but not served: 1 error' }).waitFor();
  // What another file has is named where no error is, and leads there.
  await page.goto(`${own.url}#/edit/_shared/closing.md`);
  await page.getByText(/other files? ha/).waitFor();
  await page.locator('.edit-problems a', { hasText: 'mail.md' }).first().click();
  await page.getByRole('heading', { level: 1, name: 'mail.md', exact: true }).waitFor();
  await page.locator('.edit-problems li', { hasText: 'in _tone.md, line 2' }).waitFor();
  await page.getByRole('link', { name: '_tone.md' }).first().click();
  await page.getByRole('heading', { level: 1, name: '_tone.md', exact: true }).waitFor();
  await page.goto(`${own.url}#/edit/refund-letter.md`);
  await page.locator('.messages', { hasText: 'Say hello.' }).waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('{{ oops');
  await page.getByText('This is the last valid version. Correct line 6 to update it.').waitFor();
  assert.equal(await page.locator('.outdated').count(), 2, 'the form and the preview are marked');
  await isAccessible(page, 'an outdated preview');
  await page.keyboard.type(' }}');
  await page.keyboard.press('Control+s');
  await page.locator('.edit-status', { hasText: 'Saved, but not served: 1 error' }).waitFor();
  assert.deepEqual(await served(), ['mail', 'refund-letter'], 'the last valid versions');
  // A reload and the list say so, too, until the file is corrected.
  await page.reload();
  await page.locator('.edit-status', { hasText: 'Saved, but not served: 1 error' }).waitFor();
  await page.goto(`${own.url}#/edit`);
  const row = page.locator('.edit-files li', { hasText: 'refund-letter.md' });
  await row.getByText('Not served').waitFor();
  assert.equal(await page.locator('.edit-files li', { hasText: 'logo.txt' }).getByText('Not served').count(), 0);
  await isAccessible(page, 'the files with a mark');
  write(home, { 'refund-letter.md': HELLO });
  await row.getByText('Not served').waitFor({ state: 'detached' });
  await page.goto(`${own.url}#/edit/mail.md`);
  await page.locator('.edit-status', { hasText: 'Saved, but not served: 1 error' }).waitFor();
  write(home, { '_tone.md': 'Write kindly.\n' });
  await page.locator('.edit-status', { hasText: /^Saved; no changes$/ }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
  await own.stop();
  remove(home);
});

test('a file is attached in the body, wherever the cursor is', async () => {
  write(folder, { 'note.txt': 'A note.\n', 'attach.md': HELLO, 'plain.md': 'No front matter' });
  const { page, context, wrong } = await visit(open);
  const attach = () =>
    page
      .locator('input[type=file]')
      .setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('A note.\n') });
  const save = async (/** @type {string} */ path) => {
    await text(page).filter({ hasText: 'attach("note.txt")' }).waitFor();
    await page.keyboard.press('Control+s');
    await page.locator('.edit-status', { hasText: /^Saved$/ }).waitFor();
    return onDisk(path);
  };
  const reference = '{{ attach("note.txt") }}';
  // No cursor yet.
  await page.goto(`${server.url}#/edit/attach.md`);
  await page.locator('.messages', { hasText: 'Say hello.' }).waitFor();
  await attach();
  assert.equal(await save('attach.md'), HELLO + reference);
  // A cursor in the front matter.
  write(folder, { 'front.md': HELLO });
  await page.goto(`${server.url}#/edit/front.md`);
  await page.locator('.messages', { hasText: 'Say hello.' }).waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('ArrowDown');
  await attach();
  assert.equal(await save('front.md'), HELLO + reference);
  // A cursor in the body.
  write(folder, { 'body.md': HELLO });
  await page.goto(`${server.url}#/edit/body.md`);
  await page.locator('.messages', { hasText: 'Say hello.' }).waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.press('ArrowUp');
  await attach();
  assert.equal(await save('body.md'), HELLO.replace('Say', `${reference}Say`));
  await page.goto(`${server.url}#/edit/plain.md`);
  await text(page).filter({ hasText: 'No front matter' }).waitFor();
  await page.getByRole('button', { name: 'Attach' }).waitFor();
  await attach();
  await text(page).filter({ hasText: reference }).waitFor();
  assert.equal(await text(page).locator('.cm-line').last().textContent(), reference);
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-162
test('a change on disk is compared with the unsaved text', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/edit/hello.md`);
  await page.waitForFunction(() => document.documentElement.dataset.connection === 'live');
  await page.locator('.messages', { hasText: 'Say hello.' }).waitFor();
  write(folder, { 'hello.md': HELLO.replace('hello', 'good day') });
  await text(page).filter({ hasText: 'Say good day.' }).waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('Mine.');
  await page.locator('.edit-status', { hasText: 'kept in this browser' }).waitFor();
  write(folder, { 'hello.md': HELLO.replace('hello', 'good evening') });
  const conflict = page.getByRole('region', { name: 'Changed in the meantime' });
  await conflict.waitFor();
  const [base, theirs, mine] = await conflict.locator('pre').allTextContents();
  assert.match(base, /Say good day\.\n/);
  assert.match(theirs, /Say good evening\.\n/);
  assert.match(mine, /Say good day\.\nMine\./);
  await isAccessible(page, 'a conflict');
  // Saved all the same, it is refused. The author decides before the refusal arrives, which changes nothing then.
  let release = () => {};
  const held = new Promise((resolve) => {
    release = () => resolve(undefined);
  });
  await page.route('**/api/v1/folder/**', async (/** @type {any} */ route) => {
    if (route.request().method() === 'PUT') await held;
    await route.continue();
  });
  const answered = page
    .waitForResponse((/** @type {any} */ response) => response.status() === 412)
    .then(() => page.waitForResponse('**/api/v1/folder/files/hello.md'));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Keep my text' }).click();
  await conflict.waitFor({ state: 'detached' });
  release();
  await answered;
  await page.unroute('**/api/v1/folder/**');
  assert.equal(onDisk('hello.md'), HELLO.replace('hello', 'good evening'));
  await conflict.waitFor({ state: 'detached' });
  await page.keyboard.press('Control+s');
  await page.locator('.edit-status', { hasText: /^Saved$/ }).waitFor();
  assert.equal(onDisk('hello.md'), `${HELLO.replace('hello', 'good day')}Mine.`);
  assert.equal(await conflict.count(), 0);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('each column of a conflict begins near its first difference', async () => {
  const lines = Array.from({ length: 200 }, (_, index) => `Line ${index + 1}.`);
  const long = `---\ndescription: Long\n---\n${lines.join('\n')}`;
  write(folder, { 'long.md': long });
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/edit/long.md`);
  await page.waitForFunction(() => document.documentElement.dataset.connection === 'live');
  await page.locator('.messages', { hasText: 'Line 200.' }).waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type(' Mine.');
  await page.locator('.edit-status', { hasText: 'kept in this browser' }).waitFor();
  write(folder, { 'long.md': long.replace('Line 150.', 'Line 150, changed.') });
  const columns = page.locator('.conflict pre');
  for (const [index, line] of ['Line 150.', 'Line 150, changed.', 'Line 200. Mine.'].entries()) {
    const column = columns.nth(index);
    const row = await column.locator('.line', { hasText: line }).elementHandle();
    await page.waitForFunction((/** @type {HTMLElement} */ row) => {
      const pre = /** @type {HTMLElement} */ (row.closest('pre'));
      const [inner, outer] = [row.getBoundingClientRect(), pre.getBoundingClientRect()];
      return inner.top >= outer.top && inner.bottom <= outer.bottom && pre.scrollTop > 0;
    }, row);
  }
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-166
test('unsaved text survives a reload and a lost server, byte for byte', async () => {
  const strange = '\uFEFF---\r\ntitle: [\r\n---\r\nBroken\u00A0on purpose.\r\n';
  write(folder, { 'strange.md': strange });
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/edit/strange.md`);
  await page.locator('.edit-problems li').first().waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('More.');
  await page.locator('.edit-status', { hasText: 'kept in this browser' }).waitFor();
  await page.reload();
  await text(page).filter({ hasText: 'More.' }).waitFor();
  await page.locator('.edit-status', { hasText: 'Your unsaved text of' }).waitFor();
  assert.equal(onDisk('strange.md'), strange);
  const { port } = server;
  await server.stop();
  await page.keyboard.press('Control+s');
  await page.getByText('The server cannot be reached. Your text is kept in this browser.').first().waitFor();
  server = await serve(folder, port, EDIT);
  await page.keyboard.press('Control+s');
  await page.locator('.edit-status', { hasText: /^Saved, but not served/ }).waitFor();
  assert.equal(onDisk('strange.md'), `${strange}More.`);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('the list of files is loaded again when the server is back', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/edit`);
  const hello = page.locator('.edit-files').getByRole('link', { name: 'hello.md' });
  await hello.waitFor();
  await page.waitForFunction(() => document.documentElement.dataset.connection === 'live');
  const { port } = server;
  await server.stop();
  await page.getByRole('link', { name: 'Prompts', exact: true }).click();
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  const problem = page.getByRole('alert').filter({ hasText: 'The server cannot be reached.' });
  await problem.waitFor();
  server = await serve(folder, port, EDIT);
  await hello.waitFor();
  await problem.waitFor({ state: 'hidden' });
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-167
test('hostile names, texts and files stay text', async () => {
  const name = "a'&<img src=x onerror=alert(1)>".replace(/[<>]/g, '＜');
  const hostile = `---\ntitle: "<img src=x onerror=alert(2)>"\ndescription: "</pre><script>alert(3)</script>"\n---\n<svg onload=alert(4)>\u202E {{ "<b>" }} {{ missing }}\n`;
  write(folder, { [`${name}.md`]: hostile });
  const { page, context, wrong, asked } = await visit(open);
  await page.goto(`${server.url}#/edit`);
  await page.getByRole('link', { name: /onerror/ }).click();
  await page.locator('.edit-problems li', { hasText: 'missing' }).waitFor();
  await text(page).focus();
  await page.keyboard.press('Control+End');
  /** @param {string} file @param {number[] | string} content */
  const drop = (file, content) =>
    page.locator('.edit-text').evaluate(
      (/** @type {HTMLElement} */ element, /** @type {any} */ [file, content]) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([typeof content === 'string' ? content : new Uint8Array(content)], file));
        element.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
      },
      [file, content],
    );
  for (const [file, content, words] of /** @type {[string, number[] | string, RegExp][]} */ ([
    ['binary.md', [0, 159, 146, 150], /has the name of a text file/],
    ['picture.png', '<script>alert(5)</script>', /other contents than its name/],
    ['program.exe', 'MZ', /cannot be attached/],
    ['evil.svg', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(6)"/>', /evil\.svg is attached/],
  ])) {
    await drop(file, content);
    await page.locator('.note', { hasText: words }).waitFor();
  }
  await text(page).filter({ hasText: 'attach("evil.svg")' }).waitFor();
  assert.deepEqual(
    ['binary.md', 'picture.png', 'program.exe', 'evil.svg'].map((file) => existsSync(join(folder, file))),
    [false, false, false, true],
  );
  await text(page).evaluate((/** @type {HTMLElement} */ element) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', `${'{{ <script>alert(7)</script> '.repeat(36_000)}\nThe end.`);
    element.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  });
  await page.locator('.edit-status', { hasText: 'kept in this browser' }).waitFor();
  await page.locator('.edit-problems li').first().waitFor();
  // A file that is not text has nothing to edit: saving it changes no byte.
  const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0xff]);
  writeFileSync(join(folder, 'picture.png'), picture);
  await page.goto(`${server.url}#/edit/picture.png`);
  await page.getByText('This file is not text').waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('.note', { hasText: /^Saved$/ }).waitFor();
  assert.deepEqual(readFileSync(join(folder, 'picture.png')), picture);
  assert.equal(await page.locator('.edit script, .edit img:not(.cm-widgetBuffer), .edit iframe').count(), 0);
  assert.deepEqual(wrong, []);
  assert.ok(asked.every((url) => url.startsWith(server.url) || url.startsWith('data:')));
  await context.close();
});

// req: S-163, S-166
test('two windows on a file of a folder, a token that ends, and another person lose and see nothing', async () => {
  const people = ['ada', 'ben'].map((name) => {
    const sha256 = createHash('sha256').update(`token-of-${name}`).digest('hex');
    return `{ name = "${name}", sha256 = "${sha256}", scopes = ["prompts:read", "library:read", "library:publish"] }`;
  });
  const home = library({ 'hello.md': HELLO, '.server.toml': `[auth]\ntokens = [${people.join(', ')}]\n` }, '');
  const closed = await serve(home, 0, EDIT);
  /** @param {any} page @param {string} token */
  const signIn = async (page, token) => {
    await page.getByLabel('Bearer token').fill(token);
    await page.keyboard.press('Enter');
  };
  const windows = await Promise.all(['ada', 'ben'].map(() => visit(open)));
  const [ada, ben] = windows.map(({ page }) => page);
  for (const [page, token, words] of [
    [ada, 'token-of-ada', 'First window.'],
    [ben, 'token-of-ben', 'Second window.'],
  ]) {
    await page.goto(`${closed.url}#/edit/hello.md`);
    await signIn(page, token);
    await text(page).focus();
    await page.keyboard.press('Control+End');
    await page.keyboard.type(words);
    await page.locator('.edit-status', { hasText: 'kept in this browser' }).waitFor();
  }
  // The token ends while its owner types.
  await ada.evaluate(() =>
    sessionStorage.setItem('promptshelf.session', JSON.stringify({ token: 'ended', scopes: [] })),
  );
  await ada.keyboard.type(' More.');
  await ada.keyboard.press('Control+s');
  await ada.getByText('Sign in again. Your text is kept in this browser.').first().waitFor();
  await ada.locator('.notice').getByRole('button', { name: 'Sign in' }).click();
  // Another person at the same browser sees the saved text.
  await signIn(ada, 'token-of-ben');
  await text(ada).filter({ hasText: 'Say hello.' }).waitFor();
  assert.doesNotMatch((await text(ada).textContent()) ?? '', /First window/);
  await ada.evaluate(() =>
    sessionStorage.setItem('promptshelf.session', JSON.stringify({ token: 'token-of-ada', scopes: [] })),
  );
  await ada.reload();
  await text(ada).filter({ hasText: 'First window. More.' }).waitFor();
  await ada.keyboard.press('Control+s');
  await ada.locator('.edit-status', { hasText: /^Saved$/ }).waitFor();
  // The second save is a comparison, and both texts are there.
  await ben.getByRole('button', { name: 'Save' }).click();
  const conflict = ben.getByRole('region', { name: 'Changed in the meantime' });
  await conflict.waitFor();
  const [base, theirs, mine] = await conflict.locator('pre').allTextContents();
  assert.doesNotMatch(base, /window/);
  assert.match(theirs, /First window\. More\./);
  assert.match(mine, /Second window\./);
  assert.equal(readFileSync(join(home, 'hello.md'), 'utf8'), `${HELLO}First window. More.`);
  await ben.getByRole('button', { name: 'Keep my text' }).click();
  await ben.keyboard.press('Control+s');
  await ben.locator('.edit-status', { hasText: /^Saved$/ }).waitFor();
  assert.equal(readFileSync(join(home, 'hello.md'), 'utf8'), `${HELLO}Second window.`);
  for (const { wrong, context } of windows) {
    assert.deepEqual(wrong, []);
    await context.close();
  }
  await closed.stop();
  remove(home);
});
