// The number of proposals that wait for a review of the caller, for the navigation.

import { account } from '../account.js';
import { read } from '../api.js';
import { features, loads, wanted } from '../app.js';

const EVERY = 20_000;

let isRunning = false;

/** Asks now, and again after each load of the library, each sign-in, and every 20 seconds while the page is visible. */
export function followWanted() {
  if (isRunning) return;
  isRunning = true;
  loads.watch(() => void ask());
  account.watch(() => void ask());
  document.addEventListener('visibilitychange', () => void ask());
  setInterval(() => void ask(), EVERY);
}

let isAsking = false;
/** The sign-in for which the scope was missing. @type {unknown} */
let refused = null;

async function ask() {
  if (document.hidden || isAsking || !features.value.channels || refused === account.value.isIn) return;
  isAsking = true;
  try {
    const { items } = await read('/reviews?state=open&limit=100');
    const count = items.filter((/** @type {{ reviewWanted: boolean }} */ one) => one.reviewWanted).length;
    // Set even if it is the same: lists look for news at each answer.
    wanted.set(count);
  } catch (error) {
    if (/** @type {any} */ (error).isStepUp) refused = account.value.isIn;
  } finally {
    isAsking = false;
  }
}

/** Asks at once, after the caller changed a proposal. */
export function lookAgain() {
  void ask();
}
