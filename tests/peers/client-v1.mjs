// The official client of generation 1, for revision 2025-11-25, over
// both transports.
//
//   node client-v1.mjs [--server target/debug/promptshelf] [--library examples/library]

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  PromptListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { ChangeBell } from './change_bell.mjs';
import { checkPeer } from './checks.mjs';
import { checkFormats } from './formats.mjs';
import { openStreamFetch } from './open_stream_fetch.mjs';
import { commandLine, serveHttp } from './server.mjs';

const REVISION = '2025-11-25';
const NOT_FOUND = -32002;
const { server, library } = commandLine();

/**
 * @param {any} transport
 * @returns {Promise<import('./checks.mjs').Peer>}
 */
async function connect(transport) {
  const bell = new ChangeBell();
  const updated = new ChangeBell();
  const client = new Client({ name: 'peer-v1', version: '1.0.0' });
  client.setNotificationHandler(PromptListChangedNotificationSchema, () => bell.ring());
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => updated.ring());
  await client.connect(transport);
  return {
    client,
    bell,
    updated,
    watch: async (uri) => {
      await client.subscribeResource({ uri });
      return async () => void (await client.unsubscribeResource({ uri }));
    },
    page: (cursor) => client.listPrompts(cursor ? { cursor } : {}),
    close: () => client.close(),
  };
}

const stdio = {
  title: `client 1, stdio, ${REVISION}`,
  connect: (folder) =>
    connect(new StdioClientTransport({ command: server, args: ['serve', folder, '--stdio'], stderr: 'ignore' })),
};

checkFormats(stdio);
checkPeer({ ...stdio, notFound: NOT_FOUND }, library);

checkPeer(
  {
    title: `client 1, Streamable HTTP, ${REVISION}`,
    notFound: NOT_FOUND,
    connect: async (folder) => {
      const { url, stop } = await serveHttp(server, folder);
      const { fetch, streamOpen } = openStreamFetch();
      try {
        const peer = await connect(new StreamableHTTPClientTransport(url, { fetch }));
        await streamOpen();
        return { ...peer, close: () => peer.close().finally(stop) };
      } catch (error) {
        await stop();
        throw error;
      }
    },
  },
  library,
);
