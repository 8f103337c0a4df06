import { isUtf8 } from 'node:buffer';
import { isStrictPreferred } from '../../core/http/representation/negotiation.ts';
import { type RevertibleFamily, mergeFields } from '../../core/log/change.ts';
import { seqMax } from '../../core/log/encoding.ts';
import { vkCharactersMax } from '../../core/operations/limits.ts';
import { requireNoMistakes } from '../../core/operations/problems.ts';
import {
  type RequestHashes,
  derivedVk,
  hashRequest,
} from '../../core/operations/records/idempotency.ts';
import { sentNames } from '../../core/operations/records/placement.ts';
import { Failure, type Problem } from '../../core/values/failure.ts';
import { parseDistinct } from '../../core/values/json/parse.ts';
import { type JsonOutline, outlineJson } from '../../core/values/json/json-outline.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  nestsDeeper,
} from '../../core/values/json/json.ts';
import { jsonDepthMax } from '../../core/values/limits.ts';
import { indexEntriesOf } from '../rules/log/rule-index.ts';
import { unreadEnginedata } from '../rules/operations/enginedata.ts';
import { placeRuleFields } from '../rules/operations/placement.ts';
import { ruleProblems } from '../rules/operations/rule-problems.ts';
import type { Rule } from '../rules/rule.ts';
import type { Hook } from '../webhooks/hook.ts';
import { hookProblems, placeHookFields } from '../webhooks/operations/hook-placement.ts';
import { idOfExportVk } from './export.ts';

/**
 * Values in the JSON of a line, as many as in that of an operation that writes: JSON.parse takes a
 * hundred times the memory of a text that is nothing but short values.
 */
const importLineValuesMax = 262_144;

/** A line that cannot be imported. */
export interface Refusal {
  readonly line: number;
  readonly why: string;
}

/** The problems of a line that can be imported. */
export interface LineProblems {
  readonly line: number;
  /** The `unknowns` that an insert would answer. */
  readonly names: readonly string[];
  /** The `problems` that an insert would answer. */
  readonly problems: readonly Problem[];
}

/** A line of an import, read and ready to be written. */
export interface ImportLine extends RequestHashes {
  readonly vk: string;
  /** Its number, from 1. */
  readonly line: number;
  /** The id of its record, if that gets a new one. */
  readonly newId: string;
  /** The family of its record. */
  readonly family: RevertibleFamily;
  /** The data of the insert as JSON, which takes less memory than an object while it waits. */
  readonly text: string;
  /**
   * The meaning of the vk: the author of the line chose it for a request, the server derived it
   * from the fields, or an export made it from the id of the record.
   */
  readonly vkScope: 'request' | 'fields' | 'record';
}

/** Lines that were read, in their order. */
export interface ReadLines {
  /** Number of lines, with empty ones. */
  readonly count: number;
  readonly ready: readonly ImportLine[];
  readonly refused: readonly Refusal[];
  /** The problems of ready lines. */
  readonly kept: readonly LineProblems[];
}

/** The operations whose envelopes are lines, and the families of their records. */
const inserts: ReadonlyMap<string, RevertibleFamily> = new Map([
  ['svc1.userinterface.insert', 'userinterface'],
  ['svc1.webhook.insert', 'webhook'],
  ['svc1.table.insert', 'table'],
  ['svc1.record.insert', 'record'],
]);
const ruleInsert = 'svc1.userinterface.insert';
const lineFeed = 0x0a;
/** Levels of a line: an exported `_unknowns_` and the envelope add one to its fields each. */
const lineDepthMax = jsonDepthMax + 2;
const byteOrderMark = Buffer.from('\ufeff');

/** The parts that the checks of lines need. */
export interface LineChecks {
  /** Names of all engines. */
  readonly engines: ReadonlySet<string>;
  /** Names of the access sections; undefined if they are not known. */
  readonly accessNames?: ReadonlySet<string> | undefined;
  /** Whether a line with a mistake is refused, as with `Prefer: handling=strict`. */
  readonly isStrict?: boolean | undefined;
}

