// Checks for every official client on a folder with one file of each format that is served unchanged.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PATIENCE } from './server.mjs';

const folder = join(import.meta.dirname, '../fixtures/formats');
const files = JSON.parse(await readFile(join(import.meta.dirname, 'formats.json'), 'utf8'));

/**
 * @param {Pick<import('./checks.mjs').Setup, 'title' | 'connect'>} setup
 */
export function checkFormats(setup) {
  describe(`${setup.title}, files of other programs`, { timeout: 6 * PATIENCE }, () => {
    /** @type {import('./checks.mjs').Peer} */
    let peer;
    before(async () => {
      peer = await setup.connect(folder);
    });
    after(() => peer?.close());

    test('every file is listed, with what it asks for', async () => {
      const { prompts } = await peer.page();
      assert.deepEqual(prompts.map((prompt) => prompt.name), files.map((file) => file.name).sort());
      for (const { name, arguments: values } of files) {
        const prompt = prompts.find((prompt) => prompt.name === name);
        assert.ok(prompt.description, `${name} has a description`);
        const asked = (prompt.arguments ?? []).map((argument) => argument.name);
        assert.ok(Object.keys(values ?? {}).every((argument) => asked.includes(argument)), `${name} asks for ${asked}`);
      }
    });

    for (const { name, format, arguments: values, messages: expected } of files) {
      test(`${format} is got`, async () => {
        const { messages } = await peer.client.getPrompt({ name, ...(values && { arguments: values }) });
        const said = ({ role, content }) => [role, content.type === 'resource' ? content.resource.text : content.text];
        assert.deepEqual(messages.map(said), expected);
      });
    }
  });
}
