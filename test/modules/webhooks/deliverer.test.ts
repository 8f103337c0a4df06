import assert from 'node:assert/strict';
import { type TestContext, suite, test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { dispatchRowsMax } from '../../../src/core/log/limits.ts';
import type { Store } from '../../../src/core/log/store.ts';
import { deliveryTidyMs } from '../../../src/modules/webhooks/deliverer.ts';
import { secretDraft } from '../../../src/modules/webhooks/operations/hook-family.ts';
import { createSecret } from '../../../src/modules/webhooks/sign.ts';
import { commit } from '../../core/log/scratch.ts';
import { temporaryFolder } from '../../folder.ts';
import {
  clocksAt,
  dayMs,
  eventDrafts,
  firstHook,
  hookFields,
  hourMs,
  start,
  startDeliverer,
} from './deliverer-rig.ts';
import { deliveriesPart } from '../../../src/modules/webhooks/log/delivery-log.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';
import { storedHooks } from '../../../src/modules/webhooks/log/family.ts';

suite('a clock that jumps', () => {
  for (const [way, jumpMs] of [
    ['forward', dayMs],
    ['back', -dayMs],
  ] as const) {
    test(`a day ${way} neither advances nor delays a retry`, async (t) => {
      const clocks = clocksAt(start);
      const rig = await startDeliverer(t, { folder: await temporaryFolder(t), clocks });
      rig.status = 500;
      await rig.insertEvents();
      await rig.until(1);
      await rig.settle();
      rig.status = 200;
      clocks.nowMs += jumpMs;
      await rig.settle();
      assert.equal(rig.sent.length, 1, 'the retry is not due');
      clocks.monotonicMs += hourMs + 1;
      clocks.nowMs += hourMs + 1;
      await rig.settle();
      await rig.until(2);
      assert.equal(rig.sent[1], rig.sent[0]);
    });

    test(`a day ${way} does not delay new events`, async (t) => {
      const clocks = clocksAt(start);
      const rig = await startDeliverer(t, { folder: await temporaryFolder(t), clocks });
      await rig.insertEvents();
      clocks.nowMs += jumpMs;
      await rig.insertEvents(10);
      await rig.until(11);
    });
  }

  for (const [way, jumpMs] of [
    ['forward', dayMs],
    ['back', -dayMs],
  ] as const) {
    test(`a day ${way} neither advances nor delays a batch`, async (t) => {
      const clocks = clocksAt(start);
      const frequency = { mode: 'batch', every: '1h', max_events: 100, max_bytes: '1MiB' } as const;
      const folder = await temporaryFolder(t);
      const rig = await startDeliverer(t, { folder, clocks, hook: { frequency } });
      const id = uuidv7();
      const data = { ...hookFields, event: ['other.type'] };
      await commit(rig.store, { family: 'webhook', id, action: 'insert', data });
      await rig.insertEvents(2);
      await rig.settle(id);
      clocks.nowMs += jumpMs;
      await rig.insertEvents();
      await rig.settle(id);
      assert.equal(rig.sent.length, 0, 'the batch is not complete');
      clocks.monotonicMs += hourMs + 1;
      await rig.insertEvents();
      await rig.until(1);
      assert.match(rig.sent[0] ?? '', /"first_seq":1,"last_seq":[34]}$/);
    });
  }

  test('back while no server runs does not delay messages that became due', async (t) => {
    const folder = await temporaryFolder(t);
    const clocks = clocksAt(start);
    const first = await startDeliverer(t, { folder, clocks });
    first.status = 500;
    await first.insertEvents();
    await first.until(1);
    await first.settle();
    await first.stop();

    const later = clocksAt(start - dayMs);
    const second = await startDeliverer(t, { folder, clocks: later });
    await second.settle();
    assert.equal(second.sent.length, 0);
    later.monotonicMs += hourMs + 1;
    await second.settle();
    await second.until(1);
    assert.equal(second.sent[0], first.sent[0]);
  });

  test('forward removes no messages that are younger than the retention', async (t) => {
    const clocks = clocksAt(start);
    const rig = await startDeliverer(t, {
      ...{ folder: await temporaryFolder(t), clocks, retentionMs: hourMs },
    });
    await rig.insertEvents();
    await rig.until(1);
    await rig.settle();
    clocks.nowMs += dayMs;
    clocks.monotonicMs += hourMs / 2;
    await rig.insertEvents();
    await rig.until(2);
    // Expired messages are removed in the background.
    for (let round = 0; round < 3; round += 1) await rig.settle();
    const [queue = 0] = rig.store.part(deliveriesPart).queues();
    const attempts = () =>
      [...rig.store.part(deliveriesPart).attempts(queue, undefined)].map(({ n }) => n);
    assert.deepEqual(attempts(), [2, 1]);
    clocks.monotonicMs += hourMs / 2 + 120_000;
    while (attempts().includes(1)) await rig.settle();
  });
});

