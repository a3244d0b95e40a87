// Observable values.

/**
 * @template T
 */
export class Cell {
  /** @type {Set<(value: T) => void>} */
  #watchers = new Set();

  /** @param {T} value */
  constructor(value) {
    this.value = value;
  }

  /** @param {T} value */
  set(value) {
    this.value = value;
    for (const watcher of [...this.#watchers]) watcher(value);
  }

  /**
   * Calls `watcher` now and after each change, until the signal aborts.
   *
   * @param {(value: T) => void} watcher
   * @param {AbortSignal} [until]
   */
  watch(watcher, until) {
    if (until?.aborted) return;
    this.#watchers.add(watcher);
    until?.addEventListener('abort', () => this.#watchers.delete(watcher));
    watcher(this.value);
  }
}
