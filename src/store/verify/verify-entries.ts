import { isRevertible, type Family } from '../../model/change.ts';
import { eventOf } from '../../model/event.ts';
import { secretRecordId, type StoredHook } from '../../model/hook.ts';
import type { ApiKey } from '../../model/key.ts';
import type { StoredRule } from '../../model/rule.ts';
import type { Databases } from '../databases.ts';
import { latestAttempt } from '../deliveries/attempts.ts';
import type { AttemptRecord, QueueKey } from '../deliveries/deliveries.ts';
import { dueKey, dueOf, nOf, queueOf } from '../deliveries/delivery-keys.ts';
import { entryOfSeq, newestEntry } from '../outbox-entries.ts';
import { keyOf } from '../encoding.ts';
import { unpackClaim } from '../projections/claims.ts';
import { isSeveralMark, indexEntryProblem } from '../projections/index-entries.ts';
import { indexEntryOf } from '../projections/rule-index.ts';
import { foldWithPlaces, placeName, recordRows, rowOf } from './verify-records.ts';

/** Checks that an entry belongs in its projection; returns a description of the problem if not. */
export type EntryCheck = (
  databases: Databases,
  key: Uint8Array,
  value: string,
) => string | undefined;

/**
 * Checks that each entry belongs in its projection, for projections with keys of bytes.
 * verifyRecord checks the opposite: that no entry is missing.
 */
export const entryChecks = {
  txn(databases, key, value) {
    const [first = 0] = value.split(' ').map(Number);
    const row = rowOf(databases, first);
    return row !== undefined && isKey(key, row.txn)
      ? undefined
      : 'does not begin with a change of that transaction';
  },
  rule(databases, key, value) {
    const { rule } = JSON.parse(value) as StoredRule;
    if (!isKey(key, rule.id)) return `contains the rule ${rule.id}`;
    return hasRows(databases, rule.id, 'userinterface') ? undefined : 'is not in the log';
  },
  exact: (databases, key, value) => checkIndexEntry(databases, 'exact', key, value),
  wildcard: (databases, key, value) => checkIndexEntry(databases, 'wildcard', key, value),
  everexact: (databases, key, id) => checkFormerEntry(databases, 'exact', key, id),
  everwildcard: (databases, key, id) => checkFormerEntry(databases, 'wildcard', key, id),
  vk(databases, _key, value) {
    const { seq } = unpackClaim('', value);
    return rowOf(databases, seq) === undefined
      ? `refers to change ${seq}, which the log does not have`
      : undefined;
  },
  key(databases, key, value) {
    const { id } = JSON.parse(value) as ApiKey;
    if (!isKey(key, id)) return `contains the key ${id}`;
    return hasRows(databases, id, 'key') ? undefined : 'is not in the log';
  },
  keyhash(databases, key, id) {
    const text = databases.key.get(keyOf(id));
    const isOwn = text !== undefined && isKey(key, (JSON.parse(text) as ApiKey).hash);
    return isOwn ? undefined : `refers to ${id}, which has another hash`;
  },
  hook(databases, key, value) {
    const { hook } = JSON.parse(value) as StoredHook;
    if (!isKey(key, hook.id)) return `contains the hook ${hook.id}`;
    return hasRows(databases, hook.id, 'webhook') ? undefined : 'is not in the log';
  },
  hooktype(databases, key, id) {
    const text = databases.hook.get(keyOf(id));
    const types = text === undefined ? [] : (JSON.parse(text) as StoredHook).hook.event;
    const isSubscribed = types.some((type) => isKey(key, type));
    return isSubscribed ? undefined : `refers to ${id}, which does not subscribe to it`;
  },
  hooksecret(databases, key) {
    const id = secretRecordId(Buffer.from(key).toString());
    return hasRows(databases, id, 'secret') ? undefined : 'is not in the log';
  },
} as const satisfies Readonly<Record<string, EntryCheck>>;

/** Checks that a mark belongs to a row. verifyRecord checks its value. */
export function checkMark(databases: Databases, seq: number): string | undefined {
  const row = rowOf(databases, seq);
  const isOfRecord = row !== undefined && isRevertible(row.family);
  return isOfRecord ? undefined : 'does not refer to a change that can be reverted';
}

