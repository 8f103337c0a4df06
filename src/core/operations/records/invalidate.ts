import { type Change, actions } from '../../log/change.ts';
import type { Decision, LoggedDraft, Reads, SeqRange, Store } from '../../log/store.ts';
import { rowsNamed } from '../../log/write/fold.ts';
import { planWrites } from '../../log/write/write-plan.ts';
import { Failure } from '../../values/failure.ts';
import type { JsonObject } from '../../values/json/json.ts';
import {
  type OperationDefinition,
  type OperationResult,
  authorOf,
  defineOperation,
} from '../operation.ts';
import {
  type FamilyCall,
  type RecordFamily,
  type RecordFields,
  type RecordParts,
  familyFor,
  namedId,
} from './family.ts';
import { byNameSchema } from '../keys/author-name.ts';
import { type WriteReport, commitOnce, keyedRequest, reportResult } from './idempotency.ts';
import {
  conflictsShownMax,
  historyCharactersMax,
  invalidateInlineRowsMax,
  invalidateListedMax,
} from './limits.ts';
import { seqFromMoment, seqOfMoment } from './moment.ts';
import { newestRow } from './read.ts';
import {
  type Folding,
  type RecordRevert,
  type RevertRequest,
  type RevertSelection,
  othersOf,
  planRevert,
  revertDrafts,
  revertReader,
  revertReport,
  shownOthers,
} from './revert.ts';
import { type RecordPart, vkMember } from './schema.ts';

/** Records that an invalidate can leave out. */
const invalidateExceptMax = 1_000;

interface InvalidateInput {
  id?: string;
  txn?: string;
  by?: string;
  from?: string;
  until?: string;
  except?: readonly string[];
  confirm?: string;
}

const text = { type: 'string', nullable: true } as const;

/** The members of an input that leave records out of an undo, and carry it out. */
export const confirmedMembers = {
  except: {
    type: 'array',
    nullable: true,
    maxItems: invalidateExceptMax,
    items: { type: 'string' },
    description: 'Ids of records that stay as they are.',
  },
  confirm: { ...text, description: 'The digest of a dry run, to carry it out.' },
} as const;

/** The schema of the input of invalidate. */
function invalidateSchema({
  noun,
  part,
}: {
  readonly noun: string;
  readonly part: RecordPart | undefined;
}) {
  return {
    type: 'object',
    required: Object.keys(part?.members ?? {}),
    // A key names a row by the field that its table decides.
    ...(part !== undefined && { additionalProperties: true }),
    properties: {
      ...part?.members,
      id: { ...text, description: `Rows of one ${noun}; alone, all of it.` },
      txn: { ...text, description: 'Rows of one transaction.' },
      by: { ...text, description: 'Rows that one key, or one command, wrote.' },
      from: { ...text, description: 'Rows since a seq or a date-time.' },
      until: { ...text, description: 'Rows up to a seq or a date-time.' },
      ...confirmedMembers,
    },
  } as const;
}

/**
 * invalidate of a family: reverts changes of its records by record, transaction, author or time
 * (docs/design/history.md#undo). Without `confirm` it only reports the effect, with a digest; with
 * that digest in `confirm` it reverts the changes in one transaction. Refuses with `invalid`,
 * `not_found` (no such record or transaction), `precondition_failed` (the effect differs from the
 * dry run), `conflict` (the vk).
 */
export function invalidateOperation<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): OperationDefinition<Parts> {
  const { name, noun, scopes, summaries, part } = family;
  const input = invalidateSchema({ noun, part });
  return defineOperation({
    name: `svc1.${name}.invalidate`,
    scope: scopes.write,
    ...(family.tableDecides && { tableDecides: true }),
    effect: 'writes',
    inDrafts: true,
    summary: summaries?.invalidate ?? 'Reverts changes; without confirm it only reports them.',
    input,
    envelope: { vk: vkMember },
    output: revertOutput,
    failures: revertFailures,
    run:
      (parts: Parts) =>
      async (v, call): Promise<OperationResult> => {
        const { store } = parts;
        await family.prepare?.(call);
        const fields = v as InvalidateInput & JsonObject;
        const given: FamilyCall = { operation: 'invalidate', v: fields, call, input };
        const bound = familyFor(family, given, store, parts);
        const by = bound.author ?? authorOf(call);
        const selection = parseSelection(store, bound, v);
        bound.requireRevertAccess?.(store, fields);
        if (v.confirm !== undefined) bound.beforeWrite?.({}, parts);
        const request: RevertRequest = {
          selection,
          confirm: v.confirm,
          ...(family.placing !== undefined && { placing: family.placing(parts) }),
          ...{ by, via: call.via, reader: revertReader(call.caller) },
          request:
            v.confirm === undefined ? undefined : keyedRequest(`${name}.invalidate`, v, call, by),
        };
        const isInline = isSmall(store, selection);
        const reverted = await (isInline
          ? runRevert(store, [family], request)
          : parts.revertInThread(request));
        const { report, replayed } = reverted;
        if (report.done === true) await family.applied?.(Number(report.seq), parts);
        return reportResult({ report, replayed }, request.request);
      },
  });
}

