// A proxy in front of the server that turns one prompt into a guided prompt of three steps.

import { createServer, request as forward } from 'node:http';

/** Answers to what a client must do are collected here. */
export function guiding(/** @type {number} */ port) {
  /** @type {any[]} */
  const seen = [];
  const server = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      if (request.headers['mcp-method'] === 'prompts/get' && request.headers['mcp-name'] === 'git-commit') {
        const message = JSON.parse(body.toString());
        seen.push(message.params);
        response.setHeader('Content-Type', 'application/json');
        return response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer(message.params) }));
      }
      const { host: _, ...headers } = request.headers;
      const passed = forward(
        {
          port,
          host: '127.0.0.1',
          path: request.url,
          method: request.method,
          headers: { ...headers, host: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}` },
        },
        (back) => {
          response.writeHead(back.statusCode ?? 500, back.headers);
          back.pipe(response);
        },
      );
      passed.on('error', () => response.destroy());
      response.on('close', () => passed.destroy());
      passed.end(body);
    });
  });
  return { server, seen };
}

/** @param {any} params */
function answer({ arguments: given, inputResponses: replies = {}, requestState: state }) {
  const form = (/** @type {string} */ message, /** @type {any} */ properties, /** @type {string[]} */ required) => ({
    method: 'elicitation/create',
    params: { mode: 'form', message, requestedSchema: { type: 'object', properties, required } },
  });
  const asked = (/** @type {any} */ inputRequests, /** @type {string} */ requestState) => ({
    result: { resultType: 'input_required', inputRequests, requestState },
  });
  const kind = form(
    'What kind of change is it?',
    {
      kind: {
        type: 'string',
        title: 'Kind',
        oneOf: [
          { const: 'fix', title: 'A repair' },
          { const: 'feature', title: 'Something new' },
        ],
      },
    },
    [],
  );
  if (!state) return asked({ kind }, 'one+/=');
  if (state === 'one+/=') {
    if (!replies.kind?.content?.kind) return asked({ kind }, 'one+/=');
    const details = form(
      'How large is it?',
      { lines: { type: 'integer', title: 'Lines', minimum: 1 }, urgent: { type: 'boolean', title: 'Urgent' } },
      ['lines'],
    );
    return asked({ details }, `two ${replies.kind.content.kind}`);
  }
  if (state.startsWith('two')) {
    if (replies.details.action === 'accept' && !Number.isInteger(replies.details.content.lines))
      return { error: { code: -32602, message: 'lines has to be a number' } };
    return asked(
      {
        page: {
          method: 'elicitation/create',
          params: { mode: 'url', message: 'Please agree to the terms.', url: 'https://example.com/terms' },
        },
      },
      state.replace('two', 'three'),
    );
  }
  const text = `A ${state.split(' ')[1]}: ${given.changes}, ${replies.page.action}`;
  return { result: { resultType: 'complete', messages: [{ role: 'user', content: { type: 'text', text } }] } };
}
