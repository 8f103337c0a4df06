import { families } from '../../../src/families.ts';
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { uuidv7 } from 'uuidv7';
import type { BackgroundTasks } from '../../../src/core/background/tasks.ts';
import type { EventFields } from '../../../src/core/log/events/event.ts';
import type { FolderClaim } from '../../../src/core/log/folder/folder-claim.ts';
import { openStore } from '../../../src/core/log/open.ts';
import type { LoggedDraft, Store } from '../../../src/core/log/store.ts';
import { outboundProblem } from '../../../src/core/outbound/failure.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import type { AttemptResult, DeliveryAttempt } from '../../../src/modules/webhooks/attempt.ts';
import { Deliverer } from '../../../src/modules/webhooks/deliverer.ts';
import type { Hook } from '../../../src/modules/webhooks/hook.ts';
import { secretDraft } from '../../../src/modules/webhooks/operations/hook-family.ts';
import type { Report } from '../../../src/modules/webhooks/reports.ts';
import { createSecret } from '../../../src/modules/webhooks/sign.ts';
import { testTasks } from '../../core/background/test-tasks.ts';
import { commit } from '../../core/log/scratch.ts';
import { deliveriesPart } from '../../../src/modules/webhooks/log/delivery-log.ts';
import { storedHooks } from '../../../src/modules/webhooks/log/family.ts';

/** Milliseconds. */
export const hourMs = 3_600_000;
/** Milliseconds. */
export const dayMs = 24 * hourMs;

const answered: AttemptResult = {
  status: 200,
  retryAfterMs: undefined,
  answer: '',
  answerFields: [],
  ms: 1,
  problem: undefined,
};

/** The clocks of a test, which sets them. */
interface Clocks {
  nowMs: number;
  monotonicMs: number;
}

interface Rig {
  readonly store: Store;
  /** The bodies that were sent, in order. */
  readonly sent: string[];
  /** Resolves once this many bodies were sent. */
  until(count: number): Promise<void>;
  /** The number of signatures of each body. */
  readonly signatures: number[];
  /** Whether the receiver does not respond … */
  hangs: boolean;
  /** … and the number of attempts that wait for it. */
  waiting: number;
  /** The status of the next responses. */
  status: number | undefined;
  /** What is wrong with them, by the code of the dialler. */
  problem: Parameters<typeof outboundProblem>[0] | undefined;
  insertEvents(count?: number): Promise<void>;
  /**
   * Resolves once the deliverer has done all that is due at this time. It changes a hook and waits
   * until the change applies.
   */
  settle(id?: string): Promise<void>;
}

/** Starts a deliverer on its own store, with a function as its receiver. */
export async function startDeliverer(
  t: TestContext,
  {
    folder,
    clocks,
    hook = {},
    retryMs = [hourMs],
    retentionMs = 30 * dayMs,
    report = () => Promise.resolve(),
    claim = () => Promise.resolve({ release: () => Promise.resolve() }),
    tasks = testTasks(),
  }: {
    readonly folder: string;
    readonly clocks: Clocks;
    readonly hook?: Partial<Hook>;
    readonly retryMs?: readonly number[];
    readonly retentionMs?: number;
    readonly report?: Report;
    readonly claim?: () => Promise<FolderClaim>;
    readonly tasks?: BackgroundTasks;
  },
): Promise<Rig & { readonly stop: () => Promise<void> }> {
  const store = await openStore({ families, folder, now: () => clocks.nowMs, newId: uuidv7 });
  const sent: string[] = [];
  const waiting = new Set<() => void>();
  const signatures: number[] = [];
  const attempt: DeliveryAttempt = (_, { body, keys }, { signal } = {}) => {
    sent.push(body.toString());
    signatures.push(keys.length);
    for (const check of waiting) check();
    if (rig.hangs) {
      rig.waiting += 1;
      return hanging(signal).finally(() => (rig.waiting -= 1));
    }
    const problem = rig.problem && outboundProblem(rig.problem);
    return Promise.resolve({ ...answered, status: rig.status, problem });
  };
  const deliverer = new Deliverer({
    store,
    attempt,
    settings: () => ({
      ...{ retryMs, retentionMs, concurrency: 4 },
      node: { role: 'all', name: 'test' },
    }),
    claim,
    log: silentLog,
    tasks,
    now: () => clocks.nowMs,
    monotonicMs: () => clocks.monotonicMs,
    random: () => 0.5,
    report,
  });
  const rig: Rig = {
    store,
    sent,
    signatures,
    hangs: false,
    waiting: 0,
    status: 200,
    problem: undefined,
    until: (count) =>
      new Promise((resolve) => {
        const check = () => {
          if (sent.length < count) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    async insertEvents(count = 1) {
      await commit(store, ...eventDrafts(count));
    },
    async settle(id = firstHook(store)) {
      // A change that changes no hook: it applies after all changes before it.
      const data = { name: String(Math.random()) };
      const [change] = await commit(store, { family: 'webhook', id, action: 'edit', data });
      await store.part(deliveriesPart).waitUntilApplied(change?.seq ?? 0);
    },
  };
  if (store.of(storedHooks).hooksStamp() === undefined) {
    const id = uuidv7();
    const data = { ...hookFields, ...hook } as unknown as JsonObject;
    const secret = createSecret((bytes) => Buffer.alloc(bytes, 7));
    await commit(
      store,
      { family: 'webhook', id, action: 'insert', data },
      secretDraft(id, { secret }),
    );
  }
  deliverer.start();
  const stop = async () => {
    await deliverer.stop(0);
    await store.close();
  };
  t.after(stop);
  return Object.assign(rig, { stop });
}

/** Drafts of events for the hook of the rig. */
export function eventDrafts(count: number): readonly LoggedDraft[] {
  const fields: EventFields = { type: 'a.b', occurred_at: '2026-11-21T12:00:00.000Z', data: {} };
  const data = fields as unknown as JsonObject;
  const ids = Array.from({ length: count }, () => uuidv7());
  return ids.map((id) => ({ family: 'event', id, action: 'insert', data }));
}

/** Ends when it is cancelled. */
function hanging(signal: AbortSignal | undefined): Promise<AttemptResult> {
  const problem = outboundProblem('cancelled');
  return new Promise((resolve) => {
    signal?.addEventListener('abort', () => {
      resolve({ ...answered, status: undefined, problem });
    });
  });
}

/** The id of the hook of a rig. */
export function firstHook(store: Store): string {
  const [first = assert.fail()] = [...store.of(storedHooks).hooksAfter('')];
  return first.hook.id;
}

/** The default fields of the hook of a rig. */
export const hookFields = {
  event: ['a.b'],
  url: 'http://127.0.0.1/',
  method: 'POST',
  headers: {},
  frequency: { mode: 'each' },
  filter: {},
  order: false,
  retry_limit: 3,
  active: true,
};

/** Clocks at a time in milliseconds since 1970. */
export function clocksAt(nowMs: number): Clocks {
  return { nowMs, monotonicMs: 1_000 };
}

/** The first time of the clocks of a test, in milliseconds since 1970. */
export const start = Date.UTC(2026, 10, 21, 12);
