// Checks of the example library for every official client, revision and transport. The clients' own files only
// connect.

import assert from 'node:assert/strict';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PATIENCE, copyOf } from './server.mjs';

/**
 * @typedef {object} Peer
 * @property {any} client the connected client; both SDKs name their methods alike
 * @property {(cursor?: string) => Promise<any>} page one page of `prompts/list`, past any cache
 * @property {import('./change_bell.mjs').ChangeBell} bell rings at each `list_changed` of prompts
 * @property {import('./change_bell.mjs').ChangeBell} updated rings when a watched resource has changed
 * @property {(uri: string) => Promise<() => Promise<void>>} watch a resource, until the answer is called
 * @property {() => Promise<void>} close
 *
 * @typedef {object} Setup
 * @property {string} title
 * @property {number} notFound the code that the client gives its caller for a resource that is none
 * @property {(folder: string) => Promise<Peer>} connect to a server of that folder
 */

const INVALID_PARAMS = -32602;
const examples = JSON.parse(await readFile(join(import.meta.dirname, 'examples.json'), 'utf8'));

/**
 * @param {Setup} setup
 * @param {string} library
 */
export function checkPeer(setup, library) {
  describe(setup.title, { timeout: 6 * PATIENCE }, () => {
    /** @type {Peer} */
    let peer;
    /** @type {Awaited<ReturnType<typeof copyOf>>} */
    let copy;
    before(async () => {
      copy = await copyOf(library);
      peer = await setup.connect(copy.folder);
    });
    after(async () => {
      await peer?.close();
      await copy?.remove();
    });

    // req: A18
    test('the server reports its name and capabilities', () => {
      assert.equal(peer.client.getServerVersion().name, 'promptshelf-examples');
      assert.match(peer.client.getInstructions(), /A person chooses one/);
      const capabilities = peer.client.getServerCapabilities();
      assert.equal(capabilities.prompts.listChanged, true);
      assert.ok(capabilities.completions && capabilities.resources);
    });

    test('every prompt is listed once, page by page, with what people need to know', async () => {
      const { prompts, pages } = await allPrompts(peer);
      assert.ok(pages > 1, 'four prompts a page make several pages');
      const names = prompts.map((prompt) => prompt.name);
      assert.deepEqual(names, [...new Set(examples.map((example) => example.name))].sort());
      for (const prompt of prompts) {
        assert.ok(prompt.title && prompt.description, `${prompt.name} has a title and a description`);
        for (const argument of prompt.arguments ?? []) {
          assert.ok(argument.description, `${prompt.name}.${argument.name} has a description`);
          assert.equal(typeof argument.required, 'boolean', `${prompt.name}.${argument.name}.required`);
        }
      }
      const review = prompts.find((prompt) => prompt.name === 'code_review');
      assert.match(review.icons[0].src, /^data:image\/svg\+xml/);
      assert.deepEqual(
        review.arguments.map((argument) => [argument.name, argument.required]),
        [['code', true], ['language', false], ['framework', false]],
      );
      assert.deepEqual((await peer.client.listPrompts()).prompts.length > 0, true);
    });

    for (const example of examples) {
      const given = Object.keys(example.arguments ?? {}).join(', ') || 'no arguments';
      test(`${example.name} renders with ${given}`, async () => {
        const { name, arguments: values } = example;
        const { messages } = await peer.client.getPrompt({ name, ...(values && { arguments: values }) });
        assert.deepEqual(
          messages.map((message) => [message.role, message.content.type]),
          example.messages.map((message) => [message.role, message.type]),
        );
        messages.forEach((message, at) => checkBlock(message.content, example.messages[at]));
      });
    }

    test('values are completed, in the light of what is already filled in', async () => {
      const complete = async (name, argument, value, filled) => {
        const ref = { type: 'ref/prompt', name };
        const context = filled && { context: { arguments: filled } };
        return (await peer.client.complete({ ref, argument: { name: argument, value }, ...context })).completion;
      };
      assert.deepEqual((await complete('code_review', 'language', 'ty')).values, ['typescript']);
      const rust = await complete('code_review', 'framework', 'a', { language: 'rust' });
      assert.ok(rust.values.includes('axum') && !rust.values.includes('django'), String(rust.values));
      const python = await complete('code_review', 'framework', '', { language: 'python' });
      assert.ok(python.values.includes('django') && !python.values.includes('axum'), String(python.values));
      assert.equal(python.total, python.values.length);
      assert.equal(python.hasMore ?? false, false);
      assert.equal((await complete('translate', 'into', 'portu')).values[0], 'Portuguese');
      assert.equal((await complete('write-tests', 'file', 'shelf')).values[0], 'src/shelf.py');
      assert.deepEqual((await complete('onboarding', 'name', 'A')).values, []);
    });

    // req: E9
    test("a resource template's variables are completed", async () => {
      const complete = async (uri, name, value) => {
        const ref = { type: 'ref/resource', uri };
        return (await peer.client.complete({ ref, argument: { name, value } })).completion.values;
      };
      assert.deepEqual(await complete('logs://recent{?timeframe}', 'timeframe', '24'), ['24h']);
      assert.equal((await complete('file:///{+path}', 'path', 'src/main'))[0], 'src/main.py');
    });

    test('resources are listed', async () => {
      const { resources } = await everyPage((cursor) => peer.client.listResources(cursor && { cursor }), 'resources');
      const style = resources.find((resource) => resource.uri === 'docs://style');
      assert.equal(style.name, 'style-guide');
      assert.equal(style.mimeType, 'text/markdown');
      assert.ok(resources.some((resource) => resource.uri === 'project:///docs/importing.md'), uris(resources));
      assert.ok(!resources.some((resource) => resource.uri.includes('_shared')), uris(resources));
      const { resourceTemplates } = await peer.client.listResourceTemplates();
      assert.deepEqual(
        resourceTemplates.map((template) => template.uriTemplate).sort(),
        ['file:///{+path}', 'logs://recent{?timeframe}'],
      );
    });

    test('resources are read, by template too', async () => {
      const read = async (uri) => (await peer.client.readResource({ uri })).contents[0];
      assert.match((await read('docs://style')).text, /^# Style guide/);
      assert.match((await read('project:///docs/importing.md')).text, /^# Importing books/);
      assert.match((await read('file:///src/shelf.py')).text, /class Shelf:/);
      assert.match((await read('logs://recent?timeframe=7d')).text, /2026-02-27/);
      assert.doesNotMatch((await read('logs://recent')).text, /2026-03-04/);
    });

    test('what is no resource is not found, inside the root or outside', async () => {
      for (const uri of [
        'docs://nothing',
        'file:///src/nothing.py',
        'file:///../promptshelf.toml',
        'file:///%2e%2e/promptshelf.toml',
        'file:///..%2Fpromptshelf.toml',
        'library:///_shared/honest.md',
      ]) {
        const error = await failure(peer.client.readResource({ uri }));
        assert.equal(error.code, setup.notFound, `${uri}: ${error.message}`);
        assert.equal(error.data?.uri, uri);
      }
    });

    test('an unknown prompt is refused', async () => {
      const error = await failure(peer.client.getPrompt({ name: 'nothing-of-the-kind' }));
      assert.equal(error.code, INVALID_PARAMS);
      assert.match(error.message, /nothing-of-the-kind/);
    });

    test('every problem of a call is named in one error', async () => {
      const missing = await failure(peer.client.getPrompt({ name: 'analyze-code', arguments: {} }));
      assert.equal(missing.code, INVALID_PARAMS);
      assert.match(missing.message, /language/);
      const several = await failure(peer.client.getPrompt({ name: 'code_review', arguments: { language: 'cobol' } }));
      assert.equal(several.code, INVALID_PARAMS);
      assert.match(several.message, /code/);
      assert.match(several.message, /language/);
      assert.match(several.message, /typescript/, 'the choices are named');
    });

    test('a cursor that is not ours is refused', async () => {
      const error = await failure(peer.page('no-cursor-of-ours'));
      assert.equal(error.code, INVALID_PARAMS);
    });

    test('a watched resource is announced when its file changes', async () => {
      const uri = 'docs://style';
      const read = async () => (await peer.client.readResource({ uri })).contents[0].text;
      const before = await read();
      const unwatch = await peer.watch(uri);
      const rung = peer.bell.count;
      await put(join(copy.folder, '_sample-project/STYLE.md'), `${before}- Less is more.\n`);
      await peer.updated.next();
      assert.match(await read(), /Less is more/, 'the client forgets what it kept');
      assert.equal(peer.bell.count, rung, 'the list of prompts has not changed');
      await unwatch();
    });

    // req: X27
    test('an edit is served at once, and notified if it changes the list', async () => {
      const { bell, client } = peer;
      const text = async (name, values) =>
        (await client.getPrompt({ name, arguments: values })).messages[0].content.text;
      const analyze = join(copy.folder, 'analyze-code.md');
      const written = await readFile(analyze, 'utf8');

      // A change of the text only: served, and not notified.
      await put(analyze, written.replace('Please analyze', 'Kindly analyze'));
      await until(async () => (await text('analyze-code', { language: 'go' })).startsWith('Kindly analyze'));
      assert.equal(bell.count, 0);

      // A new prompt: notified once. A client that caches lists has to fetch again.
      const fresh = join(copy.folder, 'fresh.md');
      await put(fresh, '---\ndescription: Just written\n---\nHello.\n');
      await bell.next();
      assert.ok((await names(peer)).includes('fresh'));
      const { prompts } = await everyPage((cursor) => client.listPrompts(cursor && { cursor }), 'prompts');
      assert.ok(prompts.some((prompt) => prompt.name === 'fresh'), 'the client forgets its kept list');
      assert.equal(await text('fresh'), 'Hello.');

      // A broken edit keeps the last good version and affects no other prompt.
      await put(analyze, '---\ntitle: [unclosed\n---\nBroken.\n');
      await rm(fresh);
      await bell.next();
      assert.ok(!(await names(peer)).includes('fresh'));
      assert.match(await text('analyze-code', { language: 'go' }), /^Kindly analyze/);

      await put(analyze, written.replace('title: Analyze Code', 'title: Analyze My Code'));
      await bell.next();
      const { prompts: listed } = await allPrompts(peer);
      assert.equal(listed.find((prompt) => prompt.name === 'analyze-code').title, 'Analyze My Code');
      assert.equal(bell.count, 3, 'each change is announced once');
    });
  });
}

/** @param {any} block @param {any} expected */
function checkBlock(block, expected) {
  const inner = block.resource ?? block;
  if (expected.uri) assert.equal(inner.uri, expected.uri);
  if (expected.mimeType) assert.equal(inner.mimeType, expected.mimeType);
  if (expected.startsWith) assert.ok(inner.data.startsWith(expected.startsWith), inner.data.slice(0, 20));
  for (const part of expected.contains ?? []) {
    assert.ok(inner.text.includes(part), `${JSON.stringify(part)} is not in ${JSON.stringify(inner.text)}`);
  }
}

/** Replaces a file in one step, as editors do. */
async function put(path, text) {
  await writeFile(`${path}.tmp`, text);
  await rename(`${path}.tmp`, path);
}

/** Asks again and again until the answer is yes; each question waits for its answer. */
async function until(question) {
  const deadline = performance.now() + PATIENCE;
  while (!(await question())) assert.ok(performance.now() < deadline, `never true: ${question}`);
}

/** @param {Promise<unknown>} call @returns {Promise<any>} the error that it ends with */
async function failure(call) {
  try {
    await call;
  } catch (error) {
    return error;
  }
  assert.fail('the call should have been refused');
}

async function everyPage(page, key) {
  const items = [];
  let pages = 0;
  let cursor;
  do {
    const result = await page(cursor);
    items.push(...result[key]);
    pages += 1;
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return { [key]: items, pages };
}

const allPrompts = (peer) => everyPage((cursor) => peer.page(cursor), 'prompts');
const names = async (peer) => (await allPrompts(peer)).prompts.map((prompt) => prompt.name);
const uris = (resources) => resources.map((resource) => resource.uri).join(' ');
