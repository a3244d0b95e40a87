// A fetch that reports when the server has answered the GET of a legacy client's notification stream: the client
// itself offers no way to wait for it.

import { within } from './server.mjs';

export function openStreamFetch() {
  let opened = () => {};
  const open = new Promise((done) => {
    opened = () => done(undefined);
  });
  return {
    /** @type {typeof globalThis.fetch} */
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      const events = response.headers.get('content-type')?.startsWith('text/event-stream');
      if (init?.method === 'GET' && response.ok && events) opened();
      return response;
    },
    streamOpen: () => within(open, () => 'the server has not opened a stream of notifications for GET'),
  };
}
