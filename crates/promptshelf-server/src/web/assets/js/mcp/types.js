// Types of MCP results, as far as the page reads them. Type-checking only: this file is never loaded.

/**
 * @typedef {{ src: string, mimeType?: string, sizes?: string[], theme?: string }} Icon
 * @typedef {{ name: string, title?: string, description?: string, required?: boolean }} Argument
 * @typedef {object} Prompt
 * @property {string} name
 * @property {string} [title]
 * @property {string} [description]
 * @property {Icon[]} [icons]
 * @property {Argument[]} [arguments]
 * @property {Record<string, any>} [_meta]
 *
 * @typedef {{ audience?: string[], priority?: number, lastModified?: string }} Annotations
 * @typedef {{ uri: string, mimeType?: string, text?: string, blob?: string }} Contents
 * @typedef {object} Block
 * @property {string} type
 * @property {string} [text]
 * @property {string} [data]
 * @property {string} [mimeType]
 * @property {Contents} [resource]
 * @property {string} [uri]
 * @property {string} [name]
 * @property {string} [title]
 * @property {string} [description]
 * @property {number} [size]
 * @property {Annotations} [annotations]
 *
 * @typedef {{ role: string, content: Block }} Message
 * @typedef {{ type?: string, title?: string, description?: string, format?: string, default?: any, enum?: string[],
 *   enumNames?: string[], oneOf?: { const: string, title?: string }[], anyOf?: { const: string, title?: string }[],
 *   minLength?: number, maxLength?: number, minimum?: number, maximum?: number, items?: Schema }} Schema
 * @typedef {{ mode?: string, message: string, url?: string,
 *   requestedSchema?: { properties?: Record<string, Schema>, required?: string[] } }} Question
 * @typedef {object} PromptResult
 * @property {string} [resultType]
 * @property {string} [description]
 * @property {Message[]} messages
 * @property {Record<string, { method: string, params: Question }>} [inputRequests]
 * @property {string} [requestState]
 *
 * @typedef {object} Discovery
 * @property {string[]} supportedVersions
 * @property {Record<string, any>} capabilities
 * @property {string} [instructions]
 * @property {Record<string, any>} [_meta]
 */

export {};
