import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { eventOf } from '../../../../src/core/log/events/event.ts';
import { silentLog, type Log } from '../../../../src/core/report/log.ts';
import { createEmit, type Emit } from '../../../../src/core/log/events/emit.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { scratchStore } from '../scratch.ts';

const startMs = Date.UTC(2026, 10, 23, 12);
const failure = { code: 'bad_gateway', message: 'The source could not be reached.', id: 'r-1' };

interface Rig {
  readonly store: Store;
  readonly clock: { nowMs: number };
  /** Another emit on the same log, as another process has. */
  readonly newEmit: (log?: Log) => Emit;
  /** The type and data of the events in the log. */
  readonly events: () => readonly unknown[];
}

async function startRig(t: TestContext): Promise<Rig> {
  const store = await scratchStore(t);
  const clock = { nowMs: startMs };
  const now = () => clock.nowMs;
  return {
    store,
    clock,
    newEmit: (log = silentLog) => createEmit({ store, newId: uuidv7, now, by: 'serve', log }),
    events: () => {
      const seqs = Array.from({ length: store.seq() }, (_, at) => at + 1);
      return seqs.map((seq) => {
        const change = store.change(seq);
        const event = change && eventOf(change);
        return [event?.type, event?.data];
      });
    },
  };
}

suite('an event that Waymark raises', () => {
  test('is in the log once emit has resolved, with its time and the hook that it is about', async (t) => {
    const { store, newEmit } = await startRig(t);
    await newEmit()('error.detected', failure, { about: 'h-1' });
    const change = store.change(1);
    const event = change && eventOf(change);
    assert.deepEqual(
      [event?.type, event?.data, event?.occurred_at, event?.about, change?.by],
      ['error.detected', failure, '2026-11-23T12:00:00.000Z', 'h-1', 'serve'],
    );
  });

  test('that its type limits comes once a minute for an id, from all processes together', async (t) => {
    const { clock, newEmit, events } = await startRig(t);
    const [one, other] = [newEmit(), newEmit()];
    await Promise.all([one, one, other].map((emit) => emit('error.detected', failure)));
    await other('error.detected', { ...failure, id: 'r-2' });
    assert.deepEqual(events(), [
      ['error.detected', failure],
      ['error.detected', { ...failure, id: 'r-2' }],
    ]);
    clock.nowMs += 60_000;
    await one('error.detected', failure);
    await other('error.detected', failure);
    assert.equal(events().length, 3);
  });

  test('without a limit comes each time', async (t) => {
    const { newEmit, events } = await startRig(t);
    const emit = newEmit();
    await emit('webhook.test', { hook: 'h-1' });
    await emit('webhook.test', { hook: 'h-1' });
    assert.equal(events().length, 2);
  });

  test('that cannot be stored is a line in the log, and no error for its source', async (t) => {
    const { store, newEmit } = await startRig(t);
    await store.close();
    const lines: unknown[] = [];
    const emit = newEmit({ ...silentLog, warn: (_, text) => lines.push(text) });
    await emit('error.detected', failure);
    assert.deepEqual(lines, ['Cannot store an event of the type error.detected.']);
  });
});
