import { createHash, type Hash } from 'node:crypto';
import { isRevertible, type Change, type RevertibleFamily } from '../../../core/log/change.ts';
import { vkInDraft, type DraftedFamily, type SiteDraft } from '../draft.ts';
import { hookOfSecret } from '../../webhooks/hook.ts';
import { Failure } from '../../../core/values/failure.ts';
import {
  isJsonObject,
  sameJson,
  type Json,
  type JsonObject,
} from '../../../core/values/json/json.ts';
import { foldDrafted } from '../log/refresh-drafts.ts';
import type { LoggedDraft, Reads } from '../../../core/log/store.ts';
import type { DraftedRecord, DraftedRecordName } from '../log/drafts-reads.ts';
import type { WorkTurns } from '../../../core/fair/turns.ts';
import { publishInlineRecordsMax } from './limits.ts';
import { storedDrafts } from '../log/family.ts';

/** How a conflict is resolved: by the fields of the draft, or by leaving the live record alone. */
export type ConflictResolution = 'draft' | 'live';

/** The live state and that of the draft. */
interface DraftedReads {
  readonly live: Reads;
  readonly inDraft: Reads;
  readonly draft: SiteDraft;
}

/** A record that a draft changes, in its versions; undefined where it does not exist. */
export interface DraftedVersions {
  readonly family: RevertibleFamily;
  readonly id: string;
  readonly live: JsonObject | undefined;
  readonly draft: JsonObject | undefined;
  /** The live record when the draft first changed it; only if that has changed since. */
  readonly base?: JsonObject | undefined;
  readonly isConflict: boolean;
  readonly becomes: 'inserted' | 'changed' | 'removed' | 'same';
  /** Where the record was inserted in the log. */
  readonly insertedSeq: number;
  /** Why the draft cannot change the live record, as a sentence. */
  readonly problem?: string;
}

/** The changes of a publication. */
export interface PublishPlan {
  readonly records: readonly DraftedVersions[];
  /** Conflicts without a resolution. */
  readonly unresolved: number;
  readonly drafts: () => readonly LoggedDraft[];
  /** Seq of the newest change of the draft, and the authors of all of them. */
  readonly newest: number;
  readonly authors: ReadonlySet<string>;
  /** Lower-case hex SHA-256, which differs if the live records or those of the draft do. */
  readonly digest: string;
  /** The reads of the draft. */
  readonly inDraft: Reads;
}

/** Plans the publication of a draft. Writes nothing. */
export function planPublish(
  reads: DraftedReads,
  resolution: (id: string) => ConflictResolution | undefined,
): PublishPlan {
  const { live, draft } = reads;
  const hash = new DraftHash(draft);
  const records: DraftedVersions[] = [];
  const secrets: string[] = [];
  const authors = new Set<string>();
  let newest = 0;
  for (const { family, id, ...record } of live.of(storedDrafts).draftRecords(draft)) {
    const rows = reads.inDraft.rows(family, id);
    hash.add({ family, id }, reads.inDraft.rowSeqs(id));
    for (const { draft: own, seq, by } of rows) {
      if (own === undefined) continue;
      authors.add(by);
      newest = Math.max(newest, seq);
    }
    if (family === 'secret') secrets.push(id);
    else records.push(versionsOf(reads.inDraft, rows, { family, id, ...record }));
  }
  const wanted = (record: DraftedVersions): JsonObject | undefined =>
    record.isConflict && resolution(record.id) !== 'draft' ? record.live : record.draft;
  return {
    records,
    unresolved: records.filter((one) => one.isConflict && resolution(one.id) === undefined).length,
    drafts: () => publishedDrafts(reads, { records, secrets, wanted }),
    digest: hash.digest(),
    ...{ newest, authors, inDraft: reads.inDraft },
  };
}