/** The parts that read lines; `first` is the number of the first line. */
interface ReadingParts extends LineChecks {
  readonly first: number;
  readonly newId: () => string;
}

/**
 * Reads whole lines of NDJSON (docs/design/configuration.md#commands): a line is a rule with its vk
 * among its fields, or an envelope `{a, v, vk}`. Empty lines count.
 */
export function readImportLines(
  bytes: Uint8Array,
  { first, newId, ...checks }: ReadingParts,
): ReadLines {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const ready: ImportLine[] = [];
  const refused: Refusal[] = [];
  const kept: LineProblems[] = [];
  let line = first;
  for (let start = 0; start < buffer.length; line += 1) {
    const found = buffer.indexOf(lineFeed, start);
    const end = found < 0 ? buffer.length : found;
    try {
      const sent = textOf(buffer.subarray(start, end), line);
      if (sent.text !== '') {
        const { names, problems, ...read } = readLine(sent, checks);
        ready.push({ line, newId: newId(), ...read });
        if (names.length + problems.length > 0) kept.push({ line, names, problems });
      }
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown;
      refused.push({ line, why: thrown.message });
    }
    start = end + 1;
  }
  return { count: line - first, ready, refused, kept };
}

/** The JSON of a line. */
interface LineText {
  readonly text: string;
  readonly outline: JsonOutline;
}

function textOf(bytes: Buffer, line: number): LineText {
  if (!isUtf8(bytes)) throw new Failure('invalid', 'not UTF-8.');
  const outline = outlineJson(bytes, []);
  const { depth, values } = outline;
  if (depth > lineDepthMax) throw new Failure('too_large', 'nested too deep.');
  if (values > importLineValuesMax) {
    throw new Failure('too_large', `more than ${importLineValuesMax} values.`);
  }
  const isMarked = line === 1 && bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark);
  return { text: bytes.toString('utf8', isMarked ? byteOrderMark.length : 0).trim(), outline };
}

function readLine(
  sent: LineText,
  { engines, accessNames, isStrict = false }: LineChecks,
): Omit<ImportLine, 'line' | 'newId'> & Pick<LineProblems, 'names' | 'problems'> {
  const { family, v, vk, prefer } = parseLine(sent);
  const hashes = hashRequest(`${family}.insert`, v);
  const isExported = vk !== undefined && idOfExportVk(family, vk) !== undefined;
  if (family === 'table' || family === 'record') return unplacedLine({ family, v, vk, hashes });
  const place = family === 'webhook' ? placeHook : placeRule({ engines, accessNames });
  const data = isExported ? restored(v, place) : place(v);
  if (family === 'userinterface') requirePlace(data);
  // Fields that wait in an exported record are no mistakes of this import.
  const found = isExported ? noProblems : lineProblems(data, { family, v, engines, accessNames });
  requireNoMistakes({ isStrict: isStrict || isStrictPreferred(prefer) }, found.problems);
  return {
    family,
    text: JSON.stringify(data),
    vk: vk ?? derivedVk(hashes),
    ...hashes,
    vkScope: vk === undefined ? 'fields' : isExported ? 'record' : 'request',
    ...found,
  };
}

/** Throws the Failures of a place in the index: a line is refused for them, not the transaction. */
function requirePlace(data: JsonObject): void {
  const rule = { ...(data as unknown as Omit<Rule, 'id'>), id: anyId };
  indexEntriesOf({ rule, seq: seqMax, insertedSeq: seqMax });
}

/** The greatest length of an id. */
const anyId = '00000000-0000-0000-0000-000000000000';

/** A line of a table or row, which is placed in the transaction: see RowImport. */
function unplacedLine({
  family,
  v,
  vk,
  hashes,
}: Pick<ParsedLine, 'family' | 'v' | 'vk'> & { readonly hashes: RequestHashes }): ReturnType<
  typeof readLine
