// Links to views.

/**
 * A link to a view: `linkTo('history', 'staging', { prompt: 'greet' })`.
 *
 * @param {import('./route.js').View} view
 * @param {string | number} [name]
 * @param {Record<string, string | number | null | undefined>} [values] empty ones are left out
 */
export function linkTo(view, name = '', values = {}) {
  const kept = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const query = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  const path = String(name).split('/').map(encodeURIComponent).join('/');
  return `#/${view}${path ? `/${path}` : ''}${query ? `?${query}` : ''}`;
}