/** Throws `conflict` if a digest is not that of the draft as it is now. */
export function requireSeen(
  { inDraft, draft }: Pick<DraftedReads, 'inDraft' | 'draft'>,
  confirm: string,
): void {
  const hash = new DraftHash(draft);
  for (const record of inDraft.of(storedDrafts).draftRecords(draft))
    hash.add(record, inDraft.rowSeqs(record.id));
  if (confirm === hash.digest()) return;
  throw new Failure(
    'conflict',
    'The draft or the live records under it have changed since that was shown. Look at it again, ' +
      'and approve that.',
    { field: 'confirm' },
  );
}

/**
 * The digest of the report of a publication, for a reviewer who has not asked for one; undefined
 * for a large draft.
 */
export async function digestInTurns(
  inDraft: Reads,
  draft: SiteDraft,
  turns: WorkTurns,
): Promise<string | undefined> {
  const hash = new DraftHash(draft);
  let count = 0;
  for (const record of inDraft.of(storedDrafts).draftRecords(draft)) {
    count += 1;
    if (count > publishInlineRecordsMax) return undefined;
    hash.add(record, inDraft.rowSeqs(record.id));
    if (turns.isOver()) await turns.next();
  }
  return hash.digest();
}

/** The digest of a draft: of all rows of the records that it changes, live and drafted. */
class DraftHash {
  readonly #hash: Hash;

  constructor({ id }: SiteDraft) {
    this.#hash = createHash('sha256').update(id);
  }

  add({ family, id }: DraftedRecordName, seqs: readonly number[]): void {
    this.#hash.update(JSON.stringify([family, id, seqs]));
  }

