// A real PostgreSQL, as the user `postgres` where the tests run as root: the server refuses to be root.

import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, chownSync, existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';

const DEBIAN = '/usr/lib/postgresql';
const INSTALL = 'PostgreSQL is not installed. On Debian: apt-get install --yes postgresql';
/** Killed processes leave their writes to the system's cache, so only a loss of power would need `fsync`. */
const SETTINGS = `fsync = off
full_page_writes = off
autovacuum = off
shared_buffers = 16MB
max_connections = 50
listen_addresses = '127.0.0.1'
`;
const PATIENCE = 60_000;
/** Ends the server when stdin is closed, be it by a killed test, and then removes the folder unless it is kept. */
const GUARD = `folder=$1; shift; "$@" & server=$!; word=; read word
kill -QUIT $server 2> /dev/null; wait; [ "$word" = keep ] || rm -rf "$folder"`;

const isRoot = process.getuid?.() === 0;

/** The folder with the programs of the newest version. */
function programs() {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(DEBIAN, version, 'bin')), ...(process.env.PATH ?? '').split(':')];
  const found = folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')));
  if (!found) throw new Error(INSTALL);
  return found;
}

/** @param {string} program @param {string[]} args @returns {[string, string[]]} */
function asUser(program, args) {
  if (!isRoot) return [program, args];
  return ['setpriv', ['--reuid=postgres', '--regid=postgres', '--init-groups', '--', program, ...args]];
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/** Starts a server with an empty database. */
export async function postgres() {
  const bin = programs();
  const folder = mkdtempSync(join(tmpdir(), 'promptshelf-pg-'));
  if (isRoot) {
    const id = (/** @type {string} */ flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
    chownSync(folder, id('-u'), id('-g'));
  }
  const data = join(folder, 'data');
  const init = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync', '--pgdata', data];
  const [program, args] = asUser(join(bin, 'initdb'), init);
  execFileSync(program, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  appendFileSync(join(data, 'postgresql.conf'), SETTINGS);
  writeFileSync(join(data, 'pg_hba.conf'), 'host all all 127.0.0.1/32 trust\n');
  let port = 0;
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let guard;

  /** Starts the server at the port; false if another process has it. */
  const run = async () => {
    const options = ['-D', data, '-k', folder, '-p', String(port)];
    const [program, args] = asUser(join(bin, 'postgres'), options);
    const child = spawn('sh', ['-c', GUARD, 'sh', folder, program, ...args], {
      cwd: folder,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    guard = child;
    const lines = createInterface({ input: /** @type {import('node:stream').Readable} */ (child.stderr) });
    return new Promise((resolve, reject) => {
      let log = '';
      lines.on('line', (line) => {
        log += `${line}\n`;
        if (line.includes('database system is ready to accept connections')) resolve(true);
        if (line.includes('could not bind') || line.includes('could not create any TCP/IP sockets')) resolve(false);
      });
      child.on('error', reject);
      setTimeout(PATIENCE, undefined, { ref: false }).then(() =>
        reject(new Error(`PostgreSQL does not start: ${log}`)),
      );
    });
  };
  /** @param {string} word */
  const end = async (word) => {
    const child = guard;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.on('exit', resolve));
    child.stdin?.end(`${word}\n`);
    await ended;
  };
  for (let left = 20; ; left--) {
    port = await freePort();
    if (await run()) break;
    await end('keep');
    if (left === 0) throw new Error('PostgreSQL finds no free port');
  }
  return {
    /** One second to connect, so that a test sees soon that the server is away. */
    url: `postgres://postgres@127.0.0.1:${port}/postgres?connect_timeout=1`,
    /** Ends the server at once, with all connections. */
    halt: () => end('keep'),
    /** Starts a halted server again. */
    async resume() {
      if (!(await run())) throw new Error(`the port ${port} is taken`);
    },
    stop: () => end('remove'),
  };
}
