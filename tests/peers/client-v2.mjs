// The official client of generation 2, in both eras and over both transports.
//
//   node client-v2.mjs [--server target/debug/promptshelf] [--library examples/library]

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ChangeBell } from './change_bell.mjs';
import { checkPeer } from './checks.mjs';
import { checkFormats } from './formats.mjs';
import { openStreamFetch } from './open_stream_fetch.mjs';
import { PATIENCE, commandLine, serveHttp } from './server.mjs';

const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
// The error code of the modern revision. This client returns the same for -32002 of older revisions.
const NOT_FOUND = -32602;
const { server, library } = commandLine();

/**
 * @param {string} revision
 * @param {any} transport
 * @returns {Promise<import('./checks.mjs').Peer>}
 */
async function connect(revision, transport) {
  const bell = new ChangeBell();
  const updated = new ChangeBell();
  const mode = revision === MODERN ? { pin: MODERN } : 'legacy';
  const client = new Client({ name: 'peer-v2', version: '1.0.0' }, { versionNegotiation: { mode } });
  client.setNotificationHandler('notifications/prompts/list_changed', () => bell.ring());
  client.setNotificationHandler('notifications/resources/updated', () => updated.ring());
  await client.connect(transport);
  assert.equal(client.getNegotiatedProtocolVersion(), revision);
  if (revision === MODERN) {
    const { honoredFilter } = await client.listen({ promptsListChanged: true });
    assert.equal(honoredFilter.promptsListChanged, true);
  }
  return {
    client,
    bell,
    updated,
    watch: async (uri) => {
      if (revision === MODERN) {
        const subscription = await client.listen({ resourceSubscriptions: [uri] });
        return () => subscription.close();
      }
      await client.subscribeResource({ uri });
      return async () => void (await client.unsubscribeResource({ uri }));
    },
    page: (cursor) => client.request({ method: 'prompts/list', params: cursor ? { cursor } : {} }),
    close: () => client.close(),
  };
}

const stdio = (folder) =>
  new StdioClientTransport({ command: server, args: ['serve', folder, '--stdio'], stderr: 'ignore' });

for (const revision of [MODERN, LEGACY]) {
  checkFormats({
    title: `client 2, stdio, ${revision}`,
    connect: (folder) => connect(revision, stdio(folder)),
  });

  // req: M9
  checkPeer(
    {
      title: `client 2, stdio, ${revision}`,
      notFound: NOT_FOUND,
      connect: (folder) => connect(revision, stdio(folder)),
    },
    library,
  );

  checkPeer(
    {
      title: `client 2, Streamable HTTP, ${revision}`,
      notFound: NOT_FOUND,
      connect: async (folder) => {
        const { url, stop } = await serveHttp(server, folder);
        const { fetch, streamOpen } = openStreamFetch();
        try {
          const peer = await connect(revision, new StreamableHTTPClientTransport(url, { fetch }));
          if (revision === LEGACY) await streamOpen();
          return { ...peer, close: () => peer.close().finally(stop) };
        } catch (error) {
          await stop();
          throw error;
        }
      },
    },
    library,
  );
}

describe('client 2, left to choose', { timeout: PATIENCE }, () => {
  const chooser = () =>
    new Client({ name: 'peer-v2', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });

  test('it speaks the modern revision over stdio', async () => {
    const client = chooser();
    await client.connect(stdio(library));
    assert.equal(client.getNegotiatedProtocolVersion(), MODERN);
    await client.close();
  });

  test('it speaks the modern revision over Streamable HTTP', async () => {
    const { url, stop } = await serveHttp(server, library);
    try {
      const client = chooser();
      await client.connect(new StreamableHTTPClientTransport(url));
      assert.equal(client.getNegotiatedProtocolVersion(), MODERN);
      await client.close();
    } finally {
      await stop();
    }
  });
});
