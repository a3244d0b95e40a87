// A stand-in model for the APIs of Anthropic, OpenAI and Google: it records every request, and always answers "ok".

import { createServer } from 'node:http';

/** Starts the model; `texts()` are those of user messages since the last call. */
export async function startModel() {
  const requests = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString();
      let body;
      try {
        body = JSON.parse(text);
      } catch {
        body = {};
      }
      requests.push(body);
      answer(request.url, body, response);
    });
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    texts: () => requests.splice(0).flatMap(userTexts),
    close: () => new Promise((closed) => server.close(closed)).finally(() => server.closeAllConnections()),
  };
}

function userTexts(body) {
  const messages = body.messages ?? body.input ?? body.contents ?? [];
  const ofUser = (Array.isArray(messages) ? messages : []).filter((message) => message.role === 'user');
  return ofUser.flatMap((message) => {
    const content = message.content ?? message.parts ?? [];
    return typeof content === 'string' ? [content] : content.map((part) => part.text ?? '');
  });
}

function answer(url, body, response) {
  const events = (list) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const [event, data] of list) {
      const text = typeof data === 'string' ? data : JSON.stringify(data);
      response.write(`${event ? `event: ${event}\n` : ''}data: ${text}\n\n`);
    }
    response.end();
  };
  const json = (value) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(value));
  };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  if (/\/messages(\?|$)/.test(url)) {
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage };
    if (!body.stream) return json({ ...message, content: [{ type: 'text', text: 'ok' }], stop_reason: 'end_turn' });
    return events([
      ['message_start', { type: 'message_start', message }],
      ['content_block_start', { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }],
      ['content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } }],
      ['content_block_stop', { type: 'content_block_stop', index: 0 }],
      ['message_delta', { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } }],
      ['message_stop', { type: 'message_stop' }],
    ]);
  }
  if (url.includes('/chat/completions')) {
    const chunk = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm' };
    return events([
      ['', { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content: 'ok' }, finish_reason: null }] }],
      ['', { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }],
      ['', '[DONE]'],
    ]);
  }
  if (url.includes('/responses')) {
    const content = [{ type: 'output_text', text: 'ok', annotations: [] }];
    const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content };
    const done = { id: 'r1', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [item], usage };
    return events([
      ['response.created', { type: 'response.created', response: { ...done, status: 'in_progress', output: [] } }],
      ['response.output_item.done', { type: 'response.output_item.done', output_index: 0, item }],
      ['response.completed', { type: 'response.completed', response: done }],
    ]);
  }
  if (/generateContent/i.test(url)) {
    const candidate = { content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP', index: 0 };
    const result = { candidates: [candidate], usageMetadata: { totalTokenCount: 2 } };
    return url.includes('alt=sse') ? events([['', result]]) : json(result);
  }
  return json({ data: [] });
}
