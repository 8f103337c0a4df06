import { families } from '../../src/families.ts';
// The process behind matching.ts: it does a few matches in each turn of the event loop, as requests
// come. Its arguments are the data folder and the number of its rules; it prints MatchTimes as
// JSON.
import { uuidv7 } from 'uuidv7';
import { possibleWinners, sortByPrecedence } from '../../src/modules/rules/matcher.ts';
import { openStore } from '../../src/core/log/open.ts';
import { visitOf } from './fill.ts';
import { percentilesOf, type MatchTimes } from './matching.ts';
import { storedRules } from '../../src/modules/rules/log/family.ts';

const [folder = '', rulesText = ''] = process.argv.slice(2);
const rules = Number(rulesText);
const matches = 100_000;
const matchesPerTurn = 16;

const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
const times: number[] = [];
let at = 1;
for (let done = 0; done < 2 * matches; done += 1) {
  // A pseudo-random order, so that no cache helps.
  at = (at * 48_271) % 2_147_483_647;
  const visit = visitOf(at % rules);
  const started = performance.now();
  const [winner] = sortByPrecedence(
    possibleWinners(store.of(storedRules), visit, () => true),
    {},
  );
  times.push((performance.now() - started) * 1000);
  if (winner === undefined) throw new Error(`nothing matches ${visit.origin}${visit.path}`);
  if (done % matchesPerTurn === 0) await new Promise(setImmediate);
}
await store.close();
const result: MatchTimes = {
  first: percentilesOf(times.slice(matches / 10, matches)),
  then: percentilesOf(times.slice(matches)),
};
console.log(JSON.stringify(result));
