// Sign-in failures.

/** A sign-in failure, as a translation key with its values. */
export class SignInProblem extends Error {
  /**
   * @param {string} key after `sign-in.`
   * @param {Record<string, string>} [values]
   */
  constructor(key, values = {}) {
    super(key);
    this.key = key;
    this.values = values;
  }
}
