import type { Change, RevertibleFamily } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import type { JsonObject } from '../../model/json.ts';
import {
  historyCharactersMax,
  invalidateInlineRowsMax,
  invalidateListedMax,
} from '../rules/limits.ts';
import { rowsNamed } from '../../store/log/fold.ts';
import type { Decision, Reads, SeqRange, Store, VkClaim } from '../../store/store.ts';
import { claimName, earlierClaim, requestHashOf } from './idempotency.ts';
import { invalidateDescription } from '../rules/invalidate-description.ts';
import { seqFromMoment, seqOfMoment } from './moment.ts';
import { authorOf, type Handler, type OperationResult } from '../operation.ts';
import { newestRow } from './versions.ts';
import { planRevert, revertReport, type RevertSelection } from './revert.ts';

interface InvalidateInput {
  id?: string;
  txn?: string;
  by?: string;
  from?: string;
  until?: string;
  confirm?: string;
}

/** One invalidate, as data: it may be done in another thread. */
export interface RevertRequest {
  readonly selection: RevertSelection;
  /** The digest of a dry run that is to be carried out; undefined for a dry run. */
  readonly confirm: string | undefined;
  readonly by: string;
  readonly claim: VkClaim | undefined;
}

/** What became of one. */
export interface RevertResult {
  readonly report: JsonObject;
  readonly replayed: boolean;
}

/** What the operation stands on. */
export interface InvalidateParts {
  readonly store: Store;
  /** Does a large one where it is in nobody's way. Rejects as runRevert does. */
  readonly revertElsewhere: (request: RevertRequest) => Promise<RevertResult>;
}

const text = { type: 'string', nullable: true } as const;

/** What the documents and failures call the records of a family. */
const nouns: Readonly<Record<RevertibleFamily, string>> = {
  userinterface: 'page rule',
  webhook: 'hook',
};

/**
 * invalidate of a family: takes rows of its records out of force, by record, transaction, writer or
 * time (docs/design/history.md#undo). Without `confirm` it says what would happen, with a digest;
 * with that in `confirm` it does it, in one transaction. Refuses with `invalid`, `not_found` (no
 * such record or transaction), `precondition_failed` (things have moved on since the dry run),
 * `conflict` (the vk).
 */
export function invalidateRecords(
  family: RevertibleFamily,
  { store, revertElsewhere }: InvalidateParts,
): Handler<InvalidateInput> {
  const noun = nouns[family];
  return {
    ...invalidateDescription,
    input: {
      type: 'object',
      properties: {
        id: { ...text, description: `Rows of one ${noun}; alone, the whole of it.` },
        txn: { ...text, description: 'Rows of one transaction.' },
        by: { ...text, description: 'Rows that one key, or one command, wrote.' },
        from: { ...text, description: 'Rows from a seq or a date-time on.' },
        until: { ...text, description: 'Rows up to a seq or a date-time.' },
        confirm: { ...text, description: 'The digest of a dry run: does what that showed.' },
      },
    },
    run: async (v, call): Promise<OperationResult> => {
      const selection = parseSelection(store, family, v);
      const request: RevertRequest = {
        selection,
        confirm: v.confirm,
        by: authorOf(call),
        claim: v.confirm === undefined ? undefined : claimOf(family, call.vk, v),
      };
      const run = isSmall(store, selection) ? runRevert(store, request) : revertElsewhere(request);
      const { report, replayed } = await run;
      // Nothing is sent to a hook any more when its owner is told that it is gone.
      if (family === 'webhook' && report.done === true) {
        await store.deliveries.waitUntilApplied(Number(report.seq));
      }
      return {
        kind: 'data',
        data: report,
        ...(request.claim && { vk: request.claim.vk }),
        ...(replayed && { replayed }),
      };
    },
  };
}

/**
 * Carries out one invalidate, or its dry run, on a store. Rejects with `precondition_failed` where
 * the digest is not that of what would happen now, and with `conflict` for a vk of another request.
 */