  /** In lower-case hexadecimal digits. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}

/** Throws `precondition_failed` if the digest of a plan is not that of a report. */
export function requireConfirmed(digest: string, confirm: string): void {
  if (digest === confirm) return;
  throw new Failure(
    'precondition_failed',
    'The draft or the live records have changed since the report. Look at a new one, and ' +
      'confirm that.',
    { field: 'confirm' },
  );
}

/** The versions of one record that a draft changes. */
export function versionsIn(inDraft: Reads, record: DraftedRecord): DraftedVersions {
  return versionsOf(inDraft, inDraft.rows(record.family, record.id), record);
}

function versionsOf(
  reads: Reads,
  rows: readonly Change[],
  { family, id, first, problem }: DraftedRecord,
): DraftedVersions {
  if (!isRevertible(family)) throw new TypeError(`${family} has no versions`);
  const liveRows = rows.filter((row) => row.draft === undefined);
  const own = rows.filter((row) => row.draft !== undefined);
  const then = liveRows.filter(({ seq }) => seq < first);
  const isConflict = then.length < liveRows.length;
  const fieldsOf = (of: readonly Change[]) => fieldsAfter(reads, of, family);
  const live = fieldsOf(liveRows);
  const base = isConflict ? fieldsOf(then) : undefined;
  // A record that was removed live is in the draft as the draft has changed it.
  const isRevived = isConflict && live === undefined && base !== undefined;
  const draft = fieldsOf(isRevived ? [...then, ...own] : rows);
  const insertedSeq = rows.find(({ action }) => action === 'insert')?.seq ?? 0;
  const becomes = becoming(live, draft);
  return {
    ...{ family, id, live, draft, isConflict, becomes, insertedSeq },
    ...(isConflict && { base }),
    ...(problem !== undefined && { problem }),
  };
}

function becoming(
  live: JsonObject | undefined,
  draft: JsonObject | undefined,
): DraftedVersions['becomes'] {
  if (draft === undefined) return live === undefined ? 'same' : 'removed';
  if (live === undefined) return 'inserted';
  return Object.keys(editBetween(live, draft)).length === 0 ? 'same' : 'changed';
}

/** The member of a stored record with its fields. */
const fieldsMember = {
  userinterface: 'rule',
  webhook: 'hook',
  table: 'table',
  record: 'row',
} as const satisfies Record<RevertibleFamily, string>;

function fieldsAfter(
  reads: Reads,
  rows: readonly Change[],
  family: RevertibleFamily,
): JsonObject | undefined {
  const { after } = foldDrafted(reads, rows, family);
  if (after === undefined) return undefined;
  const stored = (after as JsonObject)[fieldsMember[family]] as JsonObject;
  const { id: _id, ...fields } = stored;
  return fields;
}

/** The drafts that make the live records those that are wanted. */
function publishedDrafts(
  { live, inDraft, draft }: DraftedReads,
  {
    records,
    secrets,
    wanted,
  }: {
    readonly records: readonly DraftedVersions[];
    readonly secrets: readonly string[];
    readonly wanted: (record: DraftedVersions) => JsonObject | undefined;
  },
): readonly LoggedDraft[] {
  // The insert decides between rules of the same place, so the order of the draft stays.
  const inOrder = records.toSorted((one, other) => one.insertedSeq - other.insertedSeq);
  const made = inOrder.flatMap((record) => {
    const change = draftBetween(live, record, wanted(record));
    return change === undefined ? [] : { ...change, ...claimOf(live, draft, record) };
  });
  const hooks = new Set(made.filter(({ action }) => action === 'insert').map(({ id }) => id));
  const ofHooks = secrets.flatMap((id): LoggedDraft[] => {
    const data = inDraft.rows('secret', id).at(-1)?.data;
    const isNew = data !== undefined && hooks.has(hookOfSecret(id));
    return isNew ? [{ family: 'secret', id, action: 'insert', data }] : [];
  });
  const stage = ({ family, action }: LoggedDraft): number =>
    family === 'table' ? (action === 'invalidate' ? 2 : 0) : 1;
  return [0, 1, 2].flatMap((one) => [...made, ...ofHooks].filter((each) => stage(each) === one));
}

function draftBetween(
  reads: Reads,
  { family, id, live }: DraftedVersions,
  wanted: JsonObject | undefined,
): LoggedDraft | undefined {
  if (wanted === undefined) {
    if (live === undefined) return undefined;
    const rows = reads
      .rows(family, id)
      .filter(({ seq, action }) => action !== 'invalidate' && reads.inForce(seq));
    return { family, id, action: 'invalidate', data: { rows: rows.map(({ seq }) => seq) } };
  }
  if (live === undefined) return { family, id, action: 'insert', data: wanted };
  const data = editBetween(live, wanted);
  return Object.keys(data).length === 0 ? undefined : { family, id, action: 'edit', data };
}

/** The claim of the request that has inserted a record: it counts live from now on. */
function claimOf(
  live: Reads,
  { id: draft }: SiteDraft,
  { family, id, insertedSeq, becomes }: DraftedVersions,
): Pick<LoggedDraft, 'vk'> {
  if (becomes !== 'inserted') return {};
  const row = live.change(insertedSeq);
  const isOwn = row?.family === 'draftchange' && row.data.draft === draft && row.data.id === id;
  const vk = isOwn && row.data.family === family ? vkInDraft(row) : undefined;
  return vk === undefined || live.vkClaim(vk.vk) !== undefined ? {} : { vk };
}

/** The edit that makes fields other ones: null removes a field. */
function editBetween(before: JsonObject, after: JsonObject): JsonObject {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...names].flatMap((name): (readonly [string, Json])[] => {
    const [one, other] = [before[name] ?? null, after[name] ?? null];
    if (sameJson(one, other)) return [];
    const isMerged = name === '_unknowns_' && isJsonObject(one) && isJsonObject(other);
    return [[name, isMerged ? editBetween(one, other) : other]];
  });
  return Object.fromEntries(changed);
}

/** The family and the record of a list of changes, as people name it. */
export function labelOf(fields: JsonObject | undefined): string | undefined {
  const label = fields?.path ?? fields?.name ?? fields?.url;
  return typeof label === 'string' ? label : undefined;
}

/** The families that a draft changes, besides the secrets of hooks. */
export function familiesOf(reads: Reads, draft: SiteDraft): ReadonlySet<DraftedFamily> {
  const families = new Set<DraftedFamily>();
  for (const { family } of reads.of(storedDrafts).draftRecords(draft))
    if (family !== 'secret') families.add(family);
  return families;
}
