import { parseJson } from '../../core/values/json/parse.ts';
import { boundsText, isRuleInside, type Bounds } from '../../core/values/bounds.ts';
import { authorVia, type RevertibleFamily, type ToolUse } from '../../core/log/change.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { importRowsMax, writtenCheckedMax } from './limits.ts';
import { commitBatchBytesMax } from '../../core/log/limits.ts';
import type { Rule } from '../rules/rule.ts';
import { rulePlaces } from '../rules/log/rule-index.ts';
import type {
  Decision,
  LoggedDraft,
  Reads,
  Store,
  StoredVkClaim,
  VkClaim,
} from '../../core/log/store.ts';
import type { Scope } from '../../core/values/key.ts';
import { outerAsset } from '../rules/bounds/rules.ts';
import { wideSetting } from '../rules/bounds/wide-settings.ts';
import {
  exportedFields,
  exportedHookFields,
  exportedRowFields,
  exportedTableFields,
  idOfExportVk,
} from './export.ts';
import { RowImport, type PlacedLine } from './import-rows.ts';
import {
  claimName,
  derivedVk,
  findClaim,
  hashRequest,
  isSameRequest,
  type KeyedRequest,
} from '../../core/operations/records/idempotency.ts';
import { secretDraft } from '../webhooks/operations/hook-family.ts';
import {
  readImportLines,
  type LineProblems,
  type ImportLine,
  type LineChecks,
  type ReadLines,
  type Refusal,
} from './import-line.ts';
import { storedHooks } from '../webhooks/log/family.ts';
import { storedRules } from '../rules/log/family.ts';
import { storedTables } from '../tables/log/family.ts';

/** The parts that an import needs. */
export interface ImportParts extends LineChecks {
  readonly store: Store;
  /** Makes the secret of a hook. */
  readonly newSecret: () => string;
  readonly newId: () => string;
}

/** The parts that write lines. */
type WritingParts = Pick<ImportParts, 'store' | 'newSecret' | 'isStrict'>;

/** The result of one transaction. */
export interface Imported {
  readonly imported: number;
  /** Lines whose record exists already. */
  readonly unchanged: number;
  readonly refused: readonly Refusal[];
  /** Problems of imported lines. */
  readonly kept: readonly LineProblems[];
  /** The first page rules and hooks that are new. */
  readonly records: readonly ImportedRecord[];
}

/** The page rule or hook that a line became. */
export interface ImportedRecord {
  readonly line: number;
  readonly family: 'userinterface' | 'webhook';
  readonly id: string;
  /** Whether the line comes from an export. */
  readonly isExported: boolean;
}

/** The result of an import in one transaction. */
interface ImportedAtOnce extends Imported {
  /** The transaction; undefined if nothing was written. */
  readonly txn: string | undefined;
}

/** A step of a long import. */
export interface ImportStep extends Imported {
  /** Number of lines that have been read so far. */
  readonly read: number;
}

/** Some lines that were read, and their size in bytes. */
export interface ReadBlock extends ReadLines {
  readonly bytes: number;
}

/** The author of changes by an import without a key. */
const author = 'import';

/** As importAll, but rejects with `invalid` if any line cannot be imported, naming all of them. */
export async function importRecords(parts: ImportParts, bytes: Uint8Array): Promise<Imported> {
  const imported = await importAll(parts, bytes);
  const { refused } = imported;
  if (refused.length === 0) return imported;
  throw new Failure('invalid', refused.map(({ line, why }) => `line ${line}: ${why}`).join('\n'));
}

/** Options of importAll. */
interface ImportOptions {
  readonly by?: string;
  readonly via?: ToolUse | undefined;
  /** Why lines with hooks are refused; undefined if they are not. */
  readonly hooksRefused?: string | undefined;
  /** The scopes of the caller; undefined for a command, which may write all tables and rows. */
  readonly scopes?: readonly Scope[] | undefined;
  /** The part of the site to which the caller's key is bound. */
  readonly bounds?: Bounds | undefined;
  /** Writes nothing. */
  readonly dryRun?: boolean;
}

/**
 * Imports page rules and hooks from NDJSON in one transaction: all lines, or none if any is
 * refused. Rejects with `too_large` for more than importRowsMax lines, and as Store.commit does.
 */
