import {
  isRevertible,
  type Change,
  type HistoryRow,
  type RevertibleFamily,
} from '../../core/log/change.ts';
import { changeInDraft } from '../drafts/draft.ts';
import { Failure } from '../../core/values/failure.ts';
import type { Hook } from '../webhooks/hook.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import type { Row } from '../tables/row.ts';
import type { Rule } from '../rules/rule.ts';
import type { TableDefinition } from '../tables/table.ts';
import { escapedPath } from '../../core/values/path.ts';
import { invalidatedRows } from '../../core/log/write/fold.ts';
import type { Reads } from '../../core/log/store.ts';
import { authorName } from '../../core/operations/keys/author-name.ts';
import { storedHooks } from '../webhooks/log/family.ts';
import { storedRules } from '../rules/log/family.ts';
import { storedTables } from '../tables/log/family.ts';

/**
 * All page rules, hooks, tables and rows as lines for an import
 * (docs/design/configuration.md#commands), as they are when the iteration starts. They are in the
 * order of their inserts, because that is the last criterion of matching. No line has a hook's
 * secret.
 */
export function* exportedRecords(
  reads: RecordReads,
  skip: SkipDamaged = skipNothing,
): Iterable<string> {
  const upTo = reads.seq();
  for (let seq = 1; seq <= upTo; seq += 1) {
    const line = lineOrSkip(seq, skip, () => recordLine(reads, seq, upTo));
    if (line !== undefined) yield line;
  }
}

type RecordReads = Pick<Reads, 'seq' | 'change' | 'of'>;

/** Called for a change that cannot be read and gets no line; may throw. */
type SkipDamaged = (seq: number, error: Failure) => void;

const skipNothing: SkipDamaged = (_seq, error) => {
  throw error;
};

function lineOrSkip(
  seq: number,
  skip: SkipDamaged,
  line: () => string | undefined,
): string | undefined {
  try {
    return line();
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'unavailable') throw error;
    skip(seq, error);
    return undefined;
  }
}

/** The line of the record that a change has inserted, if it exists at `upTo`. */
function recordLine(reads: RecordReads, seq: number, upTo: number): string | undefined {
  const { family, action, id } = changeOf(reads, seq);
  if (action !== 'insert') return undefined;
  if (family === 'userinterface') {
    const stored = reads.of(storedRules).ruleAt(id, upTo);
    if (stored?.insertedSeq !== seq) return undefined;
    return JSON.stringify({ ...exportedFields(stored.rule), vk: exportVk(family, id) });
  }
  if (family === 'table') {
    const stored = reads.of(storedTables).tableAt(id, upTo);
    if (stored?.insertedSeq !== seq) return undefined;
    const v = exportedTableFields(stored.table);
    return JSON.stringify({ a: 'svc1.table.insert', v, vk: exportVk(family, id) });
  }
  if (family === 'record') {
    const stored = reads.of(storedTables).rowAt(id, upTo);
    if (stored?.insertedSeq !== seq) return undefined;
    const v = exportedRowFields(stored.row);
    return JSON.stringify({ a: 'svc1.record.insert', v, vk: exportVk(family, id) });
  }
  if (family !== 'webhook') return undefined;
  const stored = reads.of(storedHooks).hookAt(id, upTo);
  if (stored?.insertedSeq !== seq) return undefined;
  const v = exportedHookFields(stored.hook);
  return JSON.stringify({ a: 'svc1.webhook.insert', v, vk: exportVk(family, id) });
}

/**
 * The rows of the log as lines, each as in a history (docs/design/history.md#history-rows) with the
 * family and id of its record and the name of its author, as they are when the iteration starts.
 * The hashes of keys and the secrets of hooks are left out.
 */
export function* exportedHistory(
  reads: HistoryReads,
  skip: SkipDamaged = skipNothing,
): Iterable<string> {
  const upTo = reads.seq();
  const invalidatedThen = invalidatedAt(reads, upTo);
  const names = new Map<string, string | undefined>();
  const nameOf = (by: string): string | undefined => {
    if (!names.has(by)) names.set(by, authorName(reads, by));
    return names.get(by);
  };
  for (let seq = 1; seq <= upTo; seq += 1) {
    const line = lineOrSkip(seq, skip, () => {
      const change = changeOf(reads, seq);
      return historyLine(change, nameOf(change.by), invalidatedThen(change));
    });
    if (line !== undefined) yield line;
  }
}

