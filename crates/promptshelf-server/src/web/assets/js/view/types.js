// Types of the views. Type-checking only: this file is never loaded.

/**
 * @typedef {'browse' | 'channels' | 'compare' | 'edit' | 'history' | 'proposal' | 'proposals' | 'revision' | 'rollouts' | 'usage' | 'webhooks'} LaterView views
 *   that are loaded when they are opened
 */

export {};
