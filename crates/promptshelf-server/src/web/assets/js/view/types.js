// Types of the views. Type-checking only: this file is never loaded.

/**
 * @typedef {'browse' | 'channels' | 'compare' | 'edit' | 'history' | 'proposal' | 'proposals' | 'revision' | 'rollouts' | 'tokens' | 'usage' | 'webhooks'} LaterView views
 *   that are loaded when they are opened
 */

export {};
