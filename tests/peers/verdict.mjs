// Compares the results of a conformance run with the baseline.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @typedef {{ id: string, status: string, errorMessage?: string }} Check
 * @typedef {object} Baseline
 * @property {number} scored how many scenarios the run must have
 * @property {{ reason: string, expect: string[] }[]} failing `scenario`, when all of it is
 *   out of reach, or `scenario#check`, when the scenario's other checks must pass
 */

/** @param {string} title @returns {Baseline} */
export function baseline(title) {
  const file = join(import.meta.dirname, 'conformance-baseline.json');
  const known = JSON.parse(readFileSync(file, 'utf8'))[title];
  if (!known) throw new Error(`conformance-baseline.json has nothing for: ${title}`);
  return known;
}

/**
 * A scenario passes when none of its checks fails or warns. One that fails must
 * be expected to, check by check; one that is expected to fail must fail.
 * @param {Map<string, Check[]>} results
 * @param {Set<string>} counted
 * @param {Baseline} known
 */
export function judge(results, counted, known) {
  const expected = new Set(known.failing.flatMap((entry) => entry.expect));
  const lines = [];
  const problems = [];
  let passing = 0;
  /** @type {{ name: string, outcome: string, checks: number, reasons: string[] }[]} */
  const scenarios = [];
  const misjudged = new Set();
  const wrong = (scenario, text) => {
    misjudged.add(scenario);
    problems.push(`WRONG ${scenario}: ${text}`);
  };
  if (counted.size !== known.scored) {
    wrong('the suite', `${counted.size} scenarios count, not ${known.scored}: another version of the suite?`);
  }
  for (const scenario of counted) {
    const checks = results.get(scenario);
    const reasons = known.failing
      .filter(({ expect }) => expect.some((name) => name.split('#')[0] === scenario))
      .map(({ reason }) => reason);
    scenarios.push({ name: scenario, outcome: 'wrong', checks: checks?.length ?? 0, reasons });
    if (!checks) {
      wrong(scenario, 'was not run');
      continue;
    }
    const bad = checks.filter((check) => check.status === 'FAILURE' || check.status === 'WARNING');
    const outOfReach = expected.delete(scenario);
    const excused = bad.filter((check) => expected.has(`${scenario}#${check.id}`));
    if (bad.every((check) => check.status === 'WARNING')) passing += 1;
    if (outOfReach && bad.length === 0) wrong(scenario, 'passes now: take it out of the baseline');
    for (const check of bad) {
      const text = `${check.id} (${check.status}): ${check.errorMessage ?? 'no message'}`;
      if (outOfReach || excused.includes(check)) lines.push(`known ${scenario}: ${text}`);
      else wrong(scenario, text);
    }
    for (const check of excused) expected.delete(`${scenario}#${check.id}`);
    if (bad.length === 0) lines.push(`pass  ${scenario}`);
    if (!misjudged.has(scenario)) {
      scenarios.at(-1).outcome = outOfReach ? 'excused' : excused.length > 0 ? 'partly' : 'passes';
    }
  }
  for (const stale of expected) wrong(stale.split('#')[0], `${stale} is in the baseline, but does not fail: take it out`);
  for (const one of scenarios) if (misjudged.has(one.name)) one.outcome = 'wrong';
  return { passing, wrong: misjudged.size, lines, problems, scenarios };
}
