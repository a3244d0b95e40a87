// A proxy for conformance scenarios about HTTP or sign-in that are expressed with tools, which our client does not
// call: it presents a prompt as a tool of the same name. Headers, streams and timing pass unchanged.

import { createServer, request } from 'node:http';
import { Transform } from 'node:stream';

const METHODS = { 'prompts/get': 'tools/call', 'prompts/list': 'tools/list' };

/** Starts the proxy; `HTTP_PROXY` takes its address. */
export async function promptsAsTools() {
  const proxy = createServer((from, to) => void pass(from, to));
  await new Promise((listening) => proxy.listen(0, '127.0.0.1', listening));
  const stop = () => {
    proxy.closeAllConnections();
    proxy.close();
  };
  return { address: `http://127.0.0.1:${proxy.address().port}`, stop };
}

async function pass(from, to) {
  const chunks = [];
  for await (const chunk of from) chunks.push(chunk);
  const headers = { ...from.headers };
  let body = Buffer.concat(chunks);
  if (headers['content-type'] === 'application/json') {
    const message = JSON.parse(body.toString());
    if (METHODS[message.method]) {
      message.method = METHODS[message.method];
      if (headers['mcp-method']) headers['mcp-method'] = message.method;
    }
    body = Buffer.from(JSON.stringify(message));
    headers['content-length'] = String(body.length);
  }
  const outgoing = request(from.url, { method: from.method, headers }, (incoming) => {
    const type = incoming.headers['content-type'] ?? '';
    const answered = { ...incoming.headers };
    if (!/json|event-stream/.test(type)) {
      to.writeHead(incoming.statusCode, answered);
      incoming.pipe(to);
      return;
    }
    delete answered['content-length'];
    to.writeHead(incoming.statusCode, answered);
    to.flushHeaders();
    incoming.on('error', () => to.destroy()).pipe(lines()).pipe(to);
  });
  outgoing.on('error', () => to.destroy());
  to.on('close', () => outgoing.destroy());
  outgoing.end(body);
}

/** Rewrites line by line, as JSON and event streams both can be. */
function lines() {
  let rest = '';
  return new Transform({
    transform(chunk, _encoding, done) {
      rest += chunk;
      const whole = rest.split('\n');
      rest = whole.pop();
      for (const line of whole) this.push(`${rewritten(line)}\n`);
      done();
    },
    flush(done) {
      if (rest) this.push(rewritten(rest));
      done();
    },
  });
}

function rewritten(line) {
  const [, prefix, json] = /^(data: ?)?(\{.*\})\r?$/.exec(line) ?? [];
  if (!json) return line;
  const message = JSON.parse(json);
  const { result } = message;
  if (result?.content) result.messages = result.content.map((content) => ({ role: 'user', content }));
  if (result?.tools) result.prompts = result.tools.map(({ name }) => ({ name }));
  return `${prefix ?? ''}${JSON.stringify(message)}`;
}
