// The *Server* view: server information, and instructions to connect other clients.

import { client, discovery, loads, pageApi } from '../app.js';
import { h, show } from '../dom.js';
import { language, t } from '../i18n.js';
import { REVISION } from '../mcp/headers.js';
import { revealed } from '../text/invisible.js';
import { codeBlock, markdown } from '../text/markdown.js';
import { size } from '../text/measure.js';
import { shellWord } from '../use/commands.js';
import { copy } from './announce.js';
import { lineIcon } from './glyphs.js';

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const about = h('div');
  const limits = h('dl.table-of');
  const snippets = h('div.snippets');
  discovery.watch((value) => {
    if (!value) return show(about, h('p.waiting', null, t('find.loading')));
    const server = value._meta?.['io.modelcontextprotocol/serverInfo'] ?? {};
    show(
      about,
      server.description ? h('p.lead', null, revealed(server.description)) : null,
      h('dl.table-of', null, [
        pair(t('facts.name'), h('code', null, revealed(server.name ?? ''))),
        pair(t('facts.version'), String(server.version ?? '')),
        pair(t('facts.address'), h('code', null, client.url)),
        pair(
          t('facts.revisions'),
          value.supportedVersions.map((one) => h('span.tag', { class: one === REVISION ? 'tag current' : null }, one)),
        ),
        pair(
          t('facts.capabilities'),
          Object.entries(value.capabilities).map(([name, details]) =>
            h(
              'span.tag',
              null,
              [name, ...Object.keys(details ?? {}).filter((key) => details[key] === true)].join(' · '),
            ),
          ),
        ),
      ]),
      value.instructions
        ? [h('h2', null, t('facts.instructions')), h('div.prose.instructions', null, markdown(value.instructions))]
        : null,
    );
    show(
      snippets,
      ways(nameFor(server.name)).map(([title, text]) => snippet(title, text)),
    );
  }, until);
  loads.watch(async () => {
    const facts = await pageApi('facts', until);
    if (!facts || until.aborted) return;
    const { pageSize, ttlSeconds, valueBytes, outputBytes, attachmentBytes, messages, fuel, includeDepth } =
      facts.limits;
    const number = new Intl.NumberFormat(language);
    show(limits, [
      pair(t('limit.value'), size(valueBytes, language)),
      pair(t('limit.output'), size(outputBytes, language)),
      pair(t('limit.attachments'), size(attachmentBytes, language)),
      pair(t('limit.messages'), number.format(messages)),
      pair(t('limit.page'), number.format(pageSize)),
      pair(t('limit.ttl'), new Intl.NumberFormat(language, { style: 'unit', unit: 'second' }).format(ttlSeconds)),
      pair(t('limit.fuel'), number.format(fuel)),
      pair(t('limit.depth'), number.format(includeDepth)),
      pair(t('limit.program'), `${facts.program.name} ${facts.program.version}`),
    ]);
  }, until);
  return h('div.server', null, [
    h('h1', { tabindex: '-1' }, t('facts.heading')),
    about,
    h('h2', null, t('facts.connect')),
    h('p.hint', null, t('facts.connect-about')),
    snippets,
    h('h2', null, t('facts.limits')),
    limits,
  ]);
}

/** @param {string} term @param {import('../dom.js').Child | import('../dom.js').Child[]} description */
function pair(term, description) {
  return h('div', null, h('dt', null, term), h('dd', null, description));
}

/** A name that is safe in a command line. @param {unknown} name */
function nameFor(name) {
  return (
    String(name ?? '')
      .replace(/[^\w-]/g, '')
      .replace(/^-+/, '') || 'promptshelf'
  );
}

/** @param {string} name @returns {[string, string][]} */
function ways(name) {
  const url = client.url;
  const http = { type: 'http', url };
  return [
    ['Claude Code', `claude mcp add --transport http ${name} ${shellWord(url)}`],
    ['VS Code', `code --add-mcp ${shellWord(JSON.stringify({ name, ...http }))}`],
    ['Gemini CLI', `gemini mcp add --transport http ${name} ${shellWord(url)}`],
    ['Cursor, Claude Desktop, …', JSON.stringify({ mcpServers: { [name]: http } }, null, 2)],
  ];
}

/** @param {string} title @param {string} text */
function snippet(title, text) {
  const take = () => copy(text, t('use.copied', { format: title }), t('use.not-copied'));
  return h(
    'figure.snippet',
    null,
    h(
      'figcaption',
      null,
      title,
      h(
        'button.quiet',
        { type: 'button', onclick: take },
        lineIcon('copy'),
        t('facts.copy'),
        h('span.unseen', null, ` ${title}`),
      ),
    ),
    codeBlock(text),
  );
}