export async function importAll(
  { engines, accessNames, isStrict, newId, ...parts }: ImportParts,
  bytes: Uint8Array,
  { by = author, via, hooksRefused, scopes, bounds, dryRun = false }: ImportOptions = {},
): Promise<ImportedAtOnce> {
  requireFewLines(bytes);
  const lines = readImportLines(bytes, { first: 1, engines, accessNames, isStrict, newId });
  const reasonOf = (line: ImportLine): string | undefined =>
    outsideReason(parts.store, line, bounds) ??
    (line.family === 'webhook' ? hooksRefused : undefined);
  const unreadable = [...lines.refused];
  const ready: ImportLine[] = [];
  for (const line of lines.ready) {
    const why = reasonOf(line);
    if (why === undefined) ready.push(lineInside(parts.store, line, bounds));
    else unreadable.push({ line: line.line, why });
  }
  const { refused, records, ...counts } = await commitLines(
    parts,
    { ready, kept: lines.kept, by, via, isStrict, scopes, bounds },
    ({ refused: conflicting }) => dryRun || unreadable.length + conflicting.length > 0,
  );
  const inOrder = [...unreadable, ...refused].sort((one, other) => one.line - other.line);
  const isWritten = !dryRun && inOrder.length === 0 && counts.imported > 0;
  const txn = isWritten ? txnOf(parts.store, ready, by) : undefined;
  return { ...counts, refused: inOrder, txn, records: isWritten ? records : [] };
}

/** Counts lines before it reads any: the failure of a bad line takes more memory than the line. */
function requireFewLines(bytes: Uint8Array): void {
  let feeds = 0;
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) {
    feeds += 1;
    if (feeds <= importRowsMax) continue;
    throw new Failure(
      'too_large',
      `An import has at most ${importRowsMax} lines. Send the rest in another one.`,
    );
  }
}

const lineFeed = 0x0a;

/** The transaction that has just written lines: that of the newest of their claims. */
function txnOf(
  reads: Pick<Reads, 'vkClaim' | 'change'>,
  lines: readonly ImportLine[],
  by: string,
): string | undefined {
  const seqs = lines.map((line) => claimBefore(reads, line, by)?.seq ?? 0);
  return reads.change(seqs.reduce((one, other) => Math.max(one, other), 0))?.txn;
}

/**
 * Imports page rules and hooks from blocks of lines as they arrive, in transactions of at most
 * importRowsMax lines; a line that cannot be imported does not stop the others. It reads the next
 * transaction while one is written. Yields after each block, and with the result of a transaction
 * when it is durable. Rejects as Store.commit does; earlier transactions stay.
 */
export async function* importBlocks(
  parts: WritingParts,
  blocks: AsyncIterable<ReadBlock>,
): AsyncGenerator<ImportStep> {
  let read = 0;
  let batch = emptyBatch();
  let writing = Promise.resolve(nothing);
  for await (const { count, ready, refused, kept, bytes } of blocks) {
    read += count;
    batch.refused.push(...refused);
    batch.kept.push(...kept);
    batch.bytes += bytes;
    for (const line of ready) {
      batch.ready.push(line);
      if (batch.ready.length < importRowsMax && batch.bytes < commitBatchBytesMax) continue;
      yield { read, ...(await writing) };
      writing = commitBatch(parts, batch);
      // It is awaited later; without this, a failure before that would end the process.
      writing.catch(() => undefined);
      const later = batch.kept.filter((one) => one.line > line.line);
      batch = { ...emptyBatch(), kept: later };
    }
    yield { read, ...nothing };
  }
  yield { read, ...(await writing) };
  yield { read, ...(await commitBatch(parts, batch)) };
}

interface Batch {
  readonly ready: ImportLine[];
  readonly refused: Refusal[];
  readonly kept: LineProblems[];
  bytes: number;
}

function emptyBatch(): Batch {
  return { ready: [], refused: [], kept: [], bytes: 0 };
}

const nothing: Imported = { imported: 0, unchanged: 0, refused: [], kept: [], records: [] };

async function commitBatch(
  parts: WritingParts,
  { ready, kept, refused: unreadable }: Batch,
): Promise<Imported> {
  const { isStrict } = parts;
  const { refused, ...counts } = await commitLines(parts, { ready, kept, isStrict });
  const all = [...unreadable, ...refused].sort((one, other) => one.line - other.line);
  return { ...counts, refused: all };
}