/**
 * Runs one invalidate, or its dry run; `all` has the families of its selection, and may have
 * others. Rejects with `precondition_failed` if the digest differs from that of the effect now, and
 * with `conflict` for a vk of another request.
 */
export async function runRevert(
  store: Store,
  all: readonly Folding[],
  given: RevertRequest,
): Promise<WriteReport> {
  const { selection, confirm, reader } = given;
  const foldings = all.filter(({ name }) => selection.families.includes(name));
  if (confirm === undefined) {
    const plan = planRevert(store, given, foldings);
    requireWritable(store, revertDrafts(store, plan.records, foldings), given);
    return { report: revertReport(plan, { reads: store, foldings, reader }), replayed: false };
  }
  const again = (reads: Reads, seq: number): JsonObject => ({
    ...doneReport(changesWith(reads, seq).filter(({ action }) => action === 'invalidate')),
    others: shownOthers(othersOf(reads, selection, foldings), reader),
  });
  const decide = (reads: Reads, claim: Pick<LoggedDraft, 'vk'>): Decision<JsonObject> => {
    const { records, others, digest } = planRevert(reads, given, foldings);
    if (digest !== confirm) {
      throw new Failure(
        'precondition_failed',
        'The data has changed since the dry run. Look at a new dry run, and confirm that.',
        { field: 'confirm' },
      );
    }
    const { reverts, after } = revertDrafts(reads, records, foldings);
    const [first, ...rest] = reverts;
    return {
      drafts: first === undefined ? [] : [{ ...first, ...claim }, ...rest, ...after],
      answer: (changes) => ({
        ...doneReport(changes.slice(0, reverts.length)),
        others: shownOthers(others, reader),
      }),
    };
  };
  return commitOnce(store, given, { again, decide });
}

/**
 * Throws the failure with which the store would refuse the drafts of a revert, such as `conflict`
 * for a table that still has rows: a dry run must not offer what cannot be confirmed.
 */
function requireWritable(
  reads: Reads,
  { reverts, after }: ReturnType<typeof revertDrafts>,
  { by }: Pick<RevertRequest, 'by'>,
): void {
  const at = { dtu_txn: '', dtu_stored: '', firstSeq: reads.seq() + 1 };
  planWrites(reads, [...reverts, ...after], { ...at, by, txn: '' });
}