/** The data of a change without the hash of a key or the secret of a hook. */
function openData(change: Change): JsonObject {
  const { family, data } = change;
  const { hash: _hash, secret: _secret, ...open } = data;
  if (family === 'key' || family === 'secret') return open;
  const isSecret = changeInDraft(change)?.change.family === 'secret';
  return isSecret ? { ...data, data: {} } : data;
}

function historyLine(
  change: Change,
  name: string | undefined,
  invalidated: string | undefined,
): string {
  const { seq, txn, by, via, family, id, action, dtu_stored, dtu_txn } = change;
  const tool = via !== undefined && { via };
  const author = { by, ...(name !== undefined && { by_name: name }) };
  const row = { seq, txn, ...author, ...tool, family, id, action, dtu_stored, dtu_txn };
  const data = openData(change);
  return JSON.stringify(
    invalidated === undefined ? { ...row, data } : { ...row, invalidated, data_invalidated: data },
  );
}

type HistoryReads = Pick<Reads, 'seq' | 'change' | 'inForce' | 'history' | 'rows' | 'key'>;

/** Makes the function that returns when a row was invalidated, as of a seq of the log. */
function invalidatedAt(reads: HistoryReads, upTo: number): (row: Change) => string | undefined {
  let examined = upTo;
  /** Records with an invalidate after the seq. */
  const others = new Set<string>();
  const folded = new Map<string, ReadonlyMap<number, Change>>();
  return (row) => {
    for (const newest = reads.seq(); examined < newest;) {
      examined += 1;
      const { action, id } = changeOf(reads, examined);
      if (action === 'invalidate') others.add(id);
    }
    const { family, id, seq } = row;
    if (others.has(id) && isRevertible(family)) {
      const rows = reads.rows(family, id, upTo);
      const then = folded.get(id) ?? invalidatedRows(rows);
      folded.set(id, then);
      return then.get(seq)?.dtu_stored;
    }
    return reads.inForce(seq) ? undefined : historyRow(reads, row)?.invalidated;
  };
}

/**
 * The fields of a page rule as input of an insert that makes the same rule: an insert reads a path
 * as in a URL, so `%`, `?` and `#` are percent-encoded.
 */
export function exportedFields({ id: _id, origin, path, kind, ...fields }: Rule): JsonObject {
  const written = path.startsWith('/') ? escapedPath(path) : path;
  return { origin, path: written, kind, ...(fields as unknown as JsonObject) };
}

/** The fields of a hook as input of an insert. */
export function exportedHookFields({ id: _id, rotated_at: _rotated, ...fields }: Hook): JsonObject {
  return fields as unknown as JsonObject;
}

/** The fields of a table as input of an insert. */
export function exportedTableFields({
  id: _id,
  rows_pending: _pending,
  ...fields
}: TableDefinition): JsonObject {
  return { ...fields };
}

/** The fields of a row as input of an insert; also those that no operation shows. */
export function exportedRowFields({ id: _id, ...fields }: Row): JsonObject {
  return fields as JsonObject;
}

const prefixes: Readonly<Record<RevertibleFamily, string>> = {
  userinterface: 'rule:',
  webhook: 'hook:',
  table: 'table:',
  record: 'record:',
};
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The vk of an exported record, which has its id. */
function exportVk(family: RevertibleFamily, id: string): string {
  return prefixes[family] + id;
}

/** The id in the vk of an exported record; undefined for another vk. */
export function idOfExportVk(family: RevertibleFamily, vk: string): string | undefined {
  const prefix = prefixes[family];
  const id = vk.slice(prefix.length);
  return vk.startsWith(prefix) && uuid.test(id) ? id : undefined;
}

function changeOf(reads: Pick<Reads, 'change'>, seq: number): Change {
  const change = reads.change(seq);
  if (change === undefined) throw new Error(`the log has no change ${seq}`);
  return change;
}

function historyRow(
  reads: Pick<Reads, 'history'>,
  { family, id, seq }: Change,
): HistoryRow | undefined {
  return reads.history(family, id, { before: seq + 1, limit: 1 })[0];
}
