// An MCP client of the modern, stateless revision: every request stands for itself.
//
// What to ask and when is not here.

import { challenge } from '../auth/challenge.js';
import { events } from './events.js';
import { headersFor, REVISION } from './headers.js';

const PATIENCE = 30_000;

/** What the server answers instead of a result. */
export class Refusal extends Error {
  /** @param {{ code: number, message: string, data?: any }} error */
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }

  /** The arguments that cannot be used, and why. @returns {{ argument: string, reason: string }[]} */
  get problems() {
    return Array.isArray(this.data?.problems) ? this.data.problems : [];
  }
}

/** No answer at all, or none that is MCP. */
export class Unreachable extends Error {}

/** The server wants to know who asks, or somebody who may do more. */
export class SignInNeeded extends Error {
  /** @param {Response} response a 401, or a 403 that says which scopes it takes */
  constructor(response) {
    super(`${response.status}`);
    this.challenge = challenge(response.headers.get('WWW-Authenticate'));
    /** Whether it is known who asks, and it is not enough. */
    this.isStepUp = response.status === 403;
  }
}

/** @param {Response} response */
function wantsSignIn(response) {
  if (response.status === 401) return true;
  return response.status === 403 && challenge(response.headers.get('WWW-Authenticate')).error === 'insufficient_scope';
}

export class Client {
  #next = 1;
  /** Who asks; sent to the server that the page is from and to nobody else. @type {() => string | null} */
  token = () => null;
  /** Gets a new token for one that is no longer taken. @type {() => Promise<boolean>} */
  renew = async () => false;
  /** Hears of every answer and of every failure to get one. @type {(error: Error | null) => void} */
  heard = () => {};

  /** @param {string} url */
  constructor(url) {
    this.url = url;
  }

  /**
   * The body of a request, as `curl` could send it.
   * @param {string} method
   * @param {Record<string, any>} params
   * @param {number} [id]
   */
  envelope(method, params, id = 1) {
    return {
      jsonrpc: '2.0',
      id,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': REVISION,
          'io.modelcontextprotocol/clientInfo': { name: 'promptshelf-web', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {}, url: {} } },
        },
      },
    };
  }

  /**
   * @param {string} method
   * @param {Record<string, any>} [params]
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async request(method, params = {}, signal) {
    const patience = AbortSignal.timeout(PATIENCE);
    const response = await this.send(method, params, signal ? AbortSignal.any([signal, patience]) : patience);
    let result;
    try {
      const type = response.headers.get('Content-Type') ?? '';
      result = type.startsWith('text/event-stream') ? await lastMessage(response) : await response.json();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw this.#failed(new Unreachable(`${response.status} ${response.statusText}`.trim()));
    }
    this.heard(null);
    if (result?.error) throw new Refusal(result.error);
    if (result?.result === undefined) throw new Unreachable(`${response.status} ${response.statusText}`.trim());
    return result.result;
  }

  /**
   * Sends a request whose answer the caller reads.
   * @param {string} method
   * @param {Record<string, any>} params
   * @param {AbortSignal} [signal]
   */
  async send(method, params, signal) {
    const body = JSON.stringify(this.envelope(method, params, this.#next++));
    const headers = headersFor(method, params, null);
    const response = await this.fetch(this.url, { method: 'POST', headers, body, signal });
    if (response.status >= 502 && response.status <= 504) throw this.#failed(new Unreachable(`${response.status}`));
    return response;
  }

  /**
   * Asks the server in the name of whoever is signed in.
   * @param {string} url
   * @param {RequestInit & { headers?: Record<string, string>, signal?: AbortSignal }} init
   */
  async fetch(url, init) {
    for (let isRetry = false; ; isRetry = true) {
      const token = this.token();
      const headers = { ...init.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
      let response;
      try {
        response = await fetch(url, { ...init, headers, cache: 'no-store', redirect: 'error' });
      } catch (error) {
        if (init.signal?.aborted && init.signal.reason?.name === 'AbortError') throw error;
        throw this.#failed(new Unreachable(error instanceof Error ? error.message : String(error)));
      }
      if (!wantsSignIn(response)) return response;
      if (response.status === 401 && !isRetry && (await this.#hasAnother(token))) continue;
      throw this.#failed(new SignInNeeded(response));
    }
  }

  /** Whether there is a token that has not been refused. @param {string | null} refused */
  async #hasAnother(refused) {
    const known = this.token();
    // Somebody may have signed in, or another request renewed it, in the meantime.
    return known === refused ? known !== null && this.renew() : known !== null;
  }

  /** @param {Error} error */
  #failed(error) {
    this.heard(error);
    return error;
  }
}

/** @param {Response} response */
async function lastMessage(response) {
  if (!response.body) throw new Error('no body');
  let answer = null;
  for await (const text of events(response.body)) {
    const message = JSON.parse(text);
    if ('result' in message || 'error' in message) answer = message;
  }
  return answer;
}
