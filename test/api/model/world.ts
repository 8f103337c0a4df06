import { canonicalJson, type Json, type JsonObject } from '../../../src/model/json.ts';
import type { Row } from './ledger.ts';
import { asText } from './values.ts';

/** One call of an operation on page rules, `a` without its family. */
export interface Request {
  readonly a: 'insert' | 'edit' | 'invalidate' | 'read' | 'list' | 'get';
  readonly v: JsonObject;
  /** Whose key it is called with: an index of the authors. */
  readonly author: number;
  readonly vk?: string;
  readonly qk?: string;
  /** Accept-Language, of a get. */
  readonly languages?: string;
}

/** What is looked at of an answer. */
export interface Answer {
  readonly data?: JsonObject;
  readonly error?: { readonly code: string; readonly field?: string };
  readonly vk?: string;
  readonly replayed?: true;
}

/** What a vk stands for: the request it came with, and the answer to that. */
export interface Claim {
  readonly vk: string;
  /** Id of the key that it came with. */
  readonly by: string;
  readonly request: string;
  readonly answer: Answer;
}

/** What the model knows: rows, and what the server has named as it liked. */
export interface World {
  readonly rows: Row[];
  /** Seq of the newest change of the log, those of keys included. */
  newest: number;
  /** Ids of the keys that requests come with. */
  readonly authors: readonly string[];
  /** The origin by which the server is reached. */
  readonly origin: string;
  readonly claims: Map<string, Claim>;
  /** The vk that the server has made for an insert without one, by the request. */
  readonly derived: Map<string, string>;
  /** Digests of dry runs, each by what it is of. */
  readonly digests: Map<string, string>;
  /** Writes that were asked for, for those who ask again. */
  readonly asked: Request[];
  /** What happened, a line a call. */
  readonly transcript: string[];
}

/** A world in which nothing has happened but the keys. */
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

/** The text by which two requests are the same; an if_seq that is null is none. */
export function requestText({ a, v }: Request): string {
  const { if_seq: ifSeq, ...others } = v;
  return canonicalJson([a, a === 'edit' && ifSeq === null ? others : v]);
}

/** An answer that refuses. */
export function refusal(code: string, field?: string): Answer {
  return { error: { code, ...(field !== undefined && { field }) } };
}

/** A moment as a caller writes it; undefined for a text that is none, or a seq yet to come. */
export function isWithin(world: World, moment: Json): boolean {
  const text = asText(moment);
  if (/^\d+$/.test(text)) return Number(text) <= world.newest;
  return !Number.isNaN(Date.parse(text));
}

/** Where a row stands to a moment, a seq or a date-time: before it, at it, or after it. */
export function compareTo(row: Row, moment: Json): number {
  const text = asText(moment);
  return /^\d+$/.test(text)
    ? row.seq - Number(text)
    : Date.parse(row.dtu_stored) - Date.parse(text);
}

/** The rows that were there at a moment; all of them where none is given. */
export function rowsAt({ rows }: World, moment: Json | undefined): readonly Row[] {
  return moment === undefined ? rows : rows.filter((row) => compareTo(row, moment) <= 0);
}
