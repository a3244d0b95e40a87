// An MCP client of the modern, stateless revision: every request stands for itself.
//
// What to ask and when is not here.

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

/** The server wants to know who asks. */
export class SignInNeeded extends Error {}

export class Client {
  #next = 1;
  /** Kept in memory alone: it is gone with the page. @type {string | null} */
  token = null;
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
    const headers = headersFor(method, params, this.token);
    let response;
    try {
      response = await fetch(this.url, { method: 'POST', headers, body, signal, cache: 'no-store', redirect: 'error' });
    } catch (error) {
      if (signal?.aborted && signal.reason?.name === 'AbortError') throw error;
      throw this.#failed(new Unreachable(error instanceof Error ? error.message : String(error)));
    }
    if (response.status === 401) throw this.#failed(new SignInNeeded(response.headers.get('WWW-Authenticate') ?? ''));
    if (response.status >= 502 && response.status <= 504) throw this.#failed(new Unreachable(`${response.status}`));
    return response;
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
