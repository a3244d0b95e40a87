// The *Server* view: server information, and instructions to connect other clients.

import { account } from '../account.js';
import { client, discovery, loads, pageApi } from '../app.js';
import { howToSignIn } from '../auth/redirect.js';
import { h, show } from '../dom.js';
import { language, t } from '../i18n.js';
import { REVISION } from '../mcp/headers.js';
import { revealed } from '../text/invisible.js';
import { codeBlock, markdown } from '../text/markdown.js';
import { size } from '../text/measure.js';
import { shellWord } from '../use/commands.js';
import { copy } from './announce.js';
import { lineIcon } from './glyphs.js';
import { sources } from './sources.js';

/** Stands for the caller's token in instructions: a real one must not get into a shell's history. */
const TOKEN = 'TOKEN';

/** @param {import('../route.js').Place} _ @param {AbortSignal} until */
export function view(_, until) {
  const about = h('div');
  const limits = h('dl.table-of');
  const signIn = h('p.hint', { hidden: true });
  const snippets = h('div.snippets');
  const instruct = async () => {
    const name = nameFor(discovery.value?._meta?.['io.modelcontextprotocol/serverInfo']?.name);
    const { isDemanded } = account.value;
    const host = isDemanded ? await authorizationHost() : null;
    if (until.aborted) return;
    signIn.hidden = !isDemanded;
    show(signIn, host ? t('facts.sign-in-at', { host }) : t('facts.sign-in-token', { token: TOKEN }));
    show(
      snippets,
      ways(name, isDemanded && !host).map(([title, text]) => snippet(title, text)),
    );
  };
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
  }, until);
  discovery.watch(() => void instruct(), until);
  account.watch(() => void instruct(), until);
  void howToSignIn();
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
    sources(until),
    h('h2', null, t('facts.connect')),
    h('p.hint', null, t('facts.connect-about')),
    signIn,
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

/** The authorization server to which clients lead by themselves; `null` without one. */
async function authorizationHost() {
  const { resourceMetadata } = await import('../auth/discovery.js');
  return resourceMetadata().then(
    ({ issuer }) => new URL(issuer).host,
    () => null,
  );
}

/** @param {string} name @param {boolean} needsToken @returns {[string, string][]} */
function ways(name, needsToken) {
  const url = client.url;
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const http = { type: 'http', url, ...(needsToken ? { headers } : {}) };
  const header = needsToken ? ` --header "Authorization: ${headers.Authorization}"` : '';
  return [
    ['Claude Code', `claude mcp add --transport http ${name} ${shellWord(url)}${header}`],
    ['VS Code', `code --add-mcp ${shellWord(JSON.stringify({ name, ...http }))}`],
    ['Gemini CLI', `gemini mcp add --transport http${header} ${name} ${shellWord(url)}`],
    ['Cursor, …', JSON.stringify({ mcpServers: { [name]: http } }, null, 2)],
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