suite('a batch that is sent at a time of the day', () => {
  const frequency = {
    ...({ mode: 'batch', at: ['14:00'], zone: 'Europe/Zurich' } as const),
    ...{ max_events: 3, max_bytes: '1MiB' },
  };

  test('waits for that time, and has all events from before it', async (t) => {
    // 13:00 in Zurich.
    const clocks = clocksAt(start);
    const folder = await temporaryFolder(t);
    const rig = await startDeliverer(t, { folder, clocks, hook: { frequency } });
    const pass = async (ms: number) => {
      clocks.nowMs += ms;
      clocks.monotonicMs += ms;
      await rig.settle();
    };
    await rig.insertEvents(4);
    await pass(hourMs - 1);
    assert.deepEqual(rig.sent, []);
    await pass(1);
    await rig.until(2);
    const ranges = () => rig.sent.map((body) => /"first_seq":\d+,"last_seq":\d+/.exec(body)?.[0]);
    const first = ['"first_seq":1,"last_seq":3', '"first_seq":4,"last_seq":4'];
    assert.deepEqual(ranges().toSorted(), first);
    await rig.insertEvents();
    await pass(dayMs - 1);
    assert.equal(rig.sent.length, 2);
    await pass(1);
    await rig.until(3);
    assert.equal(ranges()[2], '"first_seq":5,"last_seq":5');
  });

  test('is sent at the next start if no server ran at that time', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await startDeliverer(t, { folder, clocks: clocksAt(start), hook: { frequency } });
    await first.insertEvents(2);
    await first.settle();
    await first.stop();
    const second = await startDeliverer(t, { folder, clocks: clocksAt(start + 2 * hourMs) });
    await second.until(1);
    assert.match(second.sent[0] ?? '', /"first_seq":1,"last_seq":2/);
  });
});

const inTime = { timeout: 60_000 };

test('a receiver that says 200 and does not take the whole message gets it again', async (t) => {
  const clocks = clocksAt(start);
  const rig = await startDeliverer(t, { folder: await temporaryFolder(t), clocks });
  rig.problem = 'unsent';
  await rig.insertEvents();
  await rig.until(1);
  await rig.settle();
  rig.problem = undefined;
  clocks.monotonicMs += hourMs + 1;
  await rig.settle();
  await rig.until(2);
  assert.equal(rig.sent[1], rig.sent[0]);
});

test('a retry does not wait while new messages pause', inTime, async (t) => {
  const clocks = clocksAt(start);
  const folder = await temporaryFolder(t);
  const rig = await startDeliverer(t, { folder, clocks, retryMs: [20], hook: { retry_limit: 99 } });
  rig.status = 500;
  await rig.insertEvents(12);
  await rig.until(1);
  // After several failed probes, new messages pause for a minute.
  for (let round = 0; round < 12; round += 1) {
    clocks.monotonicMs += round < 8 ? 50 : 0;
    await rig.settle();
  }
  const sent = rig.sent.length;
  assert.ok(new Set(rig.sent).size < 12, 'new messages pause');
  clocks.monotonicMs += 50;
  await rig.until(sent + 1);
  assert.ok(rig.sent.slice(0, sent).includes(rig.sent[sent] ?? ''));
});

