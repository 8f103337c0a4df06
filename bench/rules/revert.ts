import { families } from '../../src/families.ts';
import { uuidv7 } from 'uuidv7';
import type { LoggedDraft } from '../../src/core/log/store.ts';
import { openStore } from '../../src/core/log/open.ts';
import { percentilesOf } from './matching.ts';
import type { Service } from './service.ts';

/** How long the revert of a large transaction takes, and how long visitors waited meanwhile. */
export interface RevertFigures {
  readonly dryRunMs: number;
  readonly doneMs: number;
  /** Milliseconds that visitors waited for a page meanwhile, one visitor at a time. */
  readonly visitorMedianMs: number;
  readonly visitorP99Ms: number;
  readonly visits: number;
}

/** Adds rules to a folder without a server, in one transaction; resolves to its id. */
export async function addTransaction(folder: string, rules: number): Promise<string> {
  const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
  const drafts = Array.from({ length: rules }, (_, at): LoggedDraft => ({
    family: 'userinterface',
    id: uuidv7(),
    action: 'insert',
    data: { origin: '*', path: `/bulk/${at}`, kind: 'content', content: `<h1>Bulk ${at}</h1>` },
  }));
  const [change] = await store.commit('bulk', () => ({ drafts, answer: (changes) => changes }));
  await store.close();
  if (change === undefined) throw new Error('nothing was written');
  return change.txn;
}

/** Reverts a transaction through the API while a visitor requests a page repeatedly. */
export async function measureRevert(
  service: Service,
  { url, txn }: { readonly url: string; readonly txn: string },
): Promise<RevertFigures> {
  const over = new AbortController();
  const visiting = visit(`${url}/edited`, over.signal);
  const invalidate = (v: object) => service.call('svc1.userinterface.invalidate', { txn, ...v });
  const started = performance.now();
  const dry = await invalidate({});
  const middle = performance.now();
  const done = await invalidate({ confirm: dry.data.digest });
  const ended = performance.now();
  over.abort();
  const times = await visiting;
  if (done.data.records !== dry.data.records) throw new Error('not all records were reverted');
  const { median, p99 } = percentilesOf(times);
  return {
    dryRunMs: middle - started,
    doneMs: ended - middle,
    visitorMedianMs: median,
    visitorP99Ms: p99,
    visits: times.length,
  };
}

async function visit(url: string, signal: AbortSignal): Promise<readonly number[]> {
  const times: number[] = [];
  while (!signal.aborted) {
    const started = performance.now();
    const reply = await fetch(url);
    await reply.text();
    times.push(performance.now() - started);
    await new Promise(setImmediate);
  }
  return times;
}
