// A store with channels, a server for it, and people with tokens.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { BINARY, library, remove, serve, visit, write } from './harness.mjs';

/** The people: scopes in addition to those of reading prompts. */
const PEOPLE = {
  ada: ['library:read', 'library:propose'],
  rita: ['library:read', 'library:review', 'library:publish', 'library:propose'],
  root: ['library:read', 'library:propose', 'library:review', 'library:publish', 'library:admin'],
  ci: ['library:read', 'library:evaluate'],
  reader: [],
};

/** @typedef {keyof typeof PEOPLE} Person */

/**
 * Serves a store with the channels `production`, where every change needs an approval of another person, and `staging`.
 *
 * @param {Record<string, string>} files of revision 1 of `production`; none for an empty channel
 * @param {{ withSignIn?: boolean, database?: string, settings?: string }} [options] the URL of a database other
 *   than SQLite, and further sections of `server.toml`
 */
export async function channels(files, { withSignIn = true, database, settings = '' } = {}) {
  const folder = library({}, '');
  const store = database ?? `sqlite:${join(folder, 'team.db')}`;
  const prompts = join(folder, 'prompts');
  mkdirSync(prompts);
  const run = (/** @type {string[]} */ ...args) =>
    execFileSync(BINARY, args, {
      env: { ...process.env, PROMPTSHELF_STORE: store },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  /** Publishes files to a channel, past the policy. @param {string} channel @param {Record<string, string>} changed */
  const publish = (channel, changed, message = 'A change') => {
    write(prompts, changed);
    run('publish', prompts, '--channel', channel, '--as', 'root', '-m', message);
  };
  run('init', store);
  if (Object.keys(files).length) publish('production', files, 'The first prompts');
  run('policy', '--channel', 'staging', '--approvals', '0', '--as', 'root');
  run('policy', '--channel', 'production', '--approvals', '1', '--four-eyes', 'on', '--tests', 'on', '--as', 'root');
  const tokens = Object.entries(PEOPLE).map(([name, scopes]) => {
    const sha256 = createHash('sha256').update(`token-of-${name}`).digest('hex');
    return `{ name = "${name}", sha256 = "${sha256}", scopes = ${JSON.stringify(['prompts:read', ...scopes])} }`;
  });
  if (withSignIn) write(folder, { '.server.toml': `[auth]\ntokens = [${tokens.join(', ')}]\n${settings}` });
  const server = await serve(folder, 0, [], store);
  return {
    ...server,
    publish,
    /** Runs the program on the store. */
    run,
    /** The database. */
    file: join(folder, 'team.db'),
    /** @param {Person} person @param {string} path @param {{ method?: string, body?: unknown, match?: string }} [options] */
    async api(person, path, { method = 'GET', body, match } = {}) {
      const response = await fetch(`${server.url}api/v1${path}`, {
        method,
        headers: {
          Authorization: `Bearer token-of-${person}`,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...(match ? { 'If-Match': match } : {}),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const value = await response.json();
      if (!response.ok) throw new Error(`${response.status} ${JSON.stringify(value)}`);
      return value;
    },
    /** Proposes texts as a person. @param {Person} person @param {Record<string, string | null>} changed @param {string} message */
    async propose(person, changed, message, channel = 'production') {
      const { head, items } = await this.api(person, `/channels/${channel}/tree?limit=500`);
      const changes = Object.entries(changed).map(([path, text]) => ({
        path,
        before: items.find((/** @type {any} */ file) => file.path === path)?.digest ?? null,
        content: text === null ? null : { text },
      }));
      const body = { base: head.revision, message, changes };
      return (await this.api(person, `/channels/${channel}/proposals`, { method: 'POST', body })).proposal;
    },
    /**
     * A browser of a person, signed in.
     *
     * @param {import('playwright-core').Browser} open @param {Person} person
     * @param {import('playwright-core').BrowserContextOptions} [options]
     */
    async as(open, person, options) {
      const visited = await visit(open, options);
      await visited.context.addInitScript((token) => {
        sessionStorage.setItem('promptshelf.session', JSON.stringify({ token, scopes: [] }));
      }, `token-of-${person}`);
      return visited;
    },
    async stop() {
      await server.stop();
      remove(folder);
    },
  };
}