function checkIndexEntry(
  databases: Databases,
  database: 'exact' | 'wildcard',
  key: Uint8Array,
  value: string,
): string | undefined {
  const problem = indexEntryProblem(databases, { database, key: Buffer.from(key), value });
  if (isSeveralMark(database, value)) return problem;
  const [id] = JSON.parse(value) as readonly [string];
  const stored = storedRule(databases, id);
  const place = stored && indexEntryOf(stored);
  const isOwn =
    place?.database === database && Buffer.compare(place.key, key) === 0 && place.value === value;
  return isOwn ? problem : `refers to ${id}, which has another place`;
}

function checkFormerEntry(
  databases: Databases,
  database: 'exact' | 'wildcard',
  key: Uint8Array,
  id: string,
): string | undefined {
  const name = placeName({ database, key });
  const stored = storedRule(databases, id);
  // Most records never had another place, which needs no fold.
  if (stored !== undefined && placeName(indexEntryOf(stored)) === name) return undefined;
  return foldWithPlaces(recordRows(databases, id, 'userinterface')).places.has(name)
    ? undefined
    : `refers to ${id}, which never had this place`;
}

function storedRule({ rule }: Databases, id: string): StoredRule | undefined {
  const text = rule.get(keyOf(id));
  return text === undefined ? undefined : (JSON.parse(text) as StoredRule);
}

function hasRows(databases: Databases, id: string, family: Family): boolean {
  return recordRows(databases, id, family).length > 0;
}

function isKey(key: Uint8Array, text: string): boolean {
  return keyOf(text).equals(key);
}

/**
 * Checks entries of the deliverer's databases. They are not derived from the log, but each must
 * refer to hooks and events in the log.
 */
export const deliveryChecks = {
  pending(databases, key, value) {
    return placeProblem(databases, key) ?? eventProblem(databases, Number(value));
  },
  attempt(databases, key, value) {
    const { logSeqs, attempt, dueMs } = JSON.parse(value) as AttemptRecord;
    const problem = placeProblem(databases, key, logSeqs.length);
    if (problem !== undefined) return problem;
    for (const logSeq of logSeqs) {
      const wrong = eventProblem(databases, logSeq);
      if (wrong !== undefined) return wrong;
    }
    const [queue, n] = [queueOf(key), nOf(key)];
    const latest = latestAttempt(databases, queue, n);
    if (dueMs === undefined || latest?.attempt !== attempt) return undefined;
    const isDue = databases.due.doesExist(dueKey(queue, dueMs, n));
    return isDue ? undefined : 'has a retry that is not in the list of due messages';
  },
  due(databases, key) {
    const { dueMs, n } = dueOf(key);
    const latest = latestAttempt(databases, queueOf(key), n);
    return latest?.dueMs === dueMs ? undefined : 'refers to no message that is due at that time';
  },
  exhausted(databases, key) {
    const latest = latestAttempt(databases, queueOf(key), nOf(key));
    return latest?.outcome === 'exhausted' ? undefined : 'refers to no message that was given up';
  },
} as const satisfies Readonly<Record<string, EntryCheck>>;

/** Checks the count of a hook, or a replay, with this key. */
export const numberedChecks = {
  lane: (databases: Databases, queue: number) => hookProblem(databases, queue),
  job: (databases: Databases, seq: number) =>
    rowOf(databases, seq)?.family === 'replay' ? undefined : 'is not a replay',
} as const;

function hookProblem(databases: Databases, queue: QueueKey): string | undefined {
  const row = rowOf(databases, queue);
  const isHook = row?.family === 'webhook' && row.action === 'insert';
  return isHook ? undefined : 'does not belong to a hook';
}

function placeProblem(databases: Databases, key: Uint8Array, events = 1): string | undefined {
  const queue = queueOf(key);
  const newest = Number(databases.lane.get(queue) ?? 0);
  if (nOf(key) + events - 1 > newest) return `is beyond the hook's newest event, ${newest}`;
  return hookProblem(databases, queue);
}

function beyondOutbox(n: number): string {
  return `refers to entry ${n} of the outbox, which has fewer`;
}

function eventProblem(databases: Databases, logSeq: number): string | undefined {
  const n = entryOfSeq(logSeq);
  // The outbox forgets the oldest entries before the queues of hooks do.
  if (n !== undefined) return n <= newestEntry(databases) ? undefined : beyondOutbox(n);
  const row = rowOf(databases, logSeq);
  const isEvent = row !== undefined && eventOf(row) !== undefined;
  return isEvent ? undefined : `refers to change ${logSeq}, which is not an event`;
}
