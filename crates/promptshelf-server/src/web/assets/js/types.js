// Types of the state and of the page's own API. Type-checking only: this file is never loaded.

/**
 * @typedef {import('./mcp/types.js').Prompt} Prompt
 * @typedef {{ name: string, path: string | null, tags: string[], texts: string[] }} PromptDetails
 * @typedef {object} Library
 * @property {Prompt[]} prompts
 * @property {Map<string, Prompt>} byName
 * @property {Map<string, PromptDetails>} details
 * @property {import('./text/fuzzy.js').Entry[]} entries
 * @property {number} pages
 * @property {boolean} whole whether everything has come
 * @typedef {{ state: 'connecting' | 'live' | 'lost' | 'paused' | 'sign-in', retryAt: number }} Connection
 * @typedef {{ name: string, type: string, default: string | null, examples: string[],
 *   choices: { value: string, title: string | null }[], pattern: string | null, minLength: number | null,
 *   maxLength: number | null, minimum: number | null, maximum: number | null, completes: boolean, asked?: boolean,
 *   sensitive?: boolean }} TypedArgument
 * @typedef {{ path: string | null, version: string | null, tags: string[], labels: Record<string, string[]>, arguments: TypedArgument[],
 *   profiles?: { name: string, entry: Prompt }[] }} TypedPrompt
 */

/**
 * @typedef {object} Session
 * @property {string} token
 * @property {string} [refresh]
 * @property {string[]} scopes
 * @property {string} [clientId]
 * @property {string} [tokenEndpoint]
 * @property {string} [revocationEndpoint]
 * @property {string} [resource]
 *
 * @typedef {object} PendingSignIn state of a started sign-in, needed after the redirect
 * @property {string} state
 * @property {string} verifier
 * @property {string} issuer
 * @property {boolean} saysIssuer whether that server names itself in its answers
 * @property {string} clientId
 * @property {string} tokenEndpoint
 * @property {string} [revocationEndpoint]
 * @property {string} resource
 * @property {string} redirect
 * @property {string[]} scopes
 * @property {string} fragment where on the page it began
 * @property {[string, Record<string, string>][]} drafts unsent form values
 */

export {};
