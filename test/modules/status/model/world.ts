import {
  canonicalJson,
  type Json,
  type JsonObject,
} from '../../../../src/core/values/json/json.ts';
import type { Row } from './ledger.ts';
import { asText } from './values.ts';

/** A call of an operation on page rules; `a` has no family. */
export interface Request {
  readonly a: 'insert' | 'edit' | 'invalidate' | 'read' | 'list' | 'get';
  readonly v: JsonObject;
  /** The author of the call: an index of the keys. */
  readonly author: number;
  readonly vk?: string;
  readonly qk?: string;
  /** Accept-Language of a get. */
  readonly languages?: string;
}

/** The compared members of an answer. */
export interface Answer {
  readonly data?: JsonObject;
  readonly error?: { readonly code: string; readonly field?: string };
  readonly vk?: string;
  readonly replayed?: true;
}

/** The request of a vk, and its answer. */
export interface Claim {
  readonly vk: string;
  /** Id of the key that sent it. */
  readonly by: string;
  readonly request: string;
  readonly answer: Answer;
}

/** The state of the model: the rows, and the names that the server has chosen. */
export interface World {
  readonly rows: Row[];
  /** Seq of the newest change of the log, with those of keys. */
  newest: number;
  /** Ids of the keys of requests. */
  readonly authors: readonly string[];
  /** The origin of the server. */
  readonly origin: string;
  readonly claims: Map<string, Claim>;
  /** The vks that the server has derived for inserts, by request. */
  readonly derived: Map<string, string>;
  /** Digests of dry runs, by their effect. */
  readonly digests: Map<string, string>;
  /** Earlier writes, which may be repeated. */
  readonly asked: Request[];
  /** One line for each call. */
  readonly transcript: string[];
}

/** The state after the inserts of the keys. */
export function newWorld(parts: Pick<World, 'newest' | 'authors' | 'origin'>): World {
  return {
    ...parts,
    rows: [],
    claims: new Map(),
    derived: new Map(),
    digests: new Map(),
    asked: [],
    transcript: [],
  };
}

/** Equal requests have equal texts; a null in if_seq means that it is absent. */
export function requestText({ a, v }: Request): string {
  const { if_seq: ifSeq, ...others } = v;
  return canonicalJson([a, a === 'edit' && ifSeq === null ? others : v]);
}

/** A failure as an answer. */
export function refusal(code: string, field?: string): Answer {
  return { error: { code, ...(field !== undefined && { field }) } };
}

/** A moment in the form of callers; undefined for another text, or a seq in the future. */
export function isWithin(world: World, moment: Json): boolean {
  const text = asText(moment);
  if (/^\d+$/.test(text)) return Number(text) <= world.newest;
  return !Number.isNaN(Date.parse(text));
}

/** Compares a row with a moment, which is a seq or a date-time: before, at or after it. */
export function compareTo(row: Row, moment: Json): number {
  const text = asText(moment);
  return /^\d+$/.test(text)
    ? row.seq - Number(text)
    : Date.parse(row.dtu_stored) - Date.parse(text);
}

/** The rows up to a moment; all rows without one. */
export function rowsAt({ rows }: World, moment: Json | undefined): readonly Row[] {
  return moment === undefined ? rows : rows.filter((row) => compareTo(row, moment) <= 0);
}
