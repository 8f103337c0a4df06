import type { Change, Family } from '../../../core/log/change.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { storedJson } from '../../../core/log/encoding.ts';
import { type WaymarkEvent, derivedEventType, eventOf } from '../../../core/log/events/event.ts';
import { dispatchRowsMax } from '../../../core/log/limits.ts';
import type { Reads } from '../../../core/log/store.ts';
import { MIB } from '../../../core/values/units.ts';
import { entryEvent, newestEntry } from '../../nodes/log/outbox-entries.ts';
import { type Node, type StoredHook, isDeliveredOn } from '../hook.ts';
import { type DispatchResult, type QueueKey, eventKey } from './deliveries.ts';
import { putReplayJob } from './retention.ts';
import { storedHooks } from './family.ts';

/** Comparisons of events with hooks in one transaction of a dispatch. */
export const dispatchComparedMax = 10_000;
const dispatchCharactersMax = 4 * MIB;
const dispatchEntriesMax = 4_000;

/**
 * Puts the next events of the log after a seq into the queues of the hooks that get them, and
 * stores replays. The caller runs it in a write transaction. The size of one call is limited, so
 * that requests are served in between.
 */
export function putDispatch(
  databases: Databases,
  reads: Reads,
  { after, node }: { readonly after: number; readonly node: Node },
): DispatchResult & { readonly hasWritten: boolean } {
  const newest = reads.seq();
  const queues = new Queues(databases);
  const changed = new Set<QueueKey>();
  let upTo = after;
  let hasJobs = false;
  let [rows, characters, compared] = [0, 0, 0];
  // No hook gets events from before the first hook.
  if (hasNoHooks(reads) || newest - upTo > dispatchRowsMax) {
    upTo = Math.max(upTo, beforeFirstHook(reads, newest));
  }
  const hasSkipped = upTo > after;
  while (upTo < newest && rows < dispatchRowsMax && characters < dispatchCharactersMax) {
    if (queues.entries >= dispatchEntriesMax || compared >= dispatchComparedMax) break;
    upTo += 1;
    rows += 1;
    const text = databases.log.get(upTo);
    if (text === undefined) throw new Error(`the log has no change ${upTo}`);
    characters += text.length;
    if (!mayConcernHooks(reads, text)) continue;
    const change = storedJson(text) as Change;
    if (change.family === 'webhook') changed.add(queueOfHook(reads, change));
    if (change.family === 'replay') {
      putReplayJob(databases, change);
      hasJobs = true;
    }
    const event = eventOf(change);
    // The node itself took it, so it is in the queues already.
    if (event === undefined || event.node === node.name) continue;
    const takers = subscribersOf(reads, event);
    compared += takers.length;
    for (const { hook, insertedSeq } of takers) {
      if (insertedSeq < upTo && isDeliveredOn(hook, event, node)) queues.append(insertedSeq, upTo);
    }
  }
  appendEntries(databases, reads, { node, queues });
  queues.put();
  const hasWritten = hasJobs || queues.grown.size > 0;
  return { upTo, grown: queues.grown, changed, hasSkipped, hasWritten };
}

/** Appends the next events of the outbox. */
function appendEntries(
  databases: Databases,
  reads: Reads,
  { node, queues }: { readonly node: Node; readonly queues: Queues },
): void {
  const { delivery } = databases;
  const after = Number(delivery.get('entry') ?? 0);
  const end = Math.min(newestEntry(databases), after + dispatchRowsMax);
  if (end <= after) return;
  for (let n = after + 1; n <= end; n += 1) {
    const event = entryEvent(databases, n);
    if (event === undefined) continue;
    for (const { hook, insertedSeq } of subscribersOf(reads, event)) {
      if (isDeliveredOn(hook, event, node)) queues.append(insertedSeq, event.logSeq);
    }
  }
  delivery.putSync('entry', String(end));
}

/** The hooks that an event may be for. */
function subscribersOf(reads: Reads, { type, hook: only }: WaymarkEvent): readonly StoredHook[] {
  if (only === undefined) return reads.of(storedHooks).hooksFor(type);
  const stored = reads.of(storedHooks).hook(only);
  return stored === undefined ? [] : [stored];
}

const rowFamily = /"family":"([a-z]+)"/;
/** Families whose rows always concern hooks: events, changes of hooks, and replays. */
const dispatched: ReadonlySet<string> = new Set<Family>(['event', 'webhook', 'replay']);
/** The length of a row up to `family` and its value: write/write-plan.ts puts them first. */
const rowHeadCharacters = 1_000;

/** Whether a row can concern a hook. Other rows, which may hold megabytes, are not parsed. */
function mayConcernHooks(reads: Reads, row: string): boolean {
  const family = rowFamily.exec(row.slice(0, rowHeadCharacters))?.[1];
  if (family === undefined || dispatched.has(family)) return true;
  const type = derivedEventType(family as Family);
  return type !== undefined && reads.of(storedHooks).hooksFor(type).length > 0;
}

/** The id of a hook in the queues: the seq of its insert, which is its first row. */
function queueOfHook(reads: Reads, { id, seq }: Change): QueueKey {
  return reads.of(storedHooks).hook(id)?.insertedSeq ?? reads.rows('webhook', id)[0]?.seq ?? seq;
}

function hasNoHooks(reads: Reads): boolean {
  for (const _ of reads.of(storedHooks).hooksAfter('')) return false;
  return true;
}

function beforeFirstHook(reads: Reads, newest: number): number {
  let first = newest;
  for (const { insertedSeq } of reads.of(storedHooks).hooksAfter(''))
    first = Math.min(first, insertedSeq);
  return first;
}

/** The ends of the queues that a dispatch appends to. */
class Queues {
  readonly #databases: Databases;
  readonly #newest = new Map<QueueKey, number>();
  readonly #appended: (readonly [Buffer, string])[] = [];

  constructor(databases: Databases) {
    this.#databases = databases;
  }

  get entries(): number {
    return this.#appended.length;
  }

  get grown(): ReadonlySet<QueueKey> {
    return new Set(this.#newest.keys());
  }

  append(queue: QueueKey, logSeq: number): void {
    const n = (this.#newest.get(queue) ?? Number(this.#databases.lane.get(queue) ?? 0)) + 1;
    this.#newest.set(queue, n);
    this.#appended.push([eventKey(queue, n), String(logSeq)]);
  }

  put(): void {
    const { lane, pending } = this.#databases;
    for (const [queue, n] of this.#newest) lane.putSync(queue, String(n));
    for (const [key, logSeq] of this.#appended) pending.putSync(key, logSeq);
  }
}
