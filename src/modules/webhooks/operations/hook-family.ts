import type { LoggedDraft, Reads, Store } from '../../../core/log/store.ts';
import type {
  RecordFamily,
  RecordParts,
  RecordStep,
  StoredRecord,
} from '../../../core/operations/records/family.ts';
import { noSuchRecord } from '../../../core/operations/records/read.ts';
import type { Log } from '../../../core/report/log.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import type { Cidr } from '../../../core/values/network/cidr.ts';
import type { EventTypes } from '../event-types.ts';
import {
  type Hook,
  type Node,
  type StoredHook,
  isDelivered,
  isExecutedOn,
  secretRecordId,
  waitingFields,
  foldHook,
} from '../hook.ts';
import { nextBatchAt } from '../next-batch.ts';
import {
  hookFieldsFromText,
  hookProblems,
  knownNodes,
  placeHookFields,
  placeProblems,
  privateUrlProblems,
  tableProblems,
} from './hook-placement.ts';
import { hookSchema } from './hook-schema.ts';
import { deliveriesPart } from '../log/delivery-log.ts';
import { storedHooks } from '../log/family.ts';

const hooksMax = 10_000;

/** The parts that the operations on hooks need. */
export interface HookParts extends RecordParts {
  /** Makes the secret of a hook: `whsec_` and base64. */
  readonly newSecret: () => string;
  readonly node: Node;
  /** Private networks that deliveries may connect to. */
  readonly webhookAllowPrivate: readonly Cidr[];
  readonly eventTypes: EventTypes;
  readonly log: Log;
}

const noun = 'hook';
const text = { type: 'string', nullable: true } as const;

/** Webhooks (docs/design/webhooks.md#registration). */
export const hookFamily: RecordFamily<HookParts, Hook> = {
  name: 'webhook',
  noun,
  command: 'hook',
  scopes: { read: 'webhook', write: 'webhook' },
  schema: hookSchema,
  summaries: {
    insert: 'Registers a hook. Only this answer shows its secret.',
    edit: 'Changes the sent fields of a hook; null restores the default of a field.',
    read: 'Reads a hook without its secret, or its history (qk=history), newest row first.',
  },

  find: (reads, id) => recordOf(reads.of(storedHooks).hook(id)),
  findAt: (reads, id, seq) => recordOf(reads.of(storedHooks).hookAt(id, seq)),
  after: (reads, id) => steps(reads.of(storedHooks).hooksAfter(id)),
  fold: (before, change) => placed(foldHook(before && hookOf(before), change)),

  place: (write) => placeHookFields(write),
  placeAgain: (_reads, record) => placeHookFields({ current: record as unknown as Hook, sent: {} }),
  fromText: hookFieldsFromText,
  ignored: ['waits', 'next_batch'],
  problems: (hook, names, { node, store, webhookAllowPrivate, eventTypes }) => [
    ...hookProblems(hook, names, knownNodes(node, store)),
    ...(names.includes('url') && isExecutedOn(hook, node)
      ? privateUrlProblems(hook, webhookAllowPrivate)
      : []),
    ...(names.includes('table') ? tableProblems(hook, store) : []),
    ...(names.includes('event')
      ? hook.event.flatMap((type) => eventTypes.problemOf(type, 'event') ?? [])
      : []),
  ],
  onInsert(id, { store, newSecret }) {
    requireRoom(store);
    const secret = newSecret();
    return { drafts: [secretDraft(id, { secret })], members: { secret } };
  },
  afterWrite({ stored: { record }, names }, { node, store, log }) {
    if (names.includes('where')) {
      const problems = placeProblems(record, knownNodes(node, store));
      for (const { message } of problems) log.warn({ hook: record.id }, message);
    }
    return [];
  },
  // After the answer, no delivery is sent as the hook was before.
  applied: (seq, { store }) => store.part(deliveriesPart).waitUntilApplied(seq),

  view: hookView,
  serverFields(hook, { store, now }, _origin, seq) {
    const stored = store.of(storedHooks).hook(hook.id);
    // A past version has no next batch.
    const nextBatch =
      stored?.seq === seq ? nextBatchAt(stored, store.part(deliveriesPart), now()) : undefined;
    return { ...(nextBatch !== undefined && { next_batch: nextBatch }) };
  },

  list: {
    filters: {
      event: { ...text, description: 'An event type that the hook names, or *.' },
      active: { type: 'boolean', nullable: true, description: 'Whether the hook delivers.' },
    },
    matches: (hook, { event, active }) =>
      (event === undefined || hook.event.includes(event as string)) &&
      (active === undefined || isDelivered(hook) === active),
    columns: {
      ID: 'id',
      STATE: ({ active }) => (active === true ? 'active' : 'paused'),
      EVENTS: ({ event }) => (event as readonly string[]).join(','),
      'NEXT BATCH': ({ next_batch: at }) => (at as string | undefined) ?? '-',
      'DELIVERED TO': ({ method, url }) => `${method as string} ${url as string}`,
      NAME: 'name',
    },
  },
};

function placed({ hook, ...place }: StoredHook): StoredRecord<Hook> {
  return { record: hook, ...place };
}

function recordOf(stored: StoredHook | undefined): StoredRecord<Hook> | undefined {
  return stored && placed(stored);
}

function hookOf({ record, ...place }: StoredRecord<Hook>): StoredHook {
  return { hook: record, ...place };
}

/** A hook is short, so the size of a step does not matter. */
function* steps(hooks: Iterable<StoredHook>): Iterable<RecordStep<Hook>> {
  for (const stored of hooks) yield { id: stored.hook.id, stored: placed(stored), size: 0 };
}

/**
 * A hook as a reader sees it. It is not active while fields wait that decide which events it gets.
 * Its secret is in a record of its own.
 */
function hookView(hook: Hook): JsonObject {
  const waits = waitingFields(hook);
  const fields = hook as unknown as JsonObject;
  return { ...fields, active: isDelivered(hook), ...(waits.length > 0 && { waits }) };
}

/** Throws `conflict` if there are as many hooks as the limit permits. */
function requireRoom(store: Pick<Store, 'counts'>): void {
  if (store.counts().hooks < hooksMax) return;
  throw new Failure(
    'conflict',
    `There are ${hooksMax} hooks, which is the limit. Invalidate one that is not needed.`,
  );
}

/** The draft of a hook's first secret; with `until`, of its next one. */
export function secretDraft(
  hookId: string,
  data: { readonly secret: string; readonly until?: string },
): LoggedDraft {
  const action = data.until === undefined ? 'insert' : 'edit';
  return { family: 'secret', id: secretRecordId(hookId), action, data };
}

/** The current state of a hook. Throws `not_found`. */
export function existingHook(reads: Pick<Reads, 'of'>, id: string): StoredHook {
  const stored = reads.of(storedHooks).hook(id);
  if (stored === undefined) throw noSuchHook(id);
  return stored;
}

/** Throws `conflict` for a hook that is paused because a field of it waits. */
export function requireNothingWaiting(hook: Hook): void {
  const [field] = waitingFields(hook);
  if (field === undefined) return;
  const message = `The hook is paused: its ${field} is not valid. Correct it with webhook.edit.`;
  throw new Failure('conflict', message, { field });
}

/** The failure for an id without a hook. */
export function noSuchHook(id: string): Failure {
  return noSuchRecord({ noun }, id);
}
