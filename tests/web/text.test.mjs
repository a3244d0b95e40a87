// Modules of the page that need no DOM.

import assert from 'node:assert/strict';
import { test } from 'node:test';

const JS = '../../crates/promptshelf-server/src/web/assets/js';
const { find, folded } = await import(`${JS}/text/fuzzy.js`);
// Modules find their server by the address of the document.
Object.assign(globalThis, { document: { baseURI: 'http://localhost/' } });
const { parse, quoted } = await import(`${JS}/text/command.js`);
const { changedLines } = await import(`${JS}/text/line-diff.js`);
const { decodedBytes, tokens } = await import(`${JS}/text/measure.js`);
const { headerValue, headersFor } = await import(`${JS}/mcp/headers.js`);
const { events } = await import(`${JS}/mcp/events.js`);
const { challenge } = await import(`${JS}/auth/challenge.js`);
const { challengeOf } = await import(`${JS}/auth/flow.js`);
const { expand, variables } = await import(`${JS}/text/uri-template.js`);
const { getCommand, shellWord } = await import(`${JS}/use/commands.js`);
const { anthropic, asText, leftOut, openai } = await import(`${JS}/use/formats.js`);
const { isInternal, withEnding } = await import(`${JS}/edit/paths.js`);
const { content, kinds } = await import(`${JS}/form/schema.js`);
const GROUPS = ['first', 'more', 'channels', 'differences', 'edit', 'problems', 'usage'];
const words = Object.assign(
  {},
  ...(await Promise.all(GROUPS.map(async (name) => (await import(`${JS}/lang/${name}.js`))[name]))),
);

/** @param {string} name @param {string} title */
const entry = (name, title) => ({ name: folded(name), title: folded(title), words: '' });

test('fuzzy search ranks the best match first', () => {
  const entries = [
    entry('debug-error', 'Debug an Error'),
    entry('code_review', 'Request Code Review'),
    entry('cafe', 'Café'),
  ];
  assert.deepEqual(find(entries, ''), [0, 1, 2]);
  assert.deepEqual(find(entries, 'review'), [1]);
  assert.deepEqual(find(entries, 'crev'), [1]);
  assert.deepEqual(find(entries, 'cafe'), [2]);
  assert.deepEqual(find(entries, 'code error'), []);
  assert.equal(find(entries, 'er')[0], 0);
});

test('a whole word is found before a word that only begins so', () => {
  const entries = [
    entry('prompt-7770', 'Prompt number 7770'),
    entry('a-prompt-with-a-longer-name', 'Prompt number 777'),
    entry('prompt-1777', 'Prompt number 1777'),
  ];
  for (const query of ['pnmbr 777', '777', 'number 777']) assert.equal(find(entries, query)[0], 1, query);
  assert.deepEqual(find(entries, 'pnmbr 777'), [1, 0, 2]);
});

test("URI template expansion is the inverse of the server's matching", () => {
  assert.deepEqual(variables('logs://{host}{/day}{?from,to}{&x}'), ['host', 'day', 'from', 'to', 'x']);
  const values = { host: 'a b/ü', day: '2026-01-02', to: "it's" };
  assert.equal(expand('logs://{host}{/day}{?from,to}', values), 'logs://a%20b%2F%C3%BC/2026-01-02?to=it%27s');
  assert.equal(expand('file:///{+path}', { path: "src/it's 100%?.py" }), "file:///src/it's%20100%25%3F.py");
  assert.equal(expand('logs://recent{?x}', {}), 'logs://recent');
});

test('parses challenges and ignores other headers', () => {
  const told = challenge('Bearer error="insufficient_scope", resource_metadata="https://a.example/x", scope="a b"');
  assert.deepEqual(told, {
    error: 'insufficient_scope',
    description: '',
    scopes: ['a', 'b'],
    metadata: 'https://a.example/x',
  });
  assert.equal(challenge('bearer error=invalid_token').error, 'invalid_token');
  for (const none of [null, '', 'Basic realm="x"', `Bearer ${'"'.repeat(50_000)}`])
    assert.equal(challenge(none).error, '');
});

