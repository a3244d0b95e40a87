// What has been filled in and not yet used, for as long as the page is open.

/** @type {Map<string, { values: Record<string, string>, secrets: string[] }>} */
const drafts = new Map();

/**
 * @param {string} name
 * @param {Record<string, string>} values
 * @param {string[]} [secrets] which of them never leave the page
 */
export function draft(name, values, secrets = []) {
  drafts.set(name, { values, secrets });
}

/** @param {string} name */
export function draftOf(name) {
  return drafts.get(name)?.values;
}

/**
 * What can be shown to others, or kept where others may look.
 * @param {Record<string, string>} values
 * @param {string[]} secrets
 */
export function without(values, secrets) {
  return Object.fromEntries(Object.entries(values).filter(([key]) => !secrets.includes(key)));
}

/**
 * Everything but secrets, as somebody takes it along who leaves to come back.
 * @returns {[string, Record<string, string>][]}
 */
export function allDrafts() {
  return [...drafts].map(([name, { values, secrets }]) => [name, without(values, secrets)]);
}

export function forgetDrafts() {
  drafts.clear();
}
