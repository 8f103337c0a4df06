import { isUtf8 } from 'node:buffer';
import { mergeFields, type RevertibleFamily } from '../model/change.ts';
import { Failure } from '../model/failure.ts';
import type { Hook } from '../model/hook.ts';
import { isJsonObject, nestsDeeper, type Json, type JsonObject } from '../model/json.ts';
import { jsonDepthMax, vkCharactersMax } from '../model/limits.ts';
import type { Rule } from '../model/rule.ts';
import { candidatePlace } from '../store/candidates.ts';
import { seqMax } from '../store/key-bytes.ts';
import { idOfExportVk } from './export.ts';
import { placeHookFields } from './hook-placement.ts';
import { requestHashOf } from './idempotency.ts';
import { placeFields } from './placement.ts';

/** A line of an import, read and ready to be written. */
export interface ImportLine {
  /** Its number, from 1. */
  readonly line: number;
  /** What it is: a page rule or a hook. */
  readonly family: RevertibleFamily;
  /** The fields of the record, each in its place. */
  readonly data: JsonObject;
  readonly vk: string;
  readonly requestHash: string;
  /**
   * What the vk stands for: a request, as whoever wrote the line means it; or a record, where the
   * server makes the vk from the fields, or an export from the record's id.
   */
  readonly standsFor: 'request' | 'fields' | 'record';
}

/** A line that cannot be imported. */
export interface Refusal {
  readonly line: number;
  readonly why: string;
}

/** What became of some lines, each kind in the order of its lines. */
export interface ReadLines {
  /** How many lines these were, empty ones included. */
  readonly count: number;
  readonly ready: readonly ImportLine[];
  readonly refused: readonly Refusal[];
}

/** The operations whose envelopes are lines, and what their requests are known by. */
const inserts: ReadonlyMap<string, { readonly family: RevertibleFamily; readonly name: string }> =
  new Map([
    ['svc1.userinterface.insert', { family: 'userinterface', name: 'insert' }],
    ['svc1.webhook.insert', { family: 'webhook', name: 'webhook.insert' }],
  ]);
const ruleInsert = 'svc1.userinterface.insert';
const lineFeed = 0x0a;
const byteOrderMark = Buffer.from('\ufeff');
const langCharactersSafe = 100;
/** As long as an id of ours gets. */
const anyId = '00000000-0000-0000-0000-000000000000';

/**
 * Reads whole lines of NDJSON (contract §1: a rule a line, its vk beside its fields, or an envelope
 * `{a, v, vk}`), the first of them with the number `first`; empty ones count, too.
 */
export function readImportLines(
  bytes: Uint8Array,
  { first, engines }: { readonly first: number; readonly engines: ReadonlySet<string> },
): ReadLines {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const ready: ImportLine[] = [];
  const refused: Refusal[] = [];
  let line = first;
  for (let start = 0; start < buffer.length; line += 1) {
    const found = buffer.indexOf(lineFeed, start);
    const end = found < 0 ? buffer.length : found;
    try {
      const text = textOf(buffer.subarray(start, end), line);
      if (text !== '') ready.push({ line, ...readLine(text, engines) });
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown;
      refused.push({ line, why: thrown.message });
    }
    start = end + 1;
  }
  return { count: line - first, ready, refused };
}

function textOf(bytes: Buffer, line: number): string {
  if (!isUtf8(bytes)) throw new Failure('invalid', 'not UTF-8.');
  const isMarked = line === 1 && bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark);
  return bytes.toString('utf8', isMarked ? byteOrderMark.length : 0).trim();
}

function readLine(text: string, engines: ReadonlySet<string>): Omit<ImportLine, 'line'> {
  const { family, name, v, vk } = parseLine(text);
  const requestHash = requestHashOf([name, v]);
  const isExported = vk !== undefined && idOfExportVk(family, vk) !== undefined;
  const place = family === 'webhook' ? placeHook : placeRule(engines);
  const data = isExported ? restored(v, place) : place(v);
  if (family === 'userinterface') requireRoom(data);
  return {
    family,
    data,
    vk: vk ?? `fields:${requestHash}`,
    requestHash,
    standsFor: vk === undefined ? 'fields' : isExported ? 'record' : 'request',
  };
}

/**
 * Refuses what the store has no room for: here it is one line, there it would be all that are
 * written with it. Of all fields only lang has no limit of its own.
 */
function requireRoom(data: JsonObject): void {
  if (typeof data.lang !== 'string' || data.lang.length < langCharactersSafe) return;
  const rule = { id: anyId, ...data } as unknown as Rule;
  candidatePlace({ rule, seq: seqMax, insertedSeq: seqMax });
}

interface ParsedLine {
  readonly family: RevertibleFamily;
  readonly name: string;
  readonly v: JsonObject;
  readonly vk: string | undefined;
}

function parseLine(text: string): ParsedLine {
  const row = parseObject(text);
  const { a, vk, ...fields } = row;
  const insert =
    typeof a === 'string' || a === undefined ? inserts.get(a ?? ruleInsert) : undefined;
  if (insert === undefined) {
    const name = JSON.stringify(a).slice(0, 80);
    const known = [...inserts.keys()].join(' and ');
    throw new Failure('invalid', `${name} cannot be imported, only ${known}.`);
  }
  const v: Json | undefined = a === undefined ? fields : row.v;
  if (!isJsonObject(v)) throw new Failure('invalid', 'v must be an object of fields.');
  // One level more than an insert has: an exported `_unknowns_` holds what stood in v.
  if (nestsDeeper(v, jsonDepthMax + 1)) throw new Failure('too_large', 'nested too deep.');
  if (vk === undefined) return { ...insert, v, vk };
  if (typeof vk !== 'string' || vk === '' || vk.length > vkCharactersMax) {
    throw new Failure('invalid', `vk must be a text of 1 to ${vkCharactersMax} characters.`);
  }
  return { ...insert, v, vk };
}

function parseObject(text: string): JsonObject {
  let row: unknown;
  try {
    row = JSON.parse(text) as unknown;
  } catch {
    throw new Failure('invalid', 'not JSON.');
  }
  if (!isJsonObject(row)) throw new Failure('invalid', 'not a JSON object.');
  return row;
}

/** Puts the fields of a line in their places, those of a record that is there already included. */
type Place = (sent: JsonObject, current?: JsonObject) => JsonObject;

function placeRule(engines: ReadonlySet<string>): Place {
  return (sent, current) =>
    placeFields({ current: current as Rule | undefined, sent, shown: {}, engines }).data;
}

const placeHook: Place = (sent, current) => placeHookFields(current as Hook | undefined, sent, {});

/**
 * The fields of an exported record. A name may stand both among its fields and in `_unknowns_`,
 * where an edit has left a value that was not valid: an insert would drop that.
 */
function restored(sent: JsonObject, place: Place): JsonObject {
  const data = place(sent);
  const { _unknowns_: unknowns = null } = sent;
  const waiting = isJsonObject(unknowns)
    ? Object.entries(unknowns).filter(([name]) => Object.hasOwn(sent, name))
    : [];
  if (waiting.length === 0) return data;
  return mergeFields(data, place(Object.fromEntries(waiting), { id: anyId, ...data }));
}
