// Tests of the comparison with the baseline.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge } from './verdict.mjs';

const passes = [{ id: 'a', status: 'SUCCESS' }];
const warns = [{ id: 'a', status: 'WARNING' }];
const fails = [{ id: 'a', status: 'FAILURE' }, ...passes.map((check) => ({ ...check, id: 'b' }))];

/** Judges one scenario, `x`, of which `expect` stands in the baseline. */
function verdict(checks, ...expect) {
  const known = { scored: 1, failing: [{ reason: 'for the test', expect }] };
  const { passing, wrong } = judge(new Map([['x', checks]]), new Set(['x']), known);
  return { passing, wrong };
}

test('a scenario without failures passes, one with failures is wrong', () => {
  assert.deepEqual(verdict(passes), { passing: 1, wrong: 0 });
  assert.deepEqual(verdict(fails), { passing: 0, wrong: 1 });
});

test('a warning that nobody expects is wrong', () => {
  assert.deepEqual(verdict(warns), { passing: 1, wrong: 1 });
  assert.deepEqual(verdict(warns, 'x#a'), { passing: 1, wrong: 0 });
});

test('what is expected to fail may, as a whole or by its checks', () => {
  assert.deepEqual(verdict(fails, 'x'), { passing: 0, wrong: 0 });
  assert.deepEqual(verdict(fails, 'x#a'), { passing: 0, wrong: 0 });
  assert.deepEqual(verdict(fails, 'x#b'), { passing: 0, wrong: 1 });
});

test('what is expected to fail must, or the baseline is stale', () => {
  assert.deepEqual(verdict(passes, 'x'), { passing: 1, wrong: 1 });
  assert.deepEqual(verdict(passes, 'x#a'), { passing: 1, wrong: 1 });
});

test('a scenario that was not run is wrong', () => {
  const known = { scored: 1, failing: [] };
  assert.equal(judge(new Map(), new Set(['x']), known).wrong, 1);
});

test('how each scenario ended is written down, with why it could not pass', () => {
  const outcome = (checks, ...expect) => {
    const known = { scored: 1, failing: [{ reason: 'for the test', expect }] };
    return judge(new Map([['x', checks]]), new Set(['x']), known).scenarios;
  };
  const reasons = ['for the test'];
  assert.deepEqual(outcome(passes), [{ name: 'x', outcome: 'passes', checks: 1, reasons: [] }]);
  assert.deepEqual(outcome(fails, 'x#a'), [{ name: 'x', outcome: 'partly', checks: 2, reasons }]);
  assert.deepEqual(outcome(fails, 'x'), [{ name: 'x', outcome: 'excused', checks: 2, reasons }]);
  assert.deepEqual(outcome(fails), [{ name: 'x', outcome: 'wrong', checks: 2, reasons: [] }]);
  assert.deepEqual(outcome(passes, 'x#a'), [{ name: 'x', outcome: 'wrong', checks: 1, reasons }]);
});
