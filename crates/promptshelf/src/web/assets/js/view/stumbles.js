// What clients in the field do with a library like this one. Seen in 2026, in
// their sources and in what their users report; any of them may have changed.

import { t } from '../i18n.js';

/**
 * @typedef {{ client: string, what: string, names: string[] }} Stumble
 */

/** @param {import('../app.js').Library} library @returns {Stumble[]} */
export function stumbles({ prompts, pages }) {
  const named = (/** @type {(prompt: import('../mcp/types.js').Prompt) => boolean} */ fits) =>
    prompts.filter(fits).map((prompt) => prompt.name);
  const many = named((prompt) => (prompt.arguments?.length ?? 0) > 1);
  const several = named((prompt) => (prompt.arguments ?? []).filter((argument) => argument.required).length > 1);
  const odd = named((prompt) => !/^[a-z0-9_-]+$/.test(prompt.name));
  const silent = named((prompt) => !prompt.description);
  const found = [
    { client: 'Zed', what: t('stumble.zed', { n: many.length }), names: many },
    { client: 'Claude Code, Gemini CLI', what: t('stumble.several', { n: several.length }), names: several },
    { client: 'VS Code, Gemini CLI', what: t('stumble.odd', { n: odd.length }), names: odd },
    { client: t('stumble.all'), what: t('stumble.silent', { n: silent.length }), names: silent },
  ];
  const paged =
    pages > 1 ? [{ client: 'Gemini CLI, Cline, Continue', what: t('stumble.pages', { n: pages }), names: [] }] : [];
  return [...found.filter(({ names }) => names.length > 0), ...paged];
}
