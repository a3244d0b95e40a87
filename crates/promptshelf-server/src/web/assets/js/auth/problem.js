// What can go wrong when somebody signs in.

/** Why nobody can sign in, as a key of the page's words with what is filled in. */
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
