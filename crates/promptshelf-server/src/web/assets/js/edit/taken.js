// Checks of a new file's path, before it becomes a draft.

import { ApiProblem } from '../api.js';
import { contentOf } from './backend.js';
import { draftOf } from './drafts.js';
import { reason } from './reason.js';

/**
 * Whether a file or a draft is at a path.
 *
 * @param {import('./view.js').AnyBackend} backend
 * @param {string} library
 * @param {string} path
 */
export async function isTaken(backend, library, path) {
  if (await draftOf(library, path)) return true;
  try {
    await backend.read(path);
    return true;
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return false;
    throw error;
  }
}

/**
 * The reason why no library can have a file at a path, or an empty text. Without a connection the path is checked when
 * the file is saved.
 *
 * @param {import('./view.js').AnyBackend} backend
 * @param {string} path
 * @param {Uint8Array} bytes
 */
export async function pathProblem(backend, path, bytes) {
  try {
    await backend.analyze({ path, changes: [{ path, content: contentOf(bytes) }] });
  } catch (error) {
    if (error instanceof ApiProblem) return reason(error);
  }
  return '';
}
