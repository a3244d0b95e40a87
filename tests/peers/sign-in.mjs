// A real authorization server (oidc-provider), the official client of
// generation 1, which discovers it through our metadata, and the binary as server
// and as client with a browser.
//
//   node sign-in.mjs [--server target/debug/promptshelf]

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import Provider from 'oidc-provider';
import { PATIENCE, commandLine, serveHttp } from './server.mjs';

const { server } = commandLine();
const CLIENT = { id: 'team', secret: 'a secret of the tests alone' };
const OTHER = 'https://other.example/mcp';

let issuer, listener, folder, running, resource;
/** What the authorization server has granted: one entry for each sign-in or renewal. */
const granted = [];

before(async () => {
  listener = createServer((request, response) => void handle(request, response));
  await new Promise((done) => listener.listen(0, '127.0.0.1', done));
  issuer = `http://127.0.0.1:${listener.address().port}`;
  const provider = authorizationServer(issuer);
  provider.on('grant.success', ({ oidc }) => granted.push({ ...oidc.params, client: oidc.client.clientId }));
  const callback = provider.callback();
  const handle = (request, response) =>
    request.url.startsWith('/interaction/') ? agree(provider, request, response) : callback(request, response);

  folder = await mkdtemp(join(tmpdir(), 'promptshelf-sign-in-'));
  await writeFile(join(folder, 'open.md'), '---\ndescription: Open\n---\nOpen.\n');
  await writeFile(
    join(folder, 'written.md'),
    '---\ndescription: Written\naccess: { scopes: ["prompts:write"], visible: true }\n---\nWritten.\n',
  );
  const port = await freePort();
  resource = `http://127.0.0.1:${port}/mcp`;
  await writeFile(
    join(folder, '.server.toml'),
    `[auth]\nissuer = "${issuer}"\nresource = "${resource}"\nrequired-scopes = ["prompts:read"]\n`,
  );
  running = await serveHttp(server, folder, { PROMPTSHELF_CONFIG: join(folder, '.server.toml') }, `127.0.0.1:${port}`);
});

after(async () => {
  await running?.stop();
  listener?.closeAllConnections();
  listener?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

// req: P1, P3, P5
test('the official client discovers the authorization server and signs in', async () => {
  const authProvider = new ClientCredentialsProvider({
    clientId: CLIENT.id,
    clientSecret: CLIENT.secret,
    expectedIssuer: issuer,
    scope: 'prompts:read',
  });
  const client = new Client({ name: 'peer', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(resource), { authProvider }));
  const { prompts } = await client.listPrompts();
  assert.deepEqual(prompts.map((prompt) => prompt.name), ['open', 'written']);
  assert.equal((await client.getPrompt({ name: 'open' })).messages[0].content.text, 'Open.');
  await client.close();
});

// req: P7, P11
test('scopes are enforced, and the challenge names all required ones', async () => {
  const reading = await token('prompts:read');
  assert.equal((await get('open', reading)).status, 200);
  const refused = await get('written', reading);
  assert.equal(refused.status, 403);
  const challenge = refused.headers.get('www-authenticate');
  assert.match(challenge, /error="insufficient_scope"/);
  assert.match(challenge, /scope="prompts:read prompts:write"/);
  assert.equal((await get('written', await token('prompts:read prompts:write'))).status, 200);
});

// req: P9, R-9
test('a token for another server is refused', async () => {
  const refused = await get('open', await token('prompts:read', OTHER));
  assert.equal(refused.status, 401);
  assert.match(refused.headers.get('www-authenticate'), /error="invalid_token"/);
});

test('our own client: somebody signs in with a browser, for more when it takes more, and out', async () => {
  const env = {
    XDG_STATE_HOME: join(folder, 'state'),
    BROWSER: `${process.execPath} ${join(import.meta.dirname, 'browser.mjs')}`,
  };
  const line = (...args) =>
    new Promise((done) => {
      const options = { env: { ...process.env, ...env }, timeout: 3 * PATIENCE };
      execFile(server, args, options, (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }));
    });
  const get = (name) => line('get', name, '--url', resource);

  assert.equal((await get('open')).code, 12);
  const before = granted.length;
  const signed = await line('sign-in', resource);
  assert.equal(signed.code, 0, signed.stderr);
  assert.equal(signed.stdout, `signed in to ${resource}\n`);
  assert.deepEqual(await get('open'), { code: 0, stdout: 'Open.\n', stderr: '' });

  const refused = await get('written');
  assert.equal(refused.code, 12);
  assert.match(refused.stderr, /promptshelf sign-in http\S+ --scope prompts:read --scope prompts:write/);
  const more = await line('sign-in', resource, '--scope', 'prompts:write');
  assert.equal(more.code, 0, more.stderr);
  assert.equal((await get('written')).stdout, 'Written.\n');

  // Sets the stored expiry into the past instead of waiting for it.
  const kept = join(env.XDG_STATE_HOME, 'promptshelf/sign-in');
  const [file] = (await readdir(kept)).filter((name) => name.endsWith('.json'));
  const record = JSON.parse(await readFile(join(kept, file), 'utf8'));
  await writeFile(join(kept, file), JSON.stringify({ ...record, token_received_at: 0 }));
  assert.equal((await get('written')).stdout, 'Written.\n');
  const renewed = JSON.parse(await readFile(join(kept, file), 'utf8'));
  assert.notEqual(renewed.token_response.access_token, record.token_response.access_token);

  const grants = granted.slice(before);
  assert.deepEqual(grants.map((grant) => grant.grant_type), ['authorization_code', 'authorization_code', 'refresh_token']);
  assert.ok(grants.every((grant) => grant.resource === resource), JSON.stringify(grants));

  assert.equal((await line('sign-out', resource)).stdout, `signed out of ${resource}\n`);
  assert.equal((await get('open')).code, 12);
});

/** Signs in whoever asks, and agrees to all of it. */
async function agree(provider, request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    const result = { login: { accountId: 'ada' } };
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
    return;
  }
  const known = grantId && (await provider.Grant.find(grantId));
  const grant = known || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [indicator, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(indicator, scopes.join(' '));
  }
  const result = { consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

/** A server that gives JWTs for the resource that a client names. */
function authorizationServer(url) {
  return new Provider(url, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: ['openid', 'offline_access', 'prompts:read', 'prompts:write'],
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    // Refresh tokens are issued without a request for them.
    issueRefreshToken: () => true,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, indicator) => ({
          scope: 'prompts:read prompts:write',
          audience: indicator,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
        }),
      },
    },
  });
}

/** @param {string} scope @param {string} audience @returns {Promise<string>} */
async function token(scope, audience = resource) {
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${CLIENT.id}:${encodeURIComponent(CLIENT.secret)}`)}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope, resource: audience }),
  });
  const answer = await response.json();
  assert.ok(answer.access_token, JSON.stringify(answer));
  return answer.access_token;
}

/** @param {string} name @param {string} bearer */
function get(name, bearer) {
  return fetch(resource, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${bearer}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'prompts/get', params: { name } }),
  });
}

/** A port that nobody has; its number is part of what tokens are for. */
async function freePort() {
  const probe = createServer();
  await new Promise((done) => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}
