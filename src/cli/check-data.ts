import type { Config } from '../config/config.ts';
import { differencesKeptMax } from './limits.ts';
import type { Difference } from '../store/store.ts';
import { Failure } from '../model/failure.ts';
import { say, type Terminal } from './command.ts';
import { openDataToRead } from './data.ts';
import { createProgress } from './progress.ts';

/**
 * `waymark check --data`: checks the data file, replays the log and says where anything made of it
 * is something else. Resolves to the exit code.
 */
export async function checkData(
  config: Config,
  terminal: Terminal,
  { json }: { readonly json: boolean },
): Promise<number> {
  try {
    return await check(config, terminal, json);
  } catch (error) {
    if (!json || !(error instanceof Failure)) throw error;
    say(terminal.out, JSON.stringify({ ok: false, problem: error.message }, undefined, 2));
    return 1;
  }
}

async function check(config: Config, { out, err }: Terminal, json: boolean): Promise<number> {
  const store = await openDataToRead(config);
  const progress = createProgress(err, Date.now);
  const shown: Difference[] = [];
  let count = 0;
  try {
    const { seq, rules } = store.counts();
    for await (const { checked, of, differences } of store.verify()) {
      count += differences.length;
      shown.push(...differences.slice(0, differencesKeptMax - shown.length));
      progress.show(`${Math.min(100, Math.floor((checked / of) * 100))} % of ${of} entries`);
    }
    progress.clear();
    const ok = count === 0;
    if (json) {
      say(out, JSON.stringify({ ok, seq, rules, count, differences: shown }, undefined, 2));
      return ok ? 0 : 1;
    }
    for (const { database, what } of shown) say(err, `${database}: ${what}`);
    if (count > shown.length) say(err, `and ${count - shown.length} more`);
    if (ok) say(err, `The data is what its log of ${seq} changes says: ${rules} page rules.`);
    else say(err, `${count} places are not what the log of ${seq} changes says.`);
    return ok ? 0 : 1;
  } finally {
    progress.clear();
    await store.close();
  }
}
