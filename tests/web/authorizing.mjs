// A real authorization server (oidc-provider), and an MCP server that accepts its tokens.

import { createServer } from 'node:http';
import Provider, { interactionPolicy } from 'oidc-provider';
import { library, remove, serve } from './harness.mjs';

const CLIENT = 'shelf-page';
const SCOPES = ['prompts:read', 'prompts:write'];
/** Ports are taken by others now and then. */
const MOST_TRIES = 10;

/**
 * @param {Record<string, string>} files
 * @param {string} [rules] more of `promptshelf.toml`
 */
export async function authorizing(files, rules = '') {
  /** Changed by tests. */
  const settings = {
    allowsPages: true,
  };
  /** @type {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void} */
  let handle = (_, response) => response.writeHead(503).end();
  const listener = createServer((request, response) => handle(request, response));
  const issuer = await listening(listener);
  const { folder, server } = await served(issuer, files, rules);
  const provider = authorizationServer(issuer, server.url, settings);
  const callback = provider.callback();
  handle = (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return void callback(request, response);
    interaction(provider, request, response).catch((error) => response.writeHead(500).end(String(error)));
  };
  return {
    url: server.url,
    issuer,
    settings,
    async stop() {
      listener.closeAllConnections();
      listener.close();
      await server.stop();
      remove(folder);
    },
  };
}

/** @param {import('node:http').Server} listener @returns {Promise<string>} its origin */
async function listening(listener) {
  await new Promise((done) => listener.listen(0, '127.0.0.1', () => done(undefined)));
  const address = listener.address();
  if (!address || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}

/**
 * Serves on a port that is part of what tokens are for, and so has to be known before.
 * @param {string} issuer @param {Record<string, string>} files @param {string} rules
 */
async function served(issuer, files, rules) {
  for (let tries = 1; ; tries++) {
    const probe = createServer();
    const origin = await listening(probe);
    await new Promise((done) => probe.close(done));
    const auth = `issuer = "${issuer}"\nresource = "${origin}/mcp"\nrequired-scopes = ["prompts:read"]\n`;
    const settings = `[auth]\n${auth}page-client-id = "${CLIENT}"\n`;
    const folder = library({ ...files, 'promptshelf.toml': rules, '.server.toml': settings }, '');
    try {
      return { folder, server: await serve(folder, Number(new URL(origin).port)) };
    } catch (error) {
      remove(folder);
      if (tries >= MOST_TRIES) throw error;
    }
  }
}

/** @param {string} issuer @param {string} page @param {{ allowsPages: boolean }} settings */
function authorizationServer(issuer, page, settings) {
  const policy = interactionPolicy.base();
  // Consent is granted for everything that the page requests.
  policy.remove('consent');
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT,
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        redirect_uris: [page],
      },
    ],
    scopes: ['openid', 'offline_access', ...SCOPES],
    clientBasedCORS: () => settings.allowsPages,
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { policy, url: (_, { uid }) => `/interaction/${uid}` },
    issueRefreshToken: () => true,
    loadExistingGrant: async (context) => {
      const grant = new context.oidc.provider.Grant({
        clientId: context.oidc.client?.clientId,
        accountId: context.oidc.session?.accountId,
      });
      const { scope = '', resource } = /** @type {any} */ (context.oidc.params);
      grant.addOIDCScope('openid offline_access');
      grant.addResourceScope(String(resource), scope);
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, indicator) => ({
          scope: SCOPES.join(' '),
          audience: indicator,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
        }),
      },
    },
  });
  // An error of the provider is an error of the test.
  provider.on('server_error', (_, error) => console.error(error));
  return provider;
}

/**
 * A page with two buttons: to sign in, and not to.
 * @param {Provider} provider
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
async function interaction(provider, request, response) {
  if (request.method !== 'POST') {
    const button = (/** @type {string} */ name, /** @type {string} */ text) =>
      `<form method="post" action="${request.url?.split('?')[0]}?${name}"><button>${text}</button></form>`;
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    return response.end(`<!doctype html><title>id</title>${button('ada', 'I am Ada')}${button('no', 'I refuse')}`);
  }
  const result = request.url?.endsWith('?ada')
    ? { login: { accountId: 'ada' } }
    : { error: 'access_denied', error_description: 'Ada says no' };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}
