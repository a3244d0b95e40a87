// Client of the API of a store, `/api/v1`, and of other JSON interfaces with problem details (RFC 9457).
//
// Tokens are those of the MCP client: a refused one is renewed, and a missing one opens the hint to sign in, while the
// view stays as it is.

import { client } from './app.js';
import { Unreachable } from './mcp/client.js';
import { at } from './root.js';

const PATIENCE = 60_000;
/** The most items of a page. */
const PAGE = 10_000;

/**
 * @typedef {object} ProblemBody
 * @property {string} [type]
 * @property {string} [title]
 * @property {string} [detail]
 * @property {string[]} [paths] for a conflict: the files that someone else has changed
 * @property {number} [revision] for a conflict: the newest revision
 * @property {string[]} [lacks] for an unmet policy: the missing conditions
 * @property {import('./problem-words.js').Reason[]} [reasons] the missing conditions, or the reason against the caller
 * @property {{ text?: string, base64?: string }} [content] for a changed file: its present content
 * @property {string} [digest] for a changed file: the digest of its present content
 *
 * @typedef {object} RequestOptions
 * @property {string} [method] GET by default
 * @property {unknown} [body] sent as JSON
 * @property {string} [match] the ETag of the version that the request changes
 * @property {boolean} [isNew] whether the request creates something that must not exist yet
 * @property {AbortSignal} [signal]
 */

/** A refusal or an error of the server. */
export class ApiProblem extends Error {
  /** @param {number} status @param {ProblemBody} body */
  constructor(status, body) {
    super(body.detail ?? body.title ?? String(status));
    this.status = status;
    /** The stable name of the kind, such as `conflict`. */
    this.kind = (body.type ?? '').split(':').pop() ?? '';
    this.paths = body.paths ?? [];
    this.revision = body.revision ?? null;
    this.lacks = body.lacks ?? [];
    this.reasons = body.reasons ?? [];
    /** For a changed file: its present content and digest. */
    this.content = body.content ?? null;
    this.digest = body.digest ?? null;
  }
}

/**
 * Sends a request and returns the response, which has a status of success.
 *
 * @param {string} url
 * @param {RequestOptions} [options]
 */
export async function send(url, { method = 'GET', body, match, isNew, signal } = {}) {
  const patience = AbortSignal.timeout(PATIENCE);
  /** @type {Record<string, string>} */
  const headers = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (match) headers['If-Match'] = match;
  if (isNew) headers['If-None-Match'] = '*';
  const response = await client.fetch(url, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: signal ? AbortSignal.any([signal, patience]) : patience,
  });
  if (response.ok) return response;
  const isProblem = (response.headers.get('Content-Type') ?? '').startsWith('application/problem+json');
  if (!isProblem && response.status >= 502) throw new Unreachable(String(response.status));
  throw new ApiProblem(response.status, isProblem ? await response.json() : { detail: await response.text() });
}

/**
 * Requests `/api/v1` and returns the JSON value with its ETag.
 *
 * @param {string} path without the prefix, such as `/channels`
 * @param {RequestOptions} [options]
 * @returns {Promise<{ value: any, etag: string }>}
 */
export async function api(path, options) {
  const response = await send(at(`api/v1${path}`), options);
  const value = response.status === 204 ? null : await response.json();
  return { value, etag: response.headers.get('ETag') ?? '' };
}

/** Requests `/api/v1` and returns the JSON value. @param {string} path @param {AbortSignal} [signal] */
export async function read(path, signal) {
  return (await api(path, { signal })).value;
}

/**
 * The pages of a list, one after the other.
 *
 * @param {string} path
 * @param {AbortSignal} [signal]
 */
export async function* pages(path, signal) {
  for (let cursor = ''; ; ) {
    const query = `limit=${PAGE}${cursor ? `&cursor=${cursor}` : ''}`;
    const page = await read(`${path}?${query}`, signal);
    yield page;
    if (!page.next) return;
    cursor = page.next;
  }
}

/** All items of a list. @param {string} path @param {AbortSignal} [signal] @returns {Promise<any[]>} */
export async function all(path, signal) {
  const items = [];
  for await (const page of pages(path, signal)) items.push(...page.items);
  return items;
}

/**
 * Returns a file of a channel: its text, or its bytes if it has no text, with its ETag.
 *
 * @param {string} channel
 * @param {string} path
 * @param {number | null} revision the newest one if null
 * @param {AbortSignal} [signal]
 */
export async function file(channel, path, revision, signal) {
  const query = revision === null ? '' : `?revision=${revision}`;
  const url = at(
    `api/v1/channels/${encodeURIComponent(channel)}/files/${path.split('/').map(encodeURIComponent).join('/')}`,
  );
  const response = await send(url + query, { signal });
  const isText = (response.headers.get('Content-Type') ?? '').startsWith('text/plain');
  const [text, bytes] = isText ? [await response.text(), null] : [null, await response.arrayBuffer()];
  return { text, bytes, etag: response.headers.get('ETag') ?? '' };
}