function parseSelection<Parts extends RecordParts, R extends RecordFields>(
  store: Store,
  family: RecordFamily<Parts, R>,
  v: InvalidateInput,
): RevertSelection {
  const { name, noun, within } = family;
  const { txn, by, from, until } = v;
  const id =
    v.id === undefined && [txn, by, from, until].every((given) => given === undefined)
      ? namedId(family, v as JsonObject, store) || undefined
      : v.id;
  if ([id, txn, by, from, until].every((given) => given === undefined)) {
    throw new Failure('invalid', 'Say what to invalidate: id, txn, by, from or until.', {
      field: 'id',
    });
  }
  const isKnown = (one: string): boolean =>
    store.history(name, one, newestRow).length > 0 && (family.hadRecord?.(store, one) ?? true);
  if (id !== undefined && !isKnown(id)) {
    throw new Failure('not_found', `There is no ${noun} with this id, and never was.`, {
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
    throw new Failure('not_found', 'There is no transaction with this id.', { field: 'txn' });
  }
  const window = windowOf(store, from, until);
  const seqs = {
    first: Math.max(whole.first, window.first),
    last: Math.min(whole.last, window.last),
  };
  return {
    ...{ families: [name], id, txn, by, seqs },
    ...(v.except !== undefined && { except: v.except }),
    ...(within !== undefined && { within: { [name]: within } }),
  };
}

/** Authors of changes that are no keys: callers without one, and commands. */
const commandAuthors: ReadonlySet<string> = new Set([
  'anonymous',
  'import',
  'serve',
  'deliverer',
  'server.ini',
  'server',
  'waymark key',
]);

function isAuthor(by: string): boolean {
  return (
    commandAuthors.has(by) ||
    by.startsWith('user:') ||
    /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(by)
  );
}

/** Whether the rows to examine are few and short. */
export function isSmall(
  store: Store,
  { families, id, seqs: { first, last } }: RevertSelection,
): boolean {
  if (id === undefined) {
    let bytes = 0;
    for (let seq = first; seq <= last; seq += 1) {
      bytes += store.rowBytes(seq);
      if (seq - first >= invalidateInlineRowsMax || bytes > historyCharactersMax) return false;
    }
    return true;
  }
  const page = { limit: invalidateInlineRowsMax, characters: historyCharactersMax };
  // The first row of a record is its insert.
  return families.every(
    (family) =>
      store.history(family, id, { ...page, before: undefined }).at(-1)?.action === 'insert',
  );
}

/** Seqs of the rows that were stored between two moments, both included. */
function windowOf(store: Store, from: string | undefined, until: string | undefined): SeqRange {
  return {
    first: from === undefined ? 1 : seqFromMoment(store, 'from', from),
    last: until === undefined ? store.seq() : seqOfMoment(store, 'until', until),
  };
}

/** All changes of the transaction of a change. */
function changesWith(reads: Reads, seq: number): readonly Change[] {
  const range = reads.txnSeqs(reads.change(seq)?.txn ?? '');
  if (range === undefined) throw new Error(`change ${seq} has no transaction`);
  const seqs = Array.from({ length: range.last - range.first + 1 }, (_, at) => range.first + at);
  return seqs.flatMap((one) => reads.change(one) ?? []);
}

/** The report of an invalidate, made from the rows that it wrote. */
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

const count = (description: string): JsonObject => ({ type: 'integer', description });
const seqs = { type: 'array', items: { type: 'integer' } } as const;
const id = { type: 'string' } as const;
const family: JsonObject = { type: 'string', description: 'The family of the record.' };
const others: JsonObject = {
  type: 'array',
  description:
    'What else its transaction has changed, by family, as far as the caller may read it: these ' +
    'changes stay. svc1.change.invalidate takes back all of a transaction but what has happened ' +
    'for good, such as events.',
  items: {
    title: 'OtherChanges',
    type: 'object',
    required: ['family', 'rows'],
    properties: { family, rows: count('Number of rows of the log.') },
  },
};
const ids = {
  type: 'array',
  items: id,
  description: `Ids of the first ${invalidateListedMax} records.`,
} as const;
const becomings: readonly RecordRevert['becomes'][] = ['gone', 'restored', 'changed', 'same'];

const laterSchema: JsonObject = {
  title: 'LaterChange',
  description: `One of the newest ${conflictsShownMax} of these edits.`,
  type: 'object',
  required: ['seq', 'by', 'at', 'action', 'fields'],
  properties: {
    seq: { type: 'integer' },
    by: { type: 'string', description: 'The author: the id of a key, or a command.' },
    by_name: byNameSchema,
    at: { type: 'string', format: 'date-time' },
    action: { type: 'string', enum: actions },
    fields: { type: 'array', items: { type: 'string' }, description: 'Those that it set.' },
  },
};

const dryRunSchema: JsonObject = {
  title: 'InvalidateDryRun',
  type: 'object',
  required: [
    ...['done', 'records', 'rows', 'gone', 'restored', 'changed', 'ids', 'changes', 'conflicts'],
    ...['conflicting', 'unlisted', 'others', 'digest'],
  ],
  properties: {
    done: { const: false },
    records: count('Number of records that would be affected.'),
    rows: count('Number of rows of the log that would be invalidated.'),
    gone: count('Number of records that would be deleted.'),
    restored: count('Number of deleted records that would exist again.'),
    changed: count('Number of records that would change.'),
    ids,
    changes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['family', 'id', 'rows', 'becomes', 'fields'],
        properties: {
          family,
          id,
          path: { type: 'string', description: 'The path of a page rule.' },
          rows: seqs,
          becomes: { type: 'string', enum: becomings },
          fields: {
            type: 'object',
            description: 'Each field that would change; of a long value only the start.',
            additionalProperties: {
              type: 'object',
              required: ['now', 'then'],
              properties: { now: {}, then: {} },
            },
          },
        },
      },
    },
    conflicts: {
      type: 'array',
      description: 'Records that were edited again since, with the seqs of those edits.',
      items: {
        type: 'object',
        required: ['id', 'rows', 'later'],
        properties: { id, rows: seqs, later: { type: 'array', items: laterSchema } },
      },
    },
    conflicting: count('Number of these records.'),
    unlisted: count('Number of records that are counted and not listed.'),
    others,
    digest: { type: 'string', description: 'Send it as confirm to carry this out.' },
  },
};

const doneSchema: JsonObject = {
  title: 'InvalidateDone',
  type: 'object',
  required: ['done', 'txn', 'seq', 'records', 'rows', 'ids', 'unlisted', 'others'],
  properties: {
    done: { const: true },
    txn: { type: ['string', 'null'], description: 'Its transaction, which can be invalidated.' },
    seq: { type: ['integer', 'null'], description: 'Seq of its last row.' },
    records: count('Number of records that were affected.'),
    rows: count('Number of rows of the log that were invalidated.'),
    ids,
    unlisted: count('Number of records that are counted and not listed.'),
    others,
  },
};

/** The answer of an operation that undoes changes: the report of its dry run, or what it did. */
export const revertOutput = { oneOf: [dryRunSchema, doneSchema] } as const;

/** The failures of such an operation, besides those of its selection. */
export const revertFailures = ['not_found', 'conflict', 'precondition_failed'] as const;
