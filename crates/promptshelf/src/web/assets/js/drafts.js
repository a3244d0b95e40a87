// What has been filled in and not yet used, for as long as the page is open.

/** @type {Map<string, Record<string, string>>} */
const drafts = new Map();

/** @param {string} name @param {Record<string, string>} values */
export function draft(name, values) {
  drafts.set(name, values);
}

/** @param {string} name */
export function draftOf(name) {
  return drafts.get(name);
}

/** Everything, as somebody takes it along who leaves to come back. */
export function allDrafts() {
  return [...drafts];
}

export function forgetDrafts() {
  drafts.clear();
}
