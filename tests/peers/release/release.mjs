// Packages of a release, each installed as its users do and served to the official client.
//
//   node release/release.mjs --dist DIR --python PYTHON [--quick]
//
// With --quick only npm and wheel, without a registry. `cargo xtask release` writes DIR.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { parseArgs, promisify } from 'node:util';

const run = promisify(execFile);
const { values: options } = parseArgs({
  options: { dist: { type: 'string' }, python: { type: 'string' }, quick: { type: 'boolean', default: false } },
});
const dist = resolve(options.dist);
const library = resolve(import.meta.dirname, '../../../examples/library');
const SECONDS_COLD = 10;
const PATIENCE = { timeout: 120_000 };
const FULL = { ...PATIENCE, skip: options.quick && 'it is tried at night' };
/** @type {string} */
let folder;
/** @type {string[]} */
const times = [];
/** @type {(() => unknown)[]} */
const endings = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'promptshelf-release-'));
});
after(async () => {
  for (const end of endings) await end();
  await rm(folder, { recursive: true, force: true });
  for (const line of times) console.log(line);
});

/** The files of a folder of the release with an ending. */
async function files(kind, ending) {
  const names = await readdir(join(dist, kind));
  return names.filter((name) => name.endsWith(ending)).map((name) => join(dist, kind, name));
}

/** The version is in the name of the source package. */
const version = (await files('crates', '.crate').catch(() => []))
  .map((path) => /promptshelf-(\d.*)\.crate$/.exec(path)?.[1])
  .find(Boolean);

/** A home folder without caches, and the variables of a program in it. */
async function home(name, more = {}) {
  const path = join(folder, name);
  await mkdir(path, { recursive: true });
  const { PATH } = process.env;
  return { path, env: { PATH, HOME: path, npm_config_cache: join(path, 'npm'), npm_config_update_notifier: 'false', ...more } };
}

/** Serves the example library by a command, and gets a prompt with the official client. */
async function serves(title, command, args, { env, path }, shelf = library) {
  const begun = performance.now();
  const transport = new StdioClientTransport({ command, args: [...args, 'serve', '--stdio', shelf], env, cwd: path, stderr: 'inherit' });
  const client = new Client({ name: 'release', version: '1.0.0' });
  await client.connect(transport);
  const { prompts } = await client.listPrompts();
  assert.ok(prompts.length > 5, title);
  const { messages } = await client.getPrompt({ name: 'git-commit', arguments: { changes: 'Fix a typo' } });
  assert.match(messages[0].content.text, /Fix a typo/);
  const seconds = (performance.now() - begun) / 1000;
  await client.close();
  times.push(`${title.padEnd(24)} ${seconds.toFixed(1)} s to the first prompt`);
  return seconds;
}

/** What a command prints that has to fail. */
async function fails(command, args, settings) {
  try {
    await run(command, args, settings);
  } catch (error) {
    return /** @type {any} */ (error).stderr;
  }
  assert.fail(`${command} ${args.join(' ')} did not fail`);
}

test('npm: the packages serve, and a missing platform is one sentence', PATIENCE, async () => {
  const here = await home('npm');
  await writeFile(join(here.path, 'package.json'), '{}');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...(await files('npm', '.tgz'))], { cwd: here.path, env: here.env });
  await serves('npm from files', join(here.path, 'node_modules/.bin/promptshelf'), [], here);
  const installed = JSON.parse(await readFile(join(here.path, 'node_modules/promptshelf/package.json'), 'utf8'));
  assert.equal(installed.mcpName, 'io.github.promptshelf/promptshelf');
  assert.equal(installed.scripts, undefined, 'nothing runs at the installation');
  await rm(join(here.path, 'node_modules/@promptshelf'), { recursive: true });
  const said = await fails(join(here.path, 'node_modules/.bin/promptshelf'), ['--version'], { env: here.env });
  assert.match(said, new RegExp(`^error: .*${process.platform}-${process.arch}\nhelp: .*\n$`));
});

