// The place of the server: a proxy may serve it below a path.

/** The folder of the page, such as `https://example.com/prompts/`. */
export const root = new URL('.', document.baseURI);

/** Returns a path of this server. @param {string} path without a leading slash */
export const at = (path) => `${root.pathname}${path}`;