test('a replaced secret signs for its announced time, and no longer', async (t) => {
  const clocks = clocksAt(start);
  const rig = await startDeliverer(t, { folder: await temporaryFolder(t), clocks });
  const id = firstHook(rig.store);
  const until = new Date(start + dayMs).toISOString();
  const secret = createSecret((bytes) => Buffer.alloc(bytes, 8));
  const rotated_at = new Date(start).toISOString();
  await commit(
    rig.store,
    { family: 'webhook', id, action: 'edit', data: { rotated_at } },
    secretDraft(id, { secret, until }),
  );
  for (const [ms, count] of [
    [0, 1],
    [dayMs - 1, 2],
    [1, 3],
  ] as const) {
    clocks.nowMs += ms;
    await rig.insertEvents();
    await rig.until(count);
  }
  assert.deepEqual(rig.signatures, [2, 2, 1]);
});

test('an attempt is reported before it is recorded', async (t) => {
  const reported = Promise.withResolvers<undefined>();
  const folder = await temporaryFolder(t);
  const clocks = clocksAt(start);
  const outcomes: string[] = [];
  const rig = await startDeliverer(t, {
    ...{ folder, clocks, hook: { retry_limit: 1 } },
    report: ({ record }) => {
      outcomes.push(record.outcome);
      return reported.promise;
    },
  });
  rig.status = 500;
  await rig.insertEvents();
  await rig.until(1);
  const [queue = 0] = rig.store.part(deliveriesPart).queues();
  const attempts = () => [...rig.store.part(deliveriesPart).attempts(queue, undefined)];
  await rig.store.part(deliveriesPart).dispatch({ role: 'all', name: 'test' });
  assert.deepEqual([outcomes, attempts()], [['exhausted'], []]);
  reported.resolve(undefined);
  while (attempts().length === 0) await rig.settle();
});

suite('a change of a hook applies', () => {
  for (const [what, count] of [
    ['at once', 0],
    ['after more events than are read at once', 2 * dispatchRowsMax],
  ] as const) {
    test(what, async (t) => {
      const rig = await startDeliverer(t, {
        folder: await temporaryFolder(t),
        clocks: clocksAt(start),
      });
      rig.hangs = true;
      await rig.insertEvents();
      await rig.until(1);
      const id = firstHook(rig.store);
      const rows = rig.store.rows('webhook', id).map(({ seq }) => seq);
      const gone = { family: 'webhook', id, action: 'invalidate', data: { rows } } as const;
      const changes = await commit(rig.store, ...eventDrafts(count), gone);
      await rig.store.part(deliveriesPart).waitUntilApplied(changes.at(-1)?.seq ?? 0);
      assert.equal(rig.waiting, 0);
      assert.equal(rig.sent.length, 1);
    });
  }
});

test('a hook that is resumed while idle senders are removed gets each event once', async (t) => {
  const folder = await temporaryFolder(t);
  const watched: { store?: Store; wasPaused: boolean } = { wasPaused: false };
  const isResumed = (): boolean =>
    watched.wasPaused &&
    [...(watched.store?.of(storedHooks).hooksAfter('') ?? [])][0]?.hook.active === true;
  // The clock jumps with the change that resumes the hook, so both take effect in the same turn.
  const clocks = {
    nowMs: start,
    get monotonicMs(): number {
      return isResumed() ? 2 * deliveryTidyMs : 0;
    },
  };
  const rig = await startDeliverer(t, { folder, clocks });
  watched.store = rig.store;
  const id = firstHook(rig.store);
  const edit = { family: 'webhook', id, action: 'edit' } as const;
  await rig.insertEvents();
  await rig.until(1);
  await commit(rig.store, { ...edit, data: { active: false } });
  await rig.insertEvents(3);
  await rig.settle();
  watched.wasPaused = true;
  await commit(rig.store, { ...edit, data: { active: true } });
  await rig.until(4);
  await rig.settle();
  assert.equal(rig.sent.length, 4);
  assert.equal(new Set(rig.sent).size, 4);
});

