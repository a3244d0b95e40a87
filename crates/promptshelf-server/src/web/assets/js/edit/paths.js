// Rules of file names in the editor.

/** An ending as people type it: `.md`, `.prompt.md`, `.txt`; the `.2` of `v1.2` is none. */
const ENDING = /(\.(prompt|instructions))?\.[a-z][a-z0-9]*$/i;

/**
 * A typed path with an ending: without one it gets that of another path, since a file without it is not served.
 *
 * @param {string} typed
 * @param {string} like the path whose ending it gets
 */
export function withEnding(typed, like) {
  const [name, other] = [typed, like].map((path) => path.slice(path.lastIndexOf('/') + 1));
  return ENDING.test(name) ? typed : typed + (ENDING.exec(other)?.[0] ?? '');
}

/** Whether files at a path are partials, resources or tests: a part of it begins with `_`. @param {string} path */
export const isInternal = (path) => path.split('/').some((part) => part.startsWith('_'));
