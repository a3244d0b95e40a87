// Subscribes to change notifications while the page is visible, and reconnects after a loss.
//
// A hidden page closes its stream: browsers allow about six HTTP/1.1 connections per server, which a dozen tabs in
// the background would use up.

import { SignInNeeded } from './client.js';
import { events } from './events.js';

/** @typedef {import('./client.js').Client} Client */

const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 15_000;
// Random spread, so that pages that lost the same server do not reconnect at once.
const SPREAD = 0.3;

/**
 * @param {Client} client
 * @param {object} on
 * @param {(state: 'live' | 'lost' | 'paused' | 'sign-in', retryIn?: number) => void} on.state
 * @param {(method: string, params: any) => void} on.notification
 * @param {(error: SignInNeeded) => void} on.challenged
 * @returns {{ retry: () => void }}
 */
export function listen(client, on) {
  let pause = FIRST_PAUSE;
  /** @type {AbortController | null} */
  let open = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const start = () => {
    clearTimeout(timer);
    if (document.hidden) return on.state('paused');
    open?.abort();
    open = new AbortController();
    void follow(open);
  };

  /** @param {AbortController} mine */
  const follow = async (mine) => {
    let state = /** @type {'lost' | 'sign-in'} */ ('lost');
    try {
      const wanted = { promptsListChanged: true, resourcesListChanged: true };
      const response = await client.send('subscriptions/listen', { notifications: wanted }, mine.signal);
      if (!response.ok || !response.body) throw new Error(`${response.status}`);
      for await (const text of events(response.body)) {
        const message = JSON.parse(text);
        if (message.method === 'notifications/subscriptions/acknowledged') {
          pause = FIRST_PAUSE;
          on.state('live');
        } else if (message.method) {
          on.notification(message.method, message.params);
        }
      }
    } catch (error) {
      if (error instanceof SignInNeeded) {
        state = 'sign-in';
        on.challenged(error);
      }
    }
    if (mine.signal.aborted) return;
    const wait = Math.round(pause * (1 - SPREAD / 2 + Math.random() * SPREAD));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
    on.state(state, wait);
    if (state === 'lost') timer = setTimeout(start, wait);
  };

  const retry = () => {
    pause = FIRST_PAUSE;
    start();
  };
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) return retry();
    clearTimeout(timer);
    open?.abort();
    on.state('paused');
  });
  window.addEventListener('online', retry);
  start();
  return { retry };
}
