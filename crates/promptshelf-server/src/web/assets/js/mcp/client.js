// An MCP client for revision 2026-07-28, which is stateless: every request carries its own metadata. Callers decide
// which requests to send.

import { challenge } from '../auth/challenge.js';
import { events } from './events.js';
import { headersFor, REVISION } from './headers.js';

const PATIENCE = 30_000;

/** A JSON-RPC error response. */
export class Refusal extends Error {
  /** @param {{ code: number, message: string, data?: any }} error */
  constructor(error) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }

  /** The invalid arguments, each with a reason. @returns {{ argument: string, reason: string }[]} */
  get problems() {
    return Array.isArray(this.data?.problems) ? this.data.problems : [];
  }
}

/** No response, or not an MCP response. */
export class Unreachable extends Error {}

/** The server requires sign-in, or more scopes. */
export class SignInNeeded extends Error {
  /** @param {Response} response a 401, or a 403 that says which scopes it takes */
  constructor(response) {
    super(`${response.status}`);
    this.challenge = challenge(response.headers.get('WWW-Authenticate'));
    /** Whether the caller is signed in and lacks scopes. */
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
  /** Returns the access token; sent to the page's own origin only. @type {() => string | null} */
  token = () => null;
  /** Renews a token that the server no longer accepts. @type {() => Promise<boolean>} */
  renew = async () => false;
  /**
   * Called after every response, with `null`, and after every failure, with the error.
   *
   * @type {(error: Error | null) => void}
   */
  onResponse = () => {};

  /** @param {string} url */
  constructor(url) {
    this.url = url;
  }

  /**
   * A request's body, as `curl` could send it.
   *
   * @param {string} method
   * @param {Record<string, any>} params
   * @param {number} [id]
   * @param {boolean} [isPreview] whether figures of usage leave the request out
   */
  envelope(method, params, id = 1, isPreview = false) {
    return {
      jsonrpc: '2.0',
      id,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': REVISION,
          'io.modelcontextprotocol/clientInfo': {
            name: isPreview ? 'promptshelf-preview' : 'promptshelf-web',
            version: '1',
          },
          'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {}, url: {} } },
        },
      },
    };
  }

  /**
   * @param {string} method
   * @param {Record<string, any>} [params]
   * @param {AbortSignal} [signal]
   * @param {string} [url] another endpoint of the same server
   * @param {boolean} [isPreview]
   * @returns {Promise<any>}
   */
  async request(method, params = {}, signal, url = this.url, isPreview = false) {
    const patience = AbortSignal.timeout(PATIENCE);
    const until = signal ? AbortSignal.any([signal, patience]) : patience;
    const response = await this.send(method, params, until, url, isPreview);
    let result;
    try {
      const type = response.headers.get('Content-Type') ?? '';
      result = type.startsWith('text/event-stream') ? await lastMessage(response) : await response.json();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw this.#failed(new Unreachable(`${response.status} ${response.statusText}`.trim()));
    }
    this.onResponse(null);
    if (result?.error) throw new Refusal(result.error);
    if (result?.result === undefined) throw new Unreachable(`${response.status} ${response.statusText}`.trim());
    return result.result;
  }

  /**
   * Sends a request and returns the unread response.
   *
   * @param {string} method
   * @param {Record<string, any>} params
   * @param {AbortSignal} [signal]
   * @param {string} [url]
   * @param {boolean} [isPreview]
   */
  async send(method, params, signal, url = this.url, isPreview = false) {
    const body = JSON.stringify(this.envelope(method, params, this.#next++, isPreview));
    const headers = headersFor(method, params, null);
    const response = await this.fetch(url, { method: 'POST', headers, body, signal });
    if (response.status >= 502 && response.status <= 504) throw this.#failed(new Unreachable(`${response.status}`));
    return response;
  }

  /**
   * Fetches a URL with the access token.
   *
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

  /** Whether a token exists other than the refused one. @param {string | null} refused */
  async #hasAnother(refused) {
    const known = this.token();
    // The token may have been renewed by another request, or by a new sign-in, in the meantime.
    return known === refused ? known !== null && this.renew() : known !== null;
  }

  /** @param {Error} error */
  #failed(error) {
    this.onResponse(error);
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
