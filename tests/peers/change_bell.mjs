// Counts notifications of one kind, and lets a check wait for the next one.

import { within } from './server.mjs';

export class ChangeBell {
  /** How often it has rung. */
  count = 0;
  #heard = 0;
  #wake = () => {};

  ring() {
    this.count += 1;
    this.#wake();
  }

  /** Waits for a ring that has not been waited for yet. */
  async next() {
    this.#heard += 1;
    const rung = new Promise((done) => {
      this.#wake = () => {
        if (this.count >= this.#heard) done(undefined);
      };
      this.#wake();
    });
    await within(rung, () => 'the change was not announced');
  }
}
