// Guided prompts with the official client of generation 2: step by step
// in both eras, and continued on a second server that shares the key of the first.
//
//   node guided.mjs [--server target/debug/promptshelf] [--library examples/library]

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PATIENCE, commandLine, serveHttp } from './server.mjs';

const MODERN = '2026-07-28';
const { server, library } = commandLine();
const PROMPT = { name: 'new-service', arguments: { purpose: 'resize pictures' } };
const KEY = { PROMPTSHELF_STATE_KEY: 'a secret that both servers know' };

/** What a person answers, by the question. */
const ANSWERS = {
  'What will the service be written in?': { language: 'python' },
  'Which framework do you want to use?': { framework: 'django' },
  'How will it run?': { replicas: 5, public: true },
};

/**
 * @param {string | undefined} pin the modern revision, or nothing for the legacy era
 * @param {(message: string) => any} answer
 */
function person(pin, answer, options = {}) {
  const mode = pin ? { pin } : 'legacy';
  const client = new Client(
    { name: 'peer-guided', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode }, ...options },
  );
  client.setRequestHandler('elicitation/create', (request) => answer(request.params.message));
  return client;
}

/** Answers everything, and notes what was asked. */
function willing() {
  const asked = [];
  const answer = (message) => {
    asked.push(message);
    return { action: 'accept', content: ANSWERS[message] };
  };
  return { asked, answer };
}

const stdio = () =>
  new StdioClientTransport({ command: server, args: ['serve', library, '--stdio'], stderr: 'ignore' });

const textOf = (result) => result.messages[0].content.text;

function assertWalked(result, asked) {
  assert.deepEqual(asked, Object.keys(ANSWERS));
  assert.match(textOf(result), /written in python with django and runs in 5 copies/);
  assert.match(textOf(result), /People outside the company/);
}

describe('guided prompts', { timeout: PATIENCE }, () => {
  for (const [title, pin] of [['modern', MODERN], ['legacy', undefined]]) {
    // req: I15, I20
    test(`three steps over stdio, ${title}`, async () => {
      const { asked, answer } = willing();
      const client = person(pin, answer);
      await client.connect(stdio());
      assertWalked(await client.getPrompt(PROMPT), asked);
      await client.close();
    });
  }

  test('three steps over Streamable HTTP', async () => {
    const { url, stop } = await serveHttp(server, library);
    try {
      const { asked, answer } = willing();
      const client = person(MODERN, answer);
      await client.connect(new StreamableHTTPClientTransport(url));
      assertWalked(await client.getPrompt(PROMPT), asked);
      await client.close();
    } finally {
      await stop();
    }
  });

  test('a step that the condition leaves out is not asked', async () => {
    const asked = [];
    const client = person(MODERN, (message) => {
      asked.push(message);
      return asked.length === 1 ? { action: 'accept', content: { language: 'rust' } } : { action: 'decline' };
    });
    await client.connect(stdio());
    const result = await client.getPrompt(PROMPT);
    assert.deepEqual(asked, ['What will the service be written in?', 'How will it run?']);
    assert.match(textOf(result), /written in rust and runs in 2 copies/);
    await client.close();
  });

  // req: I14
  test('declining a required step returns no prompt', async () => {
    const client = person(MODERN, () => ({ action: 'decline' }));
    await client.connect(stdio());
    await assert.rejects(client.getPrompt(PROMPT), { code: -32602, message: /declined/ });
    await client.close();
  });

  // req: I13
  test('a second server continues after the first was killed', async () => {
    const byHand = { inputRequired: { autoFulfill: false } };
    const round = async (url, params) => {
      const client = person(MODERN, () => assert.fail('answers are given by hand'), byHand);
      await client.connect(new StreamableHTTPClientTransport(url));
      const result = await client.request(
        { method: 'prompts/get', params: { ...PROMPT, ...params } },
        { allowInputRequired: true },
      );
      await client.close();
      return result;
    };
    const answersTo = (result) => ({
      requestState: result.requestState,
      inputResponses: Object.fromEntries(
        Object.entries(result.inputRequests).map(([key, { params }]) => [
          key,
          { action: 'accept', content: ANSWERS[params.message] },
        ]),
      ),
    });

    const first = await serveHttp(server, library, KEY);
    const asked = await round(first.url, {});
    assert.equal(asked.resultType, 'input_required');
    const further = await round(first.url, answersTo(asked));
    await first.stop();

    const second = await serveHttp(server, library, KEY);
    const stranger = await serveHttp(server, library);
    try {
      await assert.rejects(round(stranger.url, answersTo(further)), { code: -32602 });
      const last = await round(second.url, answersTo(further));
      const done = await round(second.url, answersTo(last));
      assert.match(textOf(done), /written in python with django and runs in 5 copies/);
    } finally {
      await second.stop();
      await stranger.stop();
    }
  });
});
