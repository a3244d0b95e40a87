// Markdown in the browser: what it looks like as elements, and how its cost grows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { library, site, visit } from './harness.mjs';

const folder = library({ 'hello.md': '---\ndescription: Greets\n---\nSay hello.\n' }, '');
const running = site(folder);

/** Texts with their elements; attributes are left out, apart from those that carry meaning. @type {[string, string][]} */
const SAMPLES = [
  ['plain\ntext', '<p>plain\ntext</p>'],
  ['# One\n\n###### Six ######', '<h3>One</h3><h6>Six</h6>'],
  ['## About C#', '<h4>About C#</h4>'],
  ['#hashtag\n####### seven', '<p>#hashtag\n####### seven</p>'],
  ['# ', '<h3></h3>'],
  ['```py\na *b*\n\n# c\n```\nafter', '<pre data-language="py"><code>a *b*\n\n# c</code></pre><p>after</p>'],
  ['~~~~\n~~~\n~~~~', '<pre><code>~~~</code></pre>'],
  ['```\nopen', '<pre><code>open</code></pre>'],
  ['``` a` b', '<p>``` a` b</p>'],
  ['a ```b``` c', '<p>a <code>b</code> c</p>'],
  ['- - -\n***\n_ _', '<hr><hr><p>_ _</p>'],
  ['> a\n> > b\n\nc', '<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>'],
  [
    '- a\n- b\n  - c\n\n  d',
    '<ul><li><span>a</span></li><li><p>b</p><ul><li><span>c</span></li></ul><p>d</p></li></ul>',
  ],
  [
    '3. a\n4. b\n- c',
    '<ol start="3"><li><span>a</span></li><li><span>b</span></li></ol><ul><li><span>c</span></li></ul>',
  ],
  [
    '| a | b |\n|---|:-:|\n| 1 | 2 | 3 |\n| `x\\|y` |\nend',
    '<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr><tr><td><code>x\\|y</code></td></tr></tbody></table></div><p>end</p>',
  ],
  ['a | b\n-- | --', '<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody></tbody></table></div>'],
  ['**a *b* c** __d__ _e_ ~~f~~', '<p><strong>a <em>b</em> c</strong> <strong>d</strong> <em>e</em> <s>f</s></p>'],
  ['***both***, **a *b***', '<p><strong><em>both</em></strong>, <strong>a <em>b</em></strong></p>'],
  ['a*b*c 2 * 3 * 4 snake_case_name __init__.py', '<p>a*b*c 2 * 3 * 4 snake_case_name <strong>init</strong>.py</p>'],
  ['**open *one* _two', '<p>**open <em>one</em> _two</p>'],
  ['*a\nb*', '<p>*a\nb*</p>'],
  ['\\*a\\* \\q `\\*` ``a ` b``', '<p>*a* \\q <code>\\*</code> <code>a ` b</code></p>'],
  ['\\``x`', '<p>`<code>x</code></p>'],
  [
    '[a *b*](https://a.example/x_(y)) ![p](https://a.example/p.png)',
    '<p><a href="https://a.example/x_(y)">a <em>b</em></a> <span>p</span></p>',
  ],
  [
    '[x](https://a.example "t") [y](javascript:1) [z] (q)',
    '<p><a href="https://a.example/">x</a> <span>y</span> [z] (q)</p>',
  ],
  ['[https://b.example](https://a.example)', '<p><a href="https://a.example/">https://b.example</a></p>'],
  [
    'See https://a.example/b_c?d=1. **https://e.example** <https://f.example> https://',
    '<p>See <a href="https://a.example/b_c?d=1">https://a.example/b_c?d=1</a>. <strong><a href="https://e.example/">https://e.example</a></strong> &lt;<a href="https://f.example/">https://f.example</a>&gt; https://</p>',
  ],
  ['<task>\nDo **it**\n</task>', '<p>&lt;task&gt;\nDo <strong>it</strong>\n&lt;/task&gt;</p>'],
  ['a\u202Eb', '<p>a<span>U+202E</span>b</p>'],
];

test('renders the Markdown that prompts use', async () => {
  const { page, context, wrong } = await visit(running.open);
  await page.goto(running.server.url);
  const shown = await page.evaluate(
    async (texts) => {
      const { markdown } = await import(`${location.origin}/assets/js/text/markdown.js`);
      return texts.map((text) => {
        const made = document.createElement('div');
        made.append(...markdown(text));
        for (const element of made.querySelectorAll('*')) {
          for (const { name } of [...element.attributes])
            if (!['href', 'start', 'data-language'].includes(name)) element.removeAttribute(name);
        }
        return made.innerHTML;
      });
    },
    SAMPLES.map(([text]) => text),
  );
  for (const [index, [text, expected]] of SAMPLES.entries()) assert.equal(shown[index], expected, text);
  assert.deepEqual(wrong, []);
  await context.close();
});

// Every pair of these is repeated, and every one of them between two others.
const PARTS = [
  '`',
  '```',
  '*',
  '**',
  '_',
  '~~',
  '[',
  ']',
  '](',
  '![',
  ')',
  ' "',
  '\\',
  ' ',
  '\t',
  'a',
  '|',
  '-',
  '#',
  '> ',
  '1. ',
  '\n',
  '\n\n',
  '<',
  'https://',
  '\u200b',
];
const BEFORE = ['', 'a', '```', '# ', '## a', '> ', '- ', '| ', '[a](', '[a](b "', '**a', 'a | b\n- | -\n'];
const AFTER = ['', 'x', '`', ' #', '\n- | -\n| |'];

// req: S-68
test('the cost of any text grows with its length', async () => {
  const { page, context, wrong } = await visit(running.open);
  await page.goto(running.server.url);
  /** @type {[string, string, string][]} */
  const shapes = [];
  for (const a of PARTS) for (const b of PARTS) shapes.push(['', a + b, '']);
  for (const a of BEFORE) for (const b of PARTS) for (const c of AFTER) shapes.push([a, b, c]);
  // Headers and rows of a table must not multiply.
  shapes.push([`${'a|'.repeat(2_000)}\n${'-|'.repeat(2_000)}\n`, '|\n', '']);
  const slow = await page.evaluate(async (all) => {
    const { markdown } = await import(`${location.origin}/assets/js/text/markdown.js`);
    /** @param {[string, string, string]} shape @param {number} length */
    const took = ([start, part, end], length) => {
      const text = start + part.repeat(length / part.length) + end;
      const begun = performance.now();
      markdown(text);
      return performance.now() - begun;
    };
    // Eight times the text takes about eight times as long, and 64 times if the cost is quadratic.
    const [short, long, most] = [2_000, 16_000, 24];
    /** @param {[string, string, string]} shape @param {number} times */
    const isSlow = (shape, times) => {
      // A pause of the machine is not the cost of a text: the worst short run is compared with the best long one.
      const runs = Array.from({ length: times }, () => [took(shape, short), took(shape, long)]);
      const worst = Math.max(2, ...runs.map(([small]) => small));
      return Math.min(...runs.map(([, large]) => large)) > most * worst;
    };
    return all.filter((shape) => isSlow(shape, 1) && isSlow(shape, 5));
  }, shapes);
  assert.deepEqual(slow, []);
  assert.deepEqual(wrong, []);
  await context.close();
});