suite('the retention', () => {
  test('does not pass while no server runs', async (t) => {
    const folder = await temporaryFolder(t);
    const first = await startDeliverer(t, { folder, clocks: clocksAt(start) });
    const id = firstHook(first.store);
    const edit = { family: 'webhook', id, action: 'edit' } as const;
    await commit(first.store, { ...edit, data: { active: false } });
    await first.insertEvents(3);
    await first.settle();
    await first.stop();

    const clocks = clocksAt(start + 60 * dayMs);
    const second = await startDeliverer(t, { folder, clocks });
    const deliveries = second.store.part(deliveriesPart);
    const [queue = 0] = deliveries.queues();
    for (let round = 0; round < 3; round += 1) await second.settle();
    assert.equal(deliveries.depth(queue).queued, 3);
    await second.insertEvents();
    const passed = 30 * dayMs - hourMs;
    clocks.nowMs += passed;
    clocks.monotonicMs += passed;
    for (let round = 0; round < 3; round += 1) await second.settle();
    assert.equal(deliveries.depth(queue).queued, 4);
    await commit(second.store, { ...edit, data: { active: true } });
    await second.until(4);
  });

  test('removes attempts, and events that wait for a paused hook', async (t) => {
    const clocks = clocksAt(start);
    const pass = (ms: number) => {
      clocks.nowMs += ms;
      clocks.monotonicMs += ms;
    };
    const rig = await startDeliverer(t, {
      ...{ folder: await temporaryFolder(t), clocks, retentionMs: hourMs, retryMs: [10 * hourMs] },
    });
    const deliveries = rig.store.part(deliveriesPart);
    await rig.insertEvents();
    await rig.until(1);
    rig.status = 500;
    await rig.insertEvents();
    await rig.until(2);
    await rig.settle();
    const id = firstHook(rig.store);
    const paused = { active: false };
    await commit(rig.store, { family: 'webhook', id, action: 'edit', data: paused });
    await rig.insertEvents(3);
    await rig.settle();
    const [queue = 0] = deliveries.queues();
    const state = () => ({
      attempts: [...deliveries.attempts(queue, undefined)].length,
      ...deliveries.depth(queue),
    });
    assert.deepEqual(state(), { attempts: 2, queued: 3, waiting: 1 });
    pass(hourMs / 2);
    await rig.insertEvents();
    await rig.settle();
    assert.deepEqual(state(), { attempts: 2, queued: 4, waiting: 1 });
    pass(hourMs / 2 + 120_000);
    while (state().attempts > 0 || state().queued > 1) await rig.settle();
    assert.deepEqual(state(), { attempts: 0, queued: 1, waiting: 0 });

    rig.status = 200;
    const resumed = { active: true };
    await commit(rig.store, { family: 'webhook', id, action: 'edit', data: resumed });
    await rig.until(3);
    assert.match(rig.sent[2] ?? '', /"seq":6,/, 'the receiver sees the gap');
    for await (const { differences } of rig.store.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });
});

suite('a hook with `order`', () => {
  const seqsOf = (sent: readonly string[]): readonly number[] =>
    sent.map((body) => Number(/"seq":(\d+)/.exec(body)?.[1]));

  /** A deliverer that records no attempt before the test says so. */
  const begin = async (t: TestContext) => {
    const recording = Promise.withResolvers<undefined>();
    const rig = await startDeliverer(t, {
      ...{ folder: await temporaryFolder(t), clocks: clocksAt(start), hook: { order: true } },
      report: async () => {
        await recording.promise;
      },
    });
    const record = (): void => {
      recording.resolve(undefined);
    };
    return { rig, record };
  };

  test('sends the next message when the receiver has accepted the one before, and before that is recorded', async (t) => {
    const { rig, record } = await begin(t);
    await rig.insertEvents(6);
    // As many as `concurrency` allows may be sent and not recorded yet.
    await rig.until(4);
    await rig.settle();
    assert.deepEqual(seqsOf(rig.sent), [1, 2, 3, 4]);
    record();
    await rig.until(6);
    assert.deepEqual(seqsOf(rig.sent), [1, 2, 3, 4, 5, 6]);
  });

  test('sends nothing behind a failed message, also while that is being recorded', async (t) => {
    const { rig, record } = await begin(t);
    rig.status = 500;
    await rig.insertEvents(2);
    await rig.until(1);
    await rig.settle();
    record();
    await rig.settle();
    assert.deepEqual(seqsOf(rig.sent), [1]);
  });
});