/** Writes lines in one transaction; writes none if `isWithheld` is true for the result. */
function commitLines(
  { store, newSecret }: WritingParts,
  {
    ready: lines,
    kept,
    by = author,
    via,
    isStrict = false,
    scopes,
    bounds,
  }: {
    readonly ready: readonly ImportLine[];
    readonly kept: readonly LineProblems[];
    readonly by?: string;
    readonly via?: ToolUse | undefined;
    readonly isStrict?: boolean | undefined;
    readonly scopes?: readonly Scope[] | undefined;
    readonly bounds?: Bounds | undefined;
  },
  isWithheld: (result: Imported) => boolean = () => false,
): Promise<Imported> {
  if (lines.length === 0) return Promise.resolve(nothing);
  return store.commit(authorVia(by, via), (reads): Decision<Imported> => {
    const drafts: LoggedDraft[] = [];
    const refused: Refusal[] = [];
    const taken = new Map<string, ImportLine>();
    const planned = new Map<string, number>();
    const rows = new RowImport(reads, { isStrict, scopes });
    const placedProblems: LineProblems[] = [];
    const records: ImportedRecord[] = [];
    const placedRows: { readonly line: number; readonly placed: PlacedLine }[] = [];
    for (const line of lines) {
      const state = stateOf(reads, line, { taken, by, bounds });
      if (state === 'same') continue;
      if (state === 'other') {
        refused.push({ line: line.line, why: conflictReason(line) });
        continue;
      }
      const placed = placeOrRefuse({ reads, rows, planned }, line);
      if (placed === undefined) continue;
      if ('why' in placed) {
        refused.push(placed);
        continue;
      }
      taken.set(line.vk, line);
      const id = freeId(reads, line) ?? line.newId;
      if (records.length < writtenCheckedMax) records.push(...checkedRecord(line, id));
      if ('draft' in placed) {
        drafts.push({ ...placed.draft, id, vk: claimFor(line, by) });
        if (line.family !== 'userinterface') placedRows.push({ line: line.line, placed });
      } else drafts.push(...hookDrafts(line, by, { id, secret: newSecret() }));
    }
    for (const { line, placed } of placedRows) {
      const { names } = placed;
      const problems = [...placed.problems, ...rows.referenceProblems(placed.draft)];
      if (names.length + problems.length > 0) placedProblems.push({ line, names, problems });
    }
    const imported = taken.size;
    const result = {
      imported,
      unchanged: lines.length - imported - refused.length,
      refused,
      kept: keptOf([...kept, ...placedProblems], taken),
      records,
    };
    return { drafts: isWithheld(result) ? [] : drafts, answer: () => result };
  });
}

/** The record of a line, if it is checked once all lines are written. */
function checkedRecord(
  { line, family, vkScope }: ImportLine,
  id: string,
): readonly ImportedRecord[] {
  if (family !== 'userinterface' && family !== 'webhook') return [];
  return [{ line, family, id, isExported: vkScope === 'record' }];
}

/** Why a bound key cannot import a line; undefined if it can. */
function outsideReason(
  reads: Reads,
  { family, text }: ImportLine,
  bounds: Bounds | undefined,
): string | undefined {
  if (bounds === undefined) return undefined;
  const known = `this key is bound to ${boundsText(bounds)}`;
  if (family !== 'userinterface') return `${known}: it imports page rules alone.`;
  const { origin, path, ...rule } = parseJson(text) as Rule;
  if (!isRuleInside(bounds, { ...rule, origin, path })) {
    return `${known}, and ${origin} ${path.slice(0, 80)} is outside.`;
  }
  const says =
    outerAsset(reads, { asset: rule.asset, before: undefined }, bounds) ??
    wideSetting(rule, rule, bounds)?.says;
  return says && `${known}, and ${says}.`;
}

/** For a bound key, the vk of an export is that of a record only if it sees the record. */
function lineInside(reads: Reads, line: ImportLine, bounds: Bounds | undefined): ImportLine {
  if (bounds === undefined || line.vkScope !== 'record') return line;
  const id = idOfExportVk(line.family, line.vk) ?? '';
  const isSeen = currentHash(reads, line.family, { id, bounds }) !== undefined;
  return isSeen ? line : { ...line, vkScope: 'request' };
}

/** What the lines of one transaction are placed by. */
interface Placing {
  readonly reads: Reads;
  readonly rows: RowImport;
  /** The number of page rules that the lines before add to each place. */
  readonly planned: Map<string, number>;
}

/** The placed record of a line; undefined if it exists already. */
function placeOrRefuse(
  { reads, rows, planned }: Placing,
  line: ImportLine,
): PlacedLine | undefined | Refusal | typeof placedHook {
  if (line.family === 'webhook') return placedHook;
  try {
    return line.family === 'userinterface' ? placeRule(reads, planned, line) : rows.place(line);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { line: line.line, why: error.message };
  }
}

/** A hook, which was placed when it was read. */
const placedHook = { isPlaced: true } as const;

/** Throws `too_large` if the place of a page rule has no room for another one. */
function placeRule(
  reads: Reads,
  planned: Placing['planned'],
  { text }: Pick<ImportLine, 'text'>,
): PlacedLine {
  const data = parseJson(text) as JsonObject;
  for (const place of rulePlaces(data as unknown as Rule)) {
    const name = `${place.database} ${place.key.toString('latin1')}`;
    const more = planned.get(name) ?? 0;
    const failure = reads.of(storedRules).roomFailure(place, more);
    if (failure !== undefined) throw failure;
    planned.set(name, more + 1);
  }
  return { draft: { family: 'userinterface', action: 'insert', data }, names: [], problems: [] };
}

