import { type PastReads, createPastRules } from '../../modules/rules/log/past-rules.ts';
import { rulesByPath } from '../../modules/rules/log/path-order.ts';
import { createTreeReads } from '../../modules/rules/log/path-tree.ts';
import { createRuleAccessReads } from '../../modules/rules/log/rule-access.ts';
import {
  findExact,
  findWildcards,
  hasSegmentWildcards,
  hasWildcardOrigins,
  roomFailure,
} from '../../modules/rules/log/rule-index.ts';
import { createRuleAssetReads, createRuleTimeReads } from '../../modules/rules/log/rule-lookups.ts';
import { type StoredRule, foldRule } from '../../modules/rules/rule.ts';
import { createRowReads } from '../../modules/tables/log/row-reads.ts';
import { createTableReads } from '../../modules/tables/log/table-reads.ts';
import type { ApiKey } from '../values/key.ts';
import type { Change, Family, HistoryRow } from './change.ts';
import { claimKey, unpackClaim } from './claims.ts';
import type { Databases } from './databases.ts';
import { historyKey, historyPrefix, keyOf, seqMax, storedJson } from './encoding.ts';
import type { LogFamily, ReadFamily, Reads, RuleStep } from './store.ts';
import { foldRows } from './write/fold.ts';

/**
 * Reads of the databases: inside a write transaction of this process its state, elsewhere the
 * newest committed one. `inOrder` puts the rows of a record, which come by seq, into the order in
 * which they apply.
 */
export function createReads(
  databases: Databases,
  families: readonly LogFamily[],
  inOrder: (rows: readonly Change[]) => readonly Change[] = (rows) => rows,
): Reads {
  const { meta, log, mark, txn, rule, vk, key, keyhash } = databases;

  const change = (seq: number): Change | undefined => parsed(log.get(seq)) as Change | undefined;
  const keyById = createKeyRead(databases);
  const ruleById = (id: string): StoredRule | undefined =>
    parsed(rule.get(keyOf(id))) as StoredRule | undefined;

  const rows: Reads['rows'] = (family, id, upTo = seqMax) => {
    const seqs = historySeqs(databases, id, { from: 0, below: upTo + 1 });
    const found = seqs.flatMap((seq) => {
      const row = change(seq);
      return row?.family === family ? [row] : [];
    });
    return inOrder(found);
  };
  const past: PastReads = {
    ruleAt(id, seq) {
      const current = ruleById(id);
      if (current !== undefined && current.seq <= seq) return current;
      return foldRows(rows('userinterface', id, seq), foldRule).stored;
    },
    rowByKeyAt: (...given) => rowReads.rowByKeyAt(...given),
    historyBytes: (id) => historyBytes(databases, id),
  };

  const tables = createTableReads(databases, rows);
  const rowReads = createRowReads(databases, { rows, ...tables, historyBytes: past.historyBytes });

  const reads: Reads = {
    rule: ruleById,
    ruleAt: (id, seq) => past.ruleAt(id, seq),
    rows,
    change,
    ...createRecordPlaces(databases),
    inForce: (seq) => !mark.doesExist(seq),
    txnSeqs(name) {
      const [first, last] = txn.get(keyOf(name))?.split(' ').map(Number) ?? [];
      return first === undefined || last === undefined ? undefined : { first, last };
    },
    seqAt: (timeMs) => seqAt(databases, timeMs),
    recordsAfter: (after) => recordsAfter(databases, after),
    recordsBefore: (before) => recordsBefore(databases, before),
    rulesByPath: (range) => rulesByPath(databases, range),
    at: (seq) => createPastRules(databases, past, seq),
    ...createPlaceReads(databases),
    history: (family, id, page) => recordHistory(databases, change, { family, id, ...page }),
    vkClaim(name) {
      const value = vk.get(claimKey(name));
      if (value === undefined) return undefined;
      const { seq, requestHash } = unpackClaim(name, value);
      const { id = '', by = '' } = change(seq) ?? {};
      return { vk: name, requestHash, id, by, seq };
    },
    key: keyById,
    keyByHash(hash) {
      const id = keyhash.get(keyOf(hash));
      return id === undefined ? undefined : keyById(id);
    },
    keys: () => [...key.getRange()].map(({ value }) => storedJson(value) as ApiKey),
    ...tables,
    ...rowReads,
    seq: () => Number(meta.get('seq') ?? 0),
    families,
    projectionOf: projectionsOf(families),
    of: (family) => opened(family),
  };
  const opened = familyReads(databases, reads);
  return reads;
}

/** Opens the reads of each family once. */
function familyReads(databases: Databases, reads: Reads): Reads['of'] {
  const opened = new Map<object, object>();
  return <R extends object>(family: ReadFamily<R>): R => {
    const known = opened.get(family) as R | undefined;
    if (known !== undefined) return known;
    const made = family.reads(databases, reads);
    opened.set(family, made);
    return made;
  };
}

function projectionsOf(families: readonly LogFamily[]): Reads['projectionOf'] {
  const records = Object.assign({}, ...families.map((one) => one.records)) as LogFamily['records'];
  return (family) => records?.[family];
}

function createRecordPlaces(databases: Databases): Pick<Reads, 'rowSeqs' | 'rowBytes'> {
  return {
    rowSeqs: (id) => rowSeqs(databases, id),
    rowBytes: (seq) => rowBytes(databases, seq),
  };
}

/** A websocket asks for its key at each message, so the latest one is parsed once. */
function createKeyRead({ key }: Databases): (id: string) => ApiKey | undefined {
  let latest: { readonly text: string; readonly parsed: ApiKey } | undefined;
  return (id) => {
    const text = key.get(keyOf(id));
    if (text === undefined) return undefined;
    if (latest?.text !== text) latest = { text, parsed: storedJson(text) as ApiKey };
    return latest.parsed;
  };
}

