/**
 * How many random cases a property is tried with, or how many times a random fault happens: a
 * fifth of `count` in `npm test`, all of them in `npm run test:all` and when a file runs alone.
 */
export function randomRuns(count: number): number {
  return process.env.WAYMARK_TEST_TIER === 'main' ? Math.ceil(count / 5) : count;
}