function keptOf(
  kept: readonly LineProblems[],
  taken: ReadonlyMap<string, ImportLine>,
): readonly LineProblems[] {
  if (kept.length === 0) return kept;
  const lines = new Set(Array.from(taken.values(), ({ line }) => line));
  return kept.filter(({ line }) => lines.has(line));
}

function hookDrafts(
  line: ImportLine,
  by: string,
  { id, secret }: { readonly id: string; readonly secret: string },
): readonly LoggedDraft[] {
  const data = parseJson(line.text) as JsonObject;
  const claim = claimFor(line, by);
  return [
    { family: 'webhook', id, action: 'insert', data, vk: claim },
    secretDraft(id, { secret }),
  ];
}

/**
 * Whether the record of a line exists: not, with the same fields, or with others. The vk of a
 * request is remembered for good (docs/design/history.md#idempotency-and-concurrency); one made of
 * the fields or of an id ends with its record, so that a reverted import can be repeated. A line
 * that is imported again is the same, even if its record has been edited since.
 */
function stateOf(
  reads: Reads,
  line: ImportLine,
  {
    taken,
    by,
    bounds,
  }: {
    readonly taken: ReadonlyMap<string, ImportLine>;
    readonly by: string;
    readonly bounds: Bounds | undefined;
  },
): 'free' | 'same' | 'other' {
  const { family, vk, vkScope } = line;
  const before = taken.get(vk);
  if (before !== undefined) return before.requestHash === line.requestHash ? 'same' : 'other';
  const claim = claimBefore(reads, line, by);
  const claimed = claim && currentHash(reads, family, { id: claim.id, bounds });
  const isUsed = claim !== undefined && (vkScope === 'request' || claimed !== undefined);
  if (isUsed && isSameRequest(claim, line)) return 'same';
  const current =
    vkScope === 'record'
      ? (currentHash(reads, family, { id: idOfExportVk(family, vk) ?? '', bounds }) ?? claimed)
      : undefined;
  if (current === undefined) return isUsed ? 'other' : 'free';
  return current() === line.requestHash ? 'same' : 'other';
}

/** The claim to store for a line: each key has vks of its own for requests, but not for records. */
function claimFor(line: ImportLine, by: string): VkClaim {
  const { vk, requestHash, vkScope } = line;
  return { vk: vkScope === 'request' ? claimName(keyedLine(line, by)) : vk, requestHash };
}

function claimBefore(
  reads: Pick<Reads, 'vkClaim'>,
  line: ImportLine,
  by: string,
): StoredVkClaim | undefined {
  const { vk, formerHashes, vkScope } = line;
  if (vkScope === 'request') return findClaim(reads, keyedLine(line, by));
  const claim = reads.vkClaim(vk);
  if (claim !== undefined || vkScope === 'record') return claim;
  const former = formerHashes.map((requestHash) => reads.vkClaim(derivedVk({ requestHash })));
  return former.find((one) => one !== undefined);
}

function keyedLine({ vk, requestHash, formerHashes }: ImportLine, by: string): KeyedRequest {
  return { by, vk, requestHash, formerHashes };
}

/**
 * Makes the hash of a record as an export would write it; undefined if there is none inside of the
 * bounds of the caller.
 */
function currentHash(
  reads: Reads,
  family: RevertibleFamily,
  { id, bounds }: { readonly id: string; readonly bounds: Bounds | undefined },
): (() => string) | undefined {
  if (family === 'webhook') {
    const stored = reads.of(storedHooks).hook(id);
    return stored && (() => insertHash(family, exportedHookFields(stored.hook)));
  }
  if (family === 'table') {
    const stored = reads.of(storedTables).tableById(id);
    return stored && (() => insertHash(family, exportedTableFields(stored.table)));
  }
  if (family === 'record') {
    const stored = reads.of(storedTables).row(id);
    return stored && (() => insertHash(family, exportedRowFields(stored.row)));
  }
  const stored = reads.of(storedRules).rule(id);
  if (stored === undefined || !isRuleInside(bounds, stored.rule)) return undefined;
  return () => insertHash(family, exportedFields(stored.rule));
}

function insertHash(family: RevertibleFamily, v: JsonObject): string {
  return hashRequest(`${family}.insert`, v).requestHash;
}

function conflictReason({ vk, vkScope }: ImportLine): string {
  return vkScope === 'record'
    ? `${vk} exists with other fields, and an import edits no record.`
    : `The vk ${JSON.stringify(vk)} was used before for another request.`;
}

/** The id of an exported record, if no record here ever had it. */
function freeId(reads: Reads, { family, vk, vkScope }: ImportLine): string | undefined {
  const id = vkScope === 'record' ? idOfExportVk(family, vk) : undefined;
  return id === undefined || reads.rows(family, id).length > 0 ? undefined : id;
}
