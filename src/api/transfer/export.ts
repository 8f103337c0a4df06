import type { Change, HistoryRow, RevertibleFamily } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import type { Hook } from '../../model/hook.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Rule } from '../../model/rule.ts';
import { foldRecord } from '../../store/log/fold.ts';
import type { Reads } from '../../store/store.ts';

/**
 * The page rules and hooks that there are, as lines that an import takes
 * (docs/design/configuration.md#commands), in the order of their inserts, which is the last to
 * decide between two rules: those of the moment when the first line is asked for, whatever is
 * written meanwhile. No line has a hook's secret.
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

type RecordReads = Pick<Reads, 'seq' | 'change' | 'ruleAt' | 'hookAt'>;

/** Told of each change that cannot be read, for which there is no line then; may throw instead. */
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

/** The line of the record that a change has inserted, where it is there as of `upTo`. */
function recordLine(reads: RecordReads, seq: number, upTo: number): string | undefined {
  const { family, action, id } = changeOf(reads, seq);
  if (action !== 'insert') return undefined;
  if (family === 'userinterface') {
    const stored = reads.ruleAt(id, upTo);
    if (stored?.insertedSeq !== seq) return undefined;
    return JSON.stringify({ ...exportedFields(stored.rule), vk: exportVk(family, id) });
  }
  if (family !== 'webhook') return undefined;
  const stored = reads.hookAt(id, upTo);
  if (stored?.insertedSeq !== seq) return undefined;
  const v = exportedHookFields(stored.hook);
  return JSON.stringify({ a: 'svc1.webhook.insert', v, vk: exportVk(family, id) });
}

/**
 * The log, a row a line, as `read` with `qk=history` shows rows
 * (docs/design/history.md#the-change-log), with the family and id of their records; less the hashes
 * of keys and the secrets of hooks. It is that of the moment when the first line is asked for: what
 * was in force then is shown as in force.
 */
export function* exportedHistory(
  reads: HistoryReads,
  skip: SkipDamaged = skipNothing,
): Iterable<string> {
  const upTo = reads.seq();
  const invalidatedThen = standingAt(reads, upTo);
  for (let seq = 1; seq <= upTo; seq += 1) {
    const line = lineOrSkip(seq, skip, () => historyLine(changeOf(reads, seq), invalidatedThen));
    if (line !== undefined) yield line;
  }
}

function historyLine(change: Change, invalidatedThen: (row: Change) => string | undefined): string {
  const { seq, txn, by, family, id, action, dtu_stored, dtu_txn } = change;
  const row = { seq, txn, by, family, id, action, dtu_stored, dtu_txn };
  const { hash: _hash, secret: _secret, ...open } = change.data;
  const data = family === 'key' || family === 'secret' ? open : change.data;
  const invalidated = invalidatedThen(change);
  return JSON.stringify(
    invalidated === undefined ? { ...row, data } : { ...row, invalidated, data_invalidated: data },
  );
}

type HistoryReads = Pick<Reads, 'seq' | 'change' | 'inForce' | 'history' | 'rows'>;

/** Makes what tells when a row was invalidated, by what the log held up to a seq. */
function standingAt(reads: HistoryReads, upTo: number): (row: Change) => string | undefined {
  let looked = upTo;
  /** Records whose rows stand otherwise by now than they did. */
  const others = new Set<string>();
  const folded = new Map<string, ReadonlyMap<number, Change>>();
  return (row) => {
    for (const newest = reads.seq(); looked < newest;) {
      looked += 1;
      const { action, id } = changeOf(reads, looked);
      if (action === 'invalidate') others.add(id);
    }
    const { family, id, seq } = row;
    if (others.has(id) && (family === 'userinterface' || family === 'webhook')) {
      const then = folded.get(id) ?? foldRecord(family, reads.rows(family, id, upTo)).invalidated;
      folded.set(id, then);
      return then.get(seq)?.dtu_stored;
    }
    return reads.inForce(seq) ? undefined : historyRow(reads, row)?.invalidated;
  };
}

/**
 * The fields of a page rule as an insert takes them and makes the same rule of: a path is read as
 * in a URL, so what would mean something else there is percent-encoded.
 */
export function exportedFields({ id: _id, origin, path, kind, ...fields }: Rule): JsonObject {
  const written = path.startsWith('/') ? path.replace(/[%?#]/g, encodeURIComponent) : path;
  return { origin, path: written, kind, ...(fields as unknown as JsonObject) };
}

/** The fields of a hook as an insert takes them; its secret is not among them. */
export function exportedHookFields({ id: _id, rotated_at: _rotated, ...fields }: Hook): JsonObject {
  return fields as unknown as JsonObject;
}

const prefixes: Readonly<Record<RevertibleFamily, string>> = {
  userinterface: 'rule:',
  webhook: 'hook:',
};
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The vk of an exported record: it says which record the line is. */
function exportVk(family: RevertibleFamily, id: string): string {
  return prefixes[family] + id;
}

/** The id in the vk of an exported record; undefined for a vk that somebody else has chosen. */
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
