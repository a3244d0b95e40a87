// One page follows the server, and tells the others: browsers allow about six HTTP/1.1 connections per server.

/**
 * @typedef {{ state: 'live' | 'lost' | 'paused', by?: string, retryAt?: number }} State `by` differs for each follower
 * @typedef {State | { method: string } | { loads: number }} Heard
 */

/**
 * Follows the server in this page, or hears from the page that does. A hidden page does neither.
 *
 * @param {object} options
 * @param {() => Promise<string | null>} options.group the pages that share; null for this page alone
 * @param {(until: AbortSignal, tell: (heard: Heard) => void) => Promise<void>} options.follow returns when it is over
 * @param {(heard: Heard) => void} options.hear
 */
export function shared({ group, follow, hear }) {
  let own = new AbortController();
  let askAgain = () => {};

  const join = async () => {
    own.abort();
    own = new AbortController();
    const { signal } = own;
    if (document.hidden) return hear({ state: 'paused' });
    const name = await group();
    if (signal.aborted) return;
    if (name === null) return follow(signal, hear);
    const channel = new BroadcastChannel(name);
    let isFollowing = false;
    let last = '';
    /** @param {Heard} heard */
    const tell = (heard) => {
      if (signal.aborted) return;
      if ('state' in heard) last = JSON.stringify(heard);
      channel.postMessage(heard);
      hear(heard);
    };
    channel.onmessage = ({ data }) => {
      if (isFollowing) {
        if (data.ask === 'state' && last) channel.postMessage(JSON.parse(last));
        if (data.ask === 'retry') void join();
      } else if (!data.ask) {
        // Answers to other pages are heard, too.
        const text = JSON.stringify(data);
        if (text === last) return;
        if ('state' in data) last = text;
        hear(data);
      }
    };
    channel.postMessage({ ask: 'state' });
    askAgain = () => channel.postMessage({ ask: 'retry' });
    const leave = () => {
      channel.close();
      askAgain = () => {};
    };
    signal.addEventListener('abort', leave);
    const lead = async () => {
      isFollowing = true;
      await follow(signal, tell);
    };
    // Refused if the page leaves first.
    await navigator.locks.request(name, { signal }, lead).catch(() => {});
    if (!signal.aborted) leave();
  };

  const retry = () => {
    // The page that follows may be waiting before its next attempt.
    askAgain();
    void join();
  };
  document.addEventListener('visibilitychange', () => void join());
  window.addEventListener('online', () => void join());
  void join();
  return { retry };
}
