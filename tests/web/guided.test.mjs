// Guided prompts: one form after the other.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { guiding } from './guiding.mjs';
import { browser, library, remove, serve, visit, write } from './harness.mjs';

const folder = library();
/** @type {any} */
let open;
/** @type {any} */
let server;
/** @type {any} */
let front;

before(async () => {
  [open, server] = await Promise.all([browser(), serve(folder)]);
  front = guiding(server.port);
  front.server.listen(0, '127.0.0.1');
  await once(front.server, 'listening');
});
after(async () => {
  front?.server.closeAllConnections();
  front?.server.close();
  await Promise.all([open?.close(), server?.stop()]);
  remove(folder);
});

test('a guided prompt of the library shows its steps', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/prompt/new-service?purpose=pictures`);
  await page.getByText('What will the service be written in?').waitFor();
  assert.equal(await page.locator('.form .field').count(), 1, 'what is asked for later is no field');
  await page.getByRole('radio', { name: 'Python' }).check();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('Which framework do you want to use?').waitFor();
  await page.getByRole('button', { name: 'Back' }).click();
  await page.getByRole('radio', { name: 'Rust' }).check();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('How will it run?').waitFor();
  await page.getByLabel('Replicas').fill('99');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText(/How will it run\?.*20/).waitFor();
  await page.getByLabel('Replicas').fill('3');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('.messages', { hasText: 'It is written in rust and runs in 3 copies.' }).waitFor();
  // The answer for *public* is still open, and an edit must not restart the questions.
  const text = readFileSync(join(folder, 'new-service.md'), 'utf8');
  write(folder, { 'new-service.md': text.replace('It is written in', 'It will be written in') });
  await page.locator('.messages', { hasText: 'It will be written in rust and runs in 3 copies.' }).waitFor();
  // Neither must several edits, of which each may arrive while the answers to the one before are repeated.
  await page.route('**/mcp', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    await route.continue();
  });
  for (let edit = 1; edit <= 8; edit++) {
    write(folder, { 'new-service.md': text.replace('It is written in', `In edit ${edit} it is written in`) });
    await page.waitForTimeout(150 + 20 * edit);
  }
  await page.locator('.messages', { hasText: 'In edit 8 it is written in rust and runs in 3 copies.' }).waitFor();
  // A request may still be held back here, and its handler must end before the route does.
  await page.unrouteAll({ behavior: 'wait' });
  // A question that the edit changed is asked, and the others keep their answers.
  const changed = text.replace('What will the service be written in?', 'Which language will it be?');
  write(folder, { 'new-service.md': changed.replace('It is written in', 'It will later be written in') });
  await page.getByText('Which language will it be?').waitFor();
  await page.getByRole('radio', { name: 'Rust' }).check();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('.messages', { hasText: 'It will later be written in rust and runs in 3 copies.' }).waitFor();
  await page.locator('.use label', { hasText: 'Command' }).click();
  await page.getByRole('button', { name: 'Copy Command' }).click();
  await page.getByText('Copied: Command').first().waitFor();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  for (const word of ['purpose=pictures', 'language=rust', 'replicas=3'])
    assert.ok(command.includes(` ${word}`), command);
  write(folder, { 'new-service.md': text });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('guided steps go back and end with the prompt', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`http://127.0.0.1:${front.server.address().port}/#/prompt/git-commit?changes=x`);
  await page.getByText('What kind of change is it?').waitFor();
  assert.equal(await page.locator('.dots li').count(), 1);
  await page.getByRole('radio', { name: 'A repair' }).check();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('How large is it?').waitFor();
  assert.equal(await page.locator('.dots li').count(), 2);
  // Going back keeps the earlier answers.
  await page.getByRole('button', { name: 'Back' }).click();
  await page.getByText('What kind of change is it?').waitFor();
  assert.equal(await page.getByRole('radio', { name: 'A repair' }).isChecked(), true);
  await page.getByRole('radio', { name: 'Something new' }).check();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByLabel('Lines').fill('12');
  await page.keyboard.press('Enter');
  await page.getByText('Please agree to the terms.').waitFor();
  assert.equal(
    await page.getByRole('link', { name: 'Open example.com' }).getAttribute('href'),
    'https://example.com/terms',
  );
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('A feature: x, accept').waitFor();
  await page.locator('.guide-done').waitFor();
  await page.getByRole('button', { name: 'Back' }).click();
  await page.getByText('Please agree to the terms.').waitFor();

  const [first, second] = front.seen;
  assert.deepEqual(first._meta['io.modelcontextprotocol/clientCapabilities'].elicitation, { form: {}, url: {} });
  assert.equal('requestState' in first, false);
  assert.deepEqual(
    [second.requestState, second.inputResponses],
    ['one+/=', { kind: { action: 'accept', content: { kind: 'fix' } } }],
  );
  const third = front.seen.find((/** @type {any} */ params) => params.inputResponses?.details);
  assert.equal(third.inputResponses.details.content.lines, 12);
  assert.deepEqual(third.arguments, { changes: 'x' });
  assert.deepEqual(wrong, []);
  await context.close();
});

test('a question can be declined', async () => {
  const { page, context } = await visit(open);
  front.seen.length = 0;
  await page.goto(`http://127.0.0.1:${front.server.address().port}/#/prompt/git-commit?changes=y`);
  await page.getByText('What kind of change is it?').waitFor();
  const answered = page.waitForResponse(
    (/** @type {any} */ response) => response.request().postDataJSON()?.params.inputResponses,
  );
  await page.getByRole('button', { name: 'Skip this question' }).click();
  await answered;
  assert.deepEqual(front.seen.at(-1).inputResponses, { kind: { action: 'decline' } });
  await context.close();
});

test('a question that the prompt needs cannot be skipped, and is asked again after a failure', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/prompt/new-service?purpose=pictures`);
  await page.getByRole('radio', { name: 'Rust' }).check();
  assert.equal(await page.getByRole('button', { name: 'Skip this question' }).count(), 0);
  await page.route('**/mcp', (route) => route.abort());
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('.messages .problem').waitFor();
  await page.unroute('**/mcp');
  await page.getByRole('button', { name: 'Back' }).click();
  // The answer that was not sent is still there.
  assert.equal(await page.getByRole('radio', { name: 'Rust' }).isChecked(), true);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('How will it run?').waitFor();
  // Everything here has a default.
  await page.getByRole('button', { name: 'Skip this question' }).click();
  await page.locator('.messages', { hasText: 'in rust and runs in 2 copies' }).waitFor();
  assert.deepEqual(
    wrong.filter((line) => !/ERR_FAILED|Failed to fetch/.test(line)),
    [],
  );
  await context.close();
});

test('a question for a list has a line for each item', async () => {
  const list = '{ name: done, type: list, required: true, ask: true }, { name: notes, type: text, ask: true }';
  const prompt = `---\ndescription: Reports\narguments: [${list}]\nsteps: [{ message: What is done? }]\n---\n`;
  write(folder, { 'report.md': `${prompt}{% for item in done %}* {{ item }}\n{% endfor %}{{ notes }}\n` });
  const { page, context, wrong } = await visit(open);
  await page.goto(`${server.url}#/prompt/report`);
  await page.getByText('What is done?').waitFor();
  const field = page.locator('.guide textarea').first();
  await field.click();
  await page.keyboard.type('the plan');
  await page.keyboard.press('Enter');
  await page.keyboard.type('the budget');
  assert.equal(await page.locator('.guide textarea').count(), 2, 'long text has an area as well');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('.messages li', { hasText: 'the plan' }).waitFor();
  await page.locator('.messages li', { hasText: 'the budget' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});