test('PKCE matches the example of RFC 7636', async () => {
  // RFC 7636, appendix B.
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  assert.equal(await challengeOf(verifier), 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
});

test('a slash command is parsed at the cursor', () => {
  assert.deepEqual(parse('/co').at, { kind: 'name', from: 1, typed: 'co', argument: '' });
  assert.equal(parse('/a ').at.kind, 'argument');
  assert.deepEqual(parse('/a la').at, { kind: 'argument', from: 3, typed: 'la', argument: '' });
  assert.deepEqual(parse('/a lang=ru').at, { kind: 'value', from: 8, typed: 'ru', argument: 'lang' });
  assert.deepEqual(parse('/a x="two words" y=1').values, { x: 'two words', y: '1' });
  assert.deepEqual(parse('/a stray x=1 other').strays, ['stray', 'other']);
  assert.deepEqual(parse(`/a x=${quoted('say "hi"\n\\')} `).values, { x: 'say "hi"\n\\' });
});

test('marks new lines only', () => {
  assert.deepEqual([...changedLines('a\nb\nc', 'a\nx\nc')], [1]);
  assert.deepEqual([...changedLines('a\nb', 'a\nnew\nb\nend')], [1, 3]);
  assert.deepEqual([...changedLines('same', 'same')], []);
});

test('sizes are those of the decoded Base64', () => {
  for (const text of ['', 'a', 'ab', 'abc', 'abcd']) assert.equal(decodedBytes(btoa(text)), text.length);
  assert.ok(tokens('four letters a word') < tokens('十个汉字十个汉字十个汉字'));
});

test('header values are encoded in Base64 where required', () => {
  assert.equal(headerValue('code_review'), 'code_review');
  assert.equal(headerValue('Prüfung'), '=?base64?UHLDvGZ1bmc=?=');
  assert.equal(headerValue(' a'), '=?base64?IGE=?=');
  assert.equal(headerValue('=?base64?x?='), '=?base64?PT9iYXNlNjQ/eD89?=');
  const headers = headersFor('resources/read', { uri: 'docs://style' }, 'secret');
  assert.equal(headers['Mcp-Name'], 'docs://style');
  assert.equal(headers.Authorization, 'Bearer secret');
});

test('parses events across arbitrary chunk boundaries', async () => {
  const text = ': hello\r\n\r\ndata: one\r\n\r\ndata: two\ndata: lines\n\ndata: cut off';
  for (const size of [1, 2, 3, 1000]) {
    const bytes = new TextEncoder().encode(text);
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const found = [];
    for await (const event of events(stream)) found.push(event);
    assert.deepEqual(found, ['one', 'two\nlines'], `in pieces of ${size}`);
  }
});

test('shell quoting confines every value', () => {
  assert.equal(shellWord("it's $HOME; `x`"), "'it'\\''s $HOME; `x`'");
  assert.equal(
    getCommand('promptshelf', 'http://127.0.0.1:8080/mcp', 'code_review', { code: 'a b', at: '@x' }),
    "promptshelf get http://127.0.0.1:8080/mcp code_review 'code=a b' --literal at=@x",
  );
});

test('converts messages to the formats of other programs', () => {
  /** @param {any} block */
  const user = (block) => ({ role: 'user', content: block });
  const messages = [
    user({ type: 'text', text: 'Look:' }),
    user({ type: 'image', mimeType: 'image/png', data: 'AQID' }),
    user({ type: 'resource', resource: { uri: 'docs://style', mimeType: 'text/markdown', text: 'Say ```why```.' } }),
    { role: 'assistant', content: { type: 'text', text: 'I see.' } },
  ];
  const [first, second] = anthropic(messages);
  assert.deepEqual(first.content[1], {
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: 'AQID' },
  });
  assert.match(first.content[2].text, /````\nSay ```why```\.\n````/);
  assert.deepEqual(second, { role: 'assistant', content: 'I see.' });
  assert.equal(openai(messages)[0].content[1].image_url.url, 'data:image/png;base64,AQID');
  assert.match(asText(messages), /^\[user\]\n\nLook:/);
  assert.equal(asText([messages[0]]), 'Look:');
  const sound = user({ type: 'audio', mimeType: 'audio/wav', data: 'BBBB' });
  const left = [asText, openai, anthropic].map((make) => leftOut([...messages, sound], make));
  assert.deepEqual(left, [2, 0, 1], 'text has no files, and Anthropic no sounds');
});