function recordHistory(
  databases: Databases,
  change: Reads['change'],
  {
    family,
    id,
    before,
    limit,
    characters = Infinity,
  }: { readonly family: Family; readonly id: string } & Parameters<Reads['history']>[2],
): readonly HistoryRow[] {
  const { log, mark } = databases;
  const found: HistoryRow[] = [];
  let read = 0;
  for (const seq of historySeqs(databases, id, { below: before, newestFirst: limit })) {
    const text = log.get(seq);
    const row = parsed(text) as Change | undefined;
    if (row?.family === family) found.push(historyRow(row, change(Number(mark.get(seq)))));
    read += text?.length ?? 0;
    if (read > characters) break;
  }
  return found;
}

type PlaceReads = Pick<
  Reads,
  'exactRules' | 'wildcardRules' | 'hasSegmentWildcards' | 'hasWildcardOrigins' | 'roomFailure'
> &
  ReturnType<typeof createTreeReads> &
  ReturnType<typeof createRuleTimeReads> &
  ReturnType<typeof createRuleAssetReads> &
  ReturnType<typeof createRuleAccessReads>;

/** The reads of the rules of a place, of the tree of places, of their times, assets and access. */
function createPlaceReads(databases: Databases): PlaceReads {
  return {
    exactRules: (origin, path) => findExact(databases, origin, path),
    wildcardRules: (origin, path, known) => findWildcards(databases, { origin, path }, known),
    hasSegmentWildcards: () => hasSegmentWildcards(databases),
    hasWildcardOrigins: () => hasWildcardOrigins(databases),
    ...createTreeReads(databases),
    ...createRuleTimeReads(databases),
    ...createRuleAssetReads(databases),
    ...createRuleAccessReads(databases),
    roomFailure: (place, planned) => roomFailure(databases, place, planned),
  };
}

function parsed(text: string | undefined): unknown {
  return text === undefined ? undefined : storedJson(text);
}

/** Seqs of a record's rows: oldest first from `from`, or the newest first, below `below`. */
function historySeqs(
  { history }: Databases,
  id: string,
  page:
    | { readonly from: number; readonly below: number }
    | { readonly below: number | undefined; readonly newestFirst: number },
): readonly number[] {
  const prefix = historyPrefix(id);
  const range =
    'from' in page
      ? { start: historyKey(prefix, page.from), end: historyKey(prefix, bounded(page.below)) }
      : {
          start: historyKey(prefix, bounded((page.below ?? seqMax) - 1)),
          end: historyKey(prefix, 0),
          reverse: true,
          limit: page.newestFirst,
        };
  return [...history.getKeys(range)].map((key) =>
    new DataView(key.buffer, key.byteOffset).getUint32(prefix.length),
  );
}

/** The seqs of all rows of a record, oldest first. */
export function rowSeqs(databases: Databases, id: string): readonly number[] {
  return historySeqs(databases, id, { from: 0, below: seqMax });
}

function historyBytes(databases: Databases, id: string): number {
  return rowSeqs(databases, id).reduce((sum, seq) => sum + rowBytes(databases, seq), 0);
}

/** The length of a row of the log in bytes; 0 if it does not exist. */
export function rowBytes({ log }: Databases, seq: number): number {
  return log.getBinaryFast(seq)?.length ?? 0;
}

function bounded(seq: number): number {
  return Math.max(0, Math.min(seqMax, Math.trunc(seq)));
}

function historyRow(change: Change, invalidating: Change | undefined): HistoryRow {
  const { seq, txn, by, via, action, dtu_stored, dtu_txn, data } = change;
  const invalidated = invalidating?.dtu_stored;
  const tool = via !== undefined && { via };
  return { seq, txn, by, ...tool, action, dtu_stored, dtu_txn, data, invalidated };
}

/** Times of rows never go back, so a binary search finds the row. */
function seqAt(databases: Databases, timeMs: number): number {
  let [low, high] = [0, Number(databases.meta.get('seq') ?? 0)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const storedMs = Date.parse(storedAt(databases, middle) ?? '');
    if (storedMs <= timeMs) low = middle;
    else high = middle - 1;
  }
  return low;
}

const storedField = /"dtu_stored":"([^"]+)"/;
/** The length of a row up to `dtu_stored` and its value: log/write-plan.ts puts them first. */
const rowHeadBytes = 120;

/**
 * The time at which a row of the log was stored, read without decoding the rest of the row;
 * undefined for a seq that the log has not reached.
 */
export function storedAt({ log }: Databases, seq: number): string | undefined {
  const head = log.getBinaryFast(seq)?.toString('latin1', 0, rowHeadBytes);
  return head === undefined ? undefined : storedField.exec(head)?.[1];
}

function* recordsAfter({ rule }: Databases, after: string): Iterable<RuleStep> {
  const start = after === '' ? undefined : Buffer.concat([keyOf(after), Buffer.from([0])]);
  yield* ruleSteps(rule.getRange(start === undefined ? {} : { start }));
}

function* recordsBefore({ rule }: Databases, before: string): Iterable<RuleStep> {
  const start = before === '' ? {} : { start: keyOf(before), exclusiveStart: true };
  yield* ruleSteps(rule.getRange({ ...start, reverse: true }));
}

function* ruleSteps(entries: Iterable<{ readonly value: string }>): Iterable<RuleStep> {
  for (const { value } of entries) {
    const stored = storedJson(value) as StoredRule;
    yield { id: stored.rule.id, stored, size: value.length };
  }
}