> {
  const isExported = vk !== undefined && idOfExportVk(family, vk) !== undefined;
  return {
    family,
    text: JSON.stringify(v),
    vk: vk ?? derivedVk(hashes),
    ...hashes,
    vkScope: vk === undefined ? 'fields' : isExported ? 'record' : 'request',
    ...noProblems,
  };
}

const noProblems = { names: [], problems: [] } as const;

function lineProblems(
  data: JsonObject,
  {
    family,
    v,
    engines,
    accessNames,
  }: Pick<LineChecks, 'engines' | 'accessNames'> & {
    readonly family: RevertibleFamily;
    readonly v: JsonObject;
  },
): Pick<LineProblems, 'names' | 'problems'> {
  const { _unknowns_: kept, enginedata, kind } = data;
  const unknowns = isJsonObject(kept) ? kept : {};
  const names = Object.keys(unknowns);
  if (family === 'webhook') {
    const problems = hookProblems(data as unknown as Hook, sentNames(v), undefined);
    return { names, problems };
  }
  const checks = { engines, accessNames, base: undefined, allowPrivate: undefined };
  const problems = ruleProblems(data as unknown as Rule, sentNames(v), checks);
  if (kind !== 'resolve' || !isJsonObject(enginedata)) return { names, problems };
  return { names: [...names, ...unreadEnginedata(enginedata, kind)], problems };
}

interface ParsedLine {
  readonly family: RevertibleFamily;
  readonly v: JsonObject;
  readonly vk: string | undefined;
  readonly prefer: string | undefined;
}

function parseLine(sent: LineText): ParsedLine {
  const row = parseObject(sent);
  const { a, vk, ...fields } = row;
  const prefer = a !== undefined && typeof row.prefer === 'string' ? row.prefer : undefined;
  const family =
    typeof a === 'string' || a === undefined ? inserts.get(a ?? ruleInsert) : undefined;
  if (family === undefined) {
    const name = JSON.stringify(a).slice(0, 80);
    const known = [...inserts.keys()].join(', ');
    throw new Failure(
      'invalid',
      `${name} cannot be imported, only ${known}. A batch has edits and events, too.`,
    );
  }
  const v: Json | undefined = a === undefined ? fields : row.v;
  if (!isJsonObject(v)) throw new Failure('invalid', 'v must be an object of fields.');
  // One level more than in an insert, because an exported record has its `_unknowns_`.
  if (nestsDeeper(v, jsonDepthMax + 1)) throw new Failure('too_large', 'nested too deep.');
  if (vk === undefined) return { family, v, vk, prefer };
  if (typeof vk !== 'string' || vk === '' || vk.length > vkCharactersMax) {
    throw new Failure('invalid', `vk must be a text of 1 to ${vkCharactersMax} characters.`);
  }
  return { family, v, vk, prefer };
}

function parseObject({ text, outline }: LineText): JsonObject {
  let row: unknown;
  try {
    row = parseDistinct(text, outline);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure('invalid', 'not JSON.');
  }
  if (!isJsonObject(row)) throw new Failure('invalid', 'not a JSON object.');
  return row;
}

/** Places the fields of a line, and returns the data of its insert. */
type Place = (sent: JsonObject) => JsonObject;

function placeRule(checks: Pick<LineChecks, 'engines' | 'accessNames'>): Place {
  return (sent) => placeRuleFields({ current: undefined, sent }, checks);
}

const placeHook: Place = (sent) => placeHookFields({ current: undefined, sent });

/**
 * The data of an exported record. It differs from that of an insert: a name may be both a field and
 * in `_unknowns_`, where an edit left an invalid value; and a value there may be valid and wait all
 * the same, because an invalidate restored other fields. It becomes a field with the next edit.
 */
export function restored(sent: JsonObject, place: Place): JsonObject {
  const { _unknowns_: unknowns, ...fields } = sent;
  // It also refuses a record that is too large.
  const inserted = place(sent);
  if (!isJsonObject(unknowns)) return inserted;
  const data = place(fields);
  const { _unknowns_: fallen = {} } = data;
  return mergeFields(mergeFields(data, { _unknowns_: unknowns }), { _unknowns_: fallen });
}
