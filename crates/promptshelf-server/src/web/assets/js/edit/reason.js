// Errors in words.

import { ApiProblem } from '../api.js';
import { t } from '../i18n.js';
import { SignInNeeded } from '../mcp/client.js';
import { problemWords } from '../problem-words.js';

/** @param {unknown} error */
export function reason(error) {
  if (error instanceof ApiProblem) return problemWords(error);
  if (error instanceof SignInNeeded) {
    const { scopes } = error.challenge;
    return error.isStepUp ? t('sign-in.step-up', { scopes: scopes.join(' ') }) : t('edit.sign-in');
  }
  return t('edit.unreachable');
}