test('a resource with any number of backticks is fenced', () => {
  const text = '` '.repeat(300_000);
  const [block] = [{ type: 'resource', resource: { uri: 'docs://x', mimeType: 'text/plain', text } }];
  assert.ok(asText([{ role: 'user', content: block }]).endsWith(`${text}\n\`\`\``));
});

test('a path without an ending gets that of the file, and no other path changes', () => {
  for (const [typed, like, expected] of [
    ['refund', 'mail.md', 'refund.md'],
    ['a/refund', 'b/mail.md', 'a/refund.md'],
    ['v1.2', 'mail.md', 'v1.2.md'],
    ['a.b/refund', 'mail.md', 'a.b/refund.md'],
    ['plan', '.github/prompts/old.prompt.md', 'plan.prompt.md'],
    ['plan.md', 'old.prompt.md', 'plan.md'],
    ['notes.txt', 'mail.md', 'notes.txt'],
    ['skills/b/SKILL', 'skills/a/SKILL.md', 'skills/b/SKILL.md'],
    ['logo', 'picture.PNG', 'logo.PNG'],
    ['Makefile', 'LICENSE', 'Makefile'],
  ])
    assert.equal(withEnding(typed, like), expected);
  assert.deepEqual(['_tone.md', 'a/_b/c.md', 'a_b.md'].map(isInternal), [true, true, false]);
});

test('a form follows its schema and returns typed values', () => {
  const properties = {
    language: { type: 'string', oneOf: [{ const: 'rust', title: 'Rust' }] },
    lines: { type: 'integer', minimum: 1, default: 3 },
    tags: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
  };
  const made = kinds({ message: '', requestedSchema: { properties, required: ['language'] } });
  assert.deepEqual(
    made.map((kind) => [kind.name, kind.type, kind.required]),
    [
      ['language', 'string', true],
      ['lines', 'integer', false],
      ['tags', 'list', false],
    ],
  );
  const typed = kinds({ message: '', requestedSchema: { properties: { done: { type: 'string' } } } }, { done: 'list' });
  assert.equal(typed[0].type, 'list', 'a schema has no free list');
  assert.deepEqual(made[0].choices, [{ value: 'rust', title: 'Rust' }]);
  assert.equal(made[1].default, '3');
  assert.equal(content(properties.lines, '4'), 4);
  assert.deepEqual(content(properties.tags, 'a\n\nb'), ['a', 'b']);
  assert.equal(content({ type: 'boolean' }, 'false'), false);
});

test('all words have every language, with the same placeholders and pairs of backticks', () => {
  const gaps = (/** @type {string} */ text) => [...new Set(text.match(/\{\w+\}/g))].sort();
  for (const [key, texts] of Object.entries(words)) {
    assert.deepEqual(Object.keys(texts), ['en', 'de', 'ja', 'zh'], key);
    for (const [code, text] of Object.entries(texts)) {
      assert.ok(text !== '' && gaps(text).every((gap) => gaps(texts.en).includes(gap)), `${key}, ${code}: ${text}`);
      for (const form of text.split('|')) assert.equal(form.split('`').length % 2, 1, `${key}, ${code}`);
    }
  }
});
