// Starts the binary under test over HTTP; over stdio the clients start it. Every run uses its own copy of the
// library.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const repository = resolve(import.meta.dirname, '../..');

/** How long anything may take before a check gives up, in milliseconds. */
export const PATIENCE = 20_000;

/** What the command line says: the binary and the library to serve. */
export function commandLine() {
  const { values } = parseArgs({
    options: {
      server: { type: 'string', default: join(repository, 'target/debug/promptshelf') },
      library: { type: 'string', default: join(repository, 'examples/library') },
    },
  });
  return { server: resolve(values.server), library: resolve(values.library) };
}

/**
 * A copy of the library that serves four prompts a page, so that clients must
 * follow cursors.
 * @param {string} library
 */
export async function copyOf(library) {
  const folder = await mkdtemp(join(tmpdir(), 'promptshelf-peers-'));
  await cp(library, folder, { recursive: true });
  const manifest = join(folder, 'promptshelf.toml');
  await writeFile(manifest, `${await readFile(manifest, 'utf8')}\n[list]\npage-size = 4\n`);
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/**
 * Serves a library over HTTP on a port that the system chooses, and waits for
 * the address that the server announces on stderr.
 * @param {string} server the binary
 * @param {string} library
 * @param {Record<string, string>} [environment] what it finds besides its usual environment
 * @param {string} [address] where to listen; a free port, if nothing is said
 * @param {string[]} [options] further options of `serve`
 * @returns {Promise<{ url: URL, stop: () => Promise<void> }>}
 */
export async function serveHttp(server, library, environment = {}, address = '127.0.0.1:0', options = []) {
  return serve(server, [library, '--http', address, ...options], environment);
}

/**
 * Serves the sources of a `server.toml` like `serveHttp`.
 * @param {string} server the binary
 * @param {string} settings
 * @param {Record<string, string>} environment
 * @returns {Promise<{ url: URL, stop: () => Promise<void> }>}
 */
export async function serveSettings(server, settings, environment) {
  return serve(server, ['--config', settings, '--http', '127.0.0.1:0'], environment);
}

async function serve(server, words, environment) {
  const child = spawn(server, ['serve', ...words], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...environment },
  });
  // A server that nobody stopped ends with the script instead of keeping it.
  child.unref();
  child.stderr.unref();
  process.once('exit', () => child.kill('SIGKILL'));
  const exited = new Promise((done) => child.once('exit', done));
  const said = [];
  const found = new Promise((announce, failed) => {
    child.once('error', failed);
    createInterface({ input: child.stderr }).on('line', (line) => {
      said.push(line);
      const match = /http:\/\/\S+\/mcp\b/.exec(line);
      if (match) announce(new URL(match[0]));
    });
    child.once('exit', (code) => failed(new Error(`the server ended with ${code}:\n${said.join('\n')}`)));
  });
  try {
    const url = await within(found, () => `no address on stderr, only:\n${said.join('\n')}`);
    return {
      url,
      stop: async () => {
        child.kill('SIGTERM');
        await within(exited, () => 'the server did not end when it was told to');
      },
    };
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

/**
 * The promise, or a failure when it takes too long.
 * @template T
 * @param {Promise<T>} promise
 * @param {() => string} complaint
 * @returns {Promise<T>}
 */
export async function within(promise, complaint) {
  let timer;
  const late = new Promise((_, failed) => {
    timer = setTimeout(() => failed(new assert.AssertionError({ message: complaint() })), PATIENCE);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