test('wheel: pip installs it from the folder', PATIENCE, async () => {
  const here = await home('pip');
  await run(options.python, ['-m', 'venv', 'environment'], { cwd: here.path, env: here.env });
  const bin = join(here.path, 'environment', process.platform === 'win32' ? 'Scripts' : 'bin');
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-index', '--find-links', join(dist, 'pypi'), 'promptshelf'];
  await run(join(bin, 'python'), pip, { env: here.env });
  await serves('pip', join(bin, 'promptshelf'), [], here);
  const about = "from importlib.metadata import distribution as of; print(of('promptshelf').read_text('METADATA'))";
  const { stdout } = await run(join(bin, 'python'), ['-c', about], { env: here.env });
  assert.match(stdout, /^License-Expression: MIT OR Apache-2.0$/m);
  assert.match(stdout, /^mcp-name: io.github.promptshelf\/promptshelf$/m);
});

test('npx: from a registry, with an empty cache', FULL, async () => {
  const registry = await npmRegistry();
  const here = await home('npx', { npm_config_registry: registry });
  const npmrc = `${registry.replace('http:', '')}:_authToken=nobody\n`;
  await writeFile(join(here.path, '.npmrc'), npmrc);
  for (const file of await files('npm', '.tgz')) {
    await run('npm', ['publish', file], { cwd: here.path, env: here.env });
  }
  const seconds = await serves('npx, cold', 'npx', ['-y', 'promptshelf'], here);
  assert.ok(seconds < SECONDS_COLD, `${seconds} s`);
  await serves('npx, warm', 'npx', ['-y', 'promptshelf'], here);
  // What it prints and installs works without the program in PATH.
  const { stdout } = await run('npx', ['-y', 'promptshelf', 'init', 'new'], { cwd: here.path, env: here.env });
  assert.match(stdout, /npx -y promptshelf serve --edit --open new/);
});

/** Starts a registry without a way to others, and returns its address. */
async function npmRegistry() {
  const here = await home('verdaccio');
  const config = `storage: ./storage\nauth: {htpasswd: {file: ./htpasswd}}\nuplinks: {}\nmax_body_size: 200mb\nlog: {type: stdout, format: pretty, level: http}
packages:\n  '@*/*': {access: $all, publish: $all}\n  '**': {access: $all, publish: $all}\n`;
  await writeFile(join(here.path, 'config.yaml'), config);
  const port = await freePort();
  const verdaccio = join(import.meta.dirname, 'node_modules/verdaccio/bin/verdaccio');
  const child = spawn(process.execPath, [verdaccio, '--config', 'config.yaml', '--listen', `127.0.0.1:${port}`], { cwd: here.path, env: here.env, stdio: ['ignore', 'pipe', 'inherit'] });
  endings.push(() => child.kill());
  await new Promise((done, fail) => {
    child.stdout.on('data', (data) => String(data).includes('http address') && done(undefined));
    child.on('exit', () => fail(new Error('verdaccio ended')));
  });
  return `http://127.0.0.1:${port}/`;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  await new Promise((done) => server.close(done));
  return port;
}

test('uvx: from a folder, with an empty cache', FULL, async () => {
  const here = await home('uvx', { UV_CACHE_DIR: join(folder, 'uvx/cache'), UV_PYTHON_DOWNLOADS: 'never' });
  const uvx = join(dirname(options.python), 'uvx');
  const from = ['--python', options.python, '--no-index', '--find-links', join(dist, 'pypi'), 'promptshelf'];
  const seconds = await serves('uvx, cold', uvx, from, here);
  assert.ok(seconds < SECONDS_COLD, `${seconds} s`);
  const wheel = (await files('pypi', '_x86_64.whl'))[0];
  await serves('uvx --from', uvx, ['--python', options.python, '--from', wheel, 'promptshelf'], here);
  const { stdout } = await run(uvx, [...from, 'init', 'new'], { cwd: here.path, env: here.env });
  assert.match(stdout, /uvx promptshelf serve --edit --open new/);
});

