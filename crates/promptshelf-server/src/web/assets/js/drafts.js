// Unsent form values, for the lifetime of the page.

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
 * Values without secrets, for links and storage.
 *
 * @param {Record<string, string>} values
 * @param {string[]} secrets
 */
export function without(values, secrets) {
  return Object.fromEntries(Object.entries(values).filter(([key]) => !secrets.includes(key)));
}

/**
 * All drafts without secrets, to restore after a sign-in redirect.
 *
 * @returns {[string, Record<string, string>][]}
 */
export function allDrafts() {
  return [...drafts].map(([name, { values, secrets }]) => [name, without(values, secrets)]);
}

export function forgetDrafts() {
  drafts.clear();
}
