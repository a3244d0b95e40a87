// Sign-in at a real authorization server, and with a token.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { authorizing } from './authorizing.mjs';
import { browser, library, remove, serve, visit } from './harness.mjs';

const FILES = {
  'open.md':
    '---\ntitle: Open\ndescription: Is open\narguments:\n  - { name: what, title: What, required: true }\n---\nOpen {{ what }}.\n',
  'written.md':
    '---\ntitle: Written\ndescription: Is written\naccess: { scopes: ["prompts:write"], visible: true }\n---\nIt is written.\n',
  'secret/hidden.md': '---\ntitle: Hidden\ndescription: Is hidden\naccess: { roles: [editor] }\n---\nIt is hidden.\n',
  'broken.md': '---\ndescription: x\n---\n{{ nobody }}\n',
};
const TOKENS = { reader: ['prompts:read'], lacking: ['else'], editor: ['prompts:read'] };

/** @type {any} */
let open;
/** @type {any} */
let there;
/** @type {any} */
let tokens;
const folder = library({ ...FILES, '.server.toml': settings() }, '');

function settings() {
  const lines = Object.entries(TOKENS).map(([name, scopes]) => {
    const sha256 = createHash('sha256').update(`token-of-${name}`).digest('hex');
    const roles = name === 'editor' ? ', roles = ["editor"]' : '';
    return `{ name = "${name}", sha256 = "${sha256}", scopes = ${JSON.stringify(scopes)}${roles} },`;
  });
  const rule = '[[access]]\ndiagnostics = true\nroles = ["editor"]\n';
  return `${rule}[auth]\nrequired-scopes = ["prompts:read"]\ntokens = [\n${lines.join('\n')}\n]\n`;
}

before(async () => {
  [open, there, tokens] = await Promise.all([browser(), authorizing(FILES), serve(folder)]);
});
after(async () => {
  await Promise.all([open?.close(), there?.stop(), tokens?.stop()]);
  remove(folder);
});

/** What a page asks the authorization server for. @param {any} page @returns {Promise<URLSearchParams>} */
async function whatIsAsked(page) {
  const begun = await page.waitForRequest((/** @type {any} */ one) => one.url().startsWith(`${there.issuer}/auth?`));
  return new URL(begun.url()).searchParams;
}

/** @param {any} page @param {string} token */
async function bring(page, token) {
  await page.getByLabel('Bearer token').fill(token);
  await page.getByRole('button', { name: 'Use the token' }).click();
}

/** @param {any} page */
async function signIn(page) {
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'I am Ada' }).click();
}