test('archive: it has the program, completions, manual pages and units', FULL, async () => {
  const here = await home('archive');
  const [archive] = await files('archives', 'x86_64-unknown-linux-musl.tar.gz');
  await run('tar', ['-xzf', archive, '--strip-components=1'], { cwd: here.path });
  for (const path of ['LICENSE-MIT', 'completions/promptshelf.bash', 'man/man1/promptshelf.1', 'systemd/promptshelf.service']) {
    assert.ok((await readFile(join(here.path, path))).length > 0, path);
  }
  await serves('archive', join(here.path, 'promptshelf'), [], here);
  const { stdout } = await run(join(here.path, 'promptshelf'), ['--version', '--json']);
  const about = JSON.parse(stdout);
  assert.equal(about.version, version);
  assert.equal(about.target, 'x86_64-unknown-linux-musl');
  assert.match(about.commit, /^[0-9a-f]{40}$/);
  const strings = await readFile(join(here.path, 'promptshelf'), 'latin1');
  assert.ok(!strings.includes(import.meta.dirname.split('/tests/')[0]), 'the program has a path of this machine');
});

test('sums: every file has one', FULL, async () => {
  await run('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: dist });
  const bill = JSON.parse(await readFile(join(dist, 'promptshelf.cdx.json'), 'utf8'));
  const names = bill.components.map((one) => one.name);
  assert.ok(names.includes('tokio') && !names.includes('promptshelf-testkit'));
});

test('entries: server.json and the manifests of bundles have the released schemas', FULL, async () => {
  const schemas = resolve(import.meta.dirname, '../../fixtures/schemas');
  const valid = (schema, file) => run(join(dirname(options.python), 'check-jsonschema'), ['--schemafile', join(schemas, schema), file]);
  await valid('server-2025-12-11.json', join(dist, 'server.json'));
  const entry = JSON.parse(await readFile(join(dist, 'server.json'), 'utf8'));
  const kinds = entry.packages.map((one) => one.registryType);
  assert.deepEqual([...new Set(kinds)], ['npm', 'pypi', 'oci', 'mcpb']);
  for (const bundle of entry.packages.filter((one) => one.registryType === 'mcpb')) {
    const bytes = await readFile(join(dist, 'archives', bundle.identifier.split('/').at(-1)));
    assert.equal(createHash('sha256').update(bytes).digest('hex'), bundle.fileSha256);
  }
  const here = await home('bundle');
  const [bundle] = await files('archives', 'x86_64-unknown-linux-musl.mcpb');
  await run(options.python, ['-m', 'zipfile', '-e', bundle, here.path]);
  await valid('mcpb-manifest-v0.3.json', join(here.path, 'manifest.json'));
  await chmod(join(here.path, 'server/promptshelf'), 0o755);
  await serves('bundle', join(here.path, 'server/promptshelf'), [], here);
  const formula = await readFile(join(dist, 'homebrew/promptshelf.rb'), 'utf8');
  assert.match(formula, /sha256 "[0-9a-f]{64}"/);
  assert.equal(JSON.parse(await readFile(join(dist, 'scoop/promptshelf.json'), 'utf8')).version, version);
});

test('deb: it unpacks to a program and its units', FULL, async () => {
  const here = await home('deb');
  const [deb] = await files('deb', '_amd64.deb');
  await run('dpkg-deb', ['--extract', deb, here.path]);
  await serves('deb', join(here.path, 'usr/bin/promptshelf'), [], here);
  assert.match(await readFile(join(here.path, 'usr/lib/systemd/system/promptshelf.service'), 'utf8'), /ExecStart=\/usr\/bin\/promptshelf /);
});

test('image: from scratch, without root, with a health check', FULL, async () => {
  const blob = async (digest) => {
    const bytes = await readFile(join(dist, 'oci/blobs/sha256', digest.replace('sha256:', '')));
    assert.equal(`sha256:${createHash('sha256').update(bytes).digest('hex')}`, digest);
    return bytes;
  };
  const json = async (digest) => JSON.parse(String(await blob(digest)));
  let index = JSON.parse(await readFile(join(dist, 'oci/index.json'), 'utf8'));
  if (index.manifests[0].mediaType.includes('index')) index = await json(index.manifests[0].digest);
  const manifest = await json(index.manifests.find((one) => one.platform.architecture === 'amd64').digest);
  const { config } = await json(manifest.config.digest);
  assert.equal(config.User, '65532:65532');
  assert.deepEqual(config.Healthcheck.Test, ['CMD', 'promptshelf', 'health', 'http://127.0.0.1:8080']);
  const here = await home('image');
  const root = join(here.path, 'root');
  await mkdir(root);
  for (const layer of manifest.layers) {
    await writeFile(join(here.path, 'layer'), await blob(layer.digest));
    await run('tar', ['-xzf', 'layer', '-C', root], { cwd: here.path });
  }
  assert.ok((await readFile(join(root, 'etc/ssl/certs/ca-certificates.crt'), 'utf8')).includes('BEGIN CERTIFICATE'));
  await cp(library, join(root, 'prompts'), { recursive: true });
  await run('chmod', ['-R', 'a+rX', here.path, folder]);
  // As a container runs it: nothing of this machine is there, and nothing can be written.
  const inside = ['--userspec=65532:65532', root, '/usr/local/bin/promptshelf'];
  const [command, before] = process.getuid?.() === 0 ? ['chroot', inside] : ['unshare', ['--map-root-user', 'chroot', ...inside.slice(1)]];
  const env = { PATH: process.env.PATH };
  await serves('image', command, before, here, '/prompts');
  const port = await freePort();
  const server = spawn(command, [...before, 'serve', '--http', `127.0.0.1:${port}`, '/prompts'], { stdio: ['ignore', 'ignore', 'pipe'], env });
  const ended = new Promise((done) => server.once('exit', done));
  await new Promise((done) => server.stderr.on('data', (data) => String(data).includes('listening') && done(undefined)));
  const health = await run(command, [...before, 'health', `http://127.0.0.1:${port}`], { env });
  assert.match(health.stdout, /runs\n$/);
  server.kill();
  await ended;
  assert.match(await fails(command, [...before, 'health', `http://127.0.0.1:${port}`], { env }), /does not answer/);
});

/** Serves releases as `install.sh` reads them. `alter` changes an answer. */
async function releases(alter = (_path, body) => body) {
  const server = createServer(async (request, response) => {
    const path = request.url ?? '';
    const name = path.replace(`/v${version}/`, '');
    const read = async () => {
      if (path === '/latest') return Buffer.from(`${version}\n`);
      if (name === 'SHA256SUMS') return readFile(join(dist, name));
      return readFile(join(dist, 'archives', name));
    };
    try {
      const body = alter(path, await read());
      if (body === null) {
        // Half of an archive, and then nothing more.
        const whole = await read();
        response.writeHead(200, { 'content-length': whole.length });
        response.write(whole.subarray(0, whole.length / 2), () => response.destroy());
        return;
      }
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', () => done(undefined)));
  endings.push(() => server.close());
  return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`;
}

test('install.sh: it installs the program for one user, and says PATH', FULL, async () => {
  const here = await home('install', { PROMPTSHELF_RELEASES: await releases() });
  const { stdout } = await run('sh', [join(dist, 'install.sh')], { env: here.env });
  assert.match(stdout, new RegExp(`^promptshelf ${version} is installed: .*\\.local/bin/promptshelf\n`));
  assert.match(stdout, /PATH/);
  await serves('install.sh', join(here.path, '.local/bin/promptshelf'), [], here);
  // Again, over the program that is there.
  await run('sh', [join(dist, 'install.sh')], { env: { ...here.env, PROMPTSHELF_VERSION: `v${version}` } });
  assert.deepEqual(await readdir(join(here.path, '.local/bin')), ['promptshelf']);
});

// req: S-411
test('install.sh: what goes wrong is a sentence, and nothing is half installed', FULL, async () => {
  const closed = `http://127.0.0.1:${await freePort()}`;
  const isArchive = (path) => path.endsWith('.tar.gz');
  const good = await releases();
  const fake = join(folder, 'fake');
  await mkdir(fake);
  await writeFile(join(fake, 'uname'), '#!/bin/sh\n[ "$1" = -s ] && echo Plan9 || echo mips\n');
  await chmod(join(fake, 'uname'), 0o755);
  const readOnly = join(folder, 'read-only');
  await mkdir(readOnly, { mode: 0o755 });
  const program = Buffer.from('not an archive');
  /** @type {[string, Record<string, string>, RegExp][]} */
  const cases = [
    ['half of an archive', { PROMPTSHELF_RELEASES: await releases((path, body) => (isArchive(path) ? null : body)) }, /cannot be read/],
    ['a short archive', { PROMPTSHELF_RELEASES: await releases((path, body) => (isArchive(path) ? body.subarray(0, 999) : body)) }, /SHA-256/],
    ['a wrong sum', { PROMPTSHELF_RELEASES: await releases((path, body) => (path.endsWith('SUMS') ? Buffer.from(String(body).replace(/^[0-9a-f]{64}/gm, 'a'.repeat(64))) : body)) }, /SHA-256/],
    ['no sums', { PROMPTSHELF_RELEASES: await releases((path, body) => (path.endsWith('SUMS') ? program : body)) }, /no file for x86_64/],
    ['no network', { PROMPTSHELF_RELEASES: closed }, /cannot be read from .*\n.*check the network/],
    ['a proxy that is away', { PROMPTSHELF_RELEASES: good, http_proxy: closed }, /cannot be read from .*\n.*proxy/],
    ['a version that is not there', { PROMPTSHELF_RELEASES: good, PROMPTSHELF_VERSION: '9.9.9' }, /cannot be read|no file for/],
    ['an unknown platform', { PROMPTSHELF_RELEASES: good, PATH: `${fake}${delimiter}${process.env.PATH}` }, /no program for Plan9 on mips/],
    ['no home folder', { PROMPTSHELF_RELEASES: good, HOME: '' }, /home folder is unknown/],
    ['a folder that cannot be written to', { PROMPTSHELF_RELEASES: good, PROMPTSHELF_BIN: '/proc/promptshelf' }, /cannot be created\n.*PROMPTSHELF_BIN/],
  ];
  for (const [title, env, words] of cases) {
    const here = await home(`bad ${title}`);
    const said = await fails('sh', [join(dist, 'install.sh')], { env: { ...here.env, ...env } });
    assert.match(said, words, `${title}: ${said}`);
    assert.match(said, /^error: |\nerror: /, `${title}: ${said}`);
    const left = await readdir(join(here.path, '.local/bin')).catch(() => []);
    assert.deepEqual(left, [], `${title} leaves something behind`);
  }
  if (process.getuid?.() === 0) {
    await run('chmod', ['755', folder]);
    const settings = { env: { ...(await home('other user')).env, HOME: readOnly, PROMPTSHELF_RELEASES: good } };
    const install = ['--reuid=65532', '--clear-groups', 'sh', '-c', await readFile(join(dist, 'install.sh'), 'utf8')];
    assert.match(await fails('setpriv', install, settings), /cannot be created\n.*PROMPTSHELF_BIN/);
  }
  // A script that ends early does nothing.
  const script = await readFile(join(dist, 'install.sh'), 'utf8');
  const here = await home('half a script', { PROMPTSHELF_RELEASES: good });
  await run('sh', ['-c', script.slice(0, script.lastIndexOf('main'))], { env: here.env });
  assert.deepEqual(await readdir(here.path), []);
});

/** A repository with a library of prompts on `main`, and a change of it on another branch. */
async function repository(name) {
  const here = await home(name);
  const git = (...words) => run('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...words], { cwd: here.path, env: here.env });
  await git('init', '--quiet', '--initial-branch', 'main', '.');
  const [archive] = await files('archives', 'x86_64-unknown-linux-musl.tar.gz');
  await mkdir(join(folder, `${name}-program`));
  await run('tar', ['-xzf', archive, '--strip-components=1', '-C', join(folder, `${name}-program`)]);
  await run(join(folder, `${name}-program/promptshelf`), ['init', 'prompts'], { cwd: here.path, env: here.env });
  await git('add', 'prompts');
  await git('commit', '--quiet', '--message', 'Prompts');
  const base = (await git('rev-parse', 'HEAD')).stdout.trim();
  return { ...here, git, base };
}

// req: S-412
test('action: it annotates findings, writes SARIF and comments what a pull request changes', FULL, async () => {
  const { path, env, base } = await repository('action');
  const fake = join(folder, 'gh');
  await mkdir(fake);
  // A stand-in for `gh`: there is no comment yet, and the new one is kept.
  await writeFile(join(fake, 'gh'), `#!/bin/sh\nfor word; do case $word in body=@*) cp "\${word#body=@}" "${fake}/comment.md" ;; esac; done\n`);
  await chmod(join(fake, 'gh'), 0o755);
  const settings = {
    ...env,
    PATH: `${fake}${delimiter}${env.PATH}`,
    PROMPTSHELF_RELEASES: await releases(),
    RUNNER_TEMP: join(folder, 'runner'),
    INPUT_LIBRARY: 'prompts',
    INPUT_SARIF: 'findings.sarif',
    BASE: base,
    NUMBER: '7',
    GITHUB_REPOSITORY: 'ada/prompts',
  };
  const script = resolve(import.meta.dirname, '../../../packaging/action.sh');
  const go = () => run('bash', [script], { cwd: path, env: settings });
  const prompt = join(path, 'prompts/explain.md');
  const text = await readFile(prompt, 'utf8');
  await writeFile(prompt, `${text}\n\`\`\`\`\`\`\`\`\`\`\n$(id) Name one source.\n`);
  await go();
  const comment = await readFile(join(fake, 'comment.md'), 'utf8');
  assert.match(comment, /^<!-- promptshelf -->\n/);
  assert.match(comment, /\+\$\(id\) Name one source\./);
  assert.equal(comment.match(/^`{10}/gm)?.length, 2, 'the text does not end the block');
  assert.equal(JSON.parse(await readFile(join(path, 'findings.sarif'), 'utf8')).version, '2.1.0');
  await writeFile(prompt, text.replace('{{ topic }}', '{{ topik }}'));
  const failed = await go().then(() => assert.fail('it passes'), (error) => error);
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /::error file=prompts\/explain\.md,line=\d+/);
  assert.ok(JSON.parse(await readFile(join(path, 'findings.sarif'), 'utf8')).runs[0].results.length > 0);
});

test('pre-commit: its hooks find mistakes and format', FULL, async () => {
  const { path, env, git } = await repository('hooks');
  const source = resolve(import.meta.dirname, '../../..');
  // Only the files that pre-commit reads, so that changes that are not committed yet are tried, too.
  const hooks = join(folder, 'hooks-repository');
  await mkdir(hooks);
  for (const file of ['.pre-commit-hooks.yaml', 'pyproject.toml']) await cp(join(source, file), join(hooks, file));
  await git('-C', hooks, 'init', '--quiet', '.');
  await git('-C', hooks, 'add', '.');
  await git('-C', hooks, 'commit', '--quiet', '--message', 'Hooks');
  const rev = (await git('-C', hooks, 'rev-parse', 'HEAD')).stdout.trim();
  const hook = (id) => `      - id: promptshelf-${id}\n        args: [prompts]\n`;
  await writeFile(join(path, '.pre-commit-config.yaml'), `repos:\n  - repo: ${hooks}\n    rev: ${rev}\n    hooks:\n${['check', 'fmt', 'test'].map(hook).join('')}`);
  await git('add', '.');
  const bin = dirname(options.python);
  const settings = { cwd: path, env: { ...env, PATH: `${bin}${delimiter}${env.PATH}`, PIP_FIND_LINKS: join(dist, 'pypi'), PRE_COMMIT_HOME: join(folder, 'pre-commit') } };
  const go = () => run(join(bin, 'pre-commit'), ['run', '--all-files'], settings);
  const { stdout } = await go();
  assert.equal(stdout.match(/Passed/g)?.length, 3, stdout);
  const prompt = join(path, 'prompts/explain.md');
  await writeFile(prompt, (await readFile(prompt, 'utf8')).replace('{{ topic }}', '{{ topik }}'));
  const failed = await go().then(() => assert.fail('it passes'), (error) => error);
  assert.match(failed.stdout, /promptshelf check\.+Failed[\s\S]*topik/);
});