export async function runRevert(
  store: Store,
  { selection, confirm, by, claim }: RevertRequest,
): Promise<RevertResult> {
  if (confirm === undefined) {
    return { report: revertReport(planRevert(store, selection)), replayed: false };
  }
  return store.commit(by, (reads): Decision<RevertResult> => {
    const earlier = claim && earlierClaim(reads, { by, ...claim });
    if (earlier !== undefined) {
      const report = doneReport(changesWith(reads, earlier.seq));
      return { drafts: [], answer: () => ({ report, replayed: true }) };
    }
    const { records, digest } = planRevert(reads, selection);
    if (digest !== confirm) {
      throw new Failure(
        'precondition_failed',
        'What would be invalidated is not what the dry run showed: look at it again.',
        { field: 'confirm' },
      );
    }
    return {
      drafts: records.map(({ id, rows }, at) => ({
        family: selection.family,
        id,
        action: 'invalidate',
        data: { rows: [...rows] },
        ...(at === 0 && claim && { vk: { ...claim, vk: claimName({ by, ...claim }) } }),
      })),
      answer: (changes) => ({ report: doneReport(changes), replayed: false }),
    };
  });
}

function parseSelection(
  store: Store,
  family: RevertibleFamily,
  { id, txn, by, from, until }: InvalidateInput,
): RevertSelection {
  if ([id, txn, by, from, until].every((given) => given === undefined)) {
    throw new Failure('invalid', 'Say what to invalidate: id, txn, by, from or until.', {
      field: 'id',
    });
  }
  if (id !== undefined && store.history(family, id, newestRow).length === 0) {
    throw new Failure('not_found', `There is no ${nouns[family]} of this id, and never was.`, {
      field: 'id',
    });
  }
  if (by !== undefined && !isAuthor(by)) {
    const commands = [...commandAuthors].join(', ');
    const message = `by has to be the id of a key, as key.list shows it, or one of ${commands}.`;
    throw new Failure('invalid', message, { field: 'by' });
  }
  const whole = txn === undefined ? { first: 1, last: store.seq() } : store.txnSeqs(txn);
  if (whole === undefined) {
    throw new Failure('not_found', 'There is no transaction of this id.', { field: 'txn' });
  }
  const window = windowOf(store, from, until);
  const seqs = {
    first: Math.max(whole.first, window.first),
    last: Math.min(whole.last, window.last),
  };
  return { family, id, txn, by, seqs };
}

/** Authors of changes that are no keys: callers without one, and commands. */
const commandAuthors: ReadonlySet<string> = new Set([
  'anonymous',
  'import',
  'serve',
  'deliverer',
  'waymark key',
]);

function isAuthor(by: string): boolean {
  return commandAuthors.has(by) || /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(by);
}

/** Whether all that has to be looked through is soon looked through. */
function isSmall(store: Store, { family, id, seqs: { first, last } }: RevertSelection): boolean {
  if (id === undefined) {
    let bytes = 0;
    for (let seq = first; seq <= last; seq += 1) {
      bytes += store.rowBytes(seq);
      if (seq - first >= invalidateInlineRowsMax || bytes > historyCharactersMax) return false;
    }
    return true;
  }
  const page = { limit: invalidateInlineRowsMax, characters: historyCharactersMax };
  // A record begins with its insert.
  return store.history(family, id, { ...page, before: undefined }).at(-1)?.action === 'insert';
}

/** Seqs of the rows stored from one moment until another, both included. */
function windowOf(store: Store, from: string | undefined, until: string | undefined): SeqRange {
  return {
    first: from === undefined ? 1 : seqFromMoment(store, 'from', from),
    last: until === undefined ? store.seq() : seqOfMoment(store, 'until', until),
  };
}

function claimOf(
  family: RevertibleFamily,
  vk: string | undefined,
  v: InvalidateInput,
): VkClaim | undefined {
  if (vk === undefined) return undefined;
  const name = family === 'webhook' ? 'webhook.invalidate' : 'invalidate';
  return { vk, requestHash: requestHashOf([name, v as JsonObject]) };
}

/** All changes of the transaction that a change belongs to. */
function changesWith(reads: Reads, seq: number): readonly Change[] {
  const range = reads.txnSeqs(reads.change(seq)?.txn ?? '');
  if (range === undefined) throw new Error(`change ${seq} is of no transaction`);
  const seqs = Array.from({ length: range.last - range.first + 1 }, (_, at) => range.first + at);
  return seqs.flatMap((one) => reads.change(one) ?? []);
}

/** What was done, told by the rows that it wrote. */
function doneReport(changes: readonly Change[]): JsonObject {
  const listed = changes.slice(0, invalidateListedMax);
  return {
    done: true,
    txn: changes[0]?.txn ?? null,
    seq: changes.at(-1)?.seq ?? null,
    records: changes.length,
    rows: changes.reduce((sum, change) => sum + rowsNamed(change).length, 0),
    ids: listed.map(({ id }) => id),
    unlisted: changes.length - listed.length,
  };
}