test('the reason why a token is rejected is in the language of the page', async () => {
  const { page, context, wrong } = await visit(open, { locale: 'de-DE' });
  await page.goto(tokens.url);
  await page.getByLabel('Bearer-Token').fill('token-of-nobody');
  await page.keyboard.press('Enter');
  await page
    .getByText('Der Server hat Ihr Token abgelehnt: Es ist unbekannt, abgelaufen oder widerrufen. Melden Sie sich')
    .waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-17
test('a token is stored per tab, sent to its server only, and removed on sign-out', async () => {
  const { page, context, wrong } = await visit(open);
  /** @type {string[]} */
  const sentTo = [];
  page.on('request', (/** @type {any} */ request) => {
    if (request.headers().authorization) sentTo.push(new URL(request.url()).origin);
  });
  await page.goto(`${tokens.url}#/prompt/open?what=sesame`);
  await page.getByText('Sign-in is required.').waitFor();
  await bring(page, 'no token');
  await page.getByText('Invalid token').waitFor();
  await bring(page, 'token-of-nobody');
  await page
    .getByText('The server rejected your token: The token is unknown, or has been revoked. Sign in again.')
    .waitFor();
  await bring(page, 'token-of-lacking');
  await page.getByText('Your token does not grant access to this server. Required: prompts:read.').waitFor();
  await bring(page, 'token-of-reader');
  await page.getByText('Open sesame.').waitFor();
  await page.reload();
  await page.getByText('Open sesame.').waitFor();
  const other = await context.newPage();
  await other.goto(tokens.url);
  await other.getByText('Sign-in is required.').waitFor();
  await other.close();
  await page.getByRole('link', { name: 'You are signed in' }).click();
  await page.getByText('You are signed in as reader.').waitFor();
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes('token-of')), false);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Sign-in is required.').waitFor();
  assert.equal(await page.evaluate(() => JSON.stringify(sessionStorage).includes('token-of')), false);
  await page.goto(`${tokens.url}#/`);
  await page.getByText('Sign-in is required.').waitFor();
  assert.equal(await page.getByRole('link', { name: /Is open/ }).count(), 0);
  assert.deepEqual([...new Set(sentTo)], [new URL(tokens.url).origin]);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('instructions for other clients say how to sign in', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${tokens.url}#/server`);
  await bring(page, 'token-of-reader');
  await page.getByText('This server requires sign-in. Put your token in place of TOKEN.').waitFor();
  const lines = await page.locator('.snippets pre').allTextContents();
  assert.equal(lines.length, 4);
  for (const line of lines) assert.match(line, /Authorization"?: ?"?Bearer TOKEN"/);
  assert.ok(!lines.join().includes('token-of'), 'the token itself is not shown');
  await page.goto(`${there.url}#/server`);
  await signIn(page);
  await page.getByText(`Each client leads to ${new URL(there.issuer).host} when it connects.`).waitFor();
  assert.doesNotMatch((await page.locator('.snippets pre').allTextContents()).join(), /Bearer/);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('each caller sees its own prompts, and diagnostics only by rule', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(tokens.url);
  await bring(page, 'token-of-reader');
  await page.getByText('2 prompts', { exact: true }).waitFor();
  await page.goto(`${tokens.url}#/library`);
  await page.getByText('Diagnostics are visible to the maintainers of this library only.').waitFor();
  assert.equal(await page.locator('.diagnostic').count(), 0);
  await page.goto(`${tokens.url}#/sign-in`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await bring(page, 'token-of-editor');
  // Back at the previous view.
  await page.locator('.diagnostic', { hasText: 'undeclared-argument' }).waitFor();
  await page.goto(`${tokens.url}#/`);
  await page.getByText('3 prompts', { exact: true }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('input in the sign-in form survives a refusal', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(tokens.url);
  await bring(page, 'token-of-reader');
  await page.getByText('2 prompts', { exact: true }).waitFor();
  await page.goto(`${tokens.url}#/sign-in`);
  await page.getByText('You are signed in as reader.').waitFor();
  /** @type {() => void} */
  let answer = () => {};
  const held = new Promise((resolve) => {
    answer = () => resolve(undefined);
  });
  await page.route('**/mcp', async (/** @type {any} */ route) => {
    await held;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Sign out' }).click();
  const field = page.getByLabel('Bearer token');
  await field.fill('token-of-editor');
  const refused = page.waitForResponse((/** @type {any} */ one) => one.status() === 401);
  answer();
  await refused;
  await page.getByText('Sign-in is required.').waitFor();
  // Gives the page time to react to the refusal.
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
  assert.equal(await field.inputValue(), 'token-of-editor');
  await page.getByRole('button', { name: 'Use the token' }).click();
  await page.getByText('3 prompts', { exact: true }).waitFor();
  assert.deepEqual(wrong, []);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
});

test('an expired token is requested again without losing input', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${tokens.url}#/prompt/open`);
  await bring(page, 'token-of-reader');
  const field = page.getByRole('textbox', { name: 'What' });
  await field.fill('once');
  await page.getByText('Open once.').waitFor();
  await page.evaluate(() =>
    sessionStorage.setItem('promptshelf.session', JSON.stringify({ token: 'spoilt', scopes: [] })),
  );
  await field.fill('twice');
  const notice = page.locator('.notice', { hasText: 'The server rejected your token' });
  await notice.waitFor();
  await notice.getByRole('button', { name: 'Sign in' }).click();
  await bring(page, 'token-of-reader');
  await page.getByText('Open twice.').waitFor();
  assert.equal(await field.inputValue(), 'twice');
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-17
test('signs in at the authorization server and returns to the same view', async () => {
  const { page, context, wrong } = await visit(open);
  const asking = whatIsAsked(page);
  await page.goto(`${there.url}#/prompt/open?what=sesame`);
  await page.getByText(`This leads to ${new URL(there.issuer).host}, and back to this page.`).waitFor();
  await signIn(page);
  await page.getByText('Open sesame.').waitFor();
  assert.equal(page.url(), `${there.url}#/prompt/open?what=sesame`, 'no code stays in the address');
  const asked = await asking;
  assert.deepEqual(
    ['code_challenge_method', 'resource', 'scope', 'response_type'].map((name) => asked.get(name)),
    ['S256', `${there.url}mcp`, 'prompts:read offline_access', 'code'],
  );
  assert.ok(asked.get('code_challenge')?.length === 43 && asked.get('state')?.length === 43);
  await page.reload();
  await page.getByText('Open sesame.').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

test('renews an expired token silently', async () => {
  const { page, context, wrong } = await visit(open);
  /** @type {string[]} */
  const grants = [];
  page.on('request', (/** @type {any} */ request) => {
    const body = new URLSearchParams(request.postData() ?? '');
    if (body.has('grant_type')) grants.push(String(body.get('grant_type')));
  });
  await page.goto(`${there.url}#/prompt/open?what=sesame`);
  await signIn(page);
  await page.getByText('Open sesame.').waitFor();
  await page.evaluate(() => {
    const session = JSON.parse(sessionStorage.getItem('promptshelf.session') ?? '');
    sessionStorage.setItem('promptshelf.session', JSON.stringify({ ...session, token: 'a.b.c' }));
  });
  await page.getByRole('textbox', { name: 'What' }).fill('barley');
  await page.getByText('Open barley.').waitFor();
  assert.deepEqual(grants, ['authorization_code', 'refresh_token'], 'many requests wait for one new token');
  assert.deepEqual(wrong, []);
  await context.close();
});

test('step-up keeps the granted scopes and returns to the prompt', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${there.url}#/prompt/open`);
  await signIn(page);
  await page.getByRole('textbox', { name: 'What' }).fill('a draft');
  await page.getByText('Open a draft.').waitFor();
  await page.goto(`${there.url}#/prompt/written`);
  await page.getByText('Further permissions are required: prompts:read prompts:write.').waitFor();
  const asking = whatIsAsked(page);
  // The authorization server has a session for Ada and shows no form.
  await page.getByRole('button', { name: 'Sign in for more' }).click();
  await page.getByText('It is written.').waitFor();
  assert.equal((await asking).get('scope'), 'prompts:read prompts:write offline_access');
  await page.goto(`${there.url}#/prompt/open`);
  assert.equal(await page.getByRole('textbox', { name: 'What' }).inputValue(), 'a draft');
  await page.goto(`${there.url}#/sign-in`);
  await page.getByText('You are signed in as ada.').waitFor();
  const revoked = page.waitForRequest((/** @type {any} */ request) => request.url().includes('revocation'));
  await page.getByRole('button', { name: 'Sign out' }).click();
  await revoked;
  await page.getByText('Sign-in is required.').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});

// req: S-17
test('discards unrequested responses and those of another issuer', async () => {
  const { page, context, wrong, asked } = await visit(open);
  const exchanged = () => asked.filter((url) => url === `${there.issuer}/token`);
  await page.goto(`${there.url}?code=stolen&state=made-up&iss=${encodeURIComponent(there.issuer)}`);
  await page.getByText('This response does not belong to a sign-in of this tab.').waitFor();
  assert.equal(page.url(), there.url, 'no code stays in the address');
  for (const iss of ['&iss=https%3A%2F%2Fevil.example', '']) {
    await page.goto(there.url);
    const begun = whatIsAsked(page);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    const state = (await begun).get('state');
    await page.getByRole('button', { name: 'I am Ada' }).waitFor();
    await page.goto(`${there.url}?code=stolen&state=${state}${iss}`);
    await page.getByText(/The response is not from .* and was discarded\./).waitFor();
  }
  assert.deepEqual(exchanged(), []);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('explains refusals and unreachable authorization servers', async () => {
  const { page, context, wrong } = await visit(open);
  await page.goto(`${there.url}#/library`);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'I refuse' }).click();
  await page.getByText(/refused: Ada says no\. Try again, or contact its operator\./).waitFor();
  there.settings.allowsPages = false;
  await signIn(page);
  await page.getByText(/does not respond to this page: .* \(CORS\)/).waitFor();
  there.settings.allowsPages = true;
  await page.route(`${there.issuer}/.well-known/**`, (/** @type {any} */ route) =>
    route.fulfill({
      status: 200,
      headers: { 'Access-Control-Allow-Origin': '*' },
      json: {
        issuer: there.issuer,
        authorization_endpoint: `${there.issuer}/auth`,
        token_endpoint: `${there.issuer}/token`,
      },
    }),
  );
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText(/does not support PKCE/).waitFor();
  await page.unroute(`${there.issuer}/.well-known/**`);
  // The same button still works.
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText('Diagnostics are visible to the maintainers of this library only.').waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});
