// Subscribes to change notifications, and reconnects after a loss.

import { SignInNeeded } from './client.js';
import { events } from './events.js';

/** @typedef {import('./client.js').Client} Client */

const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 15_000;
// So that pages that lost the same server do not reconnect at once.
const SPREAD = 0.3;

/**
 * Listens until the signal aborts, or until a sign-in is needed.
 *
 * @param {Client} client
 * @param {AbortSignal} until
 * @param {object} on
 * @param {(heard: import('./shared.js').Heard) => void} on.tell
 * @param {(until: AbortSignal) => Promise<void>} on.live follows what else there is
 * @param {(error: SignInNeeded) => void} on.challenged
 */
export async function listen(client, until, { tell, live, challenged }) {
  const by = Math.random().toString(36).slice(2);
  let pause = FIRST_PAUSE;
  while (!until.aborted) {
    const connected = new AbortController();
    const lost = AbortSignal.any([until, connected.signal]);
    try {
      const wanted = { promptsListChanged: true, resourcesListChanged: true };
      const response = await client.send('subscriptions/listen', { notifications: wanted }, lost);
      if (!response.ok || !response.body) throw new Error(`${response.status}`);
      for await (const text of events(response.body)) {
        const { method } = JSON.parse(text);
        if (method === 'notifications/subscriptions/acknowledged') {
          pause = FIRST_PAUSE;
          tell({ state: 'live', by });
          void live(lost);
        } else if (method) tell({ method });
      }
    } catch (error) {
      if (error instanceof SignInNeeded && !until.aborted) return challenged(error);
    } finally {
      connected.abort();
    }
    if (until.aborted) return;
    const wait = Math.round(pause * (1 - SPREAD / 2 + Math.random() * SPREAD));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
    tell({ state: 'lost', retryAt: Date.now() + wait });
    const passed = AbortSignal.any([until, AbortSignal.timeout(wait)]);
    await new Promise((resolve) => passed.addEventListener('abort', resolve));
  }
}
