// A real authorization server (oidc-provider), the official client of
// generation 1, which finds it through our metadata, and the binary.
//
//   node sign-in.mjs [--server target/debug/promptshelf]

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import Provider from 'oidc-provider';
import { commandLine, serveHttp } from './server.mjs';

const { server } = commandLine();
const CLIENT = { id: 'team', secret: 'a secret of the tests alone' };
const OTHER = 'https://other.example/mcp';

let issuer, listener, folder, running, resource;

before(async () => {
  listener = createServer((request, response) => void handle(request, response));
  await new Promise((done) => listener.listen(0, '127.0.0.1', done));
  issuer = `http://127.0.0.1:${listener.address().port}`;
  const handle = authorizationServer(issuer).callback();

  folder = await mkdtemp(join(tmpdir(), 'promptshelf-sign-in-'));
  await writeFile(join(folder, 'open.md'), '---\ndescription: Open\n---\nOpen.\n');
  await writeFile(
    join(folder, 'written.md'),
    '---\ndescription: Written\naccess: { scopes: ["prompts:write"], visible: true }\n---\nWritten.\n',
  );
  const port = await freePort();
  resource = `http://127.0.0.1:${port}/mcp`;
  await writeFile(
    join(folder, 'promptshelf.toml'),
    `[auth]\nissuer = "${issuer}"\nresource = "${resource}"\nrequired-scopes = ["prompts:read"]\n`,
  );
  running = await serveHttp(server, folder, {}, `127.0.0.1:${port}`);
});

after(async () => {
  await running?.stop();
  listener?.closeAllConnections();
  listener?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

test('the official client finds the authorization server, signs in and asks', async () => {
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

test('scopes decide, and the challenge names all that it takes', async () => {
  const reading = await token('prompts:read');
  assert.equal((await get('open', reading)).status, 200);
  const refused = await get('written', reading);
  assert.equal(refused.status, 403);
  const challenge = refused.headers.get('www-authenticate');
  assert.match(challenge, /error="insufficient_scope"/);
  assert.match(challenge, /scope="prompts:read prompts:write"/);
  assert.equal((await get('written', await token('prompts:read prompts:write'))).status, 200);
});

test('a token for another server is refused', async () => {
  const refused = await get('open', await token('prompts:read', OTHER));
  assert.equal(refused.status, 401);
  assert.match(refused.headers.get('www-authenticate'), /error="invalid_token"/);
});

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
    scopes: ['prompts:read', 'prompts:write'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
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
